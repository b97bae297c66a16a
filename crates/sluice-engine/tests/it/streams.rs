//! Streamed answers and their readers.

mod readers;

use crate::world::{PATIENCE, World, config, ended, ground, memory, sqlite, start};
use serde_json::Value;
use sluice_core::id::RunId;
use sluice_core::journal::envelope::{Seen, Shown};
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, Capabilities, Emission, Execution, Health, Quote, Request,
};
use sluice_core::port::store::Store;
use sluice_core::status::RunStatus;
use sluice_engine::agents::Agents;
use sluice_engine::engine::{Engine, Ground};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Steps that stream concurrently, with this many chunks each.
struct StreamingSteps {
    steps: usize,
    chunks: usize,
    delay_ms: u64,
}

impl StreamingSteps {
    fn document(&self) -> String {
        let mut text = format!("name: choir\nmax_parallel: {}\nsteps:\n", self.steps);
        for step in 0..self.steps {
            let _ = writeln!(text, "  - {{id: s{step}, command: speak, timeout: 5m}}");
        }
        text
    }

    fn chunk(step: usize, chunk: usize) -> String {
        format!("{step}.{chunk} é; ")
    }

    fn said(&self, step: usize) -> String {
        (0..self.chunks).map(|chunk| StreamingSteps::chunk(step, chunk)).collect()
    }
}

/// Streams the chunks of its step.
struct StreamingAdapter {
    chunks: usize,
    delay: Duration,
}

impl Adapter for StreamingAdapter {
    fn provider(&self) -> &'static str {
        "voice"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { streaming: true, ..Capabilities::default() }
    }

    fn health(&self) -> Later<'_, Health> {
        Box::pin(std::future::ready(Health::Healthy))
    }

    fn quote(&self, _: &str) -> Quote {
        Quote::Free
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(async move {
            let step = request.step[1..].parse().expect("steps are numbered");
            for chunk in 0..self.chunks {
                tokio::time::sleep(self.delay).await;
                let text = StreamingSteps::chunk(step, chunk);
                call.emit(Emission::Text(text)).await.expect("the run listens to the end");
            }
            let text = Some("done".to_owned());
            Execution::Done(Box::new(Answer { text, ..Answer::default() }))
        })
    }
}

/// What a reader has received: every id once, and the parts of every step in order.
#[derive(Default)]
struct ReceivedParts {
    last: u64,
    next: BTreeMap<String, u64>,
    /// By step and dispatch.
    text: BTreeMap<(String, u64), String>,
    deltas: u64,
}

impl ReceivedParts {
    fn hear(&mut self, event: &Shown) {
        assert_eq!(event.id, self.last + 1, "ids are dense");
        self.last = event.id;
        if event.kind != "node.stream.delta" {
            return;
        }
        let envelope: Value = serde_json::from_str(&event.json).expect("an envelope is JSON");
        let payload = &envelope["payload"];
        let step = payload["nodeId"].as_str().expect("a part names its step").to_owned();
        let next = self.next.entry(step.clone()).or_default();
        assert_eq!(payload["deltaIndex"], *next, "no part of {step} is missing or twice");
        *next += 1;
        self.deltas += 1;
        let dispatch = payload["dispatchNo"].as_u64().expect("a part names its dispatch");
        let text = payload["text"].as_str().expect("these are all texts");
        self.text.entry((step, dispatch)).or_default().push_str(text);
    }

    fn page(&mut self, page: &[Arc<Seen>]) {
        for seen in page {
            match &**seen {
                Seen::Event(event) => self.hear(event),
                Seen::Elided { first, .. } => panic!("event {first} is elided"),
            }
        }
    }
}

/// A small random source, the same in every test.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Follows a run to its end, reconnecting `times` times at random.
async fn follow(engine: &Engine, run: RunId, times: usize, seed: u64) -> ReceivedParts {
    let mut dice = Dice(seed);
    let mut heard = ReceivedParts::default();
    let mut drops = 0;
    loop {
        let mut reader = engine.reader(run, heard.last).await.expect("the run exists");
        let mut pages = 1 + dice.roll(4);
        while pages > 0 || drops >= times {
            let Some(page) = reader.next().await.expect("the journal can be read") else {
                return heard;
            };
            heard.page(&page);
            pages = pages.saturating_sub(1);
        }
        drops += 1;
    }
}

