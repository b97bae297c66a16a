//! Tests of runs: a script in, a journal out.
//!
//! [`check`] is the only caller of the API. It plays a script turn by turn, and after every turn
//! replays the whole journal from an empty run. The replayed run must equal the live one, the
//! index must equal `reindex`, and the journal must have the right order of events.

mod answers;
mod approvals;
mod budget_approvals;
mod budgets;
mod cancel;
mod carried;
mod child_pace;
mod children;
mod conditions;
mod costs;
mod erased;
mod escalation;
mod failure;
mod fan_out;
mod gates;
mod governed;
mod grants;
mod halt;
mod history;
mod holds;
mod label_flow;
mod label_oracle;
mod labels;
mod layers;
mod lens;
mod lens_contracts;
mod models;
mod moderation;
mod nodes;
mod order;
mod pause;
mod postures;
mod print;
mod provenance;
mod queues;
mod random;
mod recovery;
mod remote;
mod resent;
mod reservations;
mod retry;
mod rewind;
mod scheduling;
mod seen;
mod sessions;
mod switches;
mod take_over;
mod team;
mod timeouts;
mod tools;
mod values;
mod waits;
mod world;

use super::command::{Command, Decision};
use super::start::Carried;
use super::state::Run;
use crate::doc::{self, Format, Registry};
use crate::id::RunId;
use crate::journal::event::{DeltaPart, Event, ParentStep, RunStarted};
use crate::port::adapter::{
    Answer, CallError, CallErrorCode, Process, ToolContent, ToolEnded, ToolUse, Usage,
};
use crate::port::authority::fake::FakeAuthority as Desk;
use crate::status::RunStatus;
use expect_test::Expect;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use world::World;

/// The moves of a test.
struct Script {
    format: Format,
    document: String,
    registry: Registry,
    args: Map<String, Value>,
    starting: Vec<Begin>,
    carried: Option<Box<dyn FnOnce() -> Carried>>,
    desk: Desk,
    moves: Vec<Move>,
}

/// The run and step that start a child.
fn parent() -> ParentStep {
    ParentStep { run: RunId(3), step: "step".to_owned() }
}

/// Changes what a run is started with.
type Begin = Box<dyn FnOnce(&mut RunStarted)>;
type Make = Box<dyn Fn(&World) -> Command>;
type Look = Box<dyn Fn(&World) -> String>;

enum Move {
    /// A turn with these commands.
    Turn(Vec<Make>),
    /// Time passes, and timers fire when they are due.
    Advance(u64),
    /// Time passes while no node owns the run.
    Neglect(u64),
    /// Every dispatch is answered until none is in flight.
    AnswerAll,
    /// A line about the state.
    Show(Look),
    /// The output begins with these lines, which are removed.
    Begins(&'static str),
    /// This process stops dispatching, or starts again.
    Dispatching(super::command::Dispatching),
    /// Rows, policies or counters change.
    Set(Box<dyn FnOnce(&mut Desk)>),
}

impl Script {
    fn new(format: Format, document: &str) -> Script {
        Script {
            format,
            document: document.to_owned(),
            registry: Registry::default(),
            args: Map::new(),
            starting: Vec::new(),
            carried: None,
            desk: Desk::default(),
            moves: Vec::new(),
        }
    }

    /// A script for a `.lobsterX` document, given without its name.
    fn flow(fields: &str) -> Script {
        Script::new(Format::Lobsterx, &format!("name: t\n{}", dedent(fields)))
    }

    /// A script for a lens document, given without its name. Lens `l` has the template `[[x!]]`.
    fn lens(fields: &str) -> Script {
        let fields = dedent(fields);
        let lenses = if fields.contains("lenses:") {
            ""
        } else {
            "lenses: {l: {versions: {1: {template: '[[x!]]'}}}}\n"
        };
        Script::new(Format::Lens, &format!("name: t\n{lenses}{fields}"))
    }

    fn knows(mut self, workflow: &str) -> Script {
        self.registry = self.registry.with_workflow(workflow, None);
        self
    }

    fn arg(mut self, name: &str, value: impl Into<Value>) -> Script {
        self.args.insert(name.to_owned(), value.into());
        self
    }

