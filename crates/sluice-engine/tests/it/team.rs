//! Teams and memory on real stores: an unassigned step survives a crash, and remembered
//! outputs are available in the next run and the next process until they are erased.

use crate::operator::{heard, put};
use crate::world::{RunningEngine, World, ended, happens, start, step, until};
use serde_json::json;
use sluice_core::id::RunId;
use sluice_core::port::ledger::{Erased, Erasure, Ledger as _};
use sluice_core::port::store::NodeId;
use sluice_core::run::command::Command;
use sluice_core::run::state::Run;
use sluice_core::status::{RunStatus, StepStatus};
use sluice_govern::registry::Kind;

const READ: &str = "name: read\nsteps: [{id: r, command: go, memory: past}]";

/// A run in which the scribe answers this.
async fn write(life: &RunningEngine, text: &str) -> Run {
    let flow = format!("name: write\nsteps: [{{id: w, command: {text}, agent: scribe}}]");
    done(life, &flow).await
}

async fn set_up(life: &RunningEngine) {
    let past = json!({"last_outputs": {"agent": "scribe", "count": 2}});
    let rows = [
        (Kind::Agent, "scribe", json!({"gateway": "local"})),
        (Kind::Gateway, "local", json!({"provider": "mock"})),
        (Kind::Memory, "past", past),
    ];
    put(&*life.store(), &rows).await;
    heard().await;
}

async fn done(life: &RunningEngine, document: &str) -> Run {
    let id = life.start(start(document)).await.expect("it starts").run;
    let run = ended(life, id).await;
    // The store shows the end before the engine has processed it.
    happens("the run leaves memory", || life.residents() == 0).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.end);
    run
}

/// The memory in the prompt of the step that loads it.
async fn told(life: &RunningEngine) -> String {
    let run = done(life, READ).await;
    let layers = &step(&run, "r").prepared.as_ref().expect("it was prepared").layers;
    let memory = layers.iter().find(|layer| layer.number == 9);
    memory.map(|layer| layer.text.clone()).unwrap_or_default()
}

async fn erase(life: &RunningEngine, run: RunId) {
    let (bodies, blobs, entries) = (Vec::new(), Vec::new(), Vec::new());
    let erasure = Erasure { run, bodies, besides: Vec::new(), blobs, node: NodeId(1), entries };
    assert_eq!(life.store().erase(erasure).await.expect("the store answers"), Erased::Done);
}

#[tokio::test]
async fn remembered_outputs_are_used_in_later_runs_and_after_a_restart() {
    let world = World::new("w: {echo: true}\nr: {text: read}");
    let life = world.boot().await;
    set_up(&life).await;
    assert_eq!(told(&life).await, "", "there is no past yet");
    for text in ["first", "second", "third"] {
        write(&life, text).await;
    }
    let now = told(&life).await;
    let (third, second) = (now.find("third").unwrap(), now.find("second").unwrap());
    assert!(third < second && !now.contains("first"), "the newest two, newest first: {now}");
    life.crash().await;
    let life = world.boot().await;
    assert_eq!(told(&life).await, now, "it outlives the process");
    let calls = world.calls("r");
    assert_eq!(calls.len(), 3);
}

#[tokio::test]
async fn outputs_of_another_process_are_known_after_a_sweep_and_erased_ones_are_gone() {
    let world = World::new("w: {echo: true}\nr: {text: read}");
    let life = world.boot().await;
    set_up(&life).await;
    let other = world.boot().await;
    let first = write(&life, "first").await;
    write(&life, "second").await;
    heard().await;
    let theirs = told(&other).await;
    assert!(theirs.contains("first") && theirs.contains("second"), "{theirs}");
    erase(&life, first.id).await;
    heard().await;
    for one in [&life, &other] {
        let now = told(one).await;
        assert!(!now.contains("first") && now.contains("second"), "{now}");
    }
}

#[tokio::test]
async fn an_unassigned_step_survives_a_crash_and_goes_on_when_assigned() {
    let flow = "
name: flow
team: {members: [{id: ada, agent: mock, role: reader}]}
roles: {writer: {}}
steps: [{id: a, command: go, role: writer}]
";
    let world = World::new("a: {text: done}");
    let life = world.boot().await;
    let id = life.start(start(flow)).await.unwrap().run;
    let run = until(&life, id, |run| run.status == RunStatus::Paused).await;
    assert_eq!(step(&run, "a").status(), StepStatus::Blocked);
    life.crash().await;
    let life = world.boot().await;
    assert_eq!(life.load(id).await.unwrap().status, RunStatus::Paused);
    assert_eq!(world.calls("a").len(), 0);
    let assign = Command::Assign { by: "eve".to_owned(), step: 0, whom: "mock".to_owned() };
    life.command(id, assign, "assign").await.unwrap();
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
    assert_eq!(world.calls("a").len(), 1);
}
