//! Budgets: money is reserved and settled, and no cap is exceeded.

use super::governed::{budget, cents};
use super::{Script, check};
use crate::id::RunId;
use crate::port::adapter::CallErrorCode::ProviderError;
use crate::port::adapter::Quote;
use crate::status::RunStatus;
use expect_test::expect;
use serde_json::json;
use sluice_govern::registry::{Period, Price, Scope};

const TWO: &str = "
    budget: {max_cost_cents: 100}
    steps:
      - {id: a, command: go}
      - {id: b, command: go, depends_on: [a]}
";

/// Two steps in sequence that cost forty cents each.
fn two() -> Script {
    Script::flow(TWO).under(|desk| desk.quoted(&["a", "b"], 40))
}

#[test]
fn a_dispatch_reserves_its_worst_case_and_settles_at_what_it_cost() {
    check(
        two().show_money().costs("a", 10).show_money().costs("b", 40).show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            money: run/run held=0.40 spent=0.00
            4 node.completed a {}
            5 node.queued b
            6 node.started b attempt=1 dispatch=1
            money: run/run held=0.50 spent=0.10
            7 node.completed b {}
            8 budget.alert {"kind":"threshold","account":"run/run","percent":50,"spent":0.5,"cap":1.0}
            9 run.completed {}
            money: run/run held=0.50 spent=0.50
        "#]],
    );
}

#[test]
fn side_by_side_steps_are_admitted_only_as_far_as_the_cap_goes() {
    check(
        Script::flow(
            "
            budget: {max_cost_cents: 100}
            steps:
              - {id: a, command: go}
              - {id: b, command: go}
              - {id: c, command: go, on_failure: skip}
            ",
        )
        .under(|desk| desk.quoted(&["a", "b", "c"], 40))
        .show_money()
        .costs("a", 1)
        .costs("b", 2)
        .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.queued c
            5 node.started a attempt=1 dispatch=1
            6 node.started b attempt=1 dispatch=1
            7 governance.decided c "block" "budget_envelopes"
            8 node.skipped c failure: cap budget of run has 0.20 left of 1.00, and it may cost 0.40 (raise cap budget of run, or set a lower max_cost_cents on the step) [budget_exceeded]
            money: run/run held=0.80 spent=0.00
            9 node.completed a {}
            10 node.completed b {}
            11 run.completed {}
            money: run/run held=0.03 spent=0.03
        "#]],
    );
}

#[test]
fn a_failure_whose_cost_is_known_settles_and_a_retry_reserves_again() {
    check(
        Script::flow(
            "
            budget: {max_cost_cents: 60}
            steps: [{id: a, command: go, on_failure: retry}]
            ",
        )
        .under(|desk| desk.quoted(&["a"], 40))
        .fails_at("a", ProviderError, 15)
        .show_money()
        .advance("1s")
        .show_money()
        .fails_at("a", ProviderError, 10)
        .advance("2s")
        .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.retried a attempt=1 provider_error delay=1000
            5 node.waiting a retry_backoff attempt=2 provider_error delay=1000
            money: run/run held=0.15 spent=0.15
            after 1s
            6 node.started a attempt=2 dispatch=2
            money: run/run held=0.55 spent=0.15
            7 node.retried a attempt=2 provider_error delay=2000
            8 node.waiting a retry_backoff attempt=3 provider_error delay=2000
            after 3s
            9 governance.decided a "block" "budget_envelopes"
            10 node.failed a budget_exceeded: cap budget of run has 0.35 left of 0.60, and it may cost 0.40 (raise cap budget of run, or set a lower max_cost_cents on the step)
            11 run.failed budget_exceeded: `a` failed: cap budget of run has 0.35 left of 0.60, and it may cost 0.40 (raise cap budget of run, or set a lower max_cost_cents on the step)
            money: run/run held=0.25 spent=0.25
        "#]],
    );
}