    /// Sets rows and policies.
    fn under(mut self, set: impl FnOnce(&mut Desk)) -> Script {
        set(&mut self.desk);
        self
    }

    /// Makes the run a child of another run.
    fn started_by_a_step(self) -> Script {
        self.starting(|started| started.parent = Some(parent()))
    }

    /// Changes what the run is started with.
    fn starting(mut self, set: impl FnOnce(&mut RunStarted) + 'static) -> Script {
        self.starting.push(Box::new(set));
        self
    }

    /// The run carries over results of another run.
    fn carrying(mut self, carried: impl FnOnce() -> Carried + 'static) -> Script {
        self.carried = Some(Box::new(carried));
        self
    }

    fn turn(self, make: impl Fn(&World) -> Command + 'static) -> Script {
        self.play(Move::Turn(vec![Box::new(make)]))
    }

    /// Joins the last move with the turn before it.
    fn and(mut self, then: impl FnOnce(Script) -> Script) -> Script {
        let before = self.moves.len();
        self = then(self);
        let Some(Move::Turn(more)) = self.moves.pop() else { panic!("only turns are joined") };
        assert_eq!(self.moves.len(), before, "one move is joined");
        let Some(Move::Turn(first)) = self.moves.last_mut() else { panic!("no turn to join") };
        first.extend(more);
        self
    }

    fn play(mut self, one: Move) -> Script {
        self.moves.push(one);
        self
    }

    fn advance(self, time: &str) -> Script {
        let ms = crate::duration::parse(time).expect("a duration");
        self.play(Move::Advance(ms))
    }

    fn neglected(self, time: &str) -> Script {
        let ms = crate::duration::parse(time).expect("a duration");
        self.play(Move::Neglect(ms))
    }

    fn answer_all(self) -> Script {
        self.play(Move::AnswerAll)
    }

    fn deferred(self) -> Script {
        self.play(Move::Dispatching(super::command::Dispatching::Deferred))
    }

    fn allowed(self) -> Script {
        self.play(Move::Dispatching(super::command::Dispatching::Allowed))
    }

    /// Answers the dispatch of a step that is in flight.
    fn answers(self, step: &str, answer: Answer) -> Script {
        let step = step.to_owned();
        self.turn(move |world| {
            let at = world.at(&step);
            let dispatch_no = world.run.state(at).dispatch_no;
            Command::Complete { at, dispatch_no, answer: Box::new(answer.clone()) }
        })
    }

    fn complete(self, step: &str, outputs: Value) -> Script {
        self.answers(step, outputs_of(outputs))
    }

    fn text(self, step: &str, text: &str) -> Script {
        self.answers(step, Answer { text: Some(text.to_owned()), ..Answer::default() })
    }

    fn fail(self, step: &str, code: CallErrorCode) -> Script {
        self.answers(step, Answer::failed(code, "it broke"))
    }

    fn fail_for(self, step: &str, code: CallErrorCode, retry_after_ms: u64) -> Script {
        let retry_after_ms = Some(retry_after_ms);
        let error = CallError { code, message: "it broke".to_owned(), retry_after_ms };
        self.answers(step, Answer { error: Some(error), ..Answer::default() })
    }

    /// Answers a dispatch that may have ended.
    fn complete_dispatch(self, step: &str, dispatch_no: u32) -> Script {
        let step = step.to_owned();
        self.turn(move |world| Command::Complete {
            at: world.at(&step),
            dispatch_no,
            answer: Box::default(),
        })
    }

    fn accepted(self, step: &str) -> Script {
        let step = step.to_owned();
        self.turn(move |world| {
            let at = world.at(&step);
            Command::Accepted { at, dispatch_no: world.run.state(at).dispatch_no }
        })
    }

    fn stream(self, step: &str, text: &str) -> Script {
        let (step, part) = (step.to_owned(), DeltaPart::Text(text.to_owned()));
        self.turn(move |world| {
            let at = world.at(&step);
            let dispatch_no = world.run.state(at).dispatch_no;
            Command::Stream { at, dispatch_no, part: part.clone() }
        })
    }

