//! The grant of an approval: one action, one attempt.

use super::governed::rules;
use super::{Script, check};
use crate::port::adapter::CallErrorCode::ProviderError;
use crate::port::authority::fake::FakeAuthority as Desk;
use crate::run::start::Carried;
use expect_test::expect;
use serde_json::json;
use sluice_govern::registry::{Gateway, Health};
use std::collections::BTreeSet;

const ASK: &str = r#"@id("ask") @action("require_approval") @description("mail goes to people")
    @approvers("ada,security") forbid (principal, action == Action::"dispatch_step", resource)
    when { context has step && context.step.id == "mail" };"#;

fn asked(desk: &mut Desk) {
    desk.policies = rules(ASK);
}

const MAIL: &str = "
    steps:
      - {id: mail, command: send}
      - {id: other, command: go}
";

const WRITE: &str = "
    steps:
      - {id: a, command: go, outputs: {x: string}}
      - {id: b, command: 'write ${x}', approval: required, depends_on: [a]}
";

#[test]
fn a_grant_is_for_the_action_as_it_was_shown() {
    // The matching policy changes before the second of two approvers votes.
    check(
        Script::flow("steps: [{id: mail, command: send, approval: {quorum: 2}}]")
            .under(asked)
            .approve_as("mail", "ada", &[])
            .set(|desk| desk.policies = rules(&ASK.replace("mail goes", "letters go")))
            .approve_as("mail", "eve", &["security"])
            .approve_as("mail", "ada", &[])
            .approve_as("mail", "eve", &["security"]),
        expect![[r#"
            1 run.started
            2 node.queued mail
            3 governance.decided mail "hold" null
            4 approval.requested mail apr1 step "Let `mail` do this?\nsend"
            5 run.status.changed paused (approval)
            6 approval.resolved mail apr1 pending by ada
            7 approval.resolved mail apr1 approved by eve
            8 run.status.changed running (approval)
            9 governance.decided mail "hold" null
            10 approval.requested mail apr2 step "Let `mail` do this?\nsend" policies: "b5915fd6997bbfbe21f612d93e3dc08f811c715a691df327ee4ca677bd875fce" -> "db21272df56bde802834aa3160c469b1af78e969f2f2cedb3a3ea8a55476b2a3"
            11 run.status.changed paused (approval)
            12 approval.resolved mail apr2 pending by ada
            13 approval.resolved mail apr2 approved by eve
            14 run.status.changed running (approval)
            15 node.started mail attempt=1 dispatch=1
        "#]],
    );
    // The policy changes while the step waits at a gate with its grant.
    let health = |health: Health| {
        move |desk: &mut Desk| {
            desk.health.insert("local".to_owned(), health);
        }
    };
    check(
        Script::flow("steps: [{id: mail, command: send}]")
            .under(asked)
            .set(health(Health::Offline))
            .approve_as("mail", "ada", &[])
            .set(health(Health::Healthy))
            .set(|desk| desk.policies = rules(&ASK.replace("ada,security", "security")))
            .look()
            .approve_as("mail", "ada", &[]),
        expect![[r#"
            1 run.started
            2 node.queued mail
            3 governance.decided mail "hold" null
            4 approval.requested mail apr1 policy "Let `mail` do this?\nsend\npolicy own.cedar/ask: mail goes to people"
            5 run.status.changed paused (approval)
            6 approval.resolved mail apr1 approved by ada
            7 run.status.changed running (approval)
            8 governance.decided mail "block" "gateway_health"
            9 node.waiting mail gate attempt=1 local gateway_unreachable delay=1188
            10 governance.decided mail "hold" null
            11 approval.requested mail apr2 policy "Let `mail` do this?\nsend\npolicy own.cedar/ask: mail goes to people" policies: "b5915fd6997bbfbe21f612d93e3dc08f811c715a691df327ee4ca677bd875fce" -> "69a01883fa2caccc6046cbe032b28bab525014664104e076bd8b8dde137849f5"
            12 run.status.changed paused (approval)
            refused: not_approver (ada may not decide this approval: its approvers are security)
        "#]],
    );
    // A change of another policy does not matter.
    let more =
        format!(r#"{ASK} @id("clerk") forbid (principal == Agent::"clerk", action, resource);"#);
    check(
        Script::flow(MAIL).under(asked).set(move |desk| desk.policies = rules(&more)).approve_as(
            "mail",
            "ada",
            &[],
        ),
        expect![[r#"
            1 run.started
            2 node.queued mail
            3 node.queued other
            4 governance.decided mail "hold" null
            5 approval.requested mail apr1 policy "Let `mail` do this?\nsend\npolicy own.cedar/ask: mail goes to people"
            6 node.started other attempt=1 dispatch=1
            7 approval.resolved mail apr1 approved by ada
            8 node.started mail attempt=1 dispatch=1
        "#]],
    );
}

#[test]
fn a_rule_that_forbids_by_now_blocks_what_was_approved() {
    let no = format!(r#"{ASK} @id("no") forbid (principal, action, resource);"#);
    check(
        Script::flow(MAIL).under(asked).set(move |desk| desk.policies = rules(&no)).approve_as(
            "mail",
            "ada",
            &[],
        ),
        expect![[r#"
            1 run.started
            2 node.queued mail
            3 node.queued other
            4 governance.decided mail "hold" null
            5 approval.requested mail apr1 policy "Let `mail` do this?\nsend\npolicy own.cedar/ask: mail goes to people"
            6 node.started other attempt=1 dispatch=1
            7 approval.resolved mail apr1 approved by ada
            8 governance.decided mail "block" "policy_rules"
            9 node.failed mail policy_blocked: policy own.cedar/no forbids it (change the step, or policy own.cedar/no)
        "#]],
    );
}

#[test]
fn the_gateway_is_fixed_when_a_person_is_asked_and_chosen_again_for_the_next_question() {
    let gateway = |rank: u32| Gateway {
        cost_rank: rank,
        capabilities: vec!["gpu".to_owned()],
        ..Gateway::default()
    };
    let shown = |script: Script| {
        script.show(|world| format!("goes to {:?}", world.run.state(world.at("a")).gateway()))
    };
    let script = Script::flow(
        "steps: [{id: a, command: go, capabilities: [gpu], approval: required, on_failure: retry_once}]",
    )
    .under(|desk| {
        desk.fabric.gateways.insert("dear".to_owned(), gateway(5));
    })
    .set(move |desk| {
        desk.fabric.gateways.insert("cheap".to_owned(), gateway(1));
    })
    .approve("a");
    check(
        shown(shown(script).fail("a", ProviderError).approve("a")),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 step "Let `a` do this?\ngo"
            5 run.status.changed paused (approval)
            6 approval.resolved a apr1 approved by bob
            7 run.status.changed running (approval)
            8 node.started a attempt=1 dispatch=1
            goes to Some("dear")
            9 node.retried a attempt=1 provider_error delay=0
            10 node.waiting a retry_backoff attempt=2 provider_error delay=0
            11 node.queued a
            12 governance.decided a "hold" null
            13 approval.requested a apr2 step "Let `a` do this?\ngo" gateway: "dear" -> "cheap"
            14 run.status.changed paused (approval)
            15 approval.resolved a apr2 approved by bob
            16 run.status.changed running (approval)
            17 node.started a attempt=2 dispatch=2
            goes to Some("cheap")
        "#]],
    );
}

#[test]
fn a_policys_hold_is_for_one_attempt_unless_the_step_says_otherwise() {
    let script = |fields: &str| {
        Script::flow(&format!(
            "steps: [{{id: mail, command: send, on_failure: retry_once{fields}}}]"
        ))
        .under(asked)
        .approve_as("mail", "ada", &[])
        .fail("mail", ProviderError)
    };
    check(
        script(""),
        expect![[r#"
        1 run.started
        2 node.queued mail
        3 governance.decided mail "hold" null
        4 approval.requested mail apr1 policy "Let `mail` do this?\nsend\npolicy own.cedar/ask: mail goes to people"
        5 run.status.changed paused (approval)
        6 approval.resolved mail apr1 approved by ada
        7 run.status.changed running (approval)
        8 node.started mail attempt=1 dispatch=1
        9 node.retried mail attempt=1 provider_error delay=0
        10 node.waiting mail retry_backoff attempt=2 provider_error delay=0
        11 governance.decided mail "hold" null
        12 node.queued mail
        13 approval.requested mail apr2 policy "Let `mail` do this?\nsend\npolicy own.cedar/ask: mail goes to people"
        14 run.status.changed paused (approval)
    "#]],
    );
    check(
        script(", approval: {covers_retries: true, approvers: [ada]}"),
        expect![[r#"
        1 run.started
        2 node.queued mail
        3 governance.decided mail "hold" null
        4 approval.requested mail apr1 step "Let `mail` do this?\nsend"
        5 run.status.changed paused (approval)
        6 approval.resolved mail apr1 approved by ada
        7 run.status.changed running (approval)
        8 node.started mail attempt=1 dispatch=1
        9 node.retried mail attempt=1 provider_error delay=0
        10 node.waiting mail retry_backoff attempt=2 provider_error delay=0
        11 node.started mail attempt=2 dispatch=2
    "#]],
    );
}

#[test]
fn what_is_asked_again_shows_how_it_differs_from_what_was_agreed_to() {
    check(
        Script::flow(WRITE)
            .complete("a", json!({"x": "one"}))
            .approve("b")
            .complete("b", json!({}))
            .rewind(&[])
            .complete("a", json!({"x": "two"})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {"x":"one"}
            5 node.queued b
            6 node.provenance b command <- a x
            7 governance.decided b "hold" null
            8 approval.requested b apr1 step "Let `b` do this?\nwrite one"
            9 run.status.changed paused (approval)
            10 approval.resolved b apr1 approved by bob
            11 run.status.changed running (approval)
            12 node.started b attempt=1 dispatch=1
            13 node.completed b {"approved":true,"by":"bob","comment":null}
            14 run.completed {"x":"one"}
            15 run.status.changed running (rewind) by ada
            16 node.invalidated a
            17 node.invalidated b
            18 node.queued a
            19 node.started a attempt=1 dispatch=2
            20 node.completed a {"x":"two"}
            21 node.queued b
            22 node.provenance b command <- a x
            23 governance.decided b "hold" null
            24 approval.requested b apr2 step "Let `b` do this?\nwrite two" command: "write one" -> "write two"
            25 run.status.changed paused (approval)
        "#]],
    );
    // The same in a run that was made from another run.
    let source = || {
        Script::flow(WRITE)
            .complete("a", json!({"x": "one"}))
            .approve("b")
            .fail("b", ProviderError)
            .run()
    };
    check(
        Script::flow(WRITE)
            .carrying(move || {
                let source = source();
                let again = BTreeSet::from([source.find("a").expect("a step").step]);
                Carried::for_restart(&source, again)
            })
            .starting(move |started| started.agreed = Carried::agreed(&source()))
            .complete("a", json!({"x": "two"})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {"x":"two"}
            5 node.queued b
            6 node.provenance b command <- a x
            7 governance.decided b "hold" null
            8 approval.requested b apr1 step "Let `b` do this?\nwrite two" command: "write one" -> "write two"
            9 run.status.changed paused (approval)
        "#]],
    );
}