#[test]
fn every_cap_that_applies_must_hold() {
    let script = || {
        Script::flow(
            "
            roles: {r: {max_spend_cents: 50}}
            steps:
              - {id: a, command: go, role: r}
              - {id: b, command: go, role: r, depends_on: [a]}
            ",
        )
        .under(|desk| desk.quoted(&["a", "b"], 40))
    };
    check(
        script().costs("a", 11).show_money(),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        4 node.completed a {}
        5 node.queued b
        6 governance.decided b "block" "budget_agent"
        7 node.failed b budget_exceeded: cap role r, this run has 0.39 left of 0.50, and it may cost 0.40 (raise cap role r, this run, or set a lower max_cost_cents on the step)
        8 run.failed budget_exceeded: `b` failed: cap role r, this run has 0.39 left of 0.50, and it may cost 0.40 (raise cap role r, this run, or set a lower max_cost_cents on the step)
        money: role/run/r held=0.11 spent=0.11
    "#]],
    );
    check(
        script()
            .under(|desk| {
                desk.agent_row("mock", |agent| agent.budget_monthly_cents = Some(cents(45)));
            })
            .costs("a", 6),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {}
            5 node.queued b
            6 governance.decided b "block" "budget_agent"
            7 node.failed b budget_exceeded: cap agent mock, monthly has 0.39 left of 0.45, and it may cost 0.40 (raise cap agent mock, monthly, or set a lower max_cost_cents on the step)
            8 run.failed budget_exceeded: `b` failed: cap agent mock, monthly has 0.39 left of 0.45, and it may cost 0.40 (raise cap agent mock, monthly, or set a lower max_cost_cents on the step)
        "#]],
    );
    let scopes = [
        (Scope::Global, None, Period::Daily),
        (Scope::Gateway, Some("local"), Period::Weekly),
        (Scope::Agent, Some("mock"), Period::Monthly),
        (Scope::Workflow, Some("t"), Period::Total),
        (Scope::Run, Some("run_00000000000000000000000000000007"), Period::Total),
    ];
    let others = [
        (Scope::Gateway, Some("far"), Period::Total),
        (Scope::Agent, Some("clerk"), Period::Total),
        (Scope::Workflow, Some("u"), Period::Total),
        (Scope::Run, Some("run_00000000000000000000000000000008"), Period::Total),
    ];
    check(
        script()
            .under(|desk| {
                for (number, (scope, of, period)) in scopes.into_iter().enumerate() {
                    desk.budget_row(&format!("e{number}"), budget(scope, of, period, 60));
                }
                for (number, (scope, of, period)) in others.into_iter().enumerate() {
                    desk.budget_row(&format!("no{number}"), budget(scope, of, period, 0));
                }
                let mut off = budget(Scope::Global, None, Period::Total, 0);
                off.enabled = false;
                desk.budget_row("off", off);
            })
            .show_money()
            .costs("a", 10)
            .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            money: envelope/e0/2023-11-14 held=0.40 spent=0.00, envelope/e1/2023-11-12 held=0.40 spent=0.00, envelope/e2/2023-11 held=0.40 spent=0.00, envelope/e3/total held=0.40 spent=0.00, role/run/r held=0.40 spent=0.00, run/run held=0.40 spent=0.00
            4 node.completed a {}
            5 node.queued b
            6 node.started b attempt=1 dispatch=1
            money: envelope/e0/2023-11-14 held=0.50 spent=0.10, envelope/e1/2023-11-12 held=0.50 spent=0.10, envelope/e2/2023-11 held=0.50 spent=0.10, envelope/e3/total held=0.50 spent=0.10, role/run/r held=0.50 spent=0.10, run/run held=0.50 spent=0.10
        "#]],
    );
}

#[test]
fn a_budget_starts_anew_with_its_period() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go}
              - {id: b, command: go, depends_on: [a], on_failure: skip}
              - {id: c, command: go, depends_on: [a, b]}
              - {id: d, command: go, depends_on: [c]}
            ",
        )
        .under(|desk| {
            desk.quoted(&["a", "b", "d"], 40);
            desk.budget_row("day", budget(Scope::Global, None, Period::Daily, 50));
        })
        .costs("a", 20)
        .neglected("1d")
        .costs("c", 0)
        .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {}
            5 node.queued b
            6 governance.decided b "block" "budget_envelopes"
            7 node.skipped b failure: cap day has 0.30 left of 0.50, and it may cost 0.40 (raise cap day, or set a lower max_cost_cents on the step) [budget_exceeded]
            8 node.queued c
            9 node.started c attempt=1 dispatch=1
            after 1d
            10 node.completed c {}
            11 node.queued d
            12 node.started d attempt=1 dispatch=1
            money: envelope/day/2023-11-14 held=0.20 spent=0.20, envelope/day/2023-11-15 held=0.40 spent=0.00
        "#]],
    );
}

