//! Dispatches that are sent again after a take-over pass the gates again.

use super::governed::{cents, rules};
use super::{Script, check};
use crate::port::authority::fake::FakeAuthority as Desk;
use expect_test::expect;
use serde_json::json;
use sluice_govern::registry::AgentStatus;

fn status(status: AgentStatus) -> impl Fn(&mut Desk) + Copy {
    move |desk| desk.agent_row("mock", |agent| agent.status = status)
}

/// A step that costs forty cents, of an agent that executes one step at a time.
fn one(fields: &str) -> Script {
    Script::flow(&format!(
        "budget: {{max_cost_cents: 100}}\nsteps: [{{id: a, command: go{fields}}}]"
    ))
    .under(|desk| {
        desk.quoted(&["a"], 40);
        desk.agent_row("mock", |agent| agent.max_concurrent_steps = Some(1));
    })
}

#[test]
fn what_is_sent_again_keeps_its_slot_and_its_money() {
    check(
        one("").take_over().show_money().show_counts("busy").costs("a", 30).show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 run.status.changed running (taken_over)
            5 node.started a attempt=1 dispatch=2
            money: run/run held=0.40 spent=0.00
            counts: busy:mock=1
            6 node.completed a {}
            7 run.completed {}
            money: run/run held=0.30 spent=0.30
        "#]],
    );
}

#[test]
fn what_costs_more_by_now_reserves_more() {
    check(
        one("")
            .set(|desk| desk.quoted(&["a"], 90))
            .take_over()
            .show_money()
            .set(|desk| desk.quoted(&["a"], 101))
            .take_over()
            .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 run.status.changed running (taken_over)
            5 node.started a attempt=1 dispatch=2
            money: run/run held=0.90 spent=0.00
            6 run.status.changed running (taken_over)
            7 governance.decided a "block" "budget_envelopes"
            8 node.failed a budget_exceeded: cap budget of run has 1.00 left of 1.00, and it may cost 1.01 (raise cap budget of run, or set a lower max_cost_cents on the step)
            9 run.failed budget_exceeded: `a` failed: cap budget of run has 1.00 left of 1.00, and it may cost 1.01 (raise cap budget of run, or set a lower max_cost_cents on the step)
            money: run/run held=0.90 spent=0.00
        "#]],
    );
}

#[test]
fn what_is_sent_again_keeps_to_what_holds_now() {
    let constraints = |script: Script| {
        script.show(|world| {
            let request = world.run.request(world.at("a"));
            serde_json::to_string(&request.constraints).expect("constraints are plain data")
        })
    };
    let script = constraints(one("")).set(|desk| {
        desk.agent_row("mock", |agent| agent.tools.deny = vec!["mail".to_owned()]);
    });
    check(
        constraints(script.take_over()),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        {"max_cost":40000000}
        4 run.status.changed running (taken_over)
        5 node.started a attempt=1 dispatch=2
        {"tools_deny":["mail"],"max_cost":40000000}
    "#]],
    );
}

#[test]
fn what_is_blocked_by_now_fails_and_its_reservation_stays_open() {
    check(
        one("")
            .set(status(AgentStatus::Terminated))
            .take_over()
            .show_money()
            .show_counts("busy")
            .late("a", 1, cents(5))
            .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 run.status.changed running (taken_over)
            5 governance.decided a "block" "agent_status"
            6 node.failed a agent_disabled: agent mock is terminated (name another agent)
            7 run.failed agent_disabled: `a` failed: agent mock is terminated (name another agent)
            money: run/run held=0.40 spent=0.00
            counts: busy:mock=0
            8 budget.alert a dispatch=1 cost=0.05
            money: run/run held=0.05 spent=0.05
        "#]],
    );
}

#[test]
fn what_must_wait_by_now_waits_and_is_then_the_same_attempt() {
    check(
        one("")
            .set(status(AgentStatus::Paused))
            .take_over()
            .show_money()
            .show_counts("busy")
            .advance("10s")
            .set(status(AgentStatus::Idle))
            .look()
            .show_money()
            .late("a", 1, cents(5))
            .costs("a", 6)
            .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 run.status.changed running (taken_over)
            5 governance.decided a "block" "agent_status"
            6 node.waiting a gate attempt=1 local agent_disabled delay=1026
            money: run/run held=0.40 spent=0.00
            counts: busy:mock=0
            after 1026ms
            7 governance.decided a "block" "agent_status"
            8 node.waiting a gate attempt=1 local agent_disabled delay=2196
            after 3222ms
            9 governance.decided a "block" "agent_status"
            10 node.waiting a gate attempt=1 local agent_disabled delay=4753
            after 7975ms
            11 governance.decided a "block" "agent_status"
            12 node.waiting a gate attempt=1 local agent_disabled delay=0
            after 10s
            13 node.started a attempt=1 dispatch=2
            money: run/run held=0.80 spent=0.00
            14 budget.alert a dispatch=1 cost=0.05
            15 node.completed a {}
            16 run.completed {}
            money: run/run held=0.11 spent=0.11
        "#]],
    );
}

const ASK: &str = r#"@id("ask") @action("require_approval")
    forbid (principal, action == Action::"dispatch_step", resource);"#;

#[test]
fn what_needs_a_person_by_now_is_held() {
    check(
        one("").set(|desk| desk.policies = rules(ASK)).take_over().show_money().approve("a"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 run.status.changed running (taken_over)
            5 governance.decided a "hold" null
            6 approval.requested a apr1 policy "Let `a` do this?\ngo\npolicy own.cedar/ask"
            7 run.status.changed paused (approval)
            money: run/run held=0.40 spent=0.00
            8 approval.resolved a apr1 approved by bob
            9 run.status.changed running (approval)
            10 node.started a attempt=2 dispatch=2
        "#]],
    );
}

#[test]
fn a_grant_is_kept_for_the_same_attempt_however_long_that_waits() {
    check(
        one(", approval: required").approve("a").take_over().take_over().complete("a", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 step "Let `a` do this?\ngo"
            5 run.status.changed paused (approval)
            6 approval.resolved a apr1 approved by bob
            7 run.status.changed running (approval)
            8 node.started a attempt=1 dispatch=1
            9 run.status.changed running (taken_over)
            10 node.started a attempt=1 dispatch=2
            11 run.status.changed running (taken_over)
            12 node.started a attempt=1 dispatch=3
            13 node.completed a {"approved":true,"by":"bob","comment":null}
            14 run.completed {}
        "#]],
    );
    check(
        one(", approval: required")
            .approve("a")
            .set(status(AgentStatus::Paused))
            .take_over()
            .set(status(AgentStatus::Idle))
            .look(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 step "Let `a` do this?\ngo"
            5 run.status.changed paused (approval)
            6 approval.resolved a apr1 approved by bob
            7 run.status.changed running (approval)
            8 node.started a attempt=1 dispatch=1
            9 run.status.changed running (taken_over)
            10 governance.decided a "block" "agent_status"
            11 node.waiting a gate attempt=1 local agent_disabled delay=1188
            12 node.started a attempt=1 dispatch=2
        "#]],
    );
}
