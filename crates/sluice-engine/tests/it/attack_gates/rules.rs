//! Rules that change during a decision, cannot be parsed, or are missing.

use super::{ONE, error};
use crate::gate::{Gate, StoreOperation};
use crate::operator::{
    CENT, Meter, answer, events, metered, open_approval, policy, put, puts, remove,
};
use crate::world::{config, ended, memory, start, step, until};
use serde_json::json;
use sluice_core::port::store::{Store, StoreError};
use sluice_core::run::command::Decision;
use sluice_core::run::state::Run;
use sluice_core::status::{RunStatus, StepStatus};
use sluice_engine::Engine;
use sluice_engine::error::StartError;
use sluice_engine::start::StartedRun;
use sluice_engine::trust::PolicySource;
use sluice_govern::policy::{DEFAULT, Policies};
use sluice_govern::registry::Kind;
use std::sync::Arc;
use std::time::Duration;

const FORBID: &str =
    "@id(\"no\") forbid (principal, action == Action::\"dispatch_step\", resource);";

fn meter() -> Arc<Meter> {
    Meter::new(CENT, CENT, |_| Duration::ZERO)
}

/// Waits for approval, then works.
const ASKS: &str =
    "name: flow\nsteps: [{id: ask, approval: required}, {id: a, depends_on: [ask], command: go}]";

/// Whether a start was deferred: nothing was written, and it can be retried.
fn is_unavailable(started: &Result<StartedRun, StartError>) -> bool {
    matches!(started, Err(StartError::Store(StoreError::Unavailable(_))))
}

/// A while in which nothing may happen.
async fn a_while() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

#[tokio::test]
async fn an_allow_under_outdated_rules_dispatches_nothing() {
    let gate = Arc::new(Gate::new(memory()));
    let meter = meter();
    let engine = metered(Arc::clone(&gate) as _, &meter, config()).await;
    // Decided, but not yet written, when the policy arrives.
    let rows = [
        (Kind::Policy, DEFAULT.0, json!({"text": DEFAULT.1})),
        (Kind::Policy, "no.cedar", json!({"text": FORBID})),
    ];
    gate.change_before_dispatch(puts(&rows));
    let id = engine.start(start(ONE)).await.unwrap().run;
    let run = ended(&engine, id).await;
    assert!(gate.is_sprung());
    assert_eq!(error(&run), "policy_blocked");
    assert_eq!(meter.calls(), 0);
    let decided = events(&engine, &run, "governance.decided").await;
    assert_eq!(decided.len(), 1, "what was not written is not there: {decided:?}");
}

#[tokio::test]
async fn a_cap_lowered_during_a_decision_takes_effect() {
    let gate = Arc::new(Gate::new(memory()));
    let meter = meter();
    put(&*gate, &[(Kind::Budget, "cap", super::budget(5))]).await;
    let engine = metered(Arc::clone(&gate) as _, &meter, config()).await;
    gate.change_before_dispatch(puts(&[(Kind::Budget, "cap", super::budget(0))]));
    let id = engine.start(start(ONE)).await.unwrap().run;
    assert_eq!(error(&ended(&engine, id).await), "budget_exceeded");
    assert_eq!(meter.calls(), 0);
}

#[tokio::test]
async fn an_engine_without_usable_rules_does_not_open() {
    for text in ["", "forbid (", FORBID, "permit (principal, action, whatever);"] {
        let store = memory();
        put(&*store, &[(Kind::Policy, "a.cedar", json!({"text": text}))]).await;
        let ground = sluice_engine::engine::Ground {
            store,
            clock: Arc::new(sluice_engine::world::SystemClock),
            entropy: Arc::new(|| Box::new(sluice_engine::world::SystemEntropy)),
            agents: sluice_engine::agents::Agents::new(),
            policies: PolicySource::default(),
            catalog: None,
            sealer: None,
            moderator: None,
            observer: None,
        };
        assert!(Engine::open(ground, config()).await.is_err(), "{text:?}");
    }
    assert!(Policies::load(&[]).is_err(), "nor is there a set without policies");
}