#[test]
fn what_a_child_spends_counts_in_the_caps_above_it() {
    check(
        two()
            .started_by_a_step()
            .starting(|started| {
                started.root = Some(RunId(2));
                started.caps = vec![(RunId(3), cents(70)), (RunId(2), cents(60))];
            })
            .show_money()
            .costs("a", 25)
            .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            money: run/child1 held=0.40 spent=0.00, run/parent held=0.40 spent=0.00, run/run held=0.40 spent=0.00
            4 node.completed a {}
            5 node.queued b
            6 governance.decided b "block" "budget_envelopes"
            7 node.failed b budget_exceeded: cap budget of child1 has 0.35 left of 0.60, and it may cost 0.40 (raise cap budget of child1, or set a lower max_cost_cents on the step)
            8 run.failed budget_exceeded: `b` failed: cap budget of child1 has 0.35 left of 0.60, and it may cost 0.40 (raise cap budget of child1, or set a lower max_cost_cents on the step)
            message to parent: {"v":1,"do":"child_ended","child":"run","status":"failed","outputs":null,"error":["budget_exceeded","`b` failed: cap budget of child1 has 0.35 left of 0.60, and it may cost 0.40 (raise cap budget of child1, or set a lower max_cost_cents on the step)"],"origins":[]}
            money: run/child1 held=0.25 spent=0.25, run/parent held=0.25 spent=0.25, run/run held=0.25 spent=0.25
        "#]],
    );
    check(
        Script::flow("budget: {max_cost_cents: 1}\nsteps: [{id: a, workflow_ref: other}]")
            .knows("other")
            .show_money()
            .child("a", RunStatus::Completed, Some(json!({})), ""),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 child1
            money: 
            4 node.provenance a outputs <- child1 outputs
            5 node.completed a {}
            6 run.completed {}
        "#]],
    );
}

#[test]
fn under_a_cap_a_step_of_unknown_cost_is_not_sent() {
    let priced = |fields: &str| {
        Script::flow(&format!(
            "budget: {{max_cost_cents: 100}}\nsteps: [{{id: a, command: go, model: m{fields}}}]"
        ))
        .under(|desk| desk.otherwise = Quote::Priced)
    };
    check(
        priced(""),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 governance.decided a "block" "budget_envelopes"
        4 node.failed a budget_exceeded: no price and no cost ceiling to compare with cap budget of run (set max_cost_cents on the step or its agent, or a price for the model)
        5 run.failed budget_exceeded: `a` failed: no price and no cost ceiling to compare with cap budget of run (set max_cost_cents on the step or its agent, or a price for the model)
    "#]],
    );
    check(
        priced(", max_cost_cents: 30").show_money(),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        money: run/run held=0.30 spent=0.00
    "#]],
    );
    check(
        priced("")
            .under(|desk| desk.agent_row("mock", |row| row.max_cost_cents = Some(cents(20))))
            .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            money: run/run held=0.20 spent=0.00
        "#]],
    );
    check(
        Script::flow("steps: [{id: a, command: go, model: m}]")
            .under(|desk| desk.otherwise = Quote::Priced)
            .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            money: 
        "#]],
    );
}

/// The reservation of a step with a priced model, and the ceiling of its adapter.
fn reserved(fields: &str, agent: Option<u64>) -> String {
    let price = Price {
        input_cents_per_mtok: cents(0),
        output_cents_per_mtok: cents(1_000_000),
        cached_input_cents_per_mtok: None,
        max_output_tokens: Some(10),
    };
    let world = Script::flow(&format!(
        "budget: {{max_cost_cents: 5000}}\nsteps: [{{id: a, command: go, model: m{fields}}}]"
    ))
    .under(|desk| {
        desk.otherwise = Quote::Priced;
        desk.fabric.prices.insert("m".to_owned(), price);
        desk.agent_row("mock", |row| row.max_cost_cents = agent.map(cents));
    })
    .world();
    let request = world.run.request(world.at("a"));
    let ceiling = request.ceiling.map(|money| money.to_string()).unwrap_or_default();
    format!("{ceiling} {:?}", request.max_output_tokens)
}