    fn process(self, step: &str) -> Script {
        let step = step.to_owned();
        self.turn(move |world| {
            let at = world.at(&step);
            let process = Process { group: 77, started: "5".to_owned() };
            Command::Process { at, dispatch_no: world.run.state(at).dispatch_no, process }
        })
    }

    fn log(self, step: &str, text: &str) -> Script {
        let (step, text) = (step.to_owned(), text.to_owned());
        self.turn(move |world| {
            let at = world.at(&step);
            let dispatch_no = world.run.state(at).dispatch_no;
            Command::Log { at, dispatch_no, text: text.clone() }
        })
    }

    /// A step requests a tool call.
    fn uses(self, step: &str, id: &str, tool: &str, input: Value) -> Script {
        let (step, id, tool) = (step.to_owned(), id.to_owned(), tool.to_owned());
        self.turn(move |world| {
            let at = world.at(&step);
            let wanted = ToolUse { id: id.clone(), tool: tool.clone(), input: input.clone() };
            let dispatch_no = world.run.state(at).dispatch_no;
            Command::UseTool { at, dispatch_no, wanted }
        })
    }

    /// A tool answers, with fields.
    fn tool_answers(self, step: &str, id: &str, tool: &str, fields: Value) -> Script {
        let content = Some(ToolContent::new(String::new(), Some(fields)));
        self.ended(step, id, tool, content)
    }

    /// A tool call ends.
    fn ended(self, step: &str, id: &str, tool: &str, content: Option<ToolContent>) -> Script {
        let (step, id, tool) = (step.to_owned(), id.to_owned(), tool.to_owned());
        self.turn(move |world| {
            let at = world.at(&step);
            let ended = ToolEnded {
                id: id.clone(),
                tool: tool.clone(),
                failed: false,
                bytes: 2,
                duration_ms: 1,
                content: content.clone(),
            };
            Command::ToolEnded { at, dispatch_no: world.run.state(at).dispatch_no, ended }
        })
    }

    fn cancel(self) -> Script {
        self.turn(|_| Command::Cancel { by: "ada".to_owned(), reason: "not needed".to_owned() })
    }

    fn pause(self) -> Script {
        self.turn(|_| Command::Pause { by: "ada".to_owned() })
    }

    fn unpause(self) -> Script {
        self.turn(|_| Command::Unpause { by: "ada".to_owned() })
    }

    fn retry(self) -> Script {
        self.turn(|_| Command::Retry { by: "ada".to_owned() })
    }

    /// Rewinds to a checkpoint at which only these steps were settled.
    fn rewind(self, keep: &[&str]) -> Script {
        let keep: Vec<String> = keep.iter().map(|&id| id.to_owned()).collect();
        self.turn(move |world| {
            let keep: BTreeSet<u32> = keep.iter().map(|id| world.at(id).step).collect();
            Command::Rewind { by: "ada".to_owned(), keep }
        })
    }

    /// Assigns a step to a member or an agent.
    fn assign(self, step: &str, whom: &str) -> Script {
        let (step, whom) = (step.to_owned(), whom.to_owned());
        self.turn(move |world| Command::Assign {
            by: "ada".to_owned(),
            step: world.at(&step).step,
            whom: whom.clone(),
        })
    }

    fn take_over(self) -> Script {
        self.turn(|_| Command::TakeOver)
    }

    /// Decides the newest approval of a step, open or closed.
    fn resolve(self, step: &str, decision: Decision, comment: Option<&str>) -> Script {
        self.resolve_with(step, decision, comment, Value::Object(Map::new()))
    }

    fn resolve_with(
        self,
        step: &str,
        decision: Decision,
        comment: Option<&str>,
        values: Value,
    ) -> Script {
        let (step, comment) = (step.to_owned(), comment.map(str::to_owned));
        let Value::Object(values) = values else { panic!("values are an object") };
        self.turn(move |world| world.resolve(&step, decision, comment.clone(), values.clone()))
    }

    fn approve(self, step: &str) -> Script {
        self.resolve(step, Decision::Approve, None)
    }

    fn reject(self, step: &str, why: &str) -> Script {
        self.resolve(step, Decision::Reject, Some(why))
    }

