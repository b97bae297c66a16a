//! Several processes on one directory.

use crate::victim::Victim;
use crate::world::{World, cancel, config, ended, happens, resolve, start, step, until};
use serde_json::json;
use sluice_core::port::store::{Filter, Store as _};
use sluice_core::run::command::Decision;
use sluice_core::status::{RunStatus, StepStatus};
use sluice_engine::config::{Claims, Config};
use sluice_engine::error::Delivered;

const WAITS: &str = "
name: waits
steps:
  - {id: a, command: go}
  - {id: sure, approval: required}
  - {id: b, command: go, depends_on: [sure]}
";
const MOCK: &str = "a: {hang: true}\nb: {text: done}";

#[tokio::test]
async fn each_node_owns_its_runs_and_other_nodes_reach_them_by_message() {
    let world = World::new(MOCK);
    let mut other = Victim::start(world.path(), MOCK);
    let id = other.run(WAITS).await;
    let theirs = other.ask("node").await;
    let life = world.boot().await;
    let own = life.start(start(WAITS)).await.unwrap().run;

    let asked = |run: &sluice_core::run::state::Run| !run.approvals.is_empty();
    let run = until(&life, id, asked).await;
    let given = resolve(&life, &run, Decision::Approve, json!({})).await.unwrap();
    assert!(matches!(given, Delivered::Posted(node) if node.to_string() == theirs), "{given:?}");
    until(&life, id, |run| step(run, "b").status() == StepStatus::Completed).await;
    let given = cancel(&life, id).await.unwrap();
    assert!(matches!(given, Delivered::Posted(_)), "{given:?}");
    assert_eq!(ended(&life, id).await.status, RunStatus::Cancelled);
    assert!(world.calls("b").is_empty(), "it is the other's work");

    let rows = life.store().list(Filter::default()).await.unwrap();
    let row = rows.iter().find(|row| row.run == own).unwrap();
    assert_eq!((rows.len(), row.owner), (2, Some(life.node())));
    cancel(&life, own).await.unwrap();
    assert_eq!(ended(&life, own).await.status, RunStatus::Cancelled);
}

#[tokio::test]
async fn a_read_only_engine_reads_everything_and_owns_nothing() {
    let world = World::new(MOCK);
    let mut other = Victim::start(world.path(), MOCK);
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(other.run(WAITS).await);
    }
    let reader = world.boot_with(Config { claims: Claims::None, ..config() }).await;
    let rows = reader.store().list(Filter::default()).await.unwrap();
    assert_eq!(rows.len(), 5);
    assert!(rows.iter().all(|row| row.owner.is_some_and(|owner| owner != reader.node())));
    other.kill().await;
    // Dead or alive, it claims nothing.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let rows = reader.store().list(Filter::default()).await.unwrap();
    assert!(rows.iter().all(|row| row.owner.is_none()));
    assert!(world.calls("a").is_empty());
    for id in runs {
        let run = reader.load(id).await.unwrap();
        assert_eq!(run.status, RunStatus::Running);
        cancel(&reader, id).await.unwrap();
        assert_eq!(ended(&reader, id).await.status, RunStatus::Cancelled);
    }
}

/// Three processes, one of them killed: every run ends once.
#[tokio::test]
async fn runs_of_a_killed_process_are_recovered_by_live_ones() {
    let mock = "a: {delay_ms: 100, outputs: {x: 1}}\nb: {delay_ms: 20, text: done}";
    let flow = "
name: two
steps: [{id: a, command: go}, {id: b, command: '${a.outputs.x}'}]
";
    let world = World::new(mock);
    let mut doomed = Victim::start(world.path(), mock);
    let mut lives = Victim::start(world.path(), mock);
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(doomed.run(flow).await);
        runs.push(lives.run(flow).await);
    }
    let life = world.boot().await;
    doomed.kill().await;
    for id in &runs {
        let run = ended(&life, *id).await;
        assert_eq!(run.status, RunStatus::Completed, "{:?}", run.end);
        let whole = life.load_at(*id, u64::MAX).await.unwrap();
        assert_eq!(whole.version, run.version);
    }
    let done = |life: &crate::world::RunningEngine| life.residents() == 0;
    happens("everything leaves memory", || done(&life)).await;
    assert_eq!(check(&world), "ok");
}

/// Result of SQLite's integrity check.
fn check(world: &World) -> String {
    let file = rusqlite::Connection::open(world.file()).expect("the file opens");
    file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("it can be checked")
}
