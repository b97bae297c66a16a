//! Policies about what happened before: in the run, in a conversation, and across runs.

use super::Script;
use super::governed::rules;
use super::world::World;
use crate::journal::event::{Event, LogLine, Ruling, StepEvent};
use crate::port::adapter::{Answer, CallErrorCode, ToolEnded};
use crate::port::authority::fake::FakeAuthority as Desk;
use crate::run::command::{Command, Decision};
use serde_json::{Value, json};
use sluice_govern::catalog::{Catalog, ServerDeclaration, ToolDeclaration};
use sluice_govern::facts::ArgumentRole;
use sluice_govern::registry::SessionMode;

const FLOW: &str = "steps: [{id: a, command: go, tools: ['bank.*', 'mail.*', 'crm.*']}]";

fn under(policy: &'static str) -> Script {
    Script::flow(FLOW).under(move |desk| desk.policies = rules(policy))
}

impl Script {
    /// A tool call ends.
    fn ends(self, step: &str, id: &str, tool: &str, failed: bool) -> Script {
        let (step, id, tool) = (step.to_owned(), id.to_owned(), tool.to_owned());
        self.turn(move |world| {
            let at = world.at(&step);
            let dispatch_no = world.run.state(at).dispatch_no;
            let (id, tool) = (id.clone(), tool.clone());
            let ended = ToolEnded { id, tool, failed, bytes: 2, duration_ms: 1, content: None };
            Command::ToolEnded { at, dispatch_no, ended }
        })
    }

    /// A call of `bank.pay` that is requested, and ends if it is allowed.
    fn pays(self, id: &str, amount: i64, failed: bool) -> Script {
        self.uses("a", id, "bank.pay", json!({ "amount": amount }))
            .ends("a", id, "bank.pay", failed)
    }
}

/// What was decided about each call, in order.
fn rulings(world: &World) -> String {
    let ruling = |(_, event): &(u64, Event)| match event {
        Event::Step(_, StepEvent::Log { line: LogLine::Tool(request), .. }) => {
            let word = match &request.ruling {
                Ruling::Allowed(_) => "yes",
                Ruling::Denied(_) => "no",
                Ruling::Held(_) => "asks",
            };
            Some(format!("{} {word}", request.id))
        }
        _ => None,
    };
    world.journal.iter().filter_map(ruling).collect::<Vec<_>>().join(", ")
}

/// The facts about history that the last decision recorded.
fn recorded(world: &World) -> Value {
    let last = world.journal.iter().rev().find_map(|(_, event)| match event {
        Event::Step(_, StepEvent::GovernanceDecided(record)) => Some(record.value()),
        _ => None,
    });
    last.expect("a decision")["facts"]["history"].clone()
}

/// Counters about history, without the digests of their facts.
fn counters(world: &World) -> String {
    let short = |name: &str| {
        let (kind, agent) = (name.split(':').next()?, name.rsplit(':').next()?);
        kind.starts_with("history").then(|| format!("{kind}:{agent}"))
    };
    let counts = world.desk.counts.iter().filter(|(_, count)| **count != 0);
    let counts = counts.filter_map(|(name, count)| Some(format!("{}={count}", short(name)?)));
    counts.collect::<Vec<_>>().join(", ")
}

const FIVE: &str = r#"@id("five") forbid (principal, action == Action::"use_tool", resource == Tool::"bank.pay")
    when temporal { count_within(1h, Action::"use_tool"::error { tool: "bank.pay" }) >= 5 };"#;

#[test]
fn no_payment_after_the_fifth_failed_one() {
    let mut script = under(FIVE);
    for id in ["1", "2", "3", "4", "5", "6"] {
        script = script.pays(id, 10, id != "3");
    }
    let world = script.pays("7", 10, false).uses("a", "8", "mail.send", json!({})).world();
    let all = "1 yes, 2 yes, 3 yes, 4 yes, 5 yes, 6 yes, 7 no, 8 yes";
    assert_eq!(rulings(&world), all);
    // The policy is about another tool, so the last decision used none of its facts.
    assert_eq!(recorded(&world), Value::Null);
}

