//! Texts are moderated before they are sent, shown, or accepted as results.

use crate::world::{World, cancel, config, ended, happens, start, start_family, step, until};
use serde_json::{Value, json};
use sluice_core::journal::envelope::Seen;
use sluice_core::plan::policy::ModerationPhase;
use sluice_core::port::Later;
use sluice_core::port::adapter::Answer;
use sluice_core::port::moderator::{Moderator, Subject, Verdict};
use sluice_core::run::command::Command;
use sluice_core::run::state::Run;
use sluice_core::status::{RunStatus, StepStatus};
use sluice_engine::Engine;
use sluice_engine::config::{Config, Moderation};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Flags texts that contain `rude`; answers only while it is awake.
#[derive(Default)]
struct TestModerator {
    asleep: AtomicBool,
    broken: AtomicUsize,
    checked: Mutex<Vec<(ModerationPhase, String)>>,
}

impl TestModerator {
    fn checked(&self) -> Vec<(ModerationPhase, String)> {
        self.checked.lock().expect("the lock is not poisoned").clone()
    }
}

impl Moderator for TestModerator {
    fn check<'a>(&'a self, subject: &'a Subject) -> Later<'a, Verdict> {
        let said = (subject.phase, subject.text.clone());
        self.checked.lock().expect("the lock is not poisoned").push(said);
        Box::pin(async move {
            while self.asleep.load(Ordering::Relaxed) {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
            let broken = self.broken.load(Ordering::Relaxed);
            if broken > 0 {
                self.broken.store(broken - 1, Ordering::Relaxed);
                return Verdict::Unavailable("it is broken".to_owned());
            }
            if subject.text.contains("panic") {
                panic!("the moderator panics");
            }
            if subject.text.contains("rude") {
                return Verdict::Flagged(json!({"reason": "rude"}));
            }
            Verdict::Clear
        })
    }
}

fn world(mock: &str) -> (World, Arc<TestModerator>) {
    let sentry = Arc::new(TestModerator::default());
    (World::new(mock).judged_by(Arc::clone(&sentry) as Arc<dyn Moderator>), sentry)
}

/// One step with these fields.
fn one(fields: &str) -> String {
    format!("name: t\nsteps: [{{id: a, {fields}}}]")
}

async fn payloads(engine: &Engine, run: &Run, kind: &str) -> Vec<Value> {
    let shown = engine.events(run, 0).await.expect("the journal can be read");
    let of_kind = shown.into_iter().filter_map(Seen::event).filter(|one| one.kind == kind);
    let envelope = |json: &str| serde_json::from_str::<Value>(json).expect("it is JSON");
    of_kind.map(|one| envelope(&one.json)["payload"].clone()).collect()
}

/// The streamed text, in order.
async fn streamed(engine: &Engine, run: &Run) -> String {
    let deltas = payloads(engine, run, "node.stream.delta").await;
    deltas.iter().map(|delta| delta["text"].as_str().unwrap_or_default()).collect()
}

async fn blocked(engine: &Engine, run: &Run, phase: &str) -> Value {
    assert_eq!(run.status, RunStatus::Failed);
    let ending = step(run, "a").failure.as_ref().expect("it failed").clone();
    let told = (ending.code.as_str(), ending.message.as_str());
    assert_eq!(told, ("moderation_blocked", "moderation_blocked"));
    let flagged = payloads(engine, run, "moderation.flagged").await;
    assert_eq!((flagged.len(), &flagged[0]["phase"]), (1, &json!(phase)));
    flagged[0]["decision"].clone()
}

#[tokio::test]
async fn a_flagged_text_is_never_sent() {
    let (world, _) = world("a: {text: fine}");
    let life = world.boot().await;
    let document = one("command: say rude things, moderation: input, on_failure: retry");
    let started = life.start(start(&document)).await.unwrap();
    let run = ended(&life, started.run).await;
    let decision = blocked(&life, &run, "input").await;
    assert_eq!(decision, json!({"reason": "rude", "outcome": "flagged"}));
    assert_eq!(world.calls("a"), []);
}

#[tokio::test]
async fn cleared_texts_pass_in_and_out() {
    let (world, sentry) = world("a: {text: fine}");
    let life = world.boot().await;
    let document = one("command: say it, moderation: both");
    let started = life.start(start(&document)).await.unwrap();
    assert_eq!(ended(&life, started.run).await.status, RunStatus::Completed);
    let checked = [
        (ModerationPhase::Input, "say it".to_owned()),
        (ModerationPhase::Output, "fine".to_owned()),
    ];
    assert_eq!(sentry.checked(), checked);
}

#[tokio::test]
async fn without_a_moderator_nothing_passes() {
    let world = World::new("a: {text: fine}");
    let life = world.boot().await;
    for (side, phase, calls) in [("input", "input", 0), ("output", "output", 1)] {
        let document = one(&format!("command: go, moderation: {side}"));
        let started = life.start(start(&document)).await.unwrap();
        let run = ended(&life, started.run).await;
        let decision = blocked(&life, &run, phase).await;
        assert_eq!(decision["outcome"], "unavailable");
        assert_eq!(world.calls("a").len(), calls);
    }
}

#[tokio::test]
async fn a_failing_moderator_is_retried_and_then_blocks() {
    let (world, sentry) = world("a: {text: panic}");
    let moderation = Moderation { tries: 2, timeout_ms: 50, ..Moderation::default() };
    let life = world.boot_with(Config { moderation, ..config() }).await;
    // Once it recovers, its verdict is used.
    sentry.broken.store(1, Ordering::Relaxed);
    let started = life.start(start(&one("command: go, moderation: input"))).await.unwrap();
    assert_eq!(ended(&life, started.run).await.status, RunStatus::Completed);
    assert_eq!(sentry.checked().len(), 2);
    // A panic is not a clearance.
    let started = life.start(start(&one("command: go, moderation: output"))).await.unwrap();
    let run = ended(&life, started.run).await;
    let decision = blocked(&life, &run, "output").await;
    assert_eq!(decision["reason"], "the moderator panicked");
    // A timeout is not a clearance either.
    sentry.asleep.store(true, Ordering::Relaxed);
    let started = life.start(start(&one("command: go, moderation: input"))).await.unwrap();
    let run = ended(&life, started.run).await;
    let decision = blocked(&life, &run, "input").await;
    assert_eq!(decision["reason"], "no answer within 50 ms");
}

#[tokio::test]
async fn a_stream_is_shown_only_as_far_as_it_was_cleared() {
    let chunks: Vec<String> = (0..200).map(|n| format!("word{n} ")).collect();
    let (world, sentry) = world(&json!({"a": {"chunks": chunks}}).to_string());
    let life = world.boot().await;
    let started = life.start(start(&one("command: go, moderation: output"))).await.unwrap();
    let run = ended(&life, started.run).await;
    assert_eq!(run.status, RunStatus::Completed);
    assert_eq!(streamed(&life, &run).await, chunks.concat());
    assert!(sentry.checked().len() > 1, "it was looked at while it came");
}

#[tokio::test]
async fn a_phrase_in_two_pieces_stops_the_stream_before_it() {
    let mut chunks = vec!["word ".repeat(400), "so ru".to_owned(), "de a thing ".to_owned()];
    chunks.extend((0..400).map(|n| format!("word{n} ")));
    let script = json!({"a": {"chunks": chunks, "chunk_delay_ms": 1}});
    let (world, _) = world(&script.to_string());
    let life = world.boot().await;
    let started = life.start(start(&one("command: go, moderation: output"))).await.unwrap();
    let run = ended(&life, started.run).await;
    blocked(&life, &run, "output").await;
    let shown = streamed(&life, &run).await;
    assert!(!shown.is_empty() && chunks[0].starts_with(&shown), "{shown}");
}

#[tokio::test]
async fn a_new_owner_checks_again() {
    let (world, sentry) = world("a: {text: fine}");
    sentry.asleep.store(true, Ordering::Relaxed);
    let life = world.boot().await;
    let started = life.start(start(&one("command: go, moderation: input"))).await.unwrap();
    happens("the check", || sentry.checked().len() == 1).await;
    life.crash().await;
    let life = world.boot().await;
    life.take_up(started.run).await.unwrap_or_default();
    happens("the check", || sentry.checked().len() == 2).await;
    assert_eq!(world.calls("a"), []);
    sentry.asleep.store(false, Ordering::Relaxed);
    assert_eq!(ended(&life, started.run).await.status, RunStatus::Completed);
    assert_eq!(world.calls("a").len(), 1);
}

#[tokio::test]
async fn a_run_can_be_cancelled_while_the_moderator_thinks() {
    for side in ["input", "output"] {
        let (world, sentry) = world("a: {text: fine}");
        sentry.asleep.store(true, Ordering::Relaxed);
        let life = world.boot().await;
        let document = one(&format!("command: go, moderation: {side}"));
        let started = life.start(start(&document)).await.unwrap();
        happens("the check", || sentry.checked().len() == 1).await;
        cancel(&life, started.run).await.unwrap();
        let run = ended(&life, started.run).await;
        assert_eq!(run.status, RunStatus::Cancelled);
        assert_eq!(step(&run, "a").status(), StepStatus::Cancelled);
        assert_eq!(payloads(&life, &run, "moderation.flagged").await, [] as [Value; 0]);
        life.leave().await;
    }
}

#[tokio::test]
async fn a_callback_result_is_moderated_like_any_other() {
    for (text, status) in [("fine", RunStatus::Completed), ("rude", RunStatus::Failed)] {
        let (world, sentry) = world("a: {text: fine}");
        let life = world.boot().await;
        let document = one("command: go, agent: away, moderation: output");
        let started = life.start(start(&document)).await.unwrap();
        let waits =
            |run: &Run| step(run, "a").phase.waiting().is_some() && step(run, "a").dispatch_no == 1;
        let run = until(&life, started.run, waits).await;
        let at = run.find("a").expect("it is there");
        let answer = Box::new(Answer { text: Some(text.to_owned()), ..Answer::default() });
        let command = Command::Complete { at, dispatch_no: 1, answer };
        life.command(run.id, command, "callback").await.unwrap();
        assert_eq!(ended(&life, run.id).await.status, status, "{text}");
        assert_eq!(sentry.checked(), [(ModerationPhase::Output, text.to_owned())]);
    }
}

#[tokio::test]
async fn the_output_of_a_child_is_moderated_before_it_is_used() {
    let (world, sentry) = world("c: {text: rude, outputs: {said: rude}}");
    let life = world.boot().await;
    let parent = "name: p\nsteps: [{id: a, workflow_ref: child, moderation: output}]";
    let child = "name: child\nsteps: [{id: c, command: go, outputs: {said: string}}]";
    let started = life.start(start_family(parent, "child", child)).await.unwrap();
    let run = ended(&life, started.run).await;
    blocked(&life, &run, "output").await;
    assert_eq!(sentry.checked(), [(ModerationPhase::Output, "said\nrude".to_owned())]);
}
