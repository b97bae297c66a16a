//! Steps whose gateway is elsewhere: sent until they are accepted, under one number.

use super::{Script, check};
use crate::port::authority::desk::Desk;
use expect_test::expect;
use sluice_govern::registry::Gateway;

fn elsewhere(capabilities: &'static [&'static str]) -> impl Fn(&mut Desk) {
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
            .under(elsewhere(&[]))
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
        .under(elsewhere(&["sync"]))
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
    check(
        Script::flow("steps: [{id: a, command: go}]").under(elsewhere(&["sync"])).under(|desk| {
            desk.agent_row("mock", |agent| agent.execution_target = Some("native".to_owned()));
        }),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
        "#]],
    );
}

#[test]
fn a_result_that_comes_before_the_acceptance_counts() {
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .under(elsewhere(&[]))
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
