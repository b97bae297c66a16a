//! Rows that change just before a run is started: the run is decided under the new rows.
//!
//! The sweep runs once when the engine opens and then never, so that only the start itself
//! can notice the change.

use super::ONE;
use crate::gate::Gate;
use crate::operator::{
    CENT, Meter, answer, events, metered, open_approval, policy, put, puts, remove,
};
use crate::world::{config, ended, happens, memory, start, step, until};
use serde_json::json;
use sluice_core::id::RunId;
use sluice_core::journal::event::Path;
use sluice_core::port::ledger::{Ledger as _, Rows};
use sluice_core::port::store::{Append, Store};
use sluice_core::run::command::Decision;
use sluice_core::run::state::Run;
use sluice_core::status::{RunStatus, StepStatus};
use sluice_engine::config::Config;
use sluice_engine::error::StartError;
use sluice_engine::schedule::Starting;
use sluice_engine::start::Start;
use sluice_engine::{Engine, registered};
use sluice_govern::registry::{Kind, Posture};
use std::sync::Arc;
use std::time::Duration;

/// It begins with an approval: its first append dispatches nothing.
const ASKS: &str =
    "name: flow\nsteps: [{id: ask, approval: required}, {id: a, depends_on: [ask], command: go}]";
const FORBID_START: &str =
    "@id(\"no\") forbid (principal, action == Action::\"start_run\", resource);";

/// An engine whose first sweep is over.
async fn engine(store: Arc<dyn Store>) -> (Engine, Arc<Meter>) {
    let meter = Meter::new(CENT, CENT, |_| Duration::ZERO);
    let config = Config { sweep_ms: 3_600_000, ..config() };
    let gate = Arc::new(Gate::new(store));
    let engine = metered(Arc::clone(&gate) as _, &meter, config).await;
    happens("the first sweep", || gate.is_swept()).await;
    (engine, meter)
}

fn deployed(posture: &str) -> serde_json::Value {
    json!({"workflow": "flow", "posture": posture, "active": true})
}

/// A start of a registered workflow.
fn resolved(rows: &Rows, workflow: &str) -> Start {
    let mut request = registered::start(rows, workflow, serde_json::Map::new())
        .expect("the workflow is registered");
    request.default_agent = Some("mock".to_owned());
    request
}

async fn posture(engine: &Engine, run: RunId) -> Posture {
    engine.load(run).await.expect("the run can be read").started.posture
}

#[tokio::test]
async fn a_run_that_begins_with_an_approval_keeps_the_posture_set_just_before() {
    let store = memory();
    let (engine, meter) = engine(Arc::clone(&store)).await;
    put(&*store, &[(Kind::Deployment, "live", deployed("approval_required"))]).await;
    let id = engine.start(start(ASKS)).await.unwrap().run;
    assert_eq!(posture(&engine, id).await, Posture::ApprovalRequired);
    let run =
        until(&engine, id, |run| step(run, "ask").status() == StepStatus::AwaitingApproval).await;
    answer(&engine, id, open_approval(&run), Decision::Approve, "ada", &[]).await.unwrap();
    until(&engine, id, |run| step(run, "a").status() == StepStatus::AwaitingApproval).await;
    assert_eq!(meter.calls(), 0, "its step was done without a person");
}

#[tokio::test]
async fn a_posture_tightened_between_decision_and_append_is_used() {
    let gate = Arc::new(Gate::new(memory()));
    let (engine, _) = engine(Arc::clone(&gate) as _).await;
    for (name, words) in [("retrieval", Posture::Retrieval), ("advisory", Posture::Advisory)] {
        gate.change_before_dispatch(puts(&[(Kind::Deployment, "live", deployed(name))]));
        let id = engine.start(start(ASKS)).await.unwrap().run;
        assert!(gate.is_sprung());
        assert_eq!(posture(&engine, id).await, words);
    }
}

#[tokio::test]
async fn a_start_that_another_process_will_work_on_keeps_the_newest_posture_too() {
    let store = memory();
    let (engine, _) = engine(Arc::clone(&store)).await;
    put(&*store, &[(Kind::Deployment, "live", deployed("retrieval"))]).await;
    let mut request = start(ONE);
    request.dispatching = sluice_core::run::command::Dispatching::Deferred;
    let id = engine.start(request).await.unwrap().run;
    assert_eq!(posture(&engine, id).await, Posture::Retrieval);
}

#[tokio::test]
async fn an_agent_added_just_before_is_known_and_one_removed_just_before_is_not() {
    let store = memory();
    let (engine, _) = engine(Arc::clone(&store)).await;
    let flow = ONE.replace("command", "agent: fresh, command");
    put(&*store, &[(Kind::Agent, "fresh", json!({}))]).await;
    engine.start(start(&flow)).await.unwrap();
    remove(&*store, Kind::Agent, "fresh").await;
    let refused = engine.start(start(&flow)).await;
    assert!(matches!(refused, Err(StartError::Agent(_))), "{refused:?}");
}

