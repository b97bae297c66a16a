//! Random workflows with random commands.
//!
//! [`World`] checks the invariants after every turn. When no more commands come and every
//! dispatch is answered, the run must end.

use super::super::command::{Command, Decision};
use super::super::definition::Definition;
use super::super::projection::project;
use super::super::start::Carried;
use super::super::state::{Pause, Run};
use super::erased;
use super::governed::{budget, cents, rules};
use super::outputs_of;
use super::world::World;
use crate::cost::{Part, Spend};
use crate::doc::{self, Format, Registry};
use crate::journal::event::{DeltaPart, Path, RunStarted, StepAt};
use crate::port::adapter::{Answer, CallErrorCode, Quote, ToolContent, ToolEnded, ToolUse, Usage};
use crate::port::authority::fake::FakeAuthority as Desk;
use crate::port::moderator::Verdict;
use crate::status::RunStatus;
use proptest::prelude::{Strategy, any, prop, proptest};
use proptest::test_runner::Config;
use serde_json::{Map, Value, json};
use sluice_govern::policy::Policies;
use sluice_govern::registry::{AgentStatus, Health, Period, Scope};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// Step ids, not in the order of the document.
const IDS: [&str; 6] = ["m", "c", "x", "a", "t", "f"];

/// A step: random bits, and one bit for each earlier step that it depends on.
type Written = (u64, u8);
/// A command, and the choice of its target.
type Happening = (u8, u8);

/// Picks an item by the bits of a step from `at` on.
fn pick<'w>(bits: u64, at: u32, words: &[&'w str]) -> &'w str {
    let chosen = (bits >> at) % u64::try_from(words.len()).expect("a few words");
    words[usize::try_from(chosen).expect("a small number")]
}

fn parents(place: usize, mask: u8) -> impl Iterator<Item = &'static str> {
    (0..place).filter(move |one| mask >> one & 1 == 1).map(|one| IDS[one])
}

fn flow(steps: &[Written], head: u64) -> String {
    let mut text = format!(
        "name: t\nmax_parallel: {}\nscheduling: {}\n{}steps:\n",
        pick(head, 0, &["1", "2", "8"]),
        pick(head, 4, &["eager", "eager", "waves"]),
        pick(head, 8, &["", "", "timeout: 20s\n"]),
    );
    for (place, (bits, mask)) in steps.iter().enumerate() {
        let work = pick(
            *bits,
            0,
            &[
                "command: go",
                "command: go",
                "workflow_ref: other",
                "command: go, approval: required",
            ],
        );
        let only_asks = bits >> 52 & 7 == 0;
        let work = if only_asks { "approval: required" } else { work };
        let retries = pick(
            *bits,
            4,
            &[
                "",
                "",
                "retry: {attempts: 3, retry_on: [timeout, provider_error, contract_violated]}, ",
            ],
        );
        let policies: &[&str] = if retries.is_empty() {
            &["halt", "skip", "retry_once", "retry_once_then_escalate", "retry"]
        } else {
            &["halt", "skip"]
        };
        let fields = [
            retries,
            pick(*bits, 8, &["", "", "for_each: [1, 2, 3], max_parallel: 2, ", "for_each: [], "]),
            pick(*bits, 12, &["", "", "", "condition: 'false', ", "condition: 'true', "]),
            pick(*bits, 16, &["", "", "timeout: 3s, "]),
            pick(*bits, 20, &["", "", "parallel_failure_policy: fail_fast, "]),
            pick(*bits, 24, &["", "", "idempotent: false, "]),
            pick(*bits, 56, &["", "tools: [files.read, mail.send], "]),
            pick(
                *bits,
                28,
                &["", "outputs: {n: integer}, ", "outputs: {n: integer}, repair: {reask: 1}, "],
            ),
            pick(
                *bits,
                32,
                &["", "on_parent_failure: skip, ", "on_parent_failure: substitute_default, "],
            ),
            pick(
                *bits,
                44,
                &["", "", "moderation: input, ", "moderation: output, ", "moderation: both, "],
            ),
        ];
        let depends: Vec<&str> = parents(place, *mask).collect();
        text.push_str(&format!(
            "  - {{id: {}, {work}, {}on_failure: {}, depends_on: [{}]}}\n",
            IDS[place],
            fields.concat(),
            pick(*bits, 40, policies),
            depends.join(", ")
        ));
    }
    text
}

