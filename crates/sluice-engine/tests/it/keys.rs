//! Idempotency keys: for a day, the same key means the same run.

use crate::world::{World, config, start};
use serde_json::{Value, json};
use sluice_core::port::Clock;
use sluice_engine::start::Start;
use sluice_engine::world::SystemClock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const FLOW: &str = "
name: keyed
args: {n: {type: integer}, deep: {type: object, required: false}}
steps: [{id: a, command: go}]
";
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The system clock, set forward.
#[derive(Default)]
struct ShiftedClock(AtomicU64);

impl Clock for ShiftedClock {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms() + self.0.load(Ordering::SeqCst)
    }
}

fn keyed(key: &str, args: &Value) -> Start {
    let args = args.as_object().expect("arguments by name").clone();
    Start { key: Some(key.to_owned()), args, ..start(FLOW) }
}

#[tokio::test]
async fn a_key_identifies_one_run_for_a_day_across_restarts() {
    let world = World::new("a: {text: done}");
    let clock = Arc::new(ShiftedClock::default());
    let life = world.boot_at(config(), Arc::clone(&clock) as _).await;
    let first = life.start(keyed("k", &json!({"n": 1}))).await.unwrap();
    assert!(!first.existed);
    let same = life.start(keyed("k", &json!({"n": 1}))).await.unwrap();
    assert_eq!((same.run, same.existed), (first.run, true));
    let other = life.start(keyed("k", &json!({"n": 2}))).await;
    let message = other.unwrap_err().to_string();
    let run = first.run;
    let expected =
        format!("the idempotency key belongs to {run}, which differs in the argument `n`");
    assert_eq!(message, expected);
    assert_ne!(life.start(keyed("l", &json!({"n": 2}))).await.unwrap().run, first.run);
    life.crash().await;

    let life = world.boot_at(config(), Arc::clone(&clock) as _).await;
    let same = life.start(keyed("k", &json!({"n": 1}))).await.unwrap();
    assert_eq!((same.run, same.existed), (first.run, true));
    clock.0.store(DAY_MS - 60_000, Ordering::SeqCst);
    let same = life.start(keyed("k", &json!({"n": 1}))).await.unwrap();
    assert_eq!((same.run, same.existed), (first.run, true));
    clock.0.store(DAY_MS + 1, Ordering::SeqCst);
    let next = life.start(keyed("k", &json!({"n": 2}))).await.unwrap();
    assert!(!next.existed && next.run != first.run);
    let same = life.start(keyed("k", &json!({"n": 2}))).await.unwrap();
    assert_eq!((same.run, same.existed), (next.run, true));
}

#[tokio::test]
async fn starts_at_once_with_one_key_start_one_run() {
    let world = World::new("a: {text: done}");
    let life = world.boot().await;
    let starts = (0..20).map(|_| life.start(keyed("k", &json!({"n": 1}))));
    let started = futures_util::future::join_all(starts).await;
    let started: Vec<_> = started.into_iter().map(Result::unwrap).collect();
    assert!(started.iter().all(|one| one.run == started[0].run));
    assert_eq!(started.iter().filter(|one| !one.existed).count(), 1);
    assert!(world.calls("a").len() <= 1);
}

#[tokio::test]
async fn inputs_make_a_key_whatever_their_order() {
    let one = keyed("", &json!({"n": 1, "deep": {"b": 1, "a": [2, {"d": 1, "c": 2}]}}));
    let other = keyed("", &json!({"deep": {"a": [2, {"c": 2, "d": 1}], "b": 1}, "n": 1}));
    assert_eq!(one.auto_key(), other.auto_key());
    assert_ne!(one.auto_key(), keyed("", &json!({"n": 1})).auto_key());
    let written = r#"keyed{"n":1}"#;
    let hash = sluice_core::hash::Hash::of(written.as_bytes()).to_string();
    assert_eq!(keyed("", &json!({"n": 1})).auto_key(), hash);

    let world = World::new("a: {text: done}");
    let life = world.boot().await;
    let first = life.start(Start { key: Some(one.auto_key()), ..one }).await.unwrap();
    let same = life.start(Start { key: Some(other.auto_key()), ..other }).await.unwrap();
    assert_eq!((same.run, same.existed), (first.run, true));
}

#[tokio::test]
async fn a_key_belongs_to_a_workflow_and_a_version() {
    let world = World::new("a: {text: done}");
    let life = world.boot().await;
    let of = |text: &str| {
        let args = json!({"n": 1}).as_object().expect("arguments by name").clone();
        Start { key: Some("k".to_owned()), args, ..start(text) }
    };
    let second = FLOW.replace("name: keyed", "name: keyed\nversion: 2");
    let other = FLOW.replace("name: keyed", "name: other");
    let registered = Start { version: Some(7), ..of(FLOW) };
    let starts = [of(FLOW), of(&second), of(&other), registered];
    let mut runs = Vec::new();
    for one in &starts {
        let started = life.start(one.clone()).await.unwrap();
        assert!(!started.existed);
        runs.push(started.run);
    }
    for (one, run) in starts.iter().zip(&runs) {
        let again = life.start(one.clone()).await.unwrap();
        assert_eq!((again.run, again.existed), (*run, true));
    }
    // The same version with another text is a different start.
    let edited = of(&FLOW.replace("command: go", "command: stop"));
    let refused = life.start(edited.clone()).await.unwrap_err().to_string();
    let told = format!("the idempotency key belongs to {}, which differs in ", runs[0]);
    assert_eq!(refused, format!("{told}the document"));
    let edited = Start { version: Some(7), ..edited };
    let refused = life.start(edited).await.unwrap_err().to_string();
    assert!(refused.ends_with("a lens or library step that the workflow uses"), "{refused}");
}

/// Arguments are compared after defaults were applied.
#[tokio::test]
async fn an_explicit_default_is_the_same_input() {
    let world = World::new("a: {text: done}");
    let life = world.boot().await;
    let text = FLOW.replace("n: {type: integer}", "n: {type: integer, default: 4}");
    let of = |args: &Value| {
        let args = args.as_object().expect("arguments by name").clone();
        Start { key: Some("k".to_owned()), args, ..start(&text) }
    };
    let first = life.start(of(&json!({}))).await.unwrap();
    let same = life.start(of(&json!({"n": 4}))).await.unwrap();
    assert_eq!((same.run, same.existed), (first.run, true));
    assert!(life.start(of(&json!({"n": 5}))).await.is_err());
}

#[tokio::test]
async fn the_same_key_of_another_principal_is_another_key() {
    let world = World::new("a: {text: done}");
    let life = world.boot().await;
    let of = |person: &str| Start { initiator: person.to_owned(), ..keyed("k", &json!({"n": 1})) };
    let first = life.start(of("ada")).await.unwrap();
    let other = life.start(of("ben")).await.unwrap();
    assert!(!other.existed && other.run != first.run);
    let again = life.start(of("ada")).await.unwrap();
    assert_eq!((again.run, again.existed), (first.run, true));
}