#[tokio::test]
async fn broken_rules_stop_everything_until_they_are_fixed() {
    let store = memory();
    let meter = meter();
    let engine = metered(Arc::clone(&store), &meter, config()).await;
    let id = engine.start(start(ASKS)).await.unwrap().run;
    let asks = |run: &Run| step(run, "ask").status() == StepStatus::AwaitingApproval;
    let approval = open_approval(&until(&engine, id, asks).await);
    policy(&*store, "broken.cedar", "forbid (").await;
    // The rules for a new run are unknown, so it does not start.
    let refused = engine.start(start(ONE)).await;
    assert!(is_unavailable(&refused), "{refused:?}");
    answer(&engine, id, approval, Decision::Approve, "ada", &[]).await.unwrap();
    a_while().await;
    let run = engine.load(id).await.unwrap();
    assert!(!run.status.is_terminal());
    assert_eq!((meter.calls(), step(&run, "a").status()), (0, StepStatus::Queued));
    remove(&*store, Kind::Policy, "broken.cedar").await;
    assert_eq!(ended(&engine, id).await.status, RunStatus::Completed);
    let id = engine.start(start(ONE)).await.unwrap().run;
    assert_eq!(ended(&engine, id).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn interrupted_work_waits_while_the_rules_cannot_be_read() {
    let store = memory();
    let slow = Meter::new(CENT, CENT, |_| Duration::from_secs(3600));
    let short = || sluice_engine::config::Config { lease_ms: 300, ..config() };
    let engine = metered(Arc::clone(&store), &slow, short()).await;
    let id = engine.start(start(ONE)).await.unwrap().run;
    crate::world::happens("the call", || slow.calls() == 1).await;
    let meter = meter();
    let other = metered(Arc::clone(&store), &meter, short()).await;
    policy(&*store, "broken.cedar", "forbid (").await;
    drop(engine);
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(meter.calls(), 0, "it is not sent again without rules");
    remove(&*store, Kind::Policy, "broken.cedar").await;
    assert_eq!(ended(&other, id).await.status, RunStatus::Completed);
    let calls = meter.calls.lock().expect("the lock is not poisoned");
    let before = slow.calls.lock().expect("the lock is not poisoned");
    assert_eq!(calls[0].0.idempotency_key, before[0].0.idempotency_key, "it is the same attempt");
}

#[tokio::test]
async fn nothing_is_dispatched_while_the_rules_cannot_be_read() {
    let gate = Arc::new(Gate::new(memory()));
    let meter = meter();
    let engine = metered(Arc::clone(&gate) as _, &meter, config()).await;
    gate.close(StoreOperation::Rules, "the disk does not answer");
    put(&*gate, &[(Kind::Budget, "cap", super::budget(9))]).await;
    let refused = engine.start(start(ONE)).await;
    assert!(is_unavailable(&refused), "{refused:?}");
    a_while().await;
    assert_eq!(meter.calls(), 0);
    gate.open();
    let id = engine.start(start(ONE)).await.unwrap().run;
    assert_eq!(ended(&engine, id).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn a_removed_agent_does_nothing() {
    let store = memory();
    let meter = meter();
    let engine = metered(Arc::clone(&store), &meter, config()).await;
    let missing = engine.start(start(&ONE.replace("command", "agent: ghost, command"))).await;
    assert!(matches!(missing, Err(StartError::Agent(_))), "{missing:?}");
    let house = json!({"provider": "mock", "default": true});
    put(&*store, &[(Kind::Gateway, "house", house)]).await;
    put(&*store, &[(Kind::Agent, "ghost", json!({"status": "paused"}))]).await;
    a_while().await;
    let id = engine.start(start(&ONE.replace("command", "agent: ghost, command"))).await;
    let id = id.unwrap().run;
    until(&engine, id, |run| step(run, "a").gate.is_some()).await;
    remove(&*store, Kind::Agent, "ghost").await;
    let run = ended(&engine, id).await;
    assert_eq!(error(&run), "agent_disabled");
    assert_eq!(meter.calls(), 0);
}

#[tokio::test]
async fn a_disabled_agent_does_nothing() {
    for status in ["terminated", "error", "deprecated"] {
        let store = memory();
        let meter = meter();
        put(&*store, &[(Kind::Agent, "mock", json!({"status": status}))]).await;
        let engine = metered(Arc::clone(&store) as Arc<dyn Store>, &meter, config()).await;
        let id = engine.start(start(ONE)).await.unwrap().run;
        assert_eq!(error(&ended(&engine, id).await), "agent_disabled", "{status}");
        assert_eq!(meter.calls(), 0);
    }
}
