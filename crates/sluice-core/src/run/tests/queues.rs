//! Steps that queue for an agent, and steps that need not.

use super::{Script, check};
use crate::port::authority::fake::FakeAuthority as Desk;
use expect_test::expect;
use serde_json::json;
use sluice_govern::registry::{AgentStatus, Gateway, Health, Rate};

const THREE: &str = "
    steps:
      - {id: a, command: go}
      - {id: b, command: go}
      - {id: c, command: go}
      - {id: other, command: go, agent: clerk}
";

fn one_at_a_time(desk: &mut Desk) {
    desk.agent_row("mock", |agent| agent.max_concurrent_steps = Some(1));
}

#[test]
fn only_the_first_of_an_agents_steps_waits_at_the_gate_and_a_free_slot_wakes_it() {
    check(
        Script::flow(THREE)
            .under(one_at_a_time)
            .show_wait("b")
            .show_wait("c")
            .show_counts("busy")
            .complete("a", json!({}))
            .show_wait("c")
            .complete("b", json!({}))
            .complete("c", json!({}))
            .show_counts("busy"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.queued c
            5 node.queued other
            6 node.started a attempt=1 dispatch=1
            7 governance.decided b "block" "concurrency"
            8 node.waiting b queued attempt=1 local agent_busy delay=1026
            9 node.started other attempt=1 dispatch=1
            b is queued and waits for queued: agent_busy: wait for one to end, or raise max_concurrent_steps of agent mock
            c is queued and waits for queued: waits behind `b`: agent_busy
            counts: busy:mock=1
            10 node.completed a {}
            11 node.started b attempt=1 dispatch=1
            12 governance.decided c "block" "concurrency"
            13 node.waiting c queued attempt=1 local agent_busy delay=1098
            c is queued and waits for queued: agent_busy: wait for one to end, or raise max_concurrent_steps of agent mock
            14 node.completed b {}
            15 node.started c attempt=1 dispatch=1
            16 node.completed c {}
            counts: busy:mock=0
        "#]],
    );
}

#[test]
fn an_agent_is_sent_only_so_much_in_a_window() {
    check(
        Script::flow(THREE)
            .under(|desk| {
                let rate = Rate { limit: 2, window_s: 60 };
                desk.agent_row("mock", |agent| agent.rate = Some(rate));
            })
            .show_wait("c")
            .complete("a", json!({}))
            .advance("8s")
            .set(|desk| {
                desk.counts.insert("rate:mock".to_owned(), 1);
            })
            .look()
            .show_counts("rate"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.queued c
            5 node.queued other
            6 node.started a attempt=1 dispatch=1
            7 node.started b attempt=1 dispatch=1
            8 governance.decided c "block" "rate_limit"
            9 node.waiting c queued attempt=1 local rate_limited delay=1026
            10 node.started other attempt=1 dispatch=1
            c is queued and waits for queued: rate_limited: wait until the window has passed, or raise the rate of agent mock
            11 node.completed a {}
            after 1026ms
            12 governance.decided c "block" "rate_limit"
            13 node.waiting c queued attempt=1 local rate_limited delay=2196
            after 3222ms
            14 governance.decided c "block" "rate_limit"
            15 node.waiting c queued attempt=1 local rate_limited delay=4753
            after 7975ms
            16 governance.decided c "block" "rate_limit"
            17 node.waiting c queued attempt=1 local rate_limited delay=3592025
            after 8s
            18 node.started c attempt=1 dispatch=1
            counts: rate:mock=2
        "#]],
    );
}

#[test]
fn a_child_run_does_not_stand_in_its_parents_agents_line() {
    check(
        Script::flow("steps: [{id: a, command: go}, {id: b, workflow_ref: other}]")
            .knows("other")
            .under(|desk| {
                desk.agent_row("mock", |agent| agent.status = AgentStatus::Paused);
            }),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 governance.decided a "block" "agent_status"
            5 node.waiting a gate attempt=1 local agent_disabled delay=1026
            6 node.started b attempt=1 dispatch=1 child1
        "#]],
    );
}

#[test]
fn steps_with_other_needs_do_not_stand_behind_a_gateway_that_is_gone() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go}
              - {id: b, command: go}
              - {id: c, command: go, capabilities: [gpu]}
            ",
        )
        .under(|desk| {
            desk.health.insert("local".to_owned(), Health::Offline);
            let far = Gateway { capabilities: vec!["gpu".to_owned()], ..Gateway::default() };
            desk.fabric.gateways.insert("far".to_owned(), far);
        })
        .show_wait("b"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.queued c
            5 governance.decided a "block" "gateway_health"
            6 node.waiting a gate attempt=1 local gateway_unreachable delay=1026
            7 node.started c attempt=1 dispatch=1
            b is queued and waits for queued: waits behind `a`: gateway_unreachable
        "#]],
    );
}

#[test]
fn instances_wait_in_line_too() {
    check(
        Script::flow("steps: [{id: a, command: go, for_each: [1, 2, 3]}]")
            .under(one_at_a_time)
            .show_wait("a[2]")
            .complete("a[0]", json!({}))
            .complete("a[1]", json!({}))
            .complete("a[2]", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a items=3
            3 node.started a attempt=1 dispatch=1 fan_out
            4 node.queued a[0]
            5 node.queued a[1]
            6 node.queued a[2]
            7 node.started a[0] attempt=1 dispatch=1
            8 governance.decided a[1] "block" "concurrency"
            9 node.waiting a[1] queued attempt=1 local agent_busy delay=1026
            a[2] is queued and waits for queued: waits behind `a[1]`: agent_busy
            10 node.completed a[0] {}
            11 node.started a[1] attempt=1 dispatch=1
            12 governance.decided a[2] "block" "concurrency"
            13 node.waiting a[2] queued attempt=1 local agent_busy delay=1098
            14 node.completed a[1] {}
            15 node.started a[2] attempt=1 dispatch=1
            16 node.completed a[2] {}
            17 node.completed a {"items":[{},{},{}]}
            18 run.completed {}
        "#]],
    );
}
