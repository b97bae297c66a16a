//! Failed runs that recover by themselves.

use crate::world::{World, config, ended, outputs, start, until};
use sluice_core::status::RunStatus;
use sluice_engine::config::{Claims, Config};

const FLOW: &str = "
name: fragile
recovery: {max: 2, after: 300ms}
steps:
  - {id: a, command: go}
  - {id: b, command: 'go on', depends_on: [a], outputs: {n: integer}}
";
const SCRIPT: &str = "
a: {text: done}
b: [{error: broken}, {error: broken}, {outputs: {n: 5}}]
";

#[tokio::test]
async fn a_failed_run_recovers_and_repeats_nothing_that_was_done() {
    for claims in [Claims::All, Claims::Own] {
        let world = World::new(SCRIPT);
        let life = world.boot_with(Config { claims, ..config() }).await;
        let run = life.start(start(FLOW)).await.unwrap().run;
        let run = until(&life, run, |run| run.status == RunStatus::Completed).await;
        assert_eq!((run.reopened, run.recoveries), (2, 2));
        assert_eq!(outputs(&run), serde_json::json!({"n": 5}));
        assert_eq!((world.calls("a").len(), world.calls("b").len()), (1, 3));
        life.leave().await;
    }
}

#[tokio::test]
async fn the_count_survives_a_crash_and_is_not_passed() {
    let world = World::new("a: {text: done}\nb: {error: broken}");
    let life = world.boot().await;
    let run = life.start(start(FLOW)).await.unwrap().run;
    until(&life, run, |run| run.recoveries == 1).await;
    life.crash().await;
    let life = world.boot_with(Config { lease_ms: 500, ..config() }).await;
    let done =
        until(&life, run, |run| run.status == RunStatus::Failed && run.recovers_at_ms().is_none())
            .await;
    assert_eq!(done.recoveries, 2);
    // Nothing is left to wake it.
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    assert_eq!(ended(&life, run).await.version, done.version);
    life.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_engines_claim_a_run_once() {
    let world = World::new(SCRIPT);
    let (one, other) = (world.boot().await, world.boot().await);
    let run = one.start(start(FLOW)).await.unwrap().run;
    let run = until(&one, run, |run| run.status == RunStatus::Completed).await;
    assert_eq!(run.recoveries, 2);
    assert_eq!((world.calls("a").len(), world.calls("b").len()), (1, 3));
    other.leave().await;
    one.leave().await;
}
