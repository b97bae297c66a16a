//! Costs, which are counted when they become known.

use super::governed::cents;
use super::{Script, check, outputs_of};
use crate::port::adapter::{Answer, CallErrorCode, Usage};
use crate::run::command::Command;
use expect_test::expect;
use serde_json::json;

/// An answer that took tokens and money.
fn answered(step: &'static str, answer: Answer, usage: Usage) -> impl Fn(&super::World) -> Command {
    move |world| {
        let at = world.at(step);
        let dispatch_no = world.run.state(at).dispatch_no;
        let answer = Box::new(Answer { usage: usage.clone(), ..answer.clone() });
        Command::Complete { at, dispatch_no, answer }
    }
}

fn usage(model: Option<&str>, input_tokens: u64, output_tokens: u64, cost: u64) -> Usage {
    let (model, cost) = (model.map(str::to_owned), cents(cost));
    Usage { model, input_tokens, output_tokens, cost, ..Usage::default() }
}

#[test]
fn what_a_step_cost_is_counted_with_its_end_by_hour_and_model() {
    check(
        Script::flow(
            "steps: [{id: a, command: go}, {id: b, command: go, timeout: 2h, depends_on: [a]}]",
        )
        .turn(answered("a", outputs_of(json!({})), usage(Some("m-1"), 10, 0, 2)))
        .show_counts("spend|")
        .advance("1h")
        .turn(answered("b", outputs_of(json!({})), usage(None, 0, 7, 0)))
        .show_counts("spend|"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {}
            5 node.queued b
            6 node.started b attempt=1 dispatch=1
            counts: spend|00472222|mock|t|m-1|cost=2000000, spend|00472222|mock|t|m-1|in=10, spend|00472222|mock|t|m-1|steps=1
            after 1h
            7 node.completed b {}
            8 run.completed {}
            counts: spend|00472222|mock|t|m-1|cost=2000000, spend|00472222|mock|t|m-1|in=10, spend|00472222|mock|t|m-1|steps=1, spend|00472223|mock|t||out=7, spend|00472223|mock|t||steps=1
        "#]],
    );
}

#[test]
fn what_costs_nothing_is_not_counted() {
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .turn(answered("a", outputs_of(json!({})), usage(Some("m"), 0, 0, 0)))
            .show_counts("spend"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {}
            5 run.completed {}
            counts: 
        "#]],
    );
}

#[test]
fn every_attempt_counts_also_one_that_failed() {
    let failed = Answer::failed(CallErrorCode::ProviderError, "no");
    check(
        Script::flow("steps: [{id: a, command: go, on_failure: retry}]")
            .turn(answered("a", failed, usage(Some("m"), 1, 2, 3)))
            .advance("2s")
            .turn(answered("a", outputs_of(json!({})), usage(Some("m"), 10, 20, 30)))
            .show_counts("spend|"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.retried a attempt=1 provider_error delay=1000
            5 node.waiting a retry_backoff attempt=2 provider_error delay=1000
            after 1s
            6 node.started a attempt=2 dispatch=2
            after 2s
            7 node.completed a {}
            8 run.completed {}
            counts: spend|00472222|mock|t|m|cost=33000000, spend|00472222|mock|t|m|in=11, spend|00472222|mock|t|m|out=22, spend|00472222|mock|t|m|steps=2
        "#]],
    );
}

#[test]
fn a_cost_that_becomes_known_late_is_counted_once_when_it_does() {
    let script = || {
        Script::flow(
            "
            budget: {max_cost_cents: 100}
            steps: [{id: a, command: go, timeout: 10s, on_failure: retry}]
            ",
        )
        .under(|desk| desk.quoted(&["a"], 40))
        .advance("11s")
        .costs("a", 3)
        .show_counts("spend|")
        .advance("1h")
    };
    check(
        script().late("a", 1, cents(7)).show_counts("spend|"),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        after 10s
        4 node.retried a attempt=1 timeout delay=1000
        5 node.waiting a retry_backoff attempt=2 timeout delay=1000
        after 11s
        6 node.started a attempt=2 dispatch=2
        7 node.completed a {}
        8 run.completed {}
        counts: spend|00472222|mock|t||cost=3000000, spend|00472222|mock|t||steps=1
        after 3611s
        9 budget.alert a dispatch=1 cost=0.07
        counts: spend|00472222|mock|t||cost=3000000, spend|00472222|mock|t||steps=1, spend|00472223|mock|t||cost=7000000, spend|00472223|mock|t||steps=1
    "#]],
    );
    // The cost is never reported, so the reservation is booked.
    check(
        script().advance("25h").show_counts("spend|"),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        after 10s
        4 node.retried a attempt=1 timeout delay=1000
        5 node.waiting a retry_backoff attempt=2 timeout delay=1000
        after 11s
        6 node.started a attempt=2 dispatch=2
        7 node.completed a {}
        8 run.completed {}
        counts: spend|00472222|mock|t||cost=3000000, spend|00472222|mock|t||steps=1
        after 86410s
        9 budget.alert a dispatch=1 cost=0.40
        counts: spend|00472222|mock|t||cost=3000000, spend|00472222|mock|t||steps=1, spend|00472246|mock|t||cost=40000000, spend|00472246|mock|t||steps=1
    "#]],
    );
}
