//! The feed of all runs.

use crate::world::{World, config, ended, ground, memory, start, step, until};
use rusqlite::Connection;
use sluice_core::id::RunId;
use sluice_core::journal::envelope::Seen;
use sluice_core::port::store::Store;
use sluice_core::run::command::Command;
use sluice_core::status::StepStatus;
use sluice_engine::Engine;
use sluice_engine::config::{Claims, Config};
use sluice_engine::feed::{Fed, FeedReader};
use sluice_engine::limits::FEED_FRAMES_MAX;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const FLOW: &str = "
name: flow
steps: [{id: a, command: go}, {id: b, command: go, depends_on: [a]}]
";
const MOCK: &str = "a: {text: done}\nb: {text: done}";

/// What a reader has received: the last event of each run. Fails if an event is missing,
/// repeated, or at an earlier position.
#[derive(Debug, Default)]
struct FeedLog {
    last: BTreeMap<RunId, u64>,
    ended: usize,
    place: u64,
}

impl FeedLog {
    fn hear(&mut self, batch: &[Arc<Fed>]) {
        for fed in batch {
            assert!(fed.place > self.place, "{} after {}", fed.place, self.place);
            self.place = fed.place;
            let last = self.last.entry(fed.run).or_default();
            for seen in &fed.seen {
                assert_eq!(seen.id(), *last + 1, "{}", fed.run);
                *last = seen.id();
                let Seen::Event(shown) = &**seen else { continue };
                let about = format!("\"workflowId\":\"{}\"", fed.workflow);
                assert!(shown.json.contains(&about), "{}", shown.json);
                assert!(shown.json.contains(&fed.run.to_string()), "{}", shown.json);
                self.ended += usize::from(shown.kind == "run.completed");
            }
        }
    }

    /// Reads until this many runs have ended.
    async fn until_ended(&mut self, reader: &mut FeedReader, runs: usize) {
        let patience = Duration::from_secs(20);
        while self.ended < runs {
            let batch = tokio::time::timeout(patience, reader.next()).await.expect("it goes on");
            self.hear(&batch.expect("the store answers").expect("the engine lives"));
        }
    }
}

async fn run_some(engine: &Engine, count: usize) -> Vec<RunId> {
    let mut runs = Vec::new();
    for _ in 0..count {
        runs.push(engine.start(start(FLOW)).await.expect("a run starts").run);
    }
    for id in &runs {
        ended(engine, *id).await;
    }
    runs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_sees_every_event_of_every_run_once_from_any_position() {
    let world = World::new(MOCK);
    let life = world.boot().await;
    run_some(&life, 3).await;
    let (mut all, mut live) = (FeedLog::default(), FeedLog::default());
    let mut from_now = life.feed(None).await.unwrap();
    let mut from_first = life.feed(Some(0)).await.unwrap();
    assert_eq!(life.feed_readers(), 2);
    let runs = run_some(&life, 5).await;
    live.until_ended(&mut from_now, 5).await;
    all.until_ended(&mut from_first, 8).await;
    assert_eq!(live.last.keys().copied().collect::<Vec<_>>(), runs);
    assert_eq!(all.last.len(), 8);
    for (run, last) in &all.last {
        assert_eq!(life.load(*run).await.unwrap().version, *last);
    }
    // A new reader continues where another one stopped.
    let middle = all.place / 2;
    let mut rest = life.feed(Some(middle)).await.unwrap();
    let batch = rest.next().await.unwrap().expect("the engine lives");
    assert!(batch[0].place > middle);
    drop((from_now, from_first, rest));
    assert_eq!(life.feed_readers(), 0);
    // A reader arrives after all others have left.
    let mut late = life.feed(Some(all.place)).await.unwrap();
    run_some(&life, 1).await;
    FeedLog { place: all.place, ..FeedLog::default() }.until_ended(&mut late, 1).await;
}

#[tokio::test]
async fn appends_of_this_process_are_notified_at_once() {
    let world = World::new("a: {hang: true}");
    let life = world.boot().await;
    let mut reader = life.feed(None).await.unwrap();
    // The task is running and waits.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let id = life.start(start("name: f\nsteps: [{id: a, command: go}]")).await.unwrap().run;
        let began = Instant::now();
        let batch = reader.next().await.unwrap().expect("the engine lives");
        fastest = fastest.min(began.elapsed());
        assert!(batch.iter().all(|fed| fed.run == id));
    }
    assert!(fastest < Duration::from_millis(100), "{fastest:?}");
}

#[tokio::test]
async fn appends_of_another_process_are_seen_too() {
    let world = World::new(MOCK);
    let writer = world.boot().await;
    let watcher = world.boot_with(Config { claims: Claims::None, ..config() }).await;
    let mut reader = watcher.feed(None).await.unwrap();
    let runs = run_some(&writer, 3).await;
    let mut heard = FeedLog::default();
    heard.until_ended(&mut reader, 3).await;
    assert_eq!(heard.last.keys().copied().collect::<Vec<_>>(), runs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_reads_from_the_store() {
    let world = World::new(MOCK);
    let engine = Engine::open(ground(memory(), &world), config()).await.unwrap();
    let mut lazy = engine.feed(None).await.unwrap();
    let mut eager = engine.feed(None).await.unwrap();
    // More frames than the ring keeps, from a run that is paused and resumed.
    let id = engine.start(start("name: f\nsteps: [{id: a, agent: deaf, command: go}]")).await;
    let id = id.unwrap().run;
    until(&engine, id, |run| step(run, "a").status() == StepStatus::Running).await;
    for _ in 0..FEED_FRAMES_MAX / 2 + 50 {
        let by = "ada".to_owned();
        engine.command(id, Command::Pause { by: by.clone() }, "pause").await.unwrap();
        engine.command(id, Command::Unpause { by }, "unpause").await.unwrap();
    }
    let version = engine.load(id).await.unwrap().version;
    for reader in [&mut eager, &mut lazy] {
        let mut heard = FeedLog::default();
        while heard.last.get(&id) != Some(&version) {
            heard.hear(&reader.next().await.unwrap().expect("the engine lives"));
        }
    }
}

#[tokio::test]
async fn an_unreadable_frame_is_skipped() {
    let world = World::new(MOCK);
    let life = world.boot().await;
    let runs = run_some(&life, 3).await;
    life.leave().await;
    let file = Connection::open(world.file()).unwrap();
    let sql = "UPDATE frame SET body = x'00' WHERE run = (SELECT num FROM run WHERE id = ?1)";
    assert!(file.execute(sql, [&runs[1].0.to_be_bytes()[..]]).unwrap() > 0);
    file.close().unwrap();
    let life = world.boot().await;
    let mut reader = life.feed(Some(0)).await.unwrap();
    let mut heard = FeedLog::default();
    heard.until_ended(&mut reader, 2).await;
    assert_eq!(heard.last.keys().copied().collect::<Vec<_>>(), [runs[0], runs[2]]);
}

#[tokio::test]
async fn a_reader_ends_with_its_engine() {
    let world = World::new(MOCK);
    let store: Arc<dyn Store> = memory();
    let engine = Engine::open(ground(store, &world), config()).await.unwrap();
    let mut reader = engine.feed(None).await.unwrap();
    drop(engine);
    assert_eq!(reader.next().await.unwrap(), None);
}