#[test]
fn a_window_ends_and_a_crash_changes_nothing() {
    let mut script = under(FIVE);
    for id in ["1", "2", "3", "4", "5"] {
        script = script.pays(id, 10, true).take_over();
    }
    let world = script
        .uses("a", "6", "bank.pay", json!({"amount": 1}))
        .take_over()
        .uses("a", "7", "bank.pay", json!({"amount": 1}))
        .show(recorded_text)
        .world();
    assert_eq!(rulings(&world), "1 yes, 2 yes, 3 yes, 4 yes, 5 yes, 6 no, 7 no");
    let name = "run: count_within(1h, Action::\"use_tool\"::error { tool: \"bank.pay\" })";
    assert_eq!(recorded(&world), json!({ name: 5 }));
    let mut script = Script::flow("steps: [{id: a, command: go, tools: ['bank.*'], timeout: 3h}]")
        .under(|desk| desk.policies = rules(FIVE));
    for id in ["1", "2", "3", "4", "5"] {
        script = script.pays(id, 10, true);
    }
    let world = script.pays("6", 1, false).advance("1h").pays("7", 1, false).advance("1s");
    assert_eq!(
        rulings(&world.pays("8", 1, false).world()),
        "1 yes, 2 yes, 3 yes, 4 yes, 5 yes, 6 no, 7 no, 8 yes"
    );
}

fn recorded_text(world: &World) -> String {
    recorded(world).to_string()
}

#[test]
fn mail_only_after_the_customer_record_was_read() {
    let read_first = r#"@id("read-first") forbid (principal, action == Action::"use_tool",
        resource == Tool::"mail.send")
        unless temporal { formerly within 1h Action::"use_tool"::response { tool: "crm.read" } };"#;
    let world = under(read_first)
        .uses("a", "1", "mail.send", json!({}))
        .uses("a", "2", "crm.read", json!({}))
        // It was asked for, but not read.
        .uses("a", "3", "mail.send", json!({}))
        .ends("a", "2", "crm.read", true)
        .uses("a", "4", "mail.send", json!({}))
        .uses("a", "5", "crm.read", json!({}))
        .ends("a", "5", "crm.read", false)
        .uses("a", "6", "mail.send", json!({}))
        .world();
    assert_eq!(rulings(&world), "1 no, 2 yes, 3 no, 4 no, 5 yes, 6 yes");
}

#[test]
fn a_conversation_is_what_a_session_continues() {
    let once = r#"@id("once") forbid (principal, action == Action::"use_tool", resource)
        when temporal session { count_within(1h, Action::"use_tool"::effective { tool: "mail.send" }) > 1 };"#;
    let flow = "
        steps:
          - {id: a, command: go, tools: ['mail.*']}
          - {id: b, command: 'and ${a.stdout}', tools: ['mail.*']}
          - {id: c, command: 'then ${b.stdout}', tools: ['mail.*']}
    ";
    let left = |text: &str, session: &str| {
        let session = Some(session.to_owned()).filter(|session| !session.is_empty());
        Answer { text: Some(text.to_owned()), session, ..Answer::default() }
    };
    let script = |mode: SessionMode| {
        let world = Script::flow(flow)
            .under(move |desk| {
                desk.policies = rules(once);
                desk.agent_row("mock", |row| row.session = mode);
            })
            .uses("a", "1", "mail.send", json!({}))
            .uses("a", "2", "mail.send", json!({}))
            .answers("a", left("x", "s1"))
            .uses("b", "3", "mail.send", json!({}))
            .answers("b", left("y", "s2"))
            .uses("c", "4", "mail.send", json!({}));
        rulings(&world.world())
    };
    assert_eq!(script(SessionMode::Continue), "1 yes, 2 no, 3 no, 4 no");
    assert_eq!(script(SessionMode::New), "1 yes, 2 no, 3 yes, 4 yes");
}

const SUM: &str = r#"@id("sum") forbid (principal, action == Action::"use_tool", resource == Tool::"bank.pay")
    when temporal agent { sum_within(a, 1d, Action::"use_tool"::effective { tool: "bank.pay", input.amount: a }) > 10000 };"#;

