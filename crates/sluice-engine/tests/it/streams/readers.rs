//! Idle readers, ending attempts, crashing processes.

use super::*;
use crate::world::{RunningEngine, cancel, happens, step, until};
use sluice_engine::config::{Claims, Config};

/// Duration of the streams while `idle` readers are connected and never read.
async fn time_with(idle: usize, choir: &StreamingSteps) -> Duration {
    let engine = stage(memory(), choir).await;
    let run = engine.start(start(&choir.document())).await.expect("it starts").run;
    let began = Instant::now();
    let mut readers = Vec::new();
    for _ in 0..idle {
        let mut reader = engine.reader(run, 0).await.expect("the run exists");
        // It reads once, and then stops.
        reader.read().await.expect("the journal can be read");
        readers.push(reader);
    }
    ended(&engine, run).await;
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_never_read_slow_nothing() {
    let choir = StreamingSteps { steps: 20, chunks: 200, delay_ms: 2 };
    let alone = time_with(0, &choir).await;
    let watched = time_with(200, &choir).await;
    // Both durations depend on the delays of the chunks: a reader that blocked the
    // run would block it for ever.
    assert!(watched < alone * 4 + Duration::from_secs(1), "{watched:?} instead of {alone:?}");
}

async fn heard(life: &RunningEngine, run: RunId) -> ReceivedParts {
    let mut heard = ReceivedParts::default();
    let mut reader = life.reader(run, 0).await.expect("the run exists");
    while let Some(page) = reader.next().await.expect("the journal can be read") {
        heard.page(&page);
    }
    heard
}

#[tokio::test]
async fn after_a_crash_indexes_continue_and_the_text_restarts() {
    let world = World::new(
        "a: [{chunks: [one, two, three], chunk_delay_ms: 80, hang_after: 2}, \
         {chunks: [one, two, three]}]",
    );
    let flow = "name: flow\nsteps: [{id: a, command: go}]";
    let life = world.boot().await;
    let id = life.start(start(flow)).await.unwrap().run;
    until(&life, id, |run| step(run, "a").deltas == 2).await;
    life.crash().await;
    let life = world.boot().await;
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Completed);
    let heard = heard(&life, id).await;
    let said: Vec<_> = heard.text.iter().map(|((_, no), text)| (*no, text.as_str())).collect();
    assert_eq!(said, [(1, "onetwo"), (2, "onetwothree")]);
    assert_eq!(heard.next["a"], step(&run, "a").deltas);
}

#[tokio::test]
async fn a_reader_follows_a_run_over_the_death_of_its_process() {
    let world = World::new("a: [{chunks: [x], hang_after: 1}, {chunks: [y]}]");
    let flow = "name: flow\nsteps: [{id: a, command: go}]";
    let life = world.boot().await;
    let id = life.start(start(flow)).await.unwrap().run;
    until(&life, id, |run| step(run, "a").deltas == 1).await;
    let mut reader = life.reader(id, 0).await.unwrap();
    let mut heard = ReceivedParts::default();
    heard.page(&reader.read().await.unwrap());
    let cursor = reader.cursor();
    assert_eq!((heard.last, heard.deltas), (cursor, 1));
    drop(reader);
    life.crash().await;
    let life = world.boot().await;
    let mut reader = life.reader(id, cursor).await.unwrap();
    while let Some(page) = reader.next().await.unwrap() {
        heard.page(&page);
    }
    assert_eq!((heard.deltas, heard.text.len()), (2, 2));
}

/// No part would be journalled within an hour unless the attempt's end forced it.
fn patient() -> Config {
    Config { delta_ms: 3_600_000, ..config() }
}

