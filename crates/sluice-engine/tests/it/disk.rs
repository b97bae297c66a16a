//! A full disk: runs wait, report the reason, and go on.

use crate::gate::{Gate, StoreOperation};
use crate::victim::{DIR, Victim};
use crate::world::{PATIENCE, World, config, ended, ground, happens, memory, start};
use sluice_core::port::store::{Filter, Store as _, StoreError};
use sluice_core::status::RunStatus;
use sluice_engine::Engine;
use sluice_engine::config::Config;
use sluice_engine::error::StartError;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn runs_wait_for_a_store_that_cannot_write_and_lose_nothing() {
    let world = World::new("a: {delay_ms: 100, outputs: {x: 1}}\nb: {text: done}");
    let flow = "
name: flow
steps: [{id: a, command: go}, {id: b, command: 'with ${a.outputs.x}'}]
";
    let gate = Arc::new(Gate::new(memory()));
    let engine = Engine::open(ground(Arc::clone(&gate) as _, &world), config()).await.unwrap();
    let trouble = engine.trouble();
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(engine.start(start(flow)).await.unwrap().run);
    }
    gate.close(StoreOperation::Write, "the disk is full");
    happens("the trouble", || trouble.borrow().is_some()).await;
    assert_eq!(trouble.borrow().as_deref(), Some("the disk is full"));
    let refused = engine.start(start(flow)).await;
    let unavailable = matches!(refused, Err(StartError::Store(StoreError::Unavailable(_))));
    assert!(unavailable, "{refused:?}");
    assert!(world.calls("b").is_empty(), "nothing is sent that is not written");
    gate.open();
    for id in runs {
        assert_eq!(ended(&engine, id).await.status, RunStatus::Completed);
    }
    assert!(trouble.borrow().is_none());
    assert_eq!((world.calls("a").len(), world.calls("b").len()), (3, 3));
}

#[tokio::test]
async fn an_idle_engine_notices_too() {
    let world = World::new("'*': {text: done}");
    let gate = Arc::new(Gate::new(memory()));
    let short = Config { lease_ms: 300, ..config() };
    let engine = Engine::open(ground(Arc::clone(&gate) as _, &world), short).await.unwrap();
    let trouble = engine.trouble();
    gate.close(StoreOperation::Write, "the disk is full");
    happens("the trouble", || trouble.borrow().is_some()).await;
    gate.open();
    happens("its end", || trouble.borrow().is_none()).await;
}

#[tokio::test]
async fn an_engine_releases_runs_that_another_node_claimed_during_a_partition() {
    // The call of the first engine never ends by itself.
    let world = World::new("a: [{hang: true}, {text: done}]");
    let flow = "name: flow\nsteps: [{id: a, command: go}]";
    let store = memory();
    let gate = Arc::new(Gate::new(Arc::clone(&store)));
    let short = || Config { lease_ms: 600, ..config() };
    let cut_off = Engine::open(ground(Arc::clone(&gate) as _, &world), short()).await.unwrap();
    let id = cut_off.start(start(flow)).await.unwrap().run;
    happens("the step", || world.calls("a").len() == 1).await;
    let other = Engine::open(ground(store, &world), short()).await.unwrap();
    gate.close(StoreOperation::Write, "no answer");
    assert_eq!(ended(&other, id).await.status, RunStatus::Completed);
    assert_eq!(cut_off.residents(), 1, "it cannot know yet");
    gate.open();
    happens("the end of its call", || cut_off.residents() == 0).await;
    assert_eq!(world.calls("a").len(), 2);
}

#[tokio::test]
async fn an_engine_stops_in_time_though_nothing_can_be_written() {
    let world = World::new("a: [{hang: true}, {text: done}]");
    let flow = "name: flow\nsteps: [{id: a, command: go}]";
    let store = memory();
    let gate = Arc::new(Gate::new(Arc::clone(&store)));
    let short = || Config { lease_ms: 300, shutdown_ms: 200, ..config() };
    let engine = Engine::open(ground(Arc::clone(&gate) as _, &world), short()).await.unwrap();
    let id = engine.start(start(flow)).await.unwrap().run;
    happens("the step", || world.calls("a").len() == 1).await;
    gate.close(StoreOperation::Write, "the disk is full");
    let stopped = tokio::time::timeout(PATIENCE, engine.shutdown()).await;
    assert_eq!(stopped.expect("it stops in time"), 1, "one run is left behind");
    // The next owner recovers it, as after a crash.
    let other = Engine::open(ground(store, &world), short()).await.unwrap();
    assert_eq!(ended(&other, id).await.status, RunStatus::Completed);
    assert_eq!(other.shutdown().await, 0);
}