/// Reads everything again, from a random cursor every time.
async fn reread(engine: &Engine, run: RunId, times: usize, upto: u64) {
    let mut dice = Dice(7);
    for _ in 0..times {
        let from = dice.roll(upto + 1);
        let mut heard = ReceivedParts { last: from, ..ReceivedParts::default() };
        let mut reader = engine.reader(run, from).await.expect("the run exists");
        while let Some(page) = reader.next().await.expect("the journal can be read") {
            for seen in page {
                let event = Arc::unwrap_or_clone(seen).event().expect("nothing is elided");
                assert_eq!(event.id, heard.last + 1);
                heard.last = event.id;
            }
        }
        assert_eq!(heard.last, upto);
    }
}

async fn stage(store: Arc<dyn Store>, choir: &StreamingSteps) -> Engine {
    let world = World::new("{}");
    let delay = Duration::from_millis(choir.delay_ms);
    let voice = StreamingAdapter { chunks: choir.chunks, delay };
    let agents = Agents::new().with("mock", Arc::new(voice));
    let ground = Ground { agents, ..ground(store, &world) };
    Engine::open(ground, config()).await.expect("it starts")
}

async fn sing(store: Arc<dyn Store>, choir: &StreamingSteps, name: &str) {
    let engine = stage(store, choir).await;
    let began = Instant::now();
    let run = engine.start(start(&choir.document())).await.expect("it starts").run;
    let lazy = engine.reader(run, 0).await.expect("the run exists");
    let readers = (0..4).map(|number| follow(&engine, run, 50, 99 + number));
    let all = futures_util::future::join_all(readers);
    let all = tokio::time::timeout(3 * PATIENCE, all).await.expect("readers reach the end");
    let took = began.elapsed();
    let run = ended(&engine, run).await;
    assert_eq!(run.status, RunStatus::Completed);
    for heard in &all {
        assert_eq!(heard.last, run.version);
        for step in 0..choir.steps {
            let said = &heard.text[&(format!("s{step}"), 1)];
            assert!(*said == choir.said(step), "the parts of s{step} are what it said");
        }
    }
    reread(&engine, run.id, 50, run.version).await;
    // A reader that never read is at the start, and finds everything.
    let mut lazy = lazy;
    let mut heard = ReceivedParts::default();
    while let Some(page) = lazy.next().await.expect("the journal can be read") {
        heard.page(&page);
    }
    assert_eq!(heard.last, run.version);
    let deltas = heard.deltas;
    figures(name, choir, run.version, deltas, took);
    let most = choir.steps as f64 * (20.0 * took.as_secs_f64() + 2.0);
    assert!((deltas as f64) < most, "{deltas} parts in {took:?}");
}

#[expect(clippy::print_stderr, reason = "figures for people, shown with `--nocapture`")]
fn figures(name: &str, choir: &StreamingSteps, events: u64, deltas: u64, took: Duration) {
    let StreamingSteps { steps, chunks, .. } = choir;
    let per_second = deltas as f64 / took.as_secs_f64();
    eprintln!("{name}, {steps} x {chunks} chunks: {events} events, {deltas} parts in {took:?}");
    eprintln!("{name}: {per_second:.0} parts a second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_steps_speak_at_once_and_readers_come_and_go() {
    let choir = StreamingSteps { steps: 100, chunks: 1000, delay_ms: 2 };
    let dir = tempfile::tempdir().expect("there is a place for temporary files");
    sing(sqlite(dir.path()), &choir, "sqlite").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_holds_in_memory() {
    let choir = StreamingSteps { steps: 100, chunks: 1000, delay_ms: 2 };
    sing(memory(), &choir, "memory").await;
}