fn graph(nodes: &[Written], head: u64) -> String {
    let mut text = format!(
        "name: t\nscheduling: {}\nlenses: {{l: {{versions: {{1: {{template: 'on [[x]]'}}}}}}, r: {{versions: {{1: {{template: go}}}}}}}}\nnodes:\n",
        pick(head, 4, &["eager", "waves"]),
    );
    for (place, (bits, mask)) in nodes.iter().enumerate() {
        let config = [
            pick(
                *bits,
                0,
                &["", "", "on_failure: halt, ", "on_failure: skip, ", "on_failure: retry_once, "],
            ),
            pick(
                *bits,
                8,
                &["", "on_parent_failure: propagate, ", "on_parent_failure: substitute_default, "],
            ),
            pick(*bits, 16, &["merge: array", "merge: concat"]),
        ];
        let lens = if parents(place, *mask).next().is_some() { "l" } else { "r" };
        text.push_str(&format!(
            "  - {{id: {}, lens_id: {lens}, config: {{{}}}}}\n",
            IDS[place],
            config.concat()
        ));
    }
    text.push_str("edges:\n");
    for (place, (bits, mask)) in nodes.iter().enumerate() {
        for (at, parent) in (0u32..).zip(parents(place, *mask)) {
            let condition =
                pick(*bits, 24 + 4 * at, &["", "", ", condition: {type: equals, value: go}"]);
            text.push_str(&format!(
                "  - {{id: e{place}_{at}, source_node_id: {parent}, target_node_id: {}, target_param_label: x{condition}}}\n",
                IDS[place]
            ));
        }
    }
    text
}

/// The policies, and the same with a rule that holds a step.
fn sets() -> &'static [Policies; 2] {
    static SETS: OnceLock<[Policies; 2]> = OnceLock::new();
    SETS.get_or_init(|| {
        let ask = r#"@id("ask") @action("require_approval")
            forbid (principal, action == Action::"dispatch_step", resource)
            when { context has step && context.step.id == "x" };
            @id("send") @action("require_approval")
            forbid (principal, action == Action::"use_tool", resource == Tool::"mail.send");"#;
        [rules(""), rules(ask)]
    })
}

/// Rows with limits; none for half of the runs.
fn bounds(head: u64) -> Desk {
    let mut desk = Desk::default();
    if head >> 32 & 1 == 0 {
        return desk;
    }
    desk.otherwise = Quote::AtMost(cents(10));
    let most = [None, Some(1), Some(2)][usize::try_from(head >> 33 & 3).expect("small").min(2)];
    desk.agent_row("mock", |agent| {
        agent.max_concurrent_steps = most;
        agent.queue_timeout_s = if head >> 35 & 1 == 1 { Some(5) } else { None };
        agent.budget_monthly_cents = Some(cents(500));
    });
    desk.budget_row("all", budget(Scope::Global, None, Period::Daily, 150));
    desk.policies = sets()[usize::from(head >> 37 & 1 == 1)].clone();
    desk
}

/// Removes all limits except budgets.
fn lifted(desk: &mut Desk) {
    if let Some(agent) = desk.fabric.agents.get_mut("mock") {
        agent.status = AgentStatus::Idle;
    }
    desk.health.clear();
}