#[tokio::test]
async fn a_run_that_was_claimed_and_cannot_be_read_yet_is_not_forgotten() {
    let world = World::new("a: [{hang: true}, {text: done}]");
    let flow = "name: flow\nsteps: [{id: a, command: go}]";
    let gate = Arc::new(Gate::new(memory()));
    let short = || Config { lease_ms: 300, ..config() };
    let engine = Engine::open(ground(Arc::clone(&gate) as _, &world), short()).await.unwrap();
    let id = engine.start(start(flow)).await.unwrap().run;
    happens("the step", || world.calls("a").len() == 1).await;
    drop(engine);
    gate.close(StoreOperation::Read, "the disk does not answer");
    let engine = Engine::open(ground(Arc::clone(&gate) as _, &world), short()).await.unwrap();
    let claimed = async {
        let filter = Filter { run: Some(id), ..Filter::default() };
        while gate.list(filter.clone()).await.unwrap()[0].owner != Some(engine.node()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, claimed).await.expect("the lease of the first runs out");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(world.calls("a").len(), 1);
    gate.open();
    assert_eq!(ended(&engine, id).await.status, RunStatus::Completed);
    assert_eq!(world.calls("a").len(), 2);
}

/// Waits for the configured time, then returns a long answer.
const LOUD: &str = "
name: loud
steps:
  - id: a
    agent: shell
    command: |
      while [ -e wait ]; do sleep 0.02; done
      head -c 1000000 /dev/zero | tr '\\0' x
  - {id: b, agent: shell, command: 'echo after', depends_on: [a]}
";

/// Waits until the other process reports a store error, or its end.
async fn trouble(victim: &mut Victim, wanted: impl Fn(&str) -> bool) -> String {
    let asked = async {
        loop {
            let trouble = victim.ask("trouble").await;
            if wanted(&trouble) {
                return trouble;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("it says so in time")
}

/// The directory is a small disk that only the other process sees.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_run_waits_while_the_disk_is_full_and_goes_on_when_there_is_room() {
    const MOUNT: &str = "mount -t tmpfs -o size=3m tmpfs";
    let world = World::new("{}");
    let mount = format!("{MOUNT} \"${DIR}\" && exec \"$0\" \"$@\"");
    let launcher = ["unshare", "-rm", "/bin/sh", "-c", &mount];
    let probe = std::process::Command::new(launcher[0]);
    let works = { probe }.args(&launcher[1..]).arg("true").env(DIR, world.path()).output();
    if !works.is_ok_and(|output| output.status.success()) {
        println!("skipped: this user cannot mount a small disk");
        return;
    }
    let mut victim = Victim::start_under(world.path(), "{}", &launcher);
    victim.ask("node").await;
    let seen = PathBuf::from(format!("/proc/{}/root{}", victim.pid(), world.path().display()));
    std::fs::write(seen.join("wait"), "").unwrap();
    let id = victim.run(LOUD).await;
    // Fills the remaining space; the last write is cut short.
    std::fs::write(seen.join("ballast"), vec![0; 4_000_000]).unwrap_err();
    std::fs::remove_file(seen.join("wait")).unwrap();
    assert_eq!(trouble(&mut victim, |trouble| !trouble.is_empty()).await, "the disk is full");
    std::fs::remove_file(seen.join("ballast")).unwrap();
    assert_eq!(victim.ask(&format!("ended {id}")).await, "completed");
    trouble(&mut victim, str::is_empty).await;
}

/// Limits the file size of the other process.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_run_waits_while_files_cannot_grow_and_goes_on_when_they_can() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let world = World::new("{}");
    // With the signal ignored, a write beyond the limit is an ordinary error.
    let ignore = "trap '' XFSZ; exec \"$0\" \"$@\"";
    let mut victim = Victim::start_under(world.path(), "{}", &["/bin/sh", "-c", ignore]);
    std::fs::write(world.path().join("wait"), "").unwrap();
    let id = victim.run(LOUD).await;
    let pid = Pid::from_raw(i32::try_from(victim.pid()).unwrap());
    let bound = |current| Rlimit { current, maximum: None };
    prlimit(pid, Resource::Fsize, bound(Some(300_000))).unwrap();
    std::fs::remove_file(world.path().join("wait")).unwrap();
    let told = trouble(&mut victim, |trouble| !trouble.is_empty()).await;
    assert!(told.contains("writing the disk failed"), "{told}");
    prlimit(pid, Resource::Fsize, bound(None)).unwrap();
    assert_eq!(victim.ask(&format!("ended {id}")).await, "completed");
    trouble(&mut victim, str::is_empty).await;
    victim.kill().await;
    let life = world.boot().await;
    let run = life.load(id).await.unwrap();
    let said = crate::world::step(&run, "a").outcome().cloned().unwrap().stdout.clone();
    assert_eq!(said.map(|text| text.len()), Some(1_000_000));
}
