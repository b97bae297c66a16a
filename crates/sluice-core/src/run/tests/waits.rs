//! Steps that wait at a gate that refuses them for now.

use super::{Script, check};
use crate::port::adapter::CallErrorCode::ProviderError;
use crate::port::authority::fake::FakeAuthority as Desk;
use expect_test::expect;
use serde_json::json;
use sluice_govern::registry::{AgentStatus, Health};

fn one_at_a_time(desk: &mut Desk) {
    desk.agent_row("mock", |agent| agent.max_concurrent_steps = Some(1));
}

fn offline(desk: &mut Desk) {
    desk.health.insert("local".to_owned(), Health::Offline);
}

fn online(desk: &mut Desk) {
    desk.health.insert("local".to_owned(), Health::Healthy);
}

fn status(status: AgentStatus) -> impl Fn(&mut Desk) + Copy {
    move |desk| desk.agent_row("mock", |agent| agent.status = status)
}

#[test]
fn a_slot_that_another_run_holds_is_looked_for_three_times_and_then_when_it_is_free() {
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .under(|desk| {
                one_at_a_time(desk);
                desk.counts.insert("busy:mock".to_owned(), 1);
            })
            .advance("8s")
            .show_wait("a")
            .look()
            .set(|desk| {
                desk.counts.insert("busy:mock".to_owned(), 0);
            })
            .look()
            .show_counts("busy"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "concurrency"
            4 node.waiting a queued attempt=1 local agent_busy delay=1026
            after 1026ms
            5 governance.decided a "block" "concurrency"
            6 node.waiting a queued attempt=1 local agent_busy delay=2196
            after 3222ms
            7 governance.decided a "block" "concurrency"
            8 node.waiting a queued attempt=1 local agent_busy delay=4753
            after 7975ms
            9 governance.decided a "block" "concurrency"
            10 node.waiting a queued attempt=1 local agent_busy delay=3592025
            a is queued and waits for queued: agent_busy: wait for one to end, or raise max_concurrent_steps of agent mock
            after 8s
            11 node.started a attempt=1 dispatch=1
            counts: busy:mock=1
        "#]],
    );
}

#[test]
fn a_wait_ends_with_the_code_of_its_gate() {
    check(
        Script::flow(
            "steps: [{id: a, command: go, on_failure: retry}, {id: b, command: go, depends_on: [a]}]",
        )
        .under(offline)
        .show_wait("a")
        .advance("59m")
        .show_wait("a")
        .advance("2m"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "gateway_health"
            4 node.waiting a gate attempt=1 local gateway_unreachable delay=1026
            a is queued and waits for gate: gateway_unreachable: bring gateway local back; `sluice doctor` says what is wrong
            after 1026ms
            5 governance.decided a "block" "gateway_health"
            6 node.waiting a gate attempt=1 local gateway_unreachable delay=2196
            after 3222ms
            7 governance.decided a "block" "gateway_health"
            8 node.waiting a gate attempt=1 local gateway_unreachable delay=4753
            after 7975ms
            9 governance.decided a "block" "gateway_health"
            10 node.waiting a gate attempt=1 local gateway_unreachable delay=3592025
            a is queued and waits for gate: gateway_unreachable: bring gateway local back; `sluice doctor` says what is wrong
            after 1h
            11 governance.decided a "block" "gateway_health"
            12 node.failed a gateway_unreachable: gateway local is offline (bring gateway local back; `sluice doctor` says what is wrong)
            13 node.failed b upstream_failure: Blocked by upstream failure
            14 run.failed gateway_unreachable: `a` failed: gateway local is offline (bring gateway local back; `sluice doctor` says what is wrong)
        "#]],
    );
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go, on_failure: skip}
              - {id: b, command: go, agent: clerk}
              - {id: c, command: go, agent: clerk, depends_on: [a, b]}
            ",
        )
        .under(|desk| {
            one_at_a_time(desk);
            desk.counts.insert("busy:mock".to_owned(), 1);
        })
        .complete("b", json!({}))
        .advance("1h")
        .complete("c", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 governance.decided a "block" "concurrency"
            5 node.waiting a queued attempt=1 local agent_busy delay=1026
            6 node.started b attempt=1 dispatch=1
            7 node.completed b {}
            after 1026ms
            8 governance.decided a "block" "concurrency"
            9 node.waiting a queued attempt=1 local agent_busy delay=2196
            after 3222ms
            10 governance.decided a "block" "concurrency"
            11 node.waiting a queued attempt=1 local agent_busy delay=4753
            after 7975ms
            12 governance.decided a "block" "concurrency"
            13 node.waiting a queued attempt=1 local agent_busy delay=3592025
            after 1h
            14 governance.decided a "block" "concurrency"
            15 node.skipped a failure: agent mock runs 1 steps, its limit is 1 (wait for one to end, or raise max_concurrent_steps of agent mock) [agent_busy]
            16 node.queued c
            17 node.started c attempt=1 dispatch=1
            18 node.completed c {}
            19 run.completed {}
        "#]],
    );
}