/// Changes the registry, the counters or the health of gateways.
fn turn_of_things(world: &mut World, kind: u8, which: u8) {
    let bounded = world.desk.fabric.agents.contains_key("mock");
    world.set(|desk| match kind {
        _ if !bounded => {}
        0 => desk.agent_row("mock", |agent| {
            agent.status = match which % 8 {
                0 => AgentStatus::Terminated,
                1..=3 => AgentStatus::Paused,
                _ => AgentStatus::Idle,
            };
        }),
        1 => {
            let health = [Health::Offline, Health::Healthy][usize::from(which % 2)];
            desk.health.insert("local".to_owned(), health);
        }
        _ => desk.policies = sets()[usize::from(which % 2)].clone(),
    });
    world.turn(Vec::new());
}

fn begin(format: Format, text: String, is_child: bool, desk: Desk) -> World {
    let registry = Registry::default().with_workflow("other", None);
    let checked = doc::check(text.as_bytes(), Some(format), &registry);
    let plan = checked.plan.unwrap_or_else(|| panic!("{text}\n{:#?}", checked.diagnostics));
    let set = |started: &mut RunStarted| {
        if is_child {
            started.parent = Some(super::parent());
        }
    };
    World::start(plan, text, Map::new(), set, Carried::default(), desk)
}

fn choose<T: Copy>(all: &[T], which: u8) -> Option<T> {
    all.get(usize::from(which) % all.len().max(1)).copied()
}

fn answer(kind: u8) -> Answer {
    let text = |text: &str| Some(text.to_owned());
    let answer = match kind % 6 {
        0 => Answer::failed(CallErrorCode::ProviderError, "it broke"),
        1 => Answer::failed(CallErrorCode::Auth, "it broke"),
        2 => Answer { text: text(""), ..outputs_of(json!({"n": "many"})) },
        3 => Answer { text: text("stop"), ..outputs_of(json!({"n": 2})) },
        _ => Answer { text: text("go"), ..outputs_of(json!({"n": 1})) },
    };
    // Sometimes it costs more than was quoted.
    let usage = Usage { cost: cents(u64::from(kind % 12)), ..answer.usage.clone() };
    Answer { usage, ..answer }
}

/// A dispatch in flight gets a result.
fn land(world: &World, at: StepAt, kind: u8) -> Command {
    let verdict = verdict(kind / 8);
    Command::Checked { command: Box::new(landing(world, at, kind)), verdict }
}

/// A verdict: sometimes the moderator flags the text or does not answer.
fn verdict(kind: u8) -> Verdict {
    match kind % 8 {
        6 => Verdict::Flagged(json!({"phrase": "go"})),
        7 => Verdict::Unavailable("it is not there".to_owned()),
        _ => Verdict::Clear,
    }
}

/// A dispatch in flight gets a result with a verdict of the moderator.
fn landing(world: &World, at: StepAt, kind: u8) -> Command {
    let state = world.run.state(at);
    if let Some(Path::Child(child)) = state.path() {
        let status = [RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled];
        let status = status[usize::from(kind % 3)];
        let error = Some(("auth".to_owned(), "it broke".to_owned()));
        let error = error.filter(|_| status != RunStatus::Completed);
        return Command::ChildEnded {
            child,
            status,
            outputs: Some(json!({"n": 1})),
            error,
            origins: Vec::new(),
            labels: None,
        };
    }
    Command::Complete { at, dispatch_no: state.dispatch_no, answer: Box::new(answer(kind)) }
}

fn resolve(world: &World, which: u8, decision: Decision) -> Option<Command> {
    let awaiting: Vec<StepAt> = world.run.index.awaiting.iter().copied().collect();
    let name = world.run.name(choose(&awaiting, which)?);
    let Value::Object(values) = json!({"n": 1}) else { return None };
    Some(world.resolve(&name, decision, Some("because".to_owned()), values))
}

/// The steps that were settled at some point of the journal.
fn settled_at(world: &World, which: u8) -> BTreeSet<u32> {
    let definition: Arc<Definition> = Arc::clone(&world.run.definition);
    let mut run = Run::new(world.run.id, definition, Arc::clone(&world.run.started));
    let until = world.journal.len() * usize::from(which) / 256;
    for (at_ms, event) in &world.journal[..until] {
        run.evolve(event, *at_ms);
    }
    let settled = (0u32..).zip(&run.steps).filter(|(_, state)| state.is_settled());
    settled.map(|(step, _)| step).collect()
}

