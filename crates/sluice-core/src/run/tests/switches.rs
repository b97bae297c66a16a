//! Agents and gateways that an operator disabled: steps wait for them without a timeout.

use super::{Script, check};
use crate::port::authority::fake::FakeAuthority as Desk;
use expect_test::expect;
use sluice_govern::registry::{AgentStatus, Gateway, Held};

fn status(status: AgentStatus) -> impl Fn(&mut Desk) + Copy {
    move |desk| desk.agent_row("mock", |agent| agent.status = status)
}

#[test]
fn a_pause_is_waited_out_however_long_it_is() {
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .under(status(AgentStatus::Paused))
            .advance("90d")
            .show_wait("a")
            .look()
            .set(status(AgentStatus::Idle))
            .look(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "agent_status"
            4 node.waiting a gate attempt=1 local agent_disabled delay=1026
            after 1026ms
            5 governance.decided a "block" "agent_status"
            6 node.waiting a gate attempt=1 local agent_disabled delay=2196
            after 3222ms
            7 governance.decided a "block" "agent_status"
            8 node.waiting a gate attempt=1 local agent_disabled delay=4753
            after 7975ms
            9 governance.decided a "block" "agent_status"
            10 node.waiting a gate attempt=1 local agent_disabled delay=0
            a is queued and waits for gate: agent_disabled: resume agent mock
            after 90d
            11 node.started a attempt=1 dispatch=1
        "#]],
    );
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .under(|desk| {
                let paused = Gateway { paused: true, ..Gateway::default() };
                desk.fabric.gateways.insert("local".to_owned(), paused);
            })
            .advance("90d")
            .show_wait("a")
            .set(|desk| desk.fabric.gateways.clear())
            .look(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "gateway_health"
            4 node.waiting a gate attempt=1 local gateway_unreachable delay=1026
            after 1026ms
            5 governance.decided a "block" "gateway_health"
            6 node.waiting a gate attempt=1 local gateway_unreachable delay=2196
            after 3222ms
            7 governance.decided a "block" "gateway_health"
            8 node.waiting a gate attempt=1 local gateway_unreachable delay=4753
            after 7975ms
            9 governance.decided a "block" "gateway_health"
            10 node.waiting a gate attempt=1 local gateway_unreachable delay=0
            a is queued and waits for gate: gateway_unreachable: resume gateway local
            after 90d
            11 node.started a attempt=1 dispatch=1
        "#]],
    );
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .under(|desk| desk.fabric.held = Held::Yes)
            .advance("90d")
            .show_wait("a")
            .set(|desk| desk.fabric.held = Held::No)
            .look(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "gateway_health"
            4 node.waiting a gate attempt=1 local gateway_unreachable delay=1026
            after 1026ms
            5 governance.decided a "block" "gateway_health"
            6 node.waiting a gate attempt=1 local gateway_unreachable delay=2196
            after 3222ms
            7 governance.decided a "block" "gateway_health"
            8 node.waiting a gate attempt=1 local gateway_unreachable delay=4753
            after 7975ms
            9 governance.decided a "block" "gateway_health"
            10 node.waiting a gate attempt=1 local gateway_unreachable delay=0
            a is queued and waits for gate: gateway_unreachable: an operator must lift the switch
            after 90d
            11 node.started a attempt=1 dispatch=1
        "#]],
    );
}

#[test]
fn after_a_long_pause_the_patience_for_a_slot_begins_anew() {
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .under(status(AgentStatus::Paused))
            .advance("2d")
            .set(|desk| {
                status(AgentStatus::Idle)(desk);
                desk.agent_row("mock", |agent| agent.max_concurrent_steps = Some(1));
                desk.counts.insert("busy:mock".to_owned(), 1);
            })
            .look()
            .advance("50m")
            .show_wait("a")
            .advance("11m"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "agent_status"
            4 node.waiting a gate attempt=1 local agent_disabled delay=1026
            after 1026ms
            5 governance.decided a "block" "agent_status"
            6 node.waiting a gate attempt=1 local agent_disabled delay=2196
            after 3222ms
            7 governance.decided a "block" "agent_status"
            8 node.waiting a gate attempt=1 local agent_disabled delay=4753
            after 7975ms
            9 governance.decided a "block" "agent_status"
            10 node.waiting a gate attempt=1 local agent_disabled delay=0
            after 2d
            11 governance.decided a "block" "concurrency"
            12 node.waiting a queued attempt=1 local agent_busy delay=977
            after 172800977ms
            13 governance.decided a "block" "concurrency"
            14 node.waiting a queued attempt=1 local agent_busy delay=1955
            after 172802932ms
            15 governance.decided a "block" "concurrency"
            16 node.waiting a queued attempt=1 local agent_busy delay=4420
            after 172807352ms
            17 governance.decided a "block" "concurrency"
            18 node.waiting a queued attempt=1 local agent_busy delay=3592648
            a is queued and waits for queued: agent_busy: wait for one to end, or raise max_concurrent_steps of agent mock
            after 49h
            19 governance.decided a "block" "concurrency"
            20 node.failed a agent_busy: agent mock runs 1 steps, its limit is 1 (wait for one to end, or raise max_concurrent_steps of agent mock)
            21 run.failed agent_busy: `a` failed: agent mock runs 1 steps, its limit is 1 (wait for one to end, or raise max_concurrent_steps of agent mock)
        "#]],
    );
}

#[test]
fn an_agent_that_is_terminated_while_a_step_waits_fails_it() {
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .under(status(AgentStatus::Paused))
            .advance("1d")
            .set(status(AgentStatus::Terminated))
            .look(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "agent_status"
            4 node.waiting a gate attempt=1 local agent_disabled delay=1026
            after 1026ms
            5 governance.decided a "block" "agent_status"
            6 node.waiting a gate attempt=1 local agent_disabled delay=2196
            after 3222ms
            7 governance.decided a "block" "agent_status"
            8 node.waiting a gate attempt=1 local agent_disabled delay=4753
            after 7975ms
            9 governance.decided a "block" "agent_status"
            10 node.waiting a gate attempt=1 local agent_disabled delay=0
            after 1d
            11 governance.decided a "block" "agent_status"
            12 node.failed a agent_disabled: agent mock is terminated (name another agent)
            13 run.failed agent_disabled: `a` failed: agent mock is terminated (name another agent)
        "#]],
    );
}
