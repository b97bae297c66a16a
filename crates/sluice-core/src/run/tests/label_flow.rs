//! Random workflows whose steps read values of each other, with random commands. The oracle of
//! [`World`] checks after every turn that no label is lost.

use super::outputs_of;
use super::world::World;
use crate::doc::{self, Format, Registry};
use crate::journal::event::{Path, RunStarted, StepAt};
use crate::origin::{FlowLabels, Labels, PassedLabels, SourceClass};
use crate::port::adapter::{Answer, CallErrorCode, ToolUse};
use crate::port::authority::fake::FakeAuthority as Desk;
use crate::run::command::{Command, Decision};
use crate::run::start::Carried;
use crate::status::RunStatus;
use proptest::prelude::{Strategy, any, prop, proptest};
use proptest::test_runner::Config;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const IDS: [&str; 6] = ["m", "c", "x", "a", "t", "f"];

/// Bits that choose what a step does and reads.
type Bits = u64;

fn pick<'w>(bits: Bits, at: u32, words: &[&'w str]) -> &'w str {
    let count = u64::try_from(words.len()).expect("a few words");
    words[usize::try_from((bits >> at) % count).expect("a small number")]
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Approval,
    Workflow,
    ForEach,
    Stdin,
    Inputs,
}

fn kind(bits: Bits, place: usize) -> Kind {
    match (bits >> 16) % 8 {
        0 => Kind::Approval,
        1 => Kind::Workflow,
        2 if place > 0 => Kind::ForEach,
        3 if place > 0 => Kind::Stdin,
        _ => Kind::Inputs,
    }
}

/// An earlier step.
fn earlier(bits: Bits, at: u32, place: usize) -> usize {
    usize::try_from(bits >> at & 0xff).expect("a byte") % place
}

/// A value that a step can read: an argument, or an output of an earlier step.
fn value(steps: &[Bits], at: u32, place: usize) -> String {
    let bits = steps[place];
    if place == 0 || (bits >> at).is_multiple_of(4) {
        return pick(bits, at + 2, &["args.page", "args.name"]).to_owned();
    }
    let source = earlier(bits, at, place);
    let parts: &[&str] = match kind(steps[source], source) {
        Kind::Approval => &["n", "p", "q", "outputs", "comment", "approved"],
        Kind::Workflow => &["n", "list", "outputs"],
        Kind::ForEach => &["outputs"],
        Kind::Stdin => &["n", "outputs.n", "list", "stdout", "outputs"],
        Kind::Inputs => &["n", "outputs.n", "p", "p", "q", "list", "stdout"],
    };
    format!("{}.{}", IDS[source], pick(bits, at + 4, parts))
}

fn step(steps: &[Bits], place: usize) -> String {
    let (id, bits) = (IDS[place], steps[place]);
    let (one, two) = (value(steps, 0, place), value(steps, 8, place));
    let inputs = format!("inputs: {{p: {one}, q: {{from: [{two}, {one}], default: 0}}}}");
    let outputs = "outputs: {n: integer, list: array}, repair: {reask: 2}, on_failure: retry_once";
    let work = match kind(bits, place) {
        Kind::Approval => format!("approval: required, {inputs}, outputs: {{n: integer}}"),
        Kind::Workflow => {
            let declared = "outputs: {n: integer, list: array}";
            format!("workflow_ref: other, args: {{p: '${{{one}}}', n: ['${{{two}}}']}}, {declared}")
        }
        Kind::ForEach => {
            let list = match value(steps, 20, place) {
                list if list.ends_with(".list") => list,
                _ => "args.list".to_owned(),
            };
            format!("command: 'use ${{item}}', for_each: {list}, {outputs}")
        }
        Kind::Stdin => {
            let source = IDS[earlier(bits, 20, place)];
            format!("command: 'use ${{{one}}}', stdin: ${source}.json, {outputs}")
        }
        Kind::Inputs => format!(
            "command: 'use ${{{two}}}', tools: ['files.*'], merge: {}, {inputs}, {outputs}",
            pick(bits, 24, &["array", "concat", "last_write_wins"])
        ),
    };
    let decides = |source: usize| kind(steps[source], source) != Kind::ForEach;
    let condition = match (bits >> 32) % 4 {
        0 if place > 0 && decides(earlier(bits, 36, place)) => {
            let source = IDS[earlier(bits, 36, place)];
            let test = pick(bits, 44, &["== 1", "!= 1"]);
            format!(", condition: '{source}.n {test}'")
        }
        _ => String::new(),
    };
    format!("  - {{id: {id}, {work}{condition}, on_parent_failure: substitute_default}}\n")
}

fn document(steps: &[Bits]) -> String {
    let args = "args: {page: string, name: string, list: array}";
    let mut text = format!("name: t\n{args}\nsteps:\n");
    for place in 0..steps.len() {
        text.push_str(&step(steps, place));
    }
    text
}

