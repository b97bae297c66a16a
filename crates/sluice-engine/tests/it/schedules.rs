//! Schedules: one run per slot, whichever node checks, and an outcome for every slot.

use crate::world::{RunningEngine, World, config, ended, until};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use sluice_core::id::RunId;
use sluice_core::port::ledger::{Change, Changed, Ledger as _};
use sluice_core::port::slots::Slots as _;
use sluice_core::port::store::{Filter, Store as _};
use sluice_core::rows;
use sluice_core::status::RunStatus;
use sluice_engine::schedule::{Starting, Ticked};
use sluice_govern::registry::{Kind, Row};
use sluice_testing::conformance::SetClock;
use std::fmt::Write as _;
use std::sync::Arc;

const JOB: &str =
    "name: job\nargs: {n: {type: integer, default: 0}}\nsteps: [{id: a, command: go}]";
const ASKS: &str = "name: asks\nsteps: [{id: a, approval: required}]";
const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

fn starting() -> Starting {
    Starting { default_agent: Some("mock".to_owned()) }
}

/// A world whose clock is fixed at a minute.
struct ScheduleWorld {
    world: World,
    clock: Arc<SetClock>,
}

impl ScheduleWorld {
    fn new() -> ScheduleWorld {
        let clock = Arc::new(SetClock::default());
        clock.set(1000 * HOUR_MS);
        ScheduleWorld { world: World::new("'*': {text: done}"), clock }
    }

    async fn boot(&self) -> RunningEngine {
        self.world.boot_at(config(), Arc::clone(&self.clock) as _).await
    }

    /// This many minutes after the start.
    fn at(&self, minutes: u64) {
        self.clock.set(1000 * HOUR_MS + minutes * MINUTE_MS);
    }

    async fn put(&self, life: &RunningEngine, rows: Vec<Row>) {
        use sluice_core::port::Clock as _;
        let there = life.store().registry(None).await.expect("the store works");
        let settled = rows.into_iter().map(|row| {
            let before = rows::find(&there.rows, row.kind, &row.name);
            rows::settle(row, before, self.clock.now_ms()).expect("the row is one")
        });
        let change = Change {
            expect: None,
            put: settled.collect(),
            remove: Vec::new(),
            node: life.node(),
            entries: Vec::new(),
        };
        assert!(matches!(
            life.store().change(change).await.expect("the store works"),
            Changed::Done { .. }
        ));
    }

    /// Creates a schedule with a slot every ten minutes.
    async fn schedule(&self, life: &RunningEngine, workflow: &str, fields: Value) {
        let mut body = json!({"workflow": workflow, "every": "10m"});
        for (field, value) in fields.as_object().expect("fields by name") {
            body[field] = value.clone();
        }
        body.as_object_mut().expect("a row is a map").retain(|_, value| !value.is_null());
        let text = if workflow == "asks" { ASKS } else { JOB };
        let document = json!({"text": text, "format": "lobsterx"});
        let name = format!("{workflow}@1");
        let rows = vec![
            Row { kind: Kind::Workflow, name, body: document },
            Row { kind: Kind::Schedule, name: "s".to_owned(), body },
        ];
        self.put(life, rows).await;
    }

    /// Outcomes of the slots, oldest first.
    async fn fates(&self, life: &RunningEngine, expected: Expect) {
        let mut text = String::new();
        for slot in life
            .store()
            .slots("s".to_owned(), None, 0)
            .await
            .expect("the store works")
            .into_iter()
            .rev()
        {
            let minutes = (slot.slot_ms - 1000 * HOUR_MS) / MINUTE_MS;
            let _ = write!(text, "{minutes} {}", slot.outcome);
            let count = if slot.count == 1 { String::new() } else { format!(" x{}", slot.count) };
            let why = slot.why.map(|why| format!(" {why}")).unwrap_or_default();
            let run = if slot.run.is_some() { " run" } else { "" };
            let _ = writeln!(text, "{count}{why}{run}");
        }
        expected.assert_eq(&text);
    }
}

async fn tick(life: &RunningEngine) -> Vec<RunId> {
    let Ticked { started, .. } = life.tick(&starting()).await.expect("the store works");
    started.into_iter().map(|(_, _, run)| run).collect()
}

async fn runs(life: &RunningEngine) -> usize {
    life.store().list(Filter::default()).await.expect("the store works").len()
}

