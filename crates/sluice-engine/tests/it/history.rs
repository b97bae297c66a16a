//! Policies about what an agent did before, across runs and processes.

use crate::tools::{engine, rule};
use crate::world::{World, ended, happens, memory, start, step};
use serde_json::json;
use sluice_core::port::ledger::{Change, Ledger as _};
use sluice_core::port::store::NodeId;
use sluice_core::status::StepStatus;
use sluice_govern::policy;
use sluice_govern::registry::{Kind, Row};
use sluice_store::sqlite::SqliteStore;
use std::sync::Arc;

const LIMIT: &str = r#"
    @id("limit") forbid (principal, action == Action::"use_tool", resource == Tool::"bank.refund")
    when temporal agent {
        count_within(1d, Action::"use_tool"::effective { tool: "bank.refund" }) > 5
    };"#;
const REFUNDS: &str = "name: t\nsteps: [{id: a, agent: handy, tools: ['bank.*'], \
                       command: 'bank.refund bank.refund'}]\n";

/// How many of the calls of a run were allowed.
async fn allowed(engine: &sluice_engine::engine::Engine) -> usize {
    let run = engine.start(start(REFUNDS)).await.expect("it starts").run;
    let done = ended(engine, run).await;
    let outcome = step(&done, "a").outcome().cloned().expect("it is done");
    outcome.stdout.as_deref().unwrap_or_default().split("; ").filter(|said| *said == "yes").count()
}

#[tokio::test]
async fn runs_of_two_nodes_never_pass_a_limit_together_and_a_restart_forgets_nothing() {
    let (store, remote) = (memory(), Arc::default());
    let first = engine(&store, &remote).await;
    rule(&store, &first, LIMIT).await;
    let second = engine(&store, &remote).await;
    let runs = (0..8).map(|number| allowed(if number % 2 == 0 { &first } else { &second }));
    let mut all = 0;
    let mut runs: Vec<_> = runs.map(Box::pin).collect();
    let (a, b, c, d) = (runs.remove(0), runs.remove(0), runs.remove(0), runs.remove(0));
    let (a, b, c, d) = tokio::join!(a, b, c, d);
    all += a + b + c + d;
    for run in runs {
        all += run.await;
    }
    assert_eq!(all, 5);
    drop((first, second));
    let third = engine(&store, &remote).await;
    assert_eq!(allowed(&third).await, 0);
}

#[tokio::test]
async fn a_dispatch_that_is_sent_again_after_a_crash_counts_once() {
    let world = World::new("a: [{hang: true}, {text: done}]\n'*': {text: done}");
    let limit = r#"
        @id("limit") forbid (principal, action == Action::"dispatch_step", resource)
        when temporal agent { count_within(1d, Action::"dispatch_step"::effective {}) > 2 };"#;
    let row = |name: &str, text: &str| Row {
        kind: Kind::Policy,
        name: name.to_owned(),
        body: json!({"text": text, "set": "active"}),
    };
    let life = world.boot().await;
    let store: Arc<SqliteStore> = life.store();
    let change = Change {
        expect: None,
        put: vec![row(policy::DEFAULT.0, policy::DEFAULT.1), row("own.cedar", limit)],
        remove: Vec::new(),
        node: NodeId(1),
        entries: Vec::new(),
    };
    store.change(change).await.expect("the rules change");
    drop(store);
    life.crash().await;
    let life = world.boot().await;
    let flow = "
name: flow
steps:
  - {id: a, command: go}
  - {id: b, command: go, depends_on: [a]}
  - {id: c, command: go, depends_on: [b]}
";
    let id = life.start(start(flow)).await.unwrap().run;
    happens("the first step", || world.calls("a").len() == 1).await;
    life.crash().await;
    let life = world.boot().await;
    let run = ended(&life, id).await;
    assert_eq!(world.calls("a").len(), 2);
    let status = ["a", "b", "c"].map(|name| step(&run, name).status());
    assert_eq!(status, [StepStatus::Completed, StepStatus::Completed, StepStatus::Failed]);
}