/// A step requests one of a few tool calls, so that some are requested twice.
fn tool(at: StepAt, dispatch_no: u32, which: u8) -> Command {
    let tool = ["files.read", "files.write", "mail.send"][usize::from(which % 3)];
    let wanted = ToolUse {
        id: format!("call-{}", which % 5),
        tool: tool.to_owned(),
        input: json!({"n": which % 2}),
    };
    Command::UseTool { at, dispatch_no, wanted }
}

/// One of these calls ends, whether it was allowed or not.
fn tool_ends(at: StepAt, dispatch_no: u32, which: u8) -> Command {
    let tool = ["files.read", "files.write", "mail.send"][usize::from(which % 3)];
    let content = ToolContent::new(format!("said {which}"), None);
    let ended = ToolEnded {
        id: format!("call-{}", which % 5),
        tool: tool.to_owned(),
        failed: which.is_multiple_of(7),
        bytes: 4,
        duration_ms: 1,
        content: (!which.is_multiple_of(4)).then_some(content),
    };
    Command::ToolEnded { at, dispatch_no, ended }
}

fn happen(world: &mut World, (kind, which): Happening) {
    let flying: Vec<StepAt> = world.run.index.in_flight.keys().copied().collect();
    let at = choose(&flying, which);
    let by = || "ada".to_owned();
    let dispatch_no = at.map_or(0, |at| world.run.state(at).dispatch_no);
    let asked: Vec<StepAt> = world.run.index.checking.iter().copied().collect();
    if let Some(at) = choose(&asked, which).filter(|_| kind % 3 == 0) {
        let command = world.judged(at, verdict(which / 8));
        return world.turn(vec![command]);
    }
    let command = match kind % 28 {
        0..=8 => at.map(|at| land(world, at, which / 8)),
        9 | 10 => return world.advance(u64::from(which) * 40),
        11 => return world.advance(u64::from(which) * 3_000_000),
        12 => at.map(|at| Command::Accepted { at, dispatch_no }),
        13 => {
            let part = DeltaPart::Text("part".to_owned());
            at.map(|at| Command::Stream { at, dispatch_no, part })
        }
        14 | 15 => resolve(world, which, Decision::Approve),
        16 => resolve(world, which, Decision::Reject),
        17 => {
            let all = [Decision::Retry, Decision::Skip, Decision::Abort];
            resolve(world, which, all[usize::from(which % 3)])
        }
        18 => Some(Command::TakeOver),
        19 if which < 64 => Some(Command::Cancel { by: by(), reason: "enough".to_owned() }),
        19 => Some(Command::Retry { by: by() }),
        20 => Some(Command::Pause { by: by() }),
        21 => Some(Command::Unpause { by: by() }),
        22 => Some(Command::Retry { by: by() }),
        23 if which < 60 => at.map(|at| tool(at, dispatch_no, which)),
        23 => at.map(|at| tool_ends(at, dispatch_no, which)),
        24..=26 => return turn_of_things(world, kind % 28 - 24, which),
        27 => {
            let open: Vec<(StepAt, u32)> = world.run.open.keys().copied().collect();
            choose(&open, which).map(|(at, dispatch_no)| {
                let answer = Box::new(answer(which));
                Command::Complete { at, dispatch_no, answer }
            })
        }
        _ if which < 100 => Some(Command::Rewind { by: by(), keep: settled_at(world, which) }),
        // A late result of a dispatch that does not exist.
        _ => at.map(|at| Command::Complete {
            at,
            dispatch_no: dispatch_no + 1,
            answer: Box::default(),
        }),
    };
    world.turn(command.into_iter().collect());
}