#[tokio::test]
async fn a_policy_about_starts_takes_effect_with_its_change() {
    let store = memory();
    let (engine, _) = engine(Arc::clone(&store)).await;
    policy(&*store, "no.cedar", FORBID_START).await;
    let refused = engine.start(start(ONE)).await;
    assert!(matches!(refused, Err(StartError::Blocked { .. })), "{refused:?}");
    remove(&*store, Kind::Policy, "no.cedar").await;
    engine.start(start(ONE)).await.unwrap();
}

#[tokio::test]
async fn a_request_resolved_under_outdated_rows_is_resolved_again() {
    let gate = Arc::new(Gate::new(memory()));
    let (engine, _) = engine(Arc::clone(&gate) as _).await;
    let text = |text: &str| json!({"text": text, "format": "lobsterx"});
    put(&*gate, &[(Kind::Workflow, "flow@1", text(ASKS))]).await;
    let rows = gate.registry(None).await.unwrap();
    let resolved = || resolved(&rows, "flow");
    engine.start(resolved()).await.unwrap();
    put(&*gate, &[(Kind::Deployment, "live", deployed("retrieval"))]).await;
    // This engine has not seen the change: the append is refused, then the start.
    let moved = engine.start(resolved()).await;
    assert!(matches!(moved, Err(StartError::Moved)), "{moved:?}");
}

#[tokio::test]
async fn a_scheduled_run_is_of_the_workflow_registered_just_before() {
    let gate = Arc::new(Gate::new(memory()));
    let (engine, _) = engine(Arc::clone(&gate) as _).await;
    let text = |text: String| json!({"text": text, "format": "lobsterx"});
    let now_ms = sluice_core::port::Clock::now_ms(&sluice_engine::world::SystemClock);
    let schedule = json!({
        "workflow": "flow", "every": "1m", "missed": "backfill", "since_ms": now_ms - 90_000,
    });
    let rows = [(Kind::Workflow, "flow@1", text(ASKS.to_owned())), (Kind::Schedule, "s", schedule)];
    put(&*gate, &rows).await;
    let second = (Kind::Workflow, "flow@2", text(format!("version: 2\n{ASKS}")));
    gate.change_before_dispatch(puts(&[second]));
    let ticked = engine.tick(&Starting { default_agent: Some("mock".to_owned()) }).await.unwrap();
    assert!(gate.is_sprung());
    let run = engine.load(ticked.started[0].2).await.unwrap();
    assert_eq!(run.started.version, Some(2));
}

#[tokio::test]
async fn a_child_starts_under_the_current_rows() {
    let gate = Arc::new(Gate::new(memory()));
    let (engine, _) = engine(Arc::clone(&gate) as _).await;
    let text = |text: &str| json!({"text": text, "format": "lobsterx"});
    let parent = "name: parent\nsteps: [{id: sub, workflow_ref: flow}]";
    let rows = [(Kind::Workflow, "flow@1", text(ASKS)), (Kind::Workflow, "parent@1", text(parent))];
    put(&*gate, &rows).await;
    let rows = gate.registry(None).await.unwrap();
    let request = resolved(&rows, "parent");
    let deployment = json!({"workflow": "flow", "gateway": "far", "active": true});
    let gateway = (Kind::Gateway, "far", json!({"provider": "mock", "capabilities": ["*"]}));
    let begins_child =
        |append: &Append| append.create.as_ref().is_some_and(|create| create.parent.is_some());
    let change = puts(&[gateway, (Kind::Deployment, "live", deployment)]);
    gate.change_before(begins_child, change);
    let id = engine.start(request).await.unwrap().run;
    let asks = |run: &Run| step(run, "ask").status() == StepStatus::AwaitingApproval;
    happens("the change", || gate.is_sprung()).await;
    let run = engine.load(id).await.unwrap();
    let Some(Path::Child(child)) = step(&run, "sub").path() else { panic!("{run:?}") };
    let child = until(&engine, child, asks).await;
    assert_eq!(child.started.gateway, "far");
}

#[tokio::test]
async fn a_step_that_the_old_rows_would_block_is_decided_under_the_new_ones() {
    let store = memory();
    put(&*store, &[(Kind::Agent, "mock", json!({"status": "terminated"}))]).await;
    let (engine, meter) = engine(Arc::clone(&store)).await;
    put(&*store, &[(Kind::Agent, "mock", json!({}))]).await;
    let id = engine.start(start(ONE)).await.unwrap().run;
    let run = ended(&engine, id).await;
    assert_eq!((run.status, meter.calls()), (RunStatus::Completed, 1));
    assert_eq!(events(&engine, &run, "governance.decided").await.len(), 1);
}
