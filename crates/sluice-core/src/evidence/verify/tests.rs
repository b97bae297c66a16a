//! An intact store has no findings, and every change of it is found.

mod elided;
mod rows;
mod starts;

use super::*;
use crate::evidence::fake_store::{FakeStore, RUN, WRITER, lines, signer, stranger};
use crate::evidence::{entry, seal};
use crate::journal::chain;
use crate::port::ledger::Unsealed;
use crate::port::store::Examined;
use expect_test::{Expect, expect};
use proptest::prelude::*;

fn after(change: impl FnOnce(&mut FakeStore), expected: &Expect) {
    let mut store = FakeStore::new();
    change(&mut store);
    expected.assert_eq(&store.findings());
}

/// The position of entry `seq` of the first writer.
fn entry_at(store: &FakeStore, seq: u64) -> usize {
    store.entries.iter().position(|row| row.writer == WRITER && row.seq == seq).unwrap()
}

#[test]
fn a_store_that_nobody_touched_is_clean() {
    let report = FakeStore::new().verify();
    assert_eq!(lines(&report), "");
    assert_eq!((report.seals, report.entries, report.runs), (2, 5, 2));
    assert!(report.events > 15 && report.unhashed == 0 && report.is_clean());
}

#[test]
fn a_changed_entry_is_named() {
    after(
        |store| {
            let at = entry_at(store, 3);
            store.entries[at].text = store.entries[at].text.replace("ada", "eve");
        },
        &expect![[r#"
            entry 3 of node_0000000000000000000000000000000a is changed: its text does not match its hash
        "#]],
    );
    // With a recomputed hash.
    after(
        |store| {
            let at = entry_at(store, 3);
            store.entries[at].text = store.entries[at].text.replace("ada", "eve");
            store.entries[at].hash = entry::hash(&store.entries[at].text);
        },
        &expect![[r#"
            entry 3 of node_0000000000000000000000000000000a is changed: the next entry contains another hash
        "#]],
    );
    // The last one, with a recomputed hash.
    after(
        |store| {
            let at = entry_at(store, 4);
            store.entries[at].text = store.entries[at].text.replace("ada", "eve");
            store.entries[at].hash = entry::hash(&store.entries[at].text);
        },
        &expect![[r#"
            entry 4 of node_0000000000000000000000000000000a is changed: seal 2 covers another hash
        "#]],
    );
}

#[test]
fn a_deleted_entry_is_missing() {
    after(
        |store| drop(store.entries.remove(entry_at(store, 2))),
        &expect![[r#"
        entry 2 of node_0000000000000000000000000000000a is missing: later entries exist
    "#]],
    );
    after(
        |store| drop(store.entries.remove(entry_at(store, 1))),
        &expect![[r#"
        entry 1 of node_0000000000000000000000000000000a is missing: later entries exist
    "#]],
    );
    // The tail.
    after(
        |store| store.entries.truncate(entry_at(store, 3)),
        &expect![[r#"
        entry 3 of node_0000000000000000000000000000000a is missing: seal 2 covers it
    "#]],
    );
    after(
        |store| store.entries.clear(),
        &expect![[r#"
        entry 1 of node_0000000000000000000000000000000a is missing: seal 1 covers it
        entry 1 of node_0000000000000000000000000000000b is missing: seal 1 covers it
    "#]],
    );
}

#[test]
fn swapped_entries_are_reordered() {
    // Their texts.
    after(
        |store| {
            let (one, other) = (entry_at(store, 2), entry_at(store, 3));
            let (text, hash) = (store.entries[one].text.clone(), store.entries[one].hash);
            store.entries[one].text = store.entries[other].text.clone();
            store.entries[one].hash = store.entries[other].hash;
            (store.entries[other].text, store.entries[other].hash) = (text, hash);
        },
        &expect![[r#"
            entry 2 of node_0000000000000000000000000000000a is reordered: the text in its position is that of entry 3 of "node_0000000000000000000000000000000a"
        "#]],
    );
    // Their positions.
    after(
        |store| {
            let (one, other) = (entry_at(store, 2), entry_at(store, 3));
            store.entries.swap(one, other);
        },
        &expect![[r#"
            entry 2 of node_0000000000000000000000000000000a is reordered: it comes after later entries
        "#]],
    );
}

#[test]
fn a_changed_event_is_named() {
    after(
        |store| {
            let frame = &mut store.runs.get_mut(&RUN).unwrap()[1];
            let text = String::from_utf8(frame.beside.clone()).unwrap();
            assert!(text.contains("one"));
            frame.beside = text.replace("one", "two").into_bytes();
        },
        &expect![[r#"
            event 5 of run_00000000000000000000000000000010 is changed: it does not match its hash
        "#]],
    );
    // The hash instead.
    after(
        |store| store.runs.get_mut(&RUN).unwrap()[1].chain[0] ^= 1,
        &expect![[r#"
            event 5 of run_00000000000000000000000000000010 is changed: it does not match its hash
        "#]],
    );
    // A blob.
    after(
        |store| *store.blobs.values_mut().next().unwrap() = b"\"x\"".to_vec(),
        &expect![[r#"
            event 16 of run_00000000000000000000000000000010 is changed: what it refers to as 3357a5484568d1865ef09080c5dd28fd5b0c95a65644078d291a3e9339b961c3 is something else
        "#]],
    );
    after(
        |store| store.blobs.clear(),
        &expect![[r#"
            event 11 of run_00000000000000000000000000000010 is missing: what it refers to, a56af2e9bfeba185d9f1ae0b88280e46325c593088cd0c3b1a308dc0df0e3677, is not there
        "#]],
    );
}

/// A process with write access can recompute all hashes of the store, but not its seals.
#[test]
fn a_run_that_was_written_anew_is_not_the_sealed_one() {
    after(
        |store| {
            let frames = store.runs.get_mut(&RUN).unwrap();
            let mut link = chain::Link { run: RUN, next: 1, tip: chain::START };
            for frame in frames {
                let text = String::from_utf8(frame.beside.clone()).unwrap();
                frame.beside = text.replace("\"one\"", "\"two\"").into_bytes();
                let copy = frame.clone();
                let raw = crate::journal::wire::whole(&copy).unwrap();
                let mut hashes = chain::Chain::new(&mut link);
                let hash = |event: &crate::journal::wire::RawEvent<'_>| {
                    hashes.add(event.kind, raw.at_ms, event.commitment().unwrap()).0
                };
                frame.chain = raw.events.iter().flat_map(hash).collect();
            }
        },
        &expect![[r#"
            event 10 of run_00000000000000000000000000000010 is changed: seal 1 covers another hash at this or an earlier event
        "#]],
    );
}

#[test]
fn missing_frames_and_runs_are_missing() {
    after(
        |store| drop(store.runs.get_mut(&RUN).unwrap().remove(1)),
        &expect![[r#"
            event 5 of run_00000000000000000000000000000010 is missing: event 6 follows
        "#]],
    );
    after(
        |store| drop(store.runs.get_mut(&RUN).unwrap().pop()),
        &expect![[r#"
            event 17 of run_00000000000000000000000000000010 is missing: seal 2 covers it
        "#]],
    );
    after(
        |store| drop(store.runs.remove(&RUN)),
        &expect![[r#"
        event 1 of run_00000000000000000000000000000010 is missing: seal 1 covers this run, and there is no such run
    "#]],
    );
    after(
        |store| {
            let frames = store.runs.get_mut(&RUN).unwrap();
            let again = frames[1].clone();
            frames.insert(2, again);
        },
        &expect![[r#"
            event 5 of run_00000000000000000000000000000010 is reordered: it occurs twice
        "#]],
    );
}

#[test]
fn frames_do_not_become_older_than_hashes() {
    after(
        |store| {
            let frame = &mut store.runs.get_mut(&RUN).unwrap()[2];
            let text = String::from_utf8(frame.body.clone()).unwrap();
            let mut text = text.replacen("{\"v\":2", "{\"v\":1", 1);
            while let Some((start, rest)) = text.split_once("\"salt\":\"") {
                text = format!("{start}{}", &rest[34..]);
            }
            frame.body = text.into_bytes();
            frame.chain.clear();
        },
        &expect![[r#"
            event 6 of run_00000000000000000000000000000010 is changed: its frame has no hashes although earlier frames have them
        "#]],
    );
}

#[test]
fn a_proper_erasure_verifies_and_a_silent_one_does_not() {
    let mut store = FakeStore::new();
    store.erase(RUN, |event| event == 3, Some(WRITER));
    assert_eq!(store.findings(), "");
    assert_eq!(store.verify().erased, 1);
    // All payloads, including the long output that was moved out.
    store.erase(RUN, |_| true, Some(WRITER));
    assert!(store.blobs.is_empty());
    store.seal();
    assert_eq!(store.findings(), "");
    after(
        |store| store.erase(RUN, |event| event == 3, None),
        &expect![[r#"
        event 3 of run_00000000000000000000000000000010 is erased: no audit entry says so
    "#]],
    );
    // The remainder cannot be forged.
    let mut store = FakeStore::new();
    store.erase(RUN, |event| event == 1, Some(WRITER));
    let frame = &mut store.runs.get_mut(&RUN).unwrap()[0];
    let text = String::from_utf8(frame.body.clone()).unwrap();
    frame.body = text.replacen("\"workflow\":\"chain\"", "\"workflow\":\"chaos\"", 1).into_bytes();
    expect![[r#"
        event 1 of run_00000000000000000000000000000010 is changed: its remainder does not match the audit entry
    "#]].assert_eq(&store.findings());
}

#[test]
fn seals_are_signed_chained_and_over_their_leaves() {
    after(
        |store| drop(store.seals.remove(0)),
        &expect![[r#"
        seal 1 is missing: another seal is in its position
    "#]],
    );
    after(
        |store| store.seals.swap(0, 1),
        &expect![[r#"
        seal 1 is missing: another seal is in its position
    "#]],
    );
    after(
        |store| store.seals[0].leaves[30] ^= 1,
        &expect![[r#"
        seal 1 is changed: its leaves do not match the signed root
    "#]],
    );
    after(
        |store| store.seals[0].text = store.seals[0].text.replace("1000", "1001"),
        &expect![[r#"
            seal 1 is unsigned: it is not signed by a trusted key
        "#]],
    );
    // Signed by another key.
    let report = FakeStore::new().verify_with(Verifier::new([stranger()]));
    expect![[r#"
        seal 1 is unsigned: it is not signed by a trusted key
    "#]]
    .assert_eq(&lines(&report));
    // Without keys, any key is trusted.
    assert!(FakeStore::new().verify_with(Verifier::new([])).is_clean());
}

#[test]
fn a_store_that_was_rolled_back_lacks_the_seal_that_was_kept() {
    let whole = FakeStore::new();
    let kept = Seal::parse(&whole.seals[1].text).unwrap();
    let with = |store: &FakeStore| {
        let mut verifier = Verifier::new([signer().public()]);
        verifier.kept(kept.clone());
        lines(&store.verify_with(verifier))
    };
    assert_eq!(with(&whole), "");
    let mut back = whole.clone();
    back.seals.truncate(1);
    let heads: Vec<u64> = whole.runs.values().map(|frames| frames.len() as u64).collect();
    assert_eq!(heads.len(), 2);
    expect![[r#"
        seal 2 is missing: it was kept outside the store, and the store ends before it: was the store rolled back?
    "#]]
    .assert_eq(&with(&back));
    // Sealed anew after the rollback.
    let mut anew = back;
    anew.record(WRITER, "agent_changed");
    anew.seal();
    expect![[r#"
        seal 2 is changed: it differs from the seal that was kept outside the store
    "#]]
    .assert_eq(&with(&anew));
}

#[test]
fn two_different_seals_of_one_number_are_a_finding_whichever_the_store_has() {
    let whole = FakeStore::new();
    let mut fork = whole.clone();
    fork.seals.truncate(1);
    fork.record(WRITER, "agent_changed");
    fork.seal();
    let seal = |store: &FakeStore, at: usize| Seal::parse(&store.seals[at].text).unwrap();
    let with = |store: &FakeStore, kept: &[Seal]| {
        let mut verifier = Verifier::new([signer().public()]);
        kept.iter().cloned().for_each(|seal| verifier.kept(seal));
        lines(&store.verify_with(verifier))
    };
    let (old, new) = (seal(&whole, 1), seal(&fork, 1));
    let found = expect![[r#"
        seal 2 is forked: two different seals of this number were kept: the store was rolled back and written to from there
    "#]];
    // In either order, and with either seal in the store.
    for kept in [[seal(&whole, 0), old.clone(), new.clone()], [seal(&whole, 0), new, old.clone()]] {
        found.assert_eq(&with(&whole, &kept));
        found.assert_eq(&with(&fork, &kept));
    }
    // The same seal twice is not a fork.
    assert_eq!(with(&whole, &[old.clone(), seal(&whole, 0), old]), "");
}

#[test]
fn of_a_long_fork_the_first_number_is_named() {
    let mut whole = FakeStore::new();
    let mut fork = whole.clone();
    for store in [&mut whole, &mut fork] {
        store.record(WRITER, "agent_changed");
        store.seal();
    }
    // Both stores are equal up to this point.
    whole.record(WRITER, "policy_changed");
    fork.record(WRITER, "token_changed");
    for store in [&mut whole, &mut fork] {
        store.seal();
        store.record(WRITER, "agent_changed");
        store.seal();
    }
    let mut verifier = Verifier::new([signer().public()]);
    for row in whole.seals.iter().chain(&fork.seals) {
        verifier.kept(Seal::parse(&row.text).unwrap());
    }
    expect![[r#"
        seal 4 is forked: two different seals of this number were kept, and of 1 later numbers: the store was rolled back and written to from there
    "#]]
    .assert_eq(&lines(&fork.verify_with(verifier)));
}

#[test]
fn an_entry_that_refers_to_an_event_refers_to_its_hash() {
    let mut store = FakeStore::new();
    let chain = &store.runs[&RUN][0].chain;
    let hash = Hash(*chain.first_chunk().unwrap());
    let refers = |event, hash| crate::port::ledger::Entry {
        at_ms: 5,
        category: "execution",
        what: "run_started".to_owned(),
        actor: "ada".to_owned(),
        resource_type: "run".to_owned(),
        resource_id: RUN.to_string(),
        event: Some(crate::port::ledger::EventRef { run: RUN, event, hash }),
        detail: serde_json::Value::Null,
    };
    store.write(WRITER, &refers(1, hash));
    assert_eq!(store.findings(), "");
    let mut other = store.clone();
    other.write(WRITER, &refers(2, hash));
    expect![[r#"
        event 2 of run_00000000000000000000000000000010 is changed: entry 6 of node_0000000000000000000000000000000a refers to another hash
    "#]].assert_eq(&other.findings());
    store.write(WRITER, &refers(999, hash));
    expect![[r#"
        event 19 of run_00000000000000000000000000000010 is missing: entry 6 of node_0000000000000000000000000000000a refers to it, or to a later one
    "#]].assert_eq(&store.findings());
}

#[test]
fn one_run_can_be_looked_at_alone() {
    let store = FakeStore::new();
    let mut one = store.clone();
    one.runs.retain(|run, _| *run == RUN);
    assert!(!one.verify().is_clean());
    assert!(one.verify_with(Verifier::new([]).only(RUN)).is_clean());
}

#[test]
fn findings_are_bounded() {
    let mut report = Report::default();
    for number in 0..FINDINGS_MAX as u64 + 5 {
        report.add(Place::Seal(number), Trouble::Changed, "x");
    }
    assert_eq!((report.findings.len(), report.more), (FINDINGS_MAX, 5));
}

#[test]
fn an_old_journal_is_counted_and_not_blamed() {
    let body = br#"{"v":1,"at":5,"events":[{"type":"run.recovered","payload":{}}]}"#.to_vec();
    let frame = |body| crate::port::store::Frame {
        first: 1,
        count: 1,
        body,
        beside: Vec::new(),
        chain: Vec::new(),
    };
    let mut verifier = Verifier::new([]);
    let examined = Examined { frame: frame(body), is_authentic: true };
    verifier.frame(RUN, &examined, &BTreeMap::new());
    let report = verifier.finish();
    assert_eq!((report.events, report.unhashed, report.is_clean()), (1, 1, true));
    assert_eq!(seal::next(&Unsealed::default(), 5, &signer()), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any byte of any stored row.
    #[test]
    fn a_changed_byte_anywhere_is_found(
        kind in 0..8u8, row: prop::sample::Index, at: prop::sample::Index, bits in 1..=255u8,
    ) {
        let mut store = FakeStore::new();
        fn flip(bytes: &mut [u8], at: &prop::sample::Index, bits: u8) {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
        }
        fn text(text: &mut String, at: &prop::sample::Index, bits: u8) -> bool {
            let mut bytes = text.clone().into_bytes();
            flip(&mut bytes, at, bits);
            // Bytes that are not UTF-8 cannot be in a text column.
            String::from_utf8(bytes).is_ok_and(|changed| {
                *text = changed;
                true
            })
        }
        let frames = store.runs.values_mut().flatten().collect::<Vec<_>>();
        let frames_count = frames.len();
        let mut frames = frames.into_iter();
        let changed = match kind {
            0 => { flip(&mut frames.nth(row.index(frames_count)).unwrap().body, &at, bits); true }
            1 => { flip(&mut frames.nth(row.index(frames_count)).unwrap().chain, &at, bits); true }
            2 => { let row = row.index(store.entries.len()); text(&mut store.entries[row].text, &at, bits) }
            3 => { let row = row.index(store.entries.len()); flip(&mut store.entries[row].hash.0, &at, bits); true }
            4 => { let row = row.index(store.seals.len()); text(&mut store.seals[row].text, &at, bits) }
            5 => { let row = row.index(store.seals.len()); flip(&mut store.seals[row].leaves, &at, bits); true }
            6 => {
                let mut with = frames.filter(|frame| !frame.beside.is_empty());
                flip(&mut with.next().unwrap().beside, &at, bits);
                true
            }
            _ => { let count = store.blobs.len(); flip(store.blobs.values_mut().nth(row.index(count)).unwrap(), &at, bits); true }
        };
        if changed {
            prop_assert!(!store.verify().is_clean());
        }
    }
}
