//! Steps with a remote gateway: sent until they are accepted, with one dispatch number.

use super::{Script, check};
use crate::port::authority::fake::FakeAuthority as Desk;
use expect_test::expect;
use sluice_govern::registry::{ExecutionTarget, Gateway, Health};

fn remote(capabilities: &'static [&'static str]) -> impl Fn(&mut Desk) {
    move |desk| {
        let row = Gateway {
            url: Some("https://bridge.example".to_owned()),
            capabilities: capabilities.iter().map(|&one| one.to_owned()).collect(),
            ..Gateway::default()
        };
        desk.fabric.gateways.insert("local".to_owned(), row);
    }
}

#[test]
fn what_was_not_accepted_is_sent_again_under_the_same_number() {
    check(
        Script::flow("steps: [{id: a, command: go, idempotent: false}]")
            .under(remote(&[]))
            .show_due()
            .take_over()
            .show_due()
            .accepted("a")
            .show_due()
            .accepted("a")
            .take_over()
            .show_due()
            .complete_dispatch("a", 1),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 bridge
            due: a dispatch=1 key=b51ada
            4 run.status.changed running (taken_over)
            due: a dispatch=1 key=b51ada
            5 node.waiting a external_callback attempt=1 delay=0
            due: 
            6 run.status.changed running (taken_over)
            due: 
            7 node.completed a {}
            8 run.completed {}
        "#]],
    );
}

#[test]
fn a_gateway_that_answers_at_once_is_asked_to_where_there_is_time() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go, timeout: 4m}
              - {id: b, command: go}
            ",
        )
        .under(remote(&["sync"]))
        .take_over()
        .show_due()
        .complete_dispatch("a", 1),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1 bridge_sync
            5 node.started b attempt=1 dispatch=1 bridge
            6 run.status.changed running (taken_over)
            due: a dispatch=1 key=b51ada, b dispatch=1 key=f472e5
            7 node.completed a {}
        "#]],
    );
}

#[test]
fn a_native_agent_is_never_sent_to_a_gateway_with_a_url() {
    let native = |desk: &mut Desk| {
        desk.agent_row("mock", |agent| agent.execution_target = Some(ExecutionTarget::Native));
    };
    check(
        Script::flow("steps: [{id: a, command: go}]").under(remote(&["sync"])).under(native),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "gateway_health"
            4 node.failed a gateway_unreachable: no gateway offers what the step needs (see the routing decision for the reason of each gateway)
            5 run.failed gateway_unreachable: `a` failed: no gateway offers what the step needs (see the routing decision for the reason of each gateway)
        "#]],
    );
    // A gateway without a URL is served by this process.
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .under(remote(&["sync"]))
            .under(native)
            .under(|desk| {
                desk.fabric.gateways.insert("near".to_owned(), Gateway::default());
            })
            .show(|world| format!("goes to {:?}", world.run.state(world.at("a")).gateway())),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            goes to Some("near")
        "#]],
    );
}

#[test]
fn a_step_whose_gateway_is_offline_goes_to_another_one() {
    let two = |desk: &mut Desk| {
        for name in ["local", "spare"] {
            desk.fabric.gateways.insert(name.to_owned(), Gateway::default());
        }
        desk.health.insert("local".to_owned(), Health::Offline);
    };
    let goes = |script: Script| {
        script.show(|world| format!("goes to {:?}", world.run.state(world.at("a")).gateway()))
    };
    check(
        goes(Script::flow("steps: [{id: a, command: go}]").under(two)),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            goes to Some("spare")
        "#]],
    );
    // A pinned step waits for its gateway.
    check(
        goes(Script::flow("steps: [{id: a, command: go}]").under(two).under(|desk| {
            desk.agent_row("mock", |agent| agent.gateway = Some("local".to_owned()));
        })),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "gateway_health"
            4 node.waiting a gate attempt=1 local gateway_unreachable delay=1026
            goes to None
        "#]],
    );
}

#[test]
fn a_result_that_comes_before_the_acceptance_counts() {
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .under(remote(&[]))
            .complete_dispatch("a", 1)
            .accepted("a"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 bridge
            4 node.completed a {}
            5 run.completed {}
            refused: completion_late (the result is of a dispatch that is no longer in flight)
        "#]],
    );
}