#[tokio::test]
async fn a_slot_is_started_once_as_its_schedule() {
    let town = ScheduleWorld::new();
    let life = town.boot().await;
    town.schedule(&life, "job", json!({"args": {"n": 7}})).await;
    assert_eq!(tick(&life).await, []);
    town.at(10);
    let started = tick(&life).await;
    assert_eq!(tick(&life).await, []);
    let run = ended(&life, started[0]).await;
    assert_eq!(run.status, RunStatus::Completed);
    assert_eq!(run.started.initiator, "schedule:s");
    assert_eq!(*run.started.args, *json!({"n": 7}).as_object().unwrap());
    town.fates(
        &life,
        expect![[r#"
        10 started run
    "#]],
    )
    .await;
    life.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_engines_on_one_file_start_one_run_a_slot() {
    let town = ScheduleWorld::new();
    let (one, other) = (town.boot().await, town.boot().await);
    town.schedule(&one, "job", json!({"overlap": "queue"})).await;
    for minutes in [10, 20, 30, 40, 50] {
        town.at(minutes);
        let (first, second) = tokio::join!(tick(&one), tick(&other));
        for run in first.into_iter().chain(second) {
            ended(&one, run).await;
        }
    }
    // A node that was overtaken leaves the rest to the next check.
    for _ in 0..5 {
        for run in tick(&other).await {
            ended(&other, run).await;
        }
    }
    assert_eq!(runs(&one).await, 5);
    town.fates(
        &one,
        expect![[r#"
        10 started run
        20 started run
        30 started run
        40 started run
        50 started run
    "#]],
    )
    .await;
    other.leave().await;
    one.leave().await;
}

#[tokio::test]
async fn an_interrupted_start_is_finished_by_the_next_process() {
    let town = ScheduleWorld::new();
    let life = town.boot().await;
    town.schedule(&life, "job", json!({})).await;
    town.at(10);
    // It dies between writing the slot and starting the run.
    let run = RunId(0x77);
    let slot = sluice_core::port::slots::Slot {
        schedule: "s".to_owned(),
        slot_ms: 1000 * HOUR_MS + 10 * MINUTE_MS,
        count: 1,
        outcome: "starting".to_owned(),
        why: None,
        run: Some(run),
        at_ms: 1000 * HOUR_MS + 10 * MINUTE_MS,
    };
    let mark = sluice_core::port::slots::Mark { slot, from: Vec::new() };
    assert_eq!(life.store().mark(vec![mark]).await.unwrap(), [true]);
    life.crash().await;
    let life = town.boot().await;
    assert_eq!(tick(&life).await, [], "the other may still be at it");
    town.at(11);
    assert_eq!(tick(&life).await, [run]);
    ended(&life, run).await;
    town.fates(
        &life,
        expect![[r#"
        10 started run
    "#]],
    )
    .await;
    assert_eq!(runs(&life).await, 1);
    life.leave().await;
}

#[tokio::test]
async fn a_slot_during_a_run_is_skipped_queued_or_replaces_it() {
    for (overlap, while_it_runs, afterwards) in [
        (
            "skip",
            expect![[r#"
            10 started run
            20 skipped overlap
            30 skipped overlap
        "#]],
            expect![[r#"
            10 started run
            20 skipped overlap
            30 skipped overlap
        "#]],
        ),
        (
            "queue",
            expect![[r#"
            10 started run
            20 queued
            30 queued
        "#]],
            expect![[r#"
            10 started run
            20 started run
            30 queued
        "#]],
        ),
        (
            "cancel_previous",
            expect![[r#"
            10 started run
            20 skipped superseded
            30 queued
        "#]],
            expect![[r#"
            10 started run
            20 skipped superseded
            30 started run
        "#]],
        ),
    ] {
        let town = ScheduleWorld::new();
        let life = town.boot().await;
        town.schedule(&life, "asks", json!({"overlap": overlap})).await;
        town.at(10);
        let first = tick(&life).await[0];
        until(&life, first, |run| run.status == RunStatus::Paused).await;
        for minutes in [20, 30] {
            town.at(minutes);
            tick(&life).await;
        }
        town.fates(&life, while_it_runs).await;
        if overlap == "cancel_previous" {
            assert_eq!(ended(&life, first).await.status, RunStatus::Cancelled);
        } else {
            crate::world::cancel(&life, first).await.unwrap();
            ended(&life, first).await;
        }
        town.at(31);
        tick(&life).await;
        town.fates(&life, afterwards).await;
        life.leave().await;
    }
}

#[tokio::test]
async fn missed_slots_have_the_outcome_their_schedule_defines() {
    for (missed, expected) in [
        (
            "skip",
            expect![[r#"
            10 skipped missed
            20 skipped missed
            30 skipped missed
            40 skipped missed
        "#]],
        ),
        (
            "run_once",
            expect![[r#"
            10 skipped missed
            20 skipped missed
            30 skipped missed
            40 started run
        "#]],
        ),
        (
            "backfill",
            expect![[r#"
            10 started run
            20 started run
            30 started run
            40 started run
        "#]],
        ),
    ] {
        let town = ScheduleWorld::new();
        let life = town.boot().await;
        town.schedule(&life, "job", json!({"missed": missed})).await;
        life.leave().await;
        town.at(45);
        let life = town.boot().await;
        // One after the other: each check starts the next run when the last has ended.
        for _ in 0..6 {
            for run in tick(&life).await {
                ended(&life, run).await;
            }
        }
        town.fates(&life, expected).await;
        life.leave().await;
    }
}

#[tokio::test]
async fn a_slot_that_cannot_be_started_is_refused_with_the_reason() {
    let town = ScheduleWorld::new();
    let life = town.boot().await;
    town.schedule(&life, "job", json!({"args": {"n": "many"}})).await;
    town.at(10);
    assert_eq!(tick(&life).await, []);
    town.put(
        &life,
        vec![Row {
            kind: Kind::Schedule,
            name: "s".to_owned(),
            body: json!({"workflow": "gone", "every": "10m"}),
        }],
    )
    .await;
    town.at(20);
    tick(&life).await;
    town.fates(
        &life,
        expect![[r#"
            10 refused the arguments do not fit: n is a string, not an integer
            20 refused there is no workflow `gone` in the registry
        "#]],
    )
    .await;
    assert_eq!(runs(&life).await, 0);
    life.leave().await;
}

#[tokio::test]
async fn a_policy_may_forbid_a_schedule_to_start_anything() {
    let town = ScheduleWorld::new();
    let life = town.boot().await;
    let text = r#"
        permit (principal, action, resource);
        @id("no-robots")
        forbid (principal == User::"schedule:s", action == Action::"start_run", resource);
    "#;
    let body = json!({"text": text, "set": "active"});
    town.put(&life, vec![Row { kind: Kind::Policy, name: "p.cedar".to_owned(), body }]).await;
    town.schedule(&life, "job", json!({})).await;
    town.at(10);
    assert_eq!(tick(&life).await, []);
    let slots = life.store().slots("s".to_owned(), None, 0).await.unwrap();
    assert_eq!((slots[0].outcome.as_str(), runs(&life).await), ("refused", 0), "{slots:?}");
    life.leave().await;
}

#[tokio::test]
async fn a_disabled_schedule_skips_its_slots_and_restarts_when_enabled() {
    let town = ScheduleWorld::new();
    let life = town.boot().await;
    town.schedule(&life, "job", json!({"enabled": false, "missed": "backfill"})).await;
    town.at(10);
    assert_eq!(tick(&life).await, []);
    town.at(35);
    town.schedule(&life, "job", json!({"enabled": true, "missed": "backfill"})).await;
    assert_eq!(tick(&life).await, []);
    town.at(40);
    assert_eq!(tick(&life).await.len(), 1);
    town.fates(
        &life,
        expect![[r#"
        10 skipped disabled
        40 started run
    "#]],
    )
    .await;
    life.leave().await;
}

/// A time, in milliseconds.
fn ms(hours_utc: u64, minutes: u64, day: u64) -> u64 {
    day * 24 * HOUR_MS + hours_utc * HOUR_MS + minutes * MINUTE_MS
}

#[tokio::test]
async fn an_hour_that_is_skipped_or_repeated_starts_one_run() {
    // Days since 1970 of 2026-03-29 and 2026-10-25, when Berlin changes its clocks.
    let (spring, autumn) = (20_541, 20_751);
    for (day, before, slot, after) in
        [(spring, (0, 59), (1, 0), (1, 30)), (autumn, (0, 29), (0, 30), (1, 30))]
    {
        let town = ScheduleWorld::new();
        town.clock.set(ms(0, 0, day));
        let life = town.boot().await;
        let zone = json!({"cron": "30 2 * * *", "every": null, "time_zone": "Europe/Berlin"});
        town.schedule(&life, "job", zone).await;
        town.clock.set(ms(before.0, before.1, day));
        assert_eq!(tick(&life).await, []);
        town.clock.set(ms(slot.0, slot.1, day));
        let started = tick(&life).await;
        assert_eq!(started.len(), 1, "day {day}");
        ended(&life, started[0]).await;
        for hours in [after.0, 2, 3, 12] {
            town.clock.set(ms(hours, after.1, day));
            assert_eq!(tick(&life).await, [], "day {day} at {hours}");
        }
        life.leave().await;
    }
}

#[tokio::test]
async fn a_schedule_with_an_unknown_zone_starts_nothing_and_delays_no_other() {
    let town = ScheduleWorld::new();
    let life = town.boot().await;
    let body = json!({"workflow": "job", "every": "10m", "time_zone": "Mars/Olympus"});
    let broken = Row { kind: Kind::Schedule, name: "a".to_owned(), body };
    town.put(&life, vec![broken]).await;
    town.schedule(&life, "job", json!({})).await;
    town.at(10);
    assert_eq!(tick(&life).await.len(), 1);
    assert_eq!(life.store().slots("a".to_owned(), None, 0).await.unwrap(), []);
    life.leave().await;
}