#[test]
fn a_declared_ceiling_pays_for_a_whole_loop_of_tools() {
    // One turn costs at most 10 cents.
    assert_eq!(reserved("", None), "0.10 Some(10)");
    assert_eq!(reserved(", tools: [t.x]", None), "0.40 Some(10)", "four turns");
    assert_eq!(reserved(", tools: [t.x], max_cost_cents: 300", None), "3.00 Some(10)");
    assert_eq!(reserved(", tools: [t.x], max_cost_cents: 25", None), "0.25 Some(10)");
    assert_eq!(reserved(", tools: [t.x], max_cost_cents: 5", None), "0.05 Some(5)");
    assert_eq!(reserved(", tools: [t.x]", Some(200)), "2.00 Some(10)", "the agent's");
    assert_eq!(reserved(", tools: [t.x], max_cost_cents: 300", Some(200)), "3.00 Some(10)");
    // A step without tools has one turn, whose cost is known.
    assert_eq!(reserved(", max_cost_cents: 300", None), "0.10 Some(10)");
    assert_eq!(reserved("", Some(200)), "0.10 Some(10)");
}

#[test]
fn a_declared_ceiling_bounds_the_answer_to_match() {
    let price = || Price {
        input_cents_per_mtok: cents(1_000_000),
        output_cents_per_mtok: cents(1_000_000),
        cached_input_cents_per_mtok: None,
        max_output_tokens: Some(1000),
    };
    check(
        Script::flow(
            "
            budget: {max_cost_cents: 5000}
            steps: [{id: a, command: go, model: m, max_cost_cents: 100}]
            ",
        )
        .under(|desk| {
            desk.otherwise = Quote::Priced;
            desk.fabric.prices.insert("m".to_owned(), price());
        })
        .show_money()
        .show(|world| format!("{:?}", world.run.request(world.at("a")).max_output_tokens)),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            money: run/run held=1.00 spent=0.00
            Some(35)
        "#]],
    );
}

#[test]
fn an_overrun_is_booked_in_full_told_of_and_closes_the_cap() {
    check(
        two().costs("a", 45).show_money(),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        4 node.completed a {}
        5 budget.alert {"kind":"budget_overrun","node":"a","dispatchNo":1,"accounts":["run/run"],"reserved":0.4,"cost":0.45}
        6 node.queued b
        7 governance.decided b "block" "budget_envelopes"
        8 node.failed b budget_exceeded: cap budget of run is closed: 0.05 was spent beyond the reservation (accept the overrun of budget of run)
        9 run.failed budget_exceeded: `b` failed: cap budget of run is closed: 0.05 was spent beyond the reservation (accept the overrun of budget of run)
        money: run/run held=0.45 spent=0.45 over=0.05
    "#]],
    );
}

#[test]
fn an_overrun_somebody_has_accepted_closes_nothing() {
    check(
        two()
            .set(|desk| {
                let run = Some("run_00000000000000000000000000000007");
                let mut raised = budget(Scope::Run, run, Period::Total, 200);
                raised.accepted_overrun_cents = cents(80);
                desk.budget_row("raised", raised);
            })
            .costs("a", 120)
            .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {}
            5 budget.alert {"kind":"budget_overrun","node":"a","dispatchNo":1,"accounts":["run/run"],"reserved":0.4,"cost":1.2}
            6 budget.alert {"kind":"threshold","account":"run/run","percent":50,"spent":1.2,"cap":1.0}
            7 budget.alert {"kind":"threshold","account":"run/run","percent":80,"spent":1.2,"cap":1.0}
            8 budget.alert {"kind":"threshold","account":"run/run","percent":100,"spent":1.2,"cap":1.0}
            9 node.queued b
            10 node.started b attempt=1 dispatch=1
            money: run/run held=1.60 spent=1.20 over=0.80
        "#]],
    );
}

