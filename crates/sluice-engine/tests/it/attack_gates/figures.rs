//! False reports of costs.

use super::{HELD, ONE, OVER, SPENT, budget, error};
use crate::operator::{CENT, Meter, count, events, heard, metered, put};
use crate::world::{config, ended, memory, start};
use serde_json::json;
use sluice_core::limits::COST_MICRO_CENTS_MAX;
use sluice_core::money::Money;
use sluice_core::port::adapter::{Answer, Usage};
use sluice_core::port::store::Store;
use sluice_core::run::command::Command;
use sluice_core::status::RunStatus;
use sluice_engine::Engine;
use sluice_govern::registry::Kind;
use std::sync::Arc;
use std::time::Duration;

async fn capped(cents: u64, cost: u64) -> (Arc<dyn Store>, Arc<Meter>, Engine) {
    let store = memory();
    put(&*store, &[(Kind::Budget, "cap", budget(cents))]).await;
    let meter = Meter::new(CENT, cost, |_| Duration::ZERO);
    let engine = metered(Arc::clone(&store), &meter, config()).await;
    (store, meter, engine)
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).expect("small")
}

#[tokio::test]
async fn an_absurd_cost_is_refused_and_the_work_is_kept() {
    for cost in [COST_MICRO_CENTS_MAX + 1, u64::MAX] {
        let (store, _, engine) = capped(10, cost).await;
        let id = engine.start(start(ONE)).await.unwrap().run;
        let run = ended(&engine, id).await;
        assert_eq!(run.status, RunStatus::Completed);
        assert_eq!((count(&*store, HELD).await, count(&*store, SPENT).await), (signed(CENT), 0));
        let alerts = events(&engine, &run, "budget.alert").await;
        assert!(alerts.iter().any(|one| one.to_string().contains("figures_refused")), "{alerts:?}");
    }
}

/// A late cost report of an abandoned call.
async fn late(cost: u64) -> (Arc<dyn Store>, Engine, sluice_core::run::state::Run) {
    let store = memory();
    put(&*store, &[(Kind::Budget, "cap", budget(10))]).await;
    let meter = Meter::new(CENT, CENT, |_| Duration::from_secs(3600));
    let engine = metered(Arc::clone(&store), &meter, config()).await;
    let flow = "name: flow\nsteps: [{id: a, command: go, timeout: 50ms}]";
    let id = engine.start(start(flow)).await.expect("it starts").run;
    let run = ended(&engine, id).await;
    assert_eq!(count(&*store, HELD).await, signed(CENT), "its cost is unknown");
    let usage = Usage { cost: Money::from_micro_cents(cost), ..Usage::default() };
    let answer = Box::new(Answer { usage, ..Answer::default() });
    let at = run.find("a").expect("there is such a step");
    let command = Command::Complete { at, dispatch_no: 1, answer };
    engine.command(id, command.clone(), "late").await.expect("its cost counts");
    let again = engine.command(id, command, "late again").await;
    assert!(again.is_err(), "and counts once");
    let run = engine.load(id).await.expect("it can be read");
    (store, engine, run)
}

#[tokio::test]
async fn a_late_answer_settles_what_it_cost_once() {
    let (store, ..) = late(CENT / 4).await;
    let quarter = signed(CENT / 4);
    assert_eq!((count(&*store, HELD).await, count(&*store, SPENT).await), (quarter, quarter));
}

#[tokio::test]
async fn a_late_answer_with_an_absurd_cost_settles_at_what_was_reserved() {
    for cost in [COST_MICRO_CENTS_MAX + 1, u64::MAX] {
        let (store, engine, run) = late(cost).await;
        let cent = signed(CENT);
        assert_eq!((count(&*store, HELD).await, count(&*store, SPENT).await), (cent, cent));
        assert_eq!(count(&*store, OVER).await, 0);
        let alerts = events(&engine, &run, "budget.alert").await;
        assert!(alerts.iter().any(|one| one.to_string().contains("figures_refused")), "{alerts:?}");
    }
}

#[tokio::test]
async fn a_cost_above_what_was_reserved_is_booked_and_closes_the_cap() {
    let (store, meter, engine) = capped(100, 3 * CENT).await;
    let id = engine.start(start(ONE)).await.unwrap().run;
    let run = ended(&engine, id).await;
    assert_eq!(run.status, RunStatus::Completed);
    assert_eq!(count(&*store, SPENT).await, signed(3 * CENT));
    assert_eq!(count(&*store, OVER).await, signed(2 * CENT));
    // 97 more would fit, but not before an operator has accepted the overrun.
    let id = engine.start(start(ONE)).await.unwrap().run;
    assert_eq!(error(&ended(&engine, id).await), "budget_exceeded");
    // Nor through a process that has not seen it yet.
    let other = metered(Arc::clone(&store), &meter, config()).await;
    let id = other.start(start(ONE)).await.unwrap().run;
    assert_eq!(error(&ended(&other, id).await), "budget_exceeded");
    assert_eq!(meter.calls(), 1);
    let mut row = budget(100);
    row["accepted_overrun_cents"] = json!(2);
    put(&*store, &[(Kind::Budget, "cap", row)]).await;
    heard().await;
    let id = engine.start(start(ONE)).await.unwrap().run;
    assert_eq!(ended(&engine, id).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn a_threshold_is_reported_by_a_node_with_stale_counters() {
    let (store, meter, engine) = capped(4, CENT).await;
    let id = engine.start(start(ONE)).await.unwrap().run;
    ended(&engine, id).await;
    let other = metered(Arc::clone(&store), &meter, config()).await;
    let id = other.start(start(ONE)).await.unwrap().run;
    let run = ended(&other, id).await;
    let alerts = events(&other, &run, "budget.alert").await;
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert_eq!(count(&*store, "told:50:envelope/cap/total").await, 1);
}
