//! Runs with damaged journals.

use crate::world::{World, cancel, ended, happens, start};
use rusqlite::Connection;
use sluice_core::id::RunId;
use sluice_core::status::RunStatus;
use sluice_engine::error::{CommandError, LoadError};

const FLOW: &str = "
name: flow
steps: [{id: a, command: go}, {id: b, command: go, depends_on: [a]}]
";
const MOCK: &str = "a: {text: done}\nb: [{hang: true}, {text: done}]";

/// Row id of a run in the file.
const NUM: &str = "(SELECT num FROM run WHERE id = ?1)";

#[tokio::test]
async fn a_damaged_run_is_quarantined_and_affects_no_other() {
    let world = World::new(MOCK);
    let life = world.boot().await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(life.start(start(FLOW)).await.unwrap().run);
    }
    happens("the second steps", || world.calls("b").len() == 4).await;
    life.crash().await;
    let file = Connection::open(world.file()).unwrap();
    let last = format!("(SELECT seq FROM tip WHERE run = {NUM})");
    let cut =
        format!("UPDATE frame SET body = substr(body, 1, length(body) / 2) WHERE seq = {last}");
    damage(&file, &cut, runs[0]);
    let before = format!("(SELECT prev FROM frame WHERE seq = {last})");
    damage(&file, &format!("DELETE FROM frame WHERE seq = {before}"), runs[1]);
    let first = format!("UPDATE frame SET prev = 0 WHERE seq = {last}");
    damage(&file, &first, runs[2]);
    file.close().unwrap();

    for _ in 0..2 {
        let life = world.boot().await;
        happens("the quarantine", || life.poisoned().len() == 3).await;
        for id in &runs[..3] {
            assert!(life.poisoned().contains_key(id), "{:?}", life.poisoned());
            let loaded = life.load(*id).await;
            assert!(matches!(loaded, Err(LoadError::Poison { .. })), "{loaded:?}");
            let told = cancel(&life, *id).await;
            let poison = matches!(told, Err(CommandError::Load(LoadError::Poison { .. })));
            assert!(poison, "{told:?}");
        }
        assert_eq!(ended(&life, runs[3]).await.status, RunStatus::Completed);
        let new = life.start(start("name: new\nsteps: [{id: a, command: go}]")).await.unwrap().run;
        assert_eq!(ended(&life, new).await.status, RunStatus::Completed);
        life.crash().await;
    }
}

#[tokio::test]
async fn a_run_without_its_definition_is_quarantined() {
    let world = World::new(MOCK);
    let life = world.boot().await;
    let id = life.start(start(FLOW)).await.unwrap().run;
    happens("the second step", || world.calls("b").len() == 1).await;
    life.crash().await;
    for (sql, reason) in [
        ("UPDATE blob SET body = x'00'", "does not match its hash"),
        ("DELETE FROM blob", "is missing"),
    ] {
        let file = Connection::open(world.file()).unwrap();
        assert!(file.execute(sql, []).unwrap() > 0);
        file.close().unwrap();
        let life = world.boot().await;
        happens("the quarantine", || life.poisoned().contains_key(&id)).await;
        assert!(life.poisoned()[&id].contains(reason), "{:?}", life.poisoned());
        life.crash().await;
    }
}

/// A snapshot is only a cache: a bad one is ignored.
#[tokio::test]
async fn a_damaged_snapshot_is_ignored() {
    let world = World::new("each: {text: done}\nb: [{hang: true}, {text: done}]");
    let items: Vec<u32> = (0..200).collect();
    let flow = format!(
        "name: many\nsteps: [{{id: each, command: go, for_each: {items:?}}}, \
         {{id: b, command: go, depends_on: [each]}}]"
    );
    let life = world.boot().await;
    let id = life.start(start(&flow)).await.unwrap().run;
    happens("the second step", || world.calls("b").len() == 1).await;
    life.crash().await;
    let file = Connection::open(world.file()).unwrap();
    let cut = "UPDATE snapshot SET body = substr(body, 1, length(body) - 10)";
    assert_eq!(file.execute(cut, []).unwrap(), 1);
    file.close().unwrap();
    let life = world.boot().await;
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
    assert!(life.poisoned().is_empty());
    assert_eq!(world.calls("each[0]").len(), 1);
}

fn damage(file: &Connection, sql: &str, run: RunId) {
    assert_eq!(file.execute(sql, [run.0.to_be_bytes()]).expect("it can be damaged"), 1, "{sql}");
}