    /// The child run of a step ended.
    fn child(self, step: &str, status: RunStatus, outputs: Option<Value>, error: &str) -> Script {
        let step = step.to_owned();
        let error = Some(("provider_error".to_owned(), error.to_owned()));
        let error = error.filter(|(_, message)| !message.is_empty());
        self.turn(move |world| Command::ChildEnded {
            child: world.child_of(&step),
            status,
            outputs: outputs.clone(),
            error: error.clone(),
            origins: Vec::new(),
            labels: None,
        })
    }

    fn show(self, look: impl Fn(&World) -> String + 'static) -> Script {
        self.play(Move::Show(Box::new(look)))
    }

    /// Checks the lines that scripts of one kind begin with, so that each test shows only the
    /// rest.
    fn begins(self, lines: &'static str) -> Script {
        self.play(Move::Begins(lines))
    }

    fn show_prompt(self, step: &str) -> Script {
        let step = step.to_owned();
        self.show(move |world| {
            let prepared = world.run.state(world.at(&step)).prepared.clone();
            let prepared = prepared.expect("the step was prepared");
            let inputs = Value::Object(prepared.inputs.clone());
            format!("{step} is given {inputs} and {:?}", prepared.prompt)
        })
    }

    fn show_due(self) -> Script {
        self.show(World::due)
    }

    fn show_status(self) -> Script {
        self.show(|world| {
            let pause = world.run.pause.map_or(String::new(), |why| format!(" ({})", why.as_str()));
            format!("status: {}{pause}", world.run.status)
        })
    }

    fn show_variables(self) -> Script {
        self.show(|world| {
            let all: Map<String, Value> =
                world.run.variables().map(|(name, value)| (name.clone(), value.clone())).collect();
            format!("variables: {}", Value::Object(all))
        })
    }

    fn plan(&self) -> crate::plan::Plan {
        let checked = doc::check(self.document.as_bytes(), Some(self.format), &self.registry);
        checked.plan.unwrap_or_else(|| panic!("refused: {:#?}", checked.diagnostics))
    }

    /// Plays the script and returns the world.
    fn world(self) -> World {
        let plan = self.plan();
        let carried = self.carried.map(|make| make()).unwrap_or_default();
        let Script { document, args, starting, desk, .. } = self;
        let set = |started: &mut RunStarted| starting.into_iter().for_each(|set| set(started));
        let mut world = World::start(plan, document, args, set, carried, desk);
        for one in self.moves {
            match one {
                Move::Turn(makes) => {
                    let commands = makes.iter().map(|make| make(&world)).collect();
                    world.turn(commands);
                }
                Move::Advance(ms) => world.advance(ms),
                Move::Neglect(ms) => world.now_ms += ms,
                Move::AnswerAll => world.answer_all(),
                Move::Show(look) => {
                    let line = look(&world);
                    let line = world.shorten(&line);
                    world.say(&line);
                }
                Move::Begins(lines) => world.begins(&dedent(lines)),
                Move::Dispatching(dispatching) => {
                    world.dispatching = dispatching;
                    world.turn(Vec::new());
                }
                Move::Set(set) => world.set(set),
            }
        }
        world.verify();
        erased::verify(&world);
        world
    }

    /// Plays the script and returns the run.
    fn run(self) -> Run {
        self.world().run
    }

    /// Plays the script and returns the events.
    fn events(self) -> Vec<Event> {
        self.world().journal.into_iter().map(|(_, event)| event).collect()
    }
}

fn outputs_of(outputs: Value) -> Answer {
    let Value::Object(outputs) = outputs else { panic!("outputs are an object") };
    let usage = Usage { input_tokens: 1, ..Usage::default() };
    Answer { outputs: Some(outputs), usage, ..Answer::default() }
}

/// Plays a script and compares its output.
#[expect(clippy::needless_pass_by_value, reason = "expectations are written in place")]
fn check(script: Script, expected: Expect) {
    expected.assert_eq(&script.world().told);
}

/// The text without the indentation its lines share.
fn dedent(text: &str) -> String {
    let full = || text.lines().filter(|line| !line.trim().is_empty());
    let margin = full().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    full().map(|line| format!("{}\n", &line[margin..])).collect()
}