#[test]
fn amounts_in_flight_count_and_failed_ones_are_returned() {
    let world = under(SUM)
        .uses("a", "1", "bank.pay", json!({"amount": 6000}))
        .uses("a", "2", "bank.pay", json!({"amount": "4000.50"}))
        .uses("a", "3", "bank.pay", json!({"amount": 4000}))
        .show(counters)
        .ends("a", "1", "bank.pay", true)
        .uses("a", "4", "bank.pay", json!({"amount": 6000}))
        .ends("a", "3", "bank.pay", false)
        .ends("a", "4", "bank.pay", false)
        .uses("a", "5", "bank.pay", json!({"amount": 0.01}))
        .world();
    assert_eq!(rulings(&world), "1 yes, 2 no, 3 yes, 4 yes, 5 no");
    assert_eq!(counters(&world), "history:mock=100000000");
    let facts = recorded(&world);
    assert_eq!(facts.as_object().unwrap().values().next(), Some(&json!("10000.01")));
}

#[test]
fn what_has_no_amount_or_a_negative_one_is_blocked() {
    let world = under(SUM)
        .uses("a", "1", "bank.pay", json!({"amount": "a lot"}))
        .uses("a", "2", "bank.pay", json!({}))
        .uses("a", "3", "bank.pay", json!({"amount": -5000}))
        .uses("a", "4", "bank.pay", json!({"amount": 1e300}))
        .uses("a", "5", "mail.send", json!({"amount": "a lot"}))
        .world();
    assert_eq!(rulings(&world), "1 no, 2 no, 3 no, 4 no, 5 yes");
    assert_eq!(counters(&world), "");
}

#[test]
fn what_other_runs_have_taken_counts_and_a_race_is_refused() {
    let digest = |world: &World| {
        let open = world.desk.counts.keys().find(|name| name.starts_with("history-open"));
        open.cloned().unwrap()
    };
    let first = under(SUM).uses("a", "1", "bank.pay", json!({"amount": 1})).world();
    let (open, window) = (digest(&first), digest(&first).replace("-open", ""));
    let world = under(SUM)
        .under(move |desk: &mut Desk| {
            desk.counts.insert(open, 30_000_000);
            desk.counts.insert(window, 40_000_000);
        })
        .uses("a", "1", "bank.pay", json!({"amount": 3001}))
        .uses("a", "2", "bank.pay", json!({"amount": 1000}))
        .world();
    assert_eq!(rulings(&world), "1 no, 2 yes");
}

#[test]
fn an_attempt_that_ends_leaves_what_may_have_happened() {
    let crashed = under(SUM)
        .uses("a", "1", "bank.pay", json!({"amount": 6000}))
        .take_over()
        .show(counters)
        .uses("a", "2", "bank.pay", json!({"amount": 5000}))
        .uses("a", "3", "bank.pay", json!({"amount": 4000}))
        .text("a", "done")
        .world();
    assert_eq!(rulings(&crashed), "1 yes, 2 no, 3 yes");
    assert_eq!(counters(&crashed), "history:mock=100000000");
}

const ASKS: &str = r#"@id("asks") @action("require_approval") @approvers("ada,bob")
    forbid (principal, action == Action::"use_tool", resource == Tool::"bank.pay")
    when temporal agent { count_within(1d, Action::"use_tool"::effective { tool: "bank.pay" }) > 3 };"#;

#[test]
fn more_than_three_a_day_ask() {
    let mut script = under(ASKS);
    for id in ["1", "2", "3"] {
        script = script.pays(id, 10, false);
    }
    let world = script
        .uses("a", "4", "bank.pay", json!({"amount": 1}))
        .show(counters)
        .approve_as("a", "ada", &[])
        .uses("a", "5", "bank.pay", json!({"amount": 1}))
        .resolve("a", Decision::Reject, Some("enough"))
        .world();
    assert_eq!(rulings(&world), "1 yes, 2 yes, 3 yes, 4 asks, 4 yes, 5 asks, 5 no");
    assert_eq!(counters(&world), "history-open:mock=10000, history:mock=30000");
}