#[test]
fn patience_is_the_agents_own_if_it_has_one() {
    for (seconds, expected) in [
        (
            0,
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
            10 node.failed a gateway_unreachable: gateway local is offline (bring gateway local back; `sluice doctor` says what is wrong)
            11 run.failed gateway_unreachable: `a` failed: gateway local is offline (bring gateway local back; `sluice doctor` says what is wrong)
        "#]],
        ),
        (
            3,
            expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "gateway_health"
            4 node.waiting a gate attempt=1 local gateway_unreachable delay=1026
            after 1026ms
            5 governance.decided a "block" "gateway_health"
            6 node.waiting a gate attempt=1 local gateway_unreachable delay=1974
            after 3s
            7 governance.decided a "block" "gateway_health"
            8 node.failed a gateway_unreachable: gateway local is offline (bring gateway local back; `sluice doctor` says what is wrong)
            9 run.failed gateway_unreachable: `a` failed: gateway local is offline (bring gateway local back; `sluice doctor` says what is wrong)
        "#]],
        ),
        (
            20,
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
            10 node.waiting a gate attempt=1 local gateway_unreachable delay=12025
            after 20s
            11 governance.decided a "block" "gateway_health"
            12 node.failed a gateway_unreachable: gateway local is offline (bring gateway local back; `sluice doctor` says what is wrong)
            13 run.failed gateway_unreachable: `a` failed: gateway local is offline (bring gateway local back; `sluice doctor` says what is wrong)
        "#]],
        ),
    ] {
        check(
            Script::flow("steps: [{id: a, command: go}]")
                .under(offline)
                .under(|desk| {
                    desk.agent_row("mock", |agent| agent.queue_timeout_s = Some(seconds));
                })
                .advance("1h"),
            expected,
        );
    }
}

#[test]
fn what_is_back_in_time_is_gone_on_with() {
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .under(offline)
            .advance("30m")
            .set(online)
            .look()
            .complete("a", json!({})),
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
            10 node.waiting a gate attempt=1 local gateway_unreachable delay=3592025
            after 30m
            11 node.started a attempt=1 dispatch=1
            12 node.completed a {}
            13 run.completed {}
        "#]],
    );
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .under(offline)
            .set(|desk| {
                desk.health.insert("local".to_owned(), Health::Degraded);
            })
            .advance("2s")
            .show_gates("a"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "gateway_health"
            4 node.waiting a gate attempt=1 local gateway_unreachable delay=1026
            after 1026ms
            5 node.started a attempt=1 dispatch=1
            gates of a: "allow"
              gateway_health warn: gateway local is degraded
        "#]],
    );
}

