//! Runs for tests: a document, and the commands of a run of it.

use crate::doc::{Format, Registry, check};
use crate::id::{ApprovalId, Entropy, RunId};
use crate::journal::event::{DeltaPart, Event, RunStarted};
use crate::money::Money;
use crate::port::adapter::{Answer, CallErrorCode, Usage};
use crate::port::authority::fake::FakeAuthority;
use crate::run::command::{Command, Decision, Dispatching, Given, Resolve};
use crate::run::decide::Turn;
use crate::run::definition::Definition;
use crate::run::start::{Carried, start};
use crate::run::state::Run;
use serde_json::{Map, Value};
use std::sync::Arc;

/// 2026-01-31T23:59:59.000Z, a second before the month ends.
pub(crate) const BEGIN_MS: u64 = 1_769_903_999_000;

/// A run that a test drives.
pub(crate) struct Script {
    pub(crate) run: Run,
    /// Every event, with its time.
    pub(crate) journal: Vec<(Event, u64)>,
    now_ms: u64,
    chance: Counter,
}

/// Entropy that counts up.
struct Counter(u64);

impl Entropy for Counter {
    fn bits(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

impl Script {
    pub(crate) fn lobsterx(text: &str) -> Script {
        Script::new(text, Format::Lobsterx, Map::new())
    }

    pub(crate) fn lens(text: &str, args: Value) -> Script {
        let Value::Object(args) = args else { panic!("arguments are an object") };
        Script::new(text, Format::Lens, args)
    }

    fn new(text: &str, format: Format, args: Map<String, Value>) -> Script {
        let checked = check(text.as_bytes(), Some(format), &Registry::default());
        let plan = checked.plan.unwrap_or_else(|| panic!("refused: {:#?}", checked.diagnostics));
        let definition = Arc::new(Definition::new(plan, text.to_owned()));
        let mut chance = Counter(0);
        let started = RunStarted {
            workflow: definition.plan.name.clone(),
            version: definition.plan.version,
            definition_hash: definition.hash.clone(),
            args: Arc::new(args),
            default_agent: Some("mock".to_owned()),
            gateway: "local".to_owned(),
            initiator: "ada".to_owned(),
            trace_id: "0".repeat(32),
            root_span_id: "0".repeat(16),
            ..RunStarted::default()
        };
        let authority = FakeAuthority::default();
        let given = Given {
            now_ms: BEGIN_MS,
            entropy: &mut chance,
            dispatching: Dispatching::Allowed,
            authority: &authority,
        };
        let (run, decided) = start(RunId(1), definition, started, Carried::default(), given);
        let journal = decided.events.into_iter().map(|event| (event, BEGIN_MS)).collect();
        Script { run, journal, now_ms: BEGIN_MS, chance }
    }

    /// A turn with one command.
    pub(crate) fn tell(mut self, command: Command) -> Script {
        self.turn(Some(command));
        self
    }

    /// Advances the clock and fires the timers that are due.
    pub(crate) fn wait(mut self, ms: u64) -> Script {
        self.now_ms += ms;
        self.turn(None);
        self
    }

    fn turn(&mut self, command: Option<Command>) {
        let authority = FakeAuthority::default();
        let given = Given {
            now_ms: self.now_ms,
            entropy: &mut self.chance,
            dispatching: Dispatching::Allowed,
            authority: &authority,
        };
        let mut turn = Turn::new(&mut self.run, given);
        if let Some(command) = command {
            turn.apply(command).expect("the script makes sense");
        }
        let events = turn.finish().events;
        self.journal.extend(events.into_iter().map(|event| (event, self.now_ms)));
    }

    /// Answers the dispatch of a step in flight after 250 ms.
    pub(crate) fn answer(mut self, name: &str, answer: Answer) -> Script {
        self.now_ms += 250;
        let at = self.run.find(name).expect("the step exists");
        let dispatch_no = self.run.state(at).dispatch_no;
        self.tell(Command::Complete { at, dispatch_no, answer: Box::new(answer) })
    }

    pub(crate) fn says(self, name: &str, text: &str) -> Script {
        self.answer(name, answer(text, None))
    }

    pub(crate) fn gives(self, name: &str, outputs: Value) -> Script {
        self.answer(name, answer(&outputs.to_string(), Some(outputs)))
    }

    pub(crate) fn fails(self, name: &str, code: CallErrorCode) -> Script {
        self.answer(name, Answer { usage: usage(), ..Answer::failed(code, "no answer") })
    }

    pub(crate) fn streams(mut self, name: &str, text: &str) -> Script {
        self.now_ms += 50;
        let at = self.run.find(name).expect("the step exists");
        let dispatch_no = self.run.state(at).dispatch_no;
        self.tell(Command::Stream { at, dispatch_no, part: DeltaPart::Text(text.to_owned()) })
    }

    /// Decides the first open approval.
    pub(crate) fn resolve(self, decision: Decision, comment: Option<&str>) -> Script {
        let mut open = self.run.approvals.iter().filter(|(_, one)| one.resolution.is_none());
        let approval: ApprovalId = *open.next().expect("a question is open").0;
        let comment = comment.map(str::to_owned);
        let (by, values) = ("bob".to_owned(), Map::new());
        let (roles, constraints) = (Vec::new(), None);
        let resolve = Resolve { approval, decision, by, comment, values, roles, constraints };
        self.tell(Command::Resolve(Box::new(resolve)))
    }
}

fn answer(text: &str, outputs: Option<Value>) -> Answer {
    let outputs = outputs.and_then(|outputs| outputs.as_object().cloned());
    Answer { text: Some(text.to_owned()), outputs, usage: usage(), ..Answer::default() }
}

fn usage() -> Usage {
    Usage {
        model: Some("mock-1".to_owned()),
        input_tokens: 10,
        output_tokens: 20,
        thinking_tokens: 5,
        cached_tokens: 0,
        unpriced: false,
        cost: Money::from_micro_cents(210_000),
        unknown: false,
    }
}

/// Runs with every kind of end, shared by the tests of projections and snapshots.
pub(crate) mod documents {
    pub(crate) const CHAIN: &str = "
name: chain
version: 3
steps:
  - id: b
    command: Use ${a.outputs.n}
    retry: {attempts: 3, backoff_ms: 1000}
  - id: a
    command: Count
    outputs: {n: integer}
  - id: c
    command: Also ${b.stdout} ${a.stdout}
    condition: $a.outputs.n > 5
";

    pub(crate) const ASKS: &str = "
name: asks
steps:
  - id: pay
    command: Pay 5 dollars
    approval: {required: true, summary: Pay?, expires_in: 2d}
  - id: note
    command: Note it
    depends_on: [pay]
    on_failure: retry_once_then_escalate
";

    pub(crate) const EACH: &str = "
name: each
steps:
  - id: one
    for_each: {items: [x, y, z], max_parallel: 2}
    command: Do ${item}
    on_failure: skip
    outputs: {done: boolean}
  - id: all
    command: Gather ${one.outputs.items}
";

    pub(crate) const GRAPH: &str = "
name: graph
lenses:
  write:
    versions:
      1:
        template: About [[topic]]
        input_contract: {fields: {topic: {type: string, minLength: 3}}}
        output_contract: {kind: text, schema: {score: {type: integer, max: 10}}}
  join:
    versions:
      1: {template: 'Join [[left]] [[right]]'}
nodes:
  - {id: left, label: Left side, lens_id: write, ordinal: 2}
  - {id: right, lens_id: write, ordinal: 1}
  - {id: both, lens_id: join, config: {on_parent_failure: substitute_default}}
  - {id: after, lens_id: join, config: {on_parent_failure: skip}}
edges:
  - {id: e1, source_node_id: left, target_node_id: both, target_param_label: left}
  - {id: e2, source_node_id: right, target_node_id: both, target_param_label: right}
  - {id: e3, source_node_id: left, target_node_id: after, target_param_label: left}
  - {id: e4, source_node_id: right, target_node_id: after, target_param_label: right}
";
}