#[test]
fn a_step_has_a_history_too() {
    let flow = "
        steps:
          - {id: a, command: go, on_failure: skip}
          - {id: b, command: go, depends_on: [a], on_failure: skip}
          - {id: c, command: go, depends_on: [b]}
    ";
    // One after the other, whatever became of the one before.
    let apart = "
        max_parallel: 1
        steps:
          - {id: a, command: go, on_failure: skip}
          - {id: b, command: go}
          - {id: c, command: go}
    ";
    let failures = r#"@id("failures") forbid (principal, action == Action::"dispatch_step", resource)
        when temporal { count_within(1h, Action::"dispatch_step"::error {}) >= 1 };"#;
    let world = Script::flow(apart)
        .under(move |desk| desk.policies = rules(failures))
        .fail("a", CallErrorCode::InvalidRequest)
        .world();
    let status = |world: &World, step: &str| world.run.state(world.at(step)).status().to_string();
    assert_eq!([status(&world, "a"), status(&world, "b")], ["skipped", "failed"]);
    assert_eq!(world.run.state(world.at("b")).started_at_ms, None);
    let limit = r#"@id("limit") forbid (principal, action == Action::"dispatch_step", resource)
        when temporal agent { count_within(1h, Action::"dispatch_step"::effective {}) > 1 };"#;
    let world = Script::flow(flow)
        .under(move |desk| desk.policies = rules(limit))
        .take_over()
        .text("a", "done")
        .world();
    assert_eq!([status(&world, "a"), status(&world, "b")], ["completed", "skipped"]);
    assert_eq!(counters(&world), "history:mock=10000");
    let world = Script::flow(apart)
        .under(move |desk| desk.policies = rules(limit))
        .fail("a", CallErrorCode::InvalidRequest)
        .text("b", "done")
        .world();
    assert_eq!([status(&world, "b"), status(&world, "c")], ["completed", "failed"]);
}

#[test]
fn a_policy_that_is_put_in_force_sees_what_the_run_did_before() {
    let world = Script::flow(FLOW)
        .uses("a", "1", "bank.pay", json!({"amount": 1}))
        .ends("a", "1", "bank.pay", true)
        .set(|desk| {
            let policy = FIVE.replace(">= 5", ">= 1");
            desk.policies = rules(&policy);
        })
        .uses("a", "2", "bank.pay", json!({"amount": 1}))
        .world();
    assert_eq!(rulings(&world), "1 yes, 2 no");
}

/// `bank.refund` and `bank.credit` are refunds with an amount.
fn declared(desk: &mut Desk) {
    let tool = ToolDeclaration {
        labels: Some(vec!["refunds".into()]),
        roles: Some([("sum.value".to_owned(), ArgumentRole::Amount)].into()),
        ..ToolDeclaration::default()
    };
    let bank = ServerDeclaration {
        name: "bank".into(),
        tools: [("refund".to_owned(), tool.clone()), ("credit".to_owned(), tool)].into(),
        ..ServerDeclaration::default()
    };
    desk.catalog = Catalog::new(&[bank], []);
}

#[test]
fn a_limit_is_about_all_tools_of_a_label_and_the_argument_with_the_role() {
    let limit = r#"@id("refunds") forbid (principal, action == Action::"use_tool", resource)
        when temporal agent {
            sum_within(a, 1d, Action::"use_tool"::effective { label: "refunds", amount: a }) > 10000
        };"#;
    let refund = |value: i64| json!({"sum": {"value": value}});
    let world = under(limit)
        .under(declared)
        .uses("a", "1", "bank.refund", refund(6000))
        .uses("a", "2", "bank.credit", refund(4001))
        .uses("a", "3", "bank.credit", refund(4000))
        .uses("a", "4", "bank.pay", refund(1))
        .uses("a", "5", "bank.refund", json!({"value": 1}))
        .uses("a", "6", "bank.refund", refund(1))
        .world();
    assert_eq!(rulings(&world), "1 yes, 2 no, 3 yes, 4 yes, 5 no, 6 no");
}