fn begin(text: &str, carried: Carried) -> Option<World> {
    let registry = Registry::default().with_workflow("other", None);
    let plan = doc::check(text.as_bytes(), Some(Format::Lobsterx), &registry).plan?;
    let Value::Object(args) = json!({"page": "<p>", "name": "Ada", "list": [1]}) else {
        return None;
    };
    let set = |started: &mut RunStarted| {
        started.parent = Some(super::parent());
        let page = FlowLabels::of(["web"], []);
        let name = FlowLabels::of(["caller"], ["customer"]);
        let mut labels = Labels::of(SourceClass::Caller, 5);
        labels.flow.join(&page);
        labels.flow.join(&name);
        let own = [("page".to_owned(), page), ("name".to_owned(), name)];
        started.passed = PassedLabels { labels, field_labels: own.into_iter().collect() };
    };
    Some(World::start(plan, text.to_owned(), args, set, carried, Desk::default()))
}

fn answer(kind: u8) -> Answer {
    match kind % 5 {
        0 => Answer::failed(CallErrorCode::ProviderError, "it broke"),
        1 => outputs_of(json!({"n": "many", "list": []})),
        kind => Answer {
            text: Some("said".to_owned()),
            ..outputs_of(json!({"n": kind - 2, "list": [1, "two"]}))
        },
    }
}

fn land(world: &World, at: StepAt, kind: u8) -> Command {
    let state = world.run.state(at);
    if let Some(Path::Child(child)) = state.path() {
        let own = [("n".to_owned(), FlowLabels::of(["crm"], []))].into_iter().collect();
        let labels = Labels::of(SourceClass::Agent, 5);
        let passed = PassedLabels { labels, field_labels: own };
        return Command::ChildEnded {
            child,
            status: RunStatus::Completed,
            outputs: Some(json!({"n": kind % 2, "list": [1]})),
            error: None,
            origins: Vec::new(),
            labels: (!kind.is_multiple_of(3)).then_some(passed),
        };
    }
    Command::Complete { at, dispatch_no: state.dispatch_no, answer: Box::new(answer(kind)) }
}

fn happen(world: &mut World, (kind, which): (u8, u8)) {
    let flying: Vec<StepAt> = world.run.index.in_flight.keys().copied().collect();
    let at = flying.get(usize::from(which) % flying.len().max(1)).copied();
    let awaiting: Vec<StepAt> = world.run.index.awaiting.iter().copied().collect();
    let command = match kind % 12 {
        0 | 1 => at.map(|at| {
            let id = format!("call-{}", which % 5);
            let wanted = ToolUse { id, tool: "files.read".to_owned(), input: json!({}) };
            Command::UseTool { at, dispatch_no: world.run.state(at).dispatch_no, wanted }
        }),
        2 => Some(Command::TakeOver),
        3 => return world.advance(u64::from(which) * 100),
        4 if which < 40 => {
            Some(Command::Rewind { by: "ada".to_owned(), keep: BTreeSet::from([0, 1]) })
        }
        5 => Some(Command::Retry { by: "ada".to_owned() }),
        6..=8 => awaiting.get(usize::from(which) % awaiting.len().max(1)).map(|at| {
            let name = world.run.name(*at);
            let mut values = Map::new();
            values.insert("n".to_owned(), u64::from(which % 2).into());
            values.insert("typed".to_owned(), "by a person".into());
            world.resolve(&name, Decision::Approve, Some("fine".to_owned()), values)
        }),
        _ => at.map(|at| land(world, at, which)),
    };
    world.turn(command.into_iter().collect());
}

proptest! {
    #![proptest_config(Config { cases: 300, ..Config::default() })]

    #[test]
    fn no_label_is_lost_without_an_endorsement(
        steps in prop::collection::vec(any::<Bits>(), 1..7),
        happenings in prop::collection::vec(any::<(u8, u8)>(), 0..60),
        later in prop::collection::vec(any::<(u8, u8)>().prop_map(|(_, which)| (9, which)), 0..20),
    ) {
        let text = document(&steps);
        if let Some(mut world) = begin(&text, Carried::default()) {
            for one in happenings {
                happen(&mut world, one);
            }
            let carried = Carried::for_restart(&world.run, BTreeSet::new());
            let mut next = begin(&text, carried).expect("the same document");
            for one in later {
                happen(&mut next, one);
            }
        }
    }
}

#[test]
fn random_documents_are_valid() {
    let bits = |seed: u64| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let all = (1..60u64).map(|seed| [bits(seed), bits(seed * 7), bits(seed * 13), bits(seed * 29)]);
    let valid = all.filter(|steps| begin(&document(steps), Carried::default()).is_some());
    assert_eq!(valid.count(), 59);
}
