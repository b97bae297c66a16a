//! A thousand steps against a cap that admits 137 of them.

use crate::gate::Gate;
use crate::operator::{CENT, Meter, count, metered, put};
use crate::world::{PATIENCE, config, memory, sqlite, start};
use serde_json::json;
use sluice_core::id::RunId;
use sluice_core::port::adapter::Request;
use sluice_core::port::store::Store;
use sluice_engine::Engine;
use sluice_engine::watch::Tip;
use sluice_govern::registry::Kind;
use std::sync::Arc;
use std::time::Duration;

const STEPS: usize = 1000;
const FIT: usize = 137;
/// Poll interval for a run that publishes nothing.
const LOOK: Duration = Duration::from_secs(2);
const ACCOUNT: &str = "envelope/cap/total";

/// Number of runs and steps of each, in several shapes.
const SHAPES: [(usize, usize); 5] = [(1, 1000), (4, 250), (20, 50), (100, 10), (1000, 1)];

/// A delay that varies the interleaving.
fn delay(request: &Request) -> Duration {
    let sum = request.step.bytes().fold(request.run.0, |sum, byte| {
        sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(u128::from(byte))
    });
    Duration::from_millis(u64::try_from((sum >> 64) % 40).expect("small"))
}

fn flow(items: usize) -> String {
    format!(
        "name: flow\nmax_parallel: 1000\nsteps:\n  - id: each\n    command: go\n    \
         on_failure: skip\n    for_each: {{items: {:?}, max_parallel: 1000}}\n",
        (0..items).collect::<Vec<_>>()
    )
}

/// Starts everything at once on these engines, and checks the result.
async fn race(store: Arc<dyn Store>, engines: usize, (runs, items): (usize, usize)) {
    let gate = Arc::new(Gate::new(store));
    gate.watch(&format!("held:{ACCOUNT}"));
    let amount = json!(FIT);
    let envelope = json!({"scope": "global", "period": "total", "amount_cents": amount});
    put(&*gate, &[(Kind::Budget, "cap", envelope)]).await;
    let meter = Meter::new(CENT, CENT, delay);
    let mut all: Vec<Engine> = Vec::new();
    for _ in 0..engines {
        all.push(metered(Arc::clone(&gate) as _, &meter, config()).await);
    }
    let flow = start(&flow(items));
    let starts = (0..runs).map(|number| all[number % engines].start(flow.clone()));
    let started = futures_util::future::join_all(starts).await;
    for (number, one) in started.into_iter().enumerate() {
        over(&all[number % engines], one.expect("it starts").run).await;
    }
    assert_eq!(meter.calls(), FIT, "of {runs} runs of {items} steps");
    let cap = i64::try_from(FIT as u64 * CENT).expect("it fits");
    assert_eq!(gate.most(), cap, "spent and reserved never pass the cap");
    assert_eq!(count(&*gate, &format!("held:{ACCOUNT}")).await, cap);
    assert_eq!(count(&*gate, &format!("spent:{ACCOUNT}")).await, cap);
    assert_eq!(count(&*gate, &format!("over:{ACCOUNT}")).await, 0);
}

/// Waits for the end of a run without reloading it each time.
async fn over(engine: &Engine, run: RunId) {
    let mut tips = engine.follow(run);
    let done = async {
        while !engine.load(run).await.expect("it can be read").status.is_terminal() {
            let ended = |tip: &Option<Tip>| tip.is_some_and(|tip| tip.status.is_terminal());
            // Without a notification, the next poll finds it.
            let _ = tokio::time::timeout(LOOK, tips.wait_for(ended)).await;
        }
    };
    tokio::time::timeout(PATIENCE, done).await.expect("every run ends");
}

#[tokio::test(start_paused = true)]
async fn of_a_thousand_steps_exactly_those_that_fit_are_sent_in_every_order() {
    const INTERLEAVINGS: usize = 44;
    for number in 0..INTERLEAVINGS {
        let shape = SHAPES[number % SHAPES.len()];
        assert_eq!(shape.0 * shape.1, STEPS);
        race(memory(), 1 + number % 2, shape).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_disk_with_two_threads_exactly_those_that_fit_are_sent() {
    for shape in [SHAPES[0], SHAPES[2], SHAPES[3]].into_iter().cycle().take(6) {
        let dir = tempfile::tempdir().expect("there is a place for temporary files");
        race(sqlite(dir.path()), 1, shape).await;
    }
}