#[test]
fn each_threshold_is_told_of_once() {
    check(
        Script::flow(
            "
            budget: {max_cost_cents: 100}
            steps: [{id: a, command: go, for_each: [1, 2, 3, 4, 5], max_parallel: 1}]
            ",
        )
        .under(|desk| {
            desk.quoted(&["a[0]", "a[1]", "a[2]", "a[3]", "a[4]"], 60);
        })
        .costs("a[0]", 40)
        .set(|desk| desk.quoted(&["a[1]", "a[2]", "a[3]", "a[4]"], 20))
        .costs("a[1]", 60)
        .show_counts("told"),
        expect![[r#"
            1 run.started
            2 node.queued a items=5
            3 node.started a attempt=1 dispatch=1 fan_out
            4 node.queued a[0]
            5 node.queued a[1]
            6 node.queued a[2]
            7 node.queued a[3]
            8 node.queued a[4]
            9 node.started a[0] attempt=1 dispatch=1
            10 node.completed a[0] {}
            11 node.started a[1] attempt=1 dispatch=1
            12 node.completed a[1] {}
            13 budget.alert {"kind":"threshold","account":"run/run","percent":50,"spent":1.0,"cap":1.0}
            14 budget.alert {"kind":"threshold","account":"run/run","percent":80,"spent":1.0,"cap":1.0}
            15 budget.alert {"kind":"threshold","account":"run/run","percent":100,"spent":1.0,"cap":1.0}
            16 governance.decided a[2] "block" "budget_envelopes"
            17 node.failed a[2] budget_exceeded: cap budget of run has 0.00 left of 1.00, and it may cost 0.20 (raise cap budget of run, or set a lower max_cost_cents on the step)
            18 node.cancelled a[3] run_halted: the run was halted by `a[2]`
            19 node.cancelled a[4] run_halted: the run was halted by `a[2]`
            20 node.failed a budget_exceeded: a[2]: cap budget of run has 0.00 left of 1.00, and it may cost 0.20 (raise cap budget of run, or set a lower max_cost_cents on the step)
            21 run.failed budget_exceeded: `a[2]` failed: cap budget of run has 0.00 left of 1.00, and it may cost 0.20 (raise cap budget of run, or set a lower max_cost_cents on the step)
            counts: told:100:run/run=1, told:50:run/run=1, told:80:run/run=1
        "#]],
    );
    check(
        Script::flow(
            "
            budget: {max_cost_cents: 100}
            steps: [{id: a, command: go, for_each: [1, 2, 3, 4, 5], max_parallel: 1}]
            ",
        )
        .under(|desk| {
            desk.quoted(&["a[0]", "a[1]", "a[2]", "a[3]", "a[4]"], 40);
        })
        .costs("a[0]", 40)
        .costs("a[1]", 12)
        .costs("a[2]", 8)
        .costs("a[3]", 35)
        .show_counts("told"),
        expect![[r#"
            1 run.started
            2 node.queued a items=5
            3 node.started a attempt=1 dispatch=1 fan_out
            4 node.queued a[0]
            5 node.queued a[1]
            6 node.queued a[2]
            7 node.queued a[3]
            8 node.queued a[4]
            9 node.started a[0] attempt=1 dispatch=1
            10 node.completed a[0] {}
            11 node.started a[1] attempt=1 dispatch=1
            12 node.completed a[1] {}
            13 budget.alert {"kind":"threshold","account":"run/run","percent":50,"spent":0.52,"cap":1.0}
            14 node.started a[2] attempt=1 dispatch=1
            15 node.completed a[2] {}
            16 node.started a[3] attempt=1 dispatch=1
            17 node.completed a[3] {}
            18 budget.alert {"kind":"threshold","account":"run/run","percent":80,"spent":0.95,"cap":1.0}
            19 governance.decided a[4] "block" "budget_envelopes"
            20 node.failed a[4] budget_exceeded: cap budget of run has 0.05 left of 1.00, and it may cost 0.40 (raise cap budget of run, or set a lower max_cost_cents on the step)
            21 node.failed a budget_exceeded: a[4]: cap budget of run has 0.05 left of 1.00, and it may cost 0.40 (raise cap budget of run, or set a lower max_cost_cents on the step)
            22 run.failed budget_exceeded: `a[4]` failed: cap budget of run has 0.05 left of 1.00, and it may cost 0.40 (raise cap budget of run, or set a lower max_cost_cents on the step)
            counts: told:50:run/run=1, told:80:run/run=1
        "#]],
    );
}