/// Answers everything until the run has ended.
fn conclude(world: &mut World) {
    world.set(lifted);
    world.turn(Vec::new());
    for _ in 0..500 {
        if world.run.status.is_terminal() {
            settled(world);
            return erased::verify(world);
        }
        let flying = world.run.index.in_flight.keys().next().copied();
        if world.run.pause == Some(Pause::Operator) {
            world.turn(vec![Command::Unpause { by: "ada".to_owned() }]);
        } else if let Some(at) = flying {
            let kind =
                if matches!(world.run.state(at).path(), Some(Path::Child(_))) { 0 } else { 5 };
            let command = land(world, at, kind);
            world.turn(vec![command]);
        } else if let Some(at) = world.run.index.checking.first().copied() {
            let command = world.judged(at, Verdict::Clear);
            world.turn(vec![command]);
        } else if let Some(approve) = resolve(world, 0, Decision::Approve) {
            world.turn(vec![approve]);
            world.turn(resolve(world, 0, Decision::Retry).into_iter().collect());
        } else {
            let due_ms = world.run.next_due_ms().expect("a run that has not ended waits");
            let passed = due_ms - world.now_ms;
            world.advance(passed);
        }
    }
    panic!("the run does not end:\n{}", world.told);
}

/// A day later nothing is reserved or in use.
fn settled(world: &mut World) {
    world.advance(25 * 60 * 60 * 1000);
    let count = |counter: &str| world.desk.counts.get(counter).copied().unwrap_or_default();
    for counter in world.desk.counts.keys() {
        if let Some(account) = counter.strip_prefix("held:") {
            assert_eq!(count(counter), count(&format!("spent:{account}")), "{account}");
        }
    }
    assert_eq!(count("busy:mock"), 0);
    // The counters of costs agree with the usage of the run.
    let booked = world.desk.counts.iter().filter_map(|(name, count)| {
        let spend = Spend::parse(name).filter(|spend| spend.part == Part::Cost)?;
        assert_eq!((&*spend.workflow, &*spend.agent), ("t", "mock"));
        u64::try_from(*count).ok()
    });
    assert_eq!(booked.sum::<u64>(), project(&world.run).cost.micro_cents());
}

fn steps() -> impl Strategy<Value = Vec<Written>> {
    prop::collection::vec((any::<u64>(), any::<u8>()), 1..=IDS.len())
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    prop::collection::vec((any::<u8>(), any::<u8>()), 0..40)
}

proptest! {
    #![proptest_config(Config { cases: 128, failure_persistence: None, ..Config::default() })]

    #[test]
    fn whatever_happens_a_flow_ends(
        steps in steps(), head in any::<u64>(), happenings in happenings()
    ) {
        let mut world = begin(Format::Lobsterx, flow(&steps, head), head % 2 == 0, bounds(head));
        for one in happenings {
            happen(&mut world, one);
        }
        conclude(&mut world);
    }

    #[test]
    fn whatever_happens_a_lens_graph_ends(
        nodes in steps(), head in any::<u64>(), happenings in happenings()
    ) {
        let mut world = begin(Format::Lens, graph(&nodes, head), false, bounds(head));
        for one in happenings {
            happen(&mut world, one);
        }
        conclude(&mut world);
    }

    #[test]
    fn a_restart_carries_what_the_source_wrote(
        steps in steps(), happenings in happenings()
    ) {
        let text = flow(&steps, 0);
        let mut source = begin(Format::Lobsterx, text.clone(), false, Desk::default());
        for one in happenings {
            happen(&mut source, one);
        }
        conclude(&mut source);
        let carried = Carried::for_restart(&source.run, BTreeSet::new());
        let again: BTreeSet<u32> = carried.repeats(&source.run.definition.plan).into_iter().collect();
        let plan = source.run.definition.plan.clone();
        let mut world = World::start(plan, text, Map::new(), |_| {}, carried, Desk::default());
        let kept = source.run.writers.iter().filter(|step| !again.contains(step));
        let kept: Vec<u32> = kept.copied().collect();
        assert!(world.run.writers.starts_with(&kept));
        for step in kept {
            assert_eq!(
                world.run.steps[step as usize].outcome(),
                source.run.steps[step as usize].outcome()
            );
        }
        conclude(&mut world);
    }
}