#[test]
fn a_retry_passes_the_gates_again() {
    check(
        Script::flow("steps: [{id: a, command: go, on_failure: retry}]")
            .set(status(AgentStatus::Paused))
            .fail("a", ProviderError)
            .advance("10s")
            .show_wait("a")
            .set(status(AgentStatus::Idle))
            .look()
            .complete("a", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.retried a attempt=1 provider_error delay=1000
            5 node.waiting a retry_backoff attempt=2 provider_error delay=1000
            after 1s
            6 governance.decided a "block" "agent_status"
            7 node.waiting a gate attempt=2 local agent_disabled delay=1026
            after 2026ms
            8 governance.decided a "block" "agent_status"
            9 node.waiting a gate attempt=2 local agent_disabled delay=2196
            after 4222ms
            10 governance.decided a "block" "agent_status"
            11 node.waiting a gate attempt=2 local agent_disabled delay=4753
            after 8975ms
            12 governance.decided a "block" "agent_status"
            13 node.waiting a gate attempt=2 local agent_disabled delay=0
            a is queued and waits for gate: agent_disabled: resume agent mock
            after 10s
            14 node.started a attempt=2 dispatch=2
            15 node.completed a {}
            16 run.completed {}
        "#]],
    );
}

#[test]
fn cancel_timeout_and_pause_reach_a_step_at_a_gate() {
    let script = || Script::flow("steps: [{id: a, command: go}]\ntimeout: 10m").under(offline);
    check(
        script().advance("5s").cancel(),
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
        after 5s
        9 run.status.changed cancelling (not needed) by ada
        10 node.cancelled a cancelled: not needed
        11 run.cancelled not needed
    "#]],
    );
    check(
        script().advance("11m"),
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
        10 node.waiting a gate attempt=1 local gateway_unreachable delay=3592025
        after 10m
        11 node.cancelled a timeout: the run took longer than 10m
        12 run.timed_out 10m
    "#]],
    );
    check(
        script().pause().advance("2s").show_wait("a").set(online).look().unpause(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "gateway_health"
            4 node.waiting a gate attempt=1 local gateway_unreachable delay=1026
            5 run.status.changed paused (operator) by ada
            after 1026ms
            6 node.queued a
            a is queued and waits for queued: waits for a free slot: max_parallel is 64
            after 2s
            7 run.status.changed running (operator) by ada
            8 node.started a attempt=1 dispatch=1
        "#]],
    );
}

#[test]
fn a_run_with_a_step_at_a_gate_does_not_wait_for_people_only() {
    check(
        Script::flow(
            "
            timeout: 1h
            steps:
              - {id: a, command: go}
              - {id: ask, approval: required}
            ",
        )
        .under(offline)
        .show_status()
        .advance("30m")
        .set(online)
        .look()
        .complete("a", json!({}))
        .show_status(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued ask
            4 approval.requested ask apr1 step "Approve `ask`?"
            5 governance.decided a "block" "gateway_health"
            6 node.waiting a gate attempt=1 local gateway_unreachable delay=1188
            status: running
            after 1188ms
            7 governance.decided a "block" "gateway_health"
            8 node.waiting a gate attempt=1 local gateway_unreachable delay=1955
            after 3143ms
            9 governance.decided a "block" "gateway_health"
            10 node.waiting a gate attempt=1 local gateway_unreachable delay=3910
            after 7053ms
            11 governance.decided a "block" "gateway_health"
            12 node.waiting a gate attempt=1 local gateway_unreachable delay=3592947
            after 30m
            13 node.started a attempt=1 dispatch=1
            14 node.completed a {}
            15 run.status.changed paused (approval)
            status: paused (approval)
        "#]],
    );
}

#[test]
fn a_grant_waits_with_its_step_at_the_gate() {
    check(
        Script::flow("steps: [{id: a, command: go, approval: required}]")
            .set(offline)
            .approve("a")
            .advance("20s")
            .set(online)
            .look(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 step "Let `a` do this?\ngo"
            5 run.status.changed paused (approval)
            6 approval.resolved a apr1 approved by bob
            7 run.status.changed running (approval)
            8 governance.decided a "block" "gateway_health"
            9 node.waiting a gate attempt=1 local gateway_unreachable delay=1188
            after 1188ms
            10 governance.decided a "block" "gateway_health"
            11 node.waiting a gate attempt=1 local gateway_unreachable delay=1955
            after 3143ms
            12 governance.decided a "block" "gateway_health"
            13 node.waiting a gate attempt=1 local gateway_unreachable delay=3910
            after 7053ms
            14 governance.decided a "block" "gateway_health"
            15 node.waiting a gate attempt=1 local gateway_unreachable delay=3592947
            after 20s
            16 node.started a attempt=1 dispatch=1
        "#]],
    );
    check(
        Script::flow("steps: [{id: a, command: go, approval: required}]")
            .under(offline)
            .advance("10s")
            .set(online)
            .look(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "gateway_health"
            4 node.waiting a gate attempt=1 local gateway_unreachable delay=1026
            after 1026ms
            5 node.queued a
            6 governance.decided a "block" "gateway_health"
            7 node.waiting a gate attempt=1 local gateway_unreachable delay=2196
            after 3222ms
            8 node.queued a
            9 governance.decided a "block" "gateway_health"
            10 node.waiting a gate attempt=1 local gateway_unreachable delay=4753
            after 7975ms
            11 node.queued a
            12 governance.decided a "block" "gateway_health"
            13 node.waiting a gate attempt=1 local gateway_unreachable delay=3592025
            after 10s
            14 governance.decided a "hold" null
            15 approval.requested a apr1 step "Let `a` do this?\ngo"
            16 run.status.changed paused (approval)
        "#]],
    );
}

#[test]
fn a_process_that_does_no_work_looks_at_no_gate() {
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .under(offline)
            .deferred()
            .advance("2s")
            .set(online)
            .look()
            .show_wait("a")
            .allowed(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "gateway_health"
            4 node.waiting a gate attempt=1 local gateway_unreachable delay=1026
            after 1026ms
            5 node.queued a
            a is queued and waits for queued: waits for a free slot: max_parallel is 64
            after 2s
            6 node.started a attempt=1 dispatch=1
        "#]],
    );
}
