//! Reservations of aborted dispatches: kept until their cost is reported, or for a day.

use super::governed::cents;
use super::{Script, check};
use crate::journal::event::StepAt;
use crate::money::Money;
use crate::port::adapter::CallErrorCode::Auth;
use crate::port::adapter::{Answer, Usage};
use crate::run::command::Command;
use expect_test::expect;
use serde_json::json;

/// The first lines of a step that times out after ten seconds and is sent again.
const SENT_AGAIN: &str = "
    1 run.started
    2 node.queued a
    3 node.started a attempt=1 dispatch=1
    after 10s
    4 node.retried a attempt=1 timeout delay=1000
    5 node.waiting a retry_backoff attempt=2 timeout delay=1000
    after 11s
    6 node.started a attempt=2 dispatch=2
";

#[test]
fn what_is_given_up_keeps_its_reservation_until_its_cost_is_known() {
    let script = || {
        Script::flow(
            "
            budget: {max_cost_cents: 100}
            steps: [{id: a, command: go, timeout: 10s, on_failure: retry}]
            ",
        )
        .under(|desk| desk.quoted(&["a"], 40))
        .advance("11s")
        .begins(SENT_AGAIN)
        .show_money()
    };
    // The answer to the first dispatch arrives late, while the second is in flight.
    check(
        script()
            .late("a", 1, cents(7))
            .show_money()
            .late("a", 1, cents(7))
            .costs("a", 3)
            .show_money(),
        expect![[r#"
            money: run/run held=0.80 spent=0.00
            7 budget.alert a dispatch=1 cost=0.07
            money: run/run held=0.47 spent=0.07
            refused: completion_late (the result is of a dispatch that is no longer in flight)
            8 node.completed a {}
            9 run.completed {}
            money: run/run held=0.10 spent=0.10
        "#]],
    );
    // The answer arrives after the end of the run.
    check(
        script().costs("a", 3).show_money().advance("1h").late("a", 1, cents(7)).show_money(),
        expect![[r#"
            money: run/run held=0.80 spent=0.00
            7 node.completed a {}
            8 run.completed {}
            money: run/run held=0.43 spent=0.03
            after 3611s
            9 budget.alert a dispatch=1 cost=0.07
            money: run/run held=0.10 spent=0.10
        "#]],
    );
    // The cost is never reported.
    check(
        script().costs("a", 3).advance("25h").show_money(),
        expect![[r#"
        money: run/run held=0.80 spent=0.00
        7 node.completed a {}
        8 run.completed {}
        after 86410s
        9 budget.alert a dispatch=1 cost=0.40
        money: run/run held=0.43 spent=0.43
    "#]],
    );
    check(
        script().advance("10s").show_money().advance("20s").show_money(),
        expect![[r#"
            money: run/run held=0.80 spent=0.00
            after 21s
            7 node.retried a attempt=2 timeout delay=2000
            8 node.waiting a retry_backoff attempt=3 timeout delay=2000
            money: run/run held=0.80 spent=0.00
            after 23s
            9 governance.decided a "block" "budget_envelopes"
            10 node.failed a budget_exceeded: cap budget of run has 0.20 left of 1.00, and it may cost 0.40 (raise cap budget of run, or set a lower max_cost_cents on the step)
            11 run.failed budget_exceeded: `a` failed: cap budget of run has 0.20 left of 1.00, and it may cost 0.40 (raise cap budget of run, or set a lower max_cost_cents on the step)
            money: run/run held=0.80 spent=0.00
        "#]],
    );
}

#[test]
fn a_late_answer_that_cost_more_than_was_reserved_is_an_overrun() {
    check(
        Script::flow("budget: {max_cost_cents: 100}\nsteps: [{id: a, command: go, timeout: 10s}]")
            .under(|desk| desk.quoted(&["a"], 40))
            .advance("11s")
            .late("a", 1, cents(55))
            .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            after 10s
            4 node.timed_out a timeout: the attempt took longer than 10s
            5 run.failed timeout: `a` failed: the attempt took longer than 10s
            after 11s
            6 budget.alert a dispatch=1 cost=0.55
            7 budget.alert {"kind":"budget_overrun","node":"a","dispatchNo":1,"accounts":["run/run"],"reserved":0.4,"cost":0.55}
            8 budget.alert {"kind":"threshold","account":"run/run","percent":50,"spent":0.55,"cap":1.0}
            money: run/run held=0.55 spent=0.55 over=0.15
        "#]],
    );
}

#[test]
fn impossible_usage_is_ignored_and_the_result_is_kept() {
    let absurd = Money::from_micro_cents(u64::MAX);
    let usage = Usage { cost: absurd, ..Usage::default() };
    let answer = Answer { usage, ..super::outputs_of(json!({"x": 1})) };
    check(
        Script::flow("budget: {max_cost_cents: 100}\nsteps: [{id: a, command: go}]")
            .under(|desk| desk.quoted(&["a"], 40))
            .answers("a", answer)
            .show_money()
            .late("a", 1, absurd)
            .show_money()
            .advance("25h")
            .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 budget.alert {"kind":"figures_refused","node":"a","cost":184467440737.09552,"inputTokens":0,"outputTokens":0,"thinkingTokens":0}
            5 node.completed a {"x":1}
            6 run.completed {}
            money: run/run held=0.40 spent=0.00
            7 budget.alert {"kind":"figures_refused","node":"a","cost":184467440737.09552,"inputTokens":0,"outputTokens":0,"thinkingTokens":0}
            8 budget.alert a dispatch=1 cost=0.40
            money: run/run held=0.40 spent=0.40
            money: run/run held=0.40 spent=0.40
        "#]],
    );
    let usage = Usage { output_tokens: u64::MAX, ..Usage::default() };
    let answer = Answer { usage, ..Answer::failed(Auth, "it broke") };
    check(
        Script::flow("steps: [{id: a, command: go}]").answers("a", answer).show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 budget.alert {"kind":"figures_refused","node":"a","cost":0.0,"inputTokens":0,"outputTokens":18446744073709551615,"thinkingTokens":0}
            5 node.failed a auth: it broke
            6 run.failed auth: `a` failed: it broke
            money: 
        "#]],
    );
}

#[test]
fn what_is_cancelled_in_flight_keeps_its_reservation() {
    check(
        Script::flow(
            "budget: {max_cost_cents: 100}\nsteps: [{id: a, command: go}, {id: b, command: go}]",
        )
        .under(|desk| desk.quoted(&["a", "b"], 40))
        .cancel()
        .costs("a", 5)
        .show_money()
        .advance("5m")
        .show_money()
        .advance("2d")
        .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 run.status.changed cancelling (not needed) by ada
            7 node.cancelled a cancelled: not needed
            money: run/run held=0.45 spent=0.05
            money: run/run held=0.45 spent=0.05
            after 10m
            8 node.cancelled b cancelled: it did not stop in time
            9 run.cancelled not needed
            after 1450m
            10 budget.alert b dispatch=1 cost=0.40
            money: run/run held=0.45 spent=0.45
        "#]],
    );
}

#[test]
fn what_is_stopped_in_the_turn_it_was_sent_in_was_never_sent() {
    check(
        Script::flow(
            "
            budget: {max_cost_cents: 100}
            steps:
              - {id: a, command: go}
              - {id: b, command: go, agent: unknown, parallel_failure_policy: fail_fast}
            ",
        )
        .under(|desk| desk.quoted(&["a", "b"], 40))
        .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 governance.decided b "block" "agent_status"
            6 node.failed b agent_disabled: there is no agent unknown (register agent unknown, or name another)
            7 node.cancelled a condition_failed: stopped because `b` failed
            8 run.failed agent_disabled: `b` failed: there is no agent unknown (register agent unknown, or name another)
            money: run/run held=0.00 spent=0.00
        "#]],
    );
}

#[test]
fn a_rewind_leaves_open_what_was_in_flight() {
    check(
        Script::flow(
            "
            budget: {max_cost_cents: 100}
            steps:
              - {id: a, command: go}
              - {id: b, command: go, depends_on: [a]}
            ",
        )
        .under(|desk| desk.quoted(&["a", "b"], 40))
        .costs("a", 10)
        .rewind(&["a"])
        .show_money()
        .late("b", 1, cents(20))
        .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {}
            5 node.queued b
            6 node.started b attempt=1 dispatch=1
            7 run.status.changed running (rewind) by ada
            8 node.invalidated b
            9 node.queued b
            10 node.started b attempt=1 dispatch=2
            money: run/run held=0.90 spent=0.10
            11 budget.alert b dispatch=1 cost=0.20
            money: run/run held=0.70 spent=0.30
        "#]],
    );
}

#[test]
fn a_run_out_of_time_keeps_what_was_reserved() {
    check(
        Script::flow("timeout: 1m\nbudget: {max_cost_cents: 100}\nsteps: [{id: a, command: go}]")
            .under(|desk| desk.quoted(&["a"], 40))
            .advance("2m")
            .show_money()
            .late("a", 1, cents(1))
            .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            after 1m
            4 node.cancelled a timeout: the run took longer than 1m
            5 run.timed_out 1m
            money: run/run held=0.40 spent=0.00
            after 2m
            6 budget.alert a dispatch=1 cost=0.01
            money: run/run held=0.01 spent=0.01
        "#]],
    );
}

#[test]
fn a_late_answer_may_be_of_an_instance_that_is_gone() {
    let first = StepAt::instance(1, 0);
    check(
        Script::flow(
            "
            budget: {max_cost_cents: 100}
            steps:
              - {id: a, command: go, outputs: {list: array}}
              - {id: f, command: go, for_each: $a.list, depends_on: [a]}
            ",
        )
        .under(|desk| desk.quoted(&["f[0]"], 40))
        .complete("a", json!({"list": [1, 2]}))
        .rewind(&[])
        .turn(move |_| {
            let usage = Usage { cost: cents(30), ..Usage::default() };
            let answer = Box::new(Answer { usage, ..Answer::default() });
            Command::Complete { at: first, dispatch_no: 1, answer }
        })
        .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {"list":[1,2]}
            5 node.queued f items=2
            6 node.started f attempt=1 dispatch=1 fan_out
            7 node.queued f[0]
            8 node.queued f[1]
            9 node.provenance f[0] item <- a list[0]
            10 node.started f[0] attempt=1 dispatch=1
            11 node.provenance f[1] item <- a list[1]
            12 node.started f[1] attempt=1 dispatch=1
            13 run.status.changed running (rewind) by ada
            14 node.invalidated a
            15 node.invalidated f
            16 node.queued a
            17 node.started a attempt=1 dispatch=2
            18 budget.alert f[0] dispatch=1 cost=0.30
            money: run/run held=0.30 spent=0.30
        "#]],
    );
}

/// A step that times out, where no budget applies.
fn unbudgeted() -> Script {
    Script::flow("steps: [{id: a, command: go, timeout: 10s, on_failure: retry}]")
        .under(|desk| desk.quoted(&["a"], 40))
        .advance("11s")
        .begins(SENT_AGAIN)
}

fn show_cost(script: Script) -> Script {
    let cost = |world: &super::World| world.run.state(world.at("a")).usage.cost.to_string();
    script.show(cost).show_counts("spend|")
}

#[test]
fn a_cost_that_comes_late_is_booked_where_no_budget_applies_too() {
    let late = unbudgeted().late("a", 1, cents(7)).late("a", 1, cents(7));
    check(
        show_cost(show_cost(late).costs("a", 3)),
        expect![[r#"
        7 budget.alert a dispatch=1 cost=0.07
        refused: completion_late (the result is of a dispatch that is no longer in flight)
        0.07
        counts: spend|00472222|mock|t||cost=7000000, spend|00472222|mock|t||steps=1
        8 node.completed a {}
        9 run.completed {}
        0.10
        counts: spend|00472222|mock|t||cost=10000000, spend|00472222|mock|t||steps=2
    "#]],
    );
    // After the end of the run. No timer is due until then.
    let ended = unbudgeted().costs("a", 3).show(|world| format!("{:?}", world.run.next_due_ms()));
    check(
        show_cost(ended.advance("1h").late("a", 1, cents(7))),
        expect![[r#"
        7 node.completed a {}
        8 run.completed {}
        None
        after 3611s
        9 budget.alert a dispatch=1 cost=0.07
        0.10
        counts: spend|00472222|mock|t||cost=3000000, spend|00472222|mock|t||steps=1, spend|00472223|mock|t||cost=7000000, spend|00472223|mock|t||steps=1
    "#]],
    );
}

#[test]
fn without_a_budget_a_cost_counts_for_a_day_and_nothing_is_written_when_it_is_over() {
    check(
        show_cost(unbudgeted().costs("a", 3).advance("25h").late("a", 1, cents(7))),
        expect![[r#"
            7 node.completed a {}
            8 run.completed {}
            refused: completion_late (the result is of a dispatch that is no longer in flight)
            0.03
            counts: spend|00472222|mock|t||cost=3000000, spend|00472222|mock|t||steps=1
        "#]],
    );
}

#[test]
fn what_cannot_cost_anything_is_not_waited_for() {
    check(
        Script::flow("steps: [{id: a, command: go, timeout: 10s}]")
            .advance("11s")
            .show(|world| format!("open: {}", world.run.open.len()))
            .late("a", 1, cents(7)),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            after 10s
            4 node.timed_out a timeout: the attempt took longer than 10s
            5 run.failed timeout: `a` failed: the attempt took longer than 10s
            open: 0
            refused: completion_late (the result is of a dispatch that is no longer in flight)
        "#]],
    );
}