#[tokio::test]
async fn streamed_parts_are_journalled_before_the_end_of_their_attempt() {
    let flows = [
        ("{id: a, command: go}", "a: {chunks: [so, far]}"),
        ("{id: a, command: go, timeout: 300ms}", "a: {chunks: [so, far, not], hang_after: 2}"),
        (
            "{id: a, command: go}, {id: b, command: go, parallel_failure_policy: fail_fast}",
            "a: {chunks: [so, far, not], hang_after: 2}\nb: {delay_ms: 300, error: timeout}",
        ),
    ];
    for (steps, mock) in flows {
        let world = World::new(mock);
        let life = world.boot_with(patient()).await;
        let document = format!("name: flow\nsteps: [{steps}]");
        let id = life.start(start(&document)).await.unwrap().run;
        ended(&life, id).await;
        let heard = heard(&life, id).await;
        assert_eq!(heard.text[&("a".to_owned(), 1)], "sofar", "{steps}");
    }
}

#[tokio::test]
async fn parts_before_a_cancel_are_kept() {
    let world = World::new("a: {chunks: [so, far, not], hang_after: 2}");
    let life = world.boot_with(patient()).await;
    let id = life.start(start("name: flow\nsteps: [{id: a, command: go}]")).await.unwrap().run;
    happens("the step", || world.calls("a").len() == 1).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    cancel(&life, id).await.unwrap();
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Cancelled);
    assert_eq!(heard(&life, id).await.text[&("a".to_owned(), 1)], "sofar");
}

#[tokio::test]
async fn a_loaded_run_contains_no_streamed_parts() {
    let world = World::new("a: {chunks: [a secret word]}");
    let life = world.boot().await;
    let id = life.start(start("name: flow\nsteps: [{id: a, command: go}]")).await.unwrap().run;
    ended(&life, id).await;
    let has = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("\"text\":\"a secret word\"");
    let loaded = life.store().load(id).await.unwrap().expect("it exists");
    assert!(!loaded.frames.iter().any(|frame| has(&frame.body) || has(&frame.beside)));
    let frames = life.store().frames(id, 0, usize::MAX).await.unwrap();
    assert_eq!(frames.iter().filter(|frame| has(&frame.beside)).count(), 1);
}

#[tokio::test]
async fn a_flood_comes_in_few_large_parts_and_whole() {
    let world = World::new("{}");
    let life = world.boot().await;
    let command = "head -c 1000000 /dev/zero | tr '\\\\0' x";
    let flow = format!("name: flow\nsteps: [{{id: s, agent: shell, command: \"{command}\"}}]");
    let id = life.start(start(&flow)).await.unwrap().run;
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
    let heard = heard(&life, id).await;
    let text = &heard.text[&("s".to_owned(), 1)];
    assert!(text.len() == 1_000_000 && text.bytes().all(|byte| byte == b'x'));
    assert!(heard.deltas < 100, "{} parts", heard.deltas);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_another_process_is_followed_to_its_end() {
    let world = World::new("a: {chunks: [one, two, three], chunk_delay_ms: 150}");
    let life = world.boot().await;
    let onlooker = world.boot_with(Config { claims: Claims::None, ..config() }).await;
    let id = life.start(start("name: flow\nsteps: [{id: a, command: go}]")).await.unwrap().run;
    let follows = heard(&onlooker, id);
    let heard = tokio::time::timeout(PATIENCE, follows).await.expect("it comes to the end");
    assert_eq!(heard.text[&("a".to_owned(), 1)], "onetwothree");
    assert_eq!(heard.last, life.load(id).await.unwrap().version);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_continues_from_the_store() {
    let choir = StreamingSteps { steps: 40, chunks: 400, delay_ms: 1 };
    let engine = stage(memory(), &choir).await;
    let id = engine.start(start(&choir.document())).await.unwrap().run;
    let mut slow = engine.reader(id, 0).await.unwrap();
    let mut heard = ReceivedParts::default();
    loop {
        let Some(page) = slow.next().await.unwrap() else { break };
        heard.page(&page);
        tokio::time::sleep(Duration::from_millis(90)).await;
    }
    let run = ended(&engine, id).await;
    assert_eq!(heard.last, run.version);
    for step in 0..choir.steps {
        assert!(heard.text[&(format!("s{step}"), 1)] == choir.said(step));
    }
}

#[tokio::test]
async fn a_missing_run_has_no_reader() {
    let world = World::new("{}");
    let life = world.boot().await;
    assert!(life.reader(RunId(7), 0).await.is_err());
}
