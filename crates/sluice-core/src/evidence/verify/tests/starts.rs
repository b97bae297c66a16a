//! Rows around the journals: what may be missing, and what may not.

use super::super::*;
use crate::evidence::fake_store::{FakeStore, WRITER, lines, signer};
use crate::limits::{KEY_MS, SLOTS_KEPT};
use crate::port::inspect::{FrameAt, StoredRun};
use crate::port::ledger::SealMark;
use crate::port::slots::Slot;
use crate::run::projection::script::Script;
use crate::run::projection::script::documents::CHAIN;
use crate::run::state::Run;
use expect_test::{Expect, expect};

/// A run whose row agrees with its journal.
fn scheduled(id: u128, by: &str, started_at_ms: u64, has_key: bool) -> (StoredRun, Run) {
    let mut run = Script::lobsterx(CHAIN).run;
    run.id = RunId(id);
    run.started_at_ms = started_at_ms;
    std::sync::Arc::make_mut(&mut run.started).initiator = by.to_owned();
    let row = StoredRun {
        run: run.id,
        workflow: run.started.workflow.clone(),
        workflow_version: run.started.version,
        initiator: by.to_owned(),
        status: run.status.as_str().to_owned(),
        started_at_ms,
        ended_at_ms: run.ended_at_ms,
        parent: None,
        fingerprint: has_key.then_some(Hash([1; 32])),
        is_owned: true,
        due_at_ms: None,
        asks: true,
        version: 0,
    };
    (row, run)
}

/// The findings for these rows and runs.
#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(rows: Vec<Stored>, runs: &[(StoredRun, Run)], expected: Expect) {
    let mut verifier = Verifier::new([signer().public()]);
    rows.into_iter().for_each(|row| verifier.row(row));
    for (row, run) in runs {
        verifier.folded(row, Ok(run));
    }
    expected.assert_eq(&lines(&verifier.finish()));
}

fn slot(number: u64, run: Option<u128>) -> Stored {
    let (run, outcome) = (run.map(RunId), if run.is_some() { "started" } else { "skipped" });
    let schedule = "often".to_owned();
    let (slot_ms, outcome) = (number * 1000, outcome.to_owned());
    let slot = Slot { schedule, slot_ms, count: 1, outcome, why: None, run, at_ms: slot_ms };
    Stored::Slot { slot, is_authentic: true }
}

#[test]
fn a_run_of_a_schedule_has_its_slot_unless_that_was_forgotten() {
    let run = scheduled(7, "schedule:often", 9_000, false);
    check(vec![slot(9, Some(7))], std::slice::from_ref(&run), expect![[""]]);
    let expected = expect![[r#"
        row often of slot is missing: schedule `often` started run_00000000000000000000000000000007, and no slot says so
    "#]];
    check(vec![slot(8, None)], std::slice::from_ref(&run), expected);
    let many = (10..10 + SLOTS_KEPT as u64).map(|number| slot(number, None));
    check(many.collect(), &[run], expect![[""]]);
}

#[test]
fn a_run_with_a_key_has_it_until_a_run_with_another_key_comes_a_day_later() {
    let key = |run| Stored::Key {
        key: format!("key {run}"),
        run: RunId(run),
        fingerprint: Hash([1; 32]),
        is_authentic: true,
    };
    let old = scheduled(7, "ada", 9_000, true);
    check(vec![key(7)], std::slice::from_ref(&old), expect![[""]]);
    let expected = expect![[r#"
        row run_00000000000000000000000000000007 of key is missing: run_00000000000000000000000000000007 was started with a key that is not there
    "#]];
    check(Vec::new(), std::slice::from_ref(&old), expected);
    let new = scheduled(8, "ada", 9_000 + 2 * KEY_MS, true);
    check(vec![key(8)], &[old, new], expect![[""]]);
}

#[test]
fn places_have_no_gaps() {
    let (row, run) = scheduled(7, "ada", 9_000, false);
    let frames = |places: [u64; 2]| {
        let frame = |(first, place)| FrameAt { place, run: RunId(7), first, count: 1 };
        (1..).zip(places).map(frame).map(Stored::Frame).collect::<Vec<_>>()
    };
    let runs = [(StoredRun { version: 2, ..row }, run)];
    check(frames([1, 2]), &runs, expect![[""]]);
    let expected = expect![[r#"
        row 3 of frame is reordered: it is where append 2 of all runs belongs
    "#]];
    check(frames([1, 3]), &runs, expected);
}

#[test]
fn messages_are_numbered_from_one() {
    let message = |id| Stored::Message {
        run: RunId(7),
        key: format!("key {id}"),
        id,
        is_read: true,
        is_authentic: true,
    };
    check(vec![message(1), message(2)], &[], expect![[""]]);
    let expected = expect![[r#"
        row messages of letter is missing: there are 1, and the last one is number 2
    "#]];
    check(vec![message(2)], &[], expected);
    let expected = expect![[r#"
        row messages of letter is reordered: there are 2, and the last one is number 1
    "#]];
    check(vec![message(0), message(1)], &[], expected);
}

#[test]
fn the_newest_seal_does_not_go_on_behind_what_there_is() {
    let seals = |upto: SealMark| {
        let store = FakeStore::new();
        let seal = |row: SealRow| {
            let hash = Hash::of(row.text.as_bytes());
            Stored::Seal { row, hash, upto }
        };
        let seals = store.seals.into_iter().map(seal);
        seals.chain(store.entries.into_iter().map(Stored::Entry)).collect::<Vec<_>>()
    };
    let behind = |upto| {
        let mut verifier = Verifier::new([signer().public()]);
        seals(upto).into_iter().for_each(|row| verifier.row(row));
        lines(&verifier.finish()).contains("the next seal would go on behind what there is")
    };
    assert!(!behind(SealMark { frames: 0, entries: 5 }));
    assert!(behind(SealMark { frames: 0, entries: 6 }));
    assert!(behind(SealMark { frames: 1, entries: 5 }));
}

#[test]
fn a_store_that_notes_ends_of_chains_notes_them_of_every_writer() {
    let store = FakeStore::new();
    let mut verifier = Verifier::new([signer().public()]);
    store.entries.iter().for_each(|row| verifier.row(Stored::Entry(row.clone())));
    let last = store.entries.iter().rfind(|row| row.writer == WRITER).unwrap();
    verifier.row(Stored::ChainEnd { writer: WRITER, seq: last.seq, hash: last.hash });
    let found = lines(&verifier.finish());
    assert!(found.contains("nothing says where they end"), "{found}");
    assert!(!found.contains(&format!("row {WRITER} of chain")), "{found}");
}
