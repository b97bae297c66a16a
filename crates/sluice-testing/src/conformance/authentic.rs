//! Rows that another process writes into a store with a key are detected and not used.
//!
//! `check_authentic` runs on every persistent store: each case gets a store with one
//! row of everything, changes it with plain SQL, and checks the result.

use super::{Bench, SetClock, entry, first, hashed, message, node, plain, run};
use serde_json::json;
use sluice_core::evidence::mac::MacKey;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::ledger::{Change, Erased, Erasure};
use sluice_core::port::remembered_output::RememberedOutput;
use sluice_core::port::slots::{Mark, Slot};
use sluice_core::port::store::{Append, Key, Mailboxes, Store, StoreError};
use sluice_govern::registry::{Kind, Row};
use std::sync::Arc;

/// A store, and access to its tables behind its back.
pub struct Exposed {
    /// An empty store that has adopted `key`.
    pub store: Arc<dyn Store>,
    /// The store's clock.
    pub clock: Arc<SetClock>,
    /// Runs statements that both SQL dialects support.
    pub sql: Arc<dyn Fn(&str) + Send + Sync>,
    /// Accepts everything in the store as authentic under `key`, as an operator does.
    pub adopt: Arc<dyn Fn() + Send + Sync>,
}

/// The key of these stores.
pub fn key() -> MacKey {
    MacKey::derive(&[7; 32])
}

/// Statements, and the check to run after them.
type Attack = (&'static str, fn(&Bench));

/// Changes the registry, because a store rereads it only after a change.
const NEWER: &str = "UPDATE counter SET count = count + 1 WHERE name = 'registry'";

const ATTACKS: &[Attack] = &[
    ("UPDATE frame SET body = chain WHERE first = 2", unreadable),
    ("UPDATE frame SET chain = body WHERE first = 2", unreadable),
    ("UPDATE frame SET count = count + 1 WHERE first = 4", unreadable),
    ("UPDATE frame SET mac = body WHERE first = 2", unreadable),
    ("UPDATE frame SET mac = chain WHERE first = 2", unreadable),
    ("UPDATE snapshot SET body = mac", without_snapshot),
    ("UPDATE snapshot SET version = 1", without_snapshot),
    ("UPDATE snapshot SET mac = body", without_snapshot),
    ("UPDATE letter SET body = mac", without_message),
    ("UPDATE letter SET key = 'other'", without_message),
    ("UPDATE letter SET mac = body", without_message),
    ("UPDATE key SET expires_at = expires_at + 1", without_key),
    ("UPDATE key SET mac = fingerprint", without_key),
    ("UPDATE slot SET fate = 'skipped'", without_slot),
    ("UPDATE slot SET noted_at = noted_at + 1", without_slot),
    ("UPDATE memo SET at = at + 1", without_remembered_output),
    ("UPDATE memo SET body = mac", without_remembered_output),
    ("UPDATE entry SET text = replace(text, 'ada', 'eve')", without_entry),
    ("UPDATE entry SET seq = seq + 1", without_entry),
    ("UPDATE entry SET mac = hash", unsealed_entry),
    ("UPDATE registry SET body = replace(body, '1', '9')", without_row),
    ("UPDATE registry SET name = 'other'", without_row),
    ("UPDATE registry SET body = NULL", without_row),
    ("UPDATE registry SET epoch = epoch + 1", without_row),
];

/// Runs every case, each on a fresh store.
pub fn check_authentic(mut fresh: impl FnMut() -> Exposed) {
    for (sql, holds) in ATTACKS {
        let Exposed { store, clock, sql: perform, .. } = fresh();
        let bench = Bench { store, clock };
        fill(&bench);
        intact(&bench);
        perform(sql);
        perform(NEWER);
        holds(&bench);
        // The other run is unchanged.
        assert_eq!(bench.journal(run(2)), [(1, 1)]);
    }
    copied(fresh());
    erased(fresh());
}

/// One row of everything.
fn fill(bench: &Bench) {
    let mut create = first(run(1));
    let name = Key {
        key: "k".to_owned(),
        former: None,
        fingerprint: Hash::of(b"inputs"),
        expires_at_ms: 1_000_000,
    };
    create.create.as_mut().expect("it is created").key = Some(name);
    bench.done(hashed(create));
    let remembered_outputs = vec![remembered_output()];
    let snapshot = Some(b"state".to_vec());
    bench.done(hashed(Append { count: 2, snapshot, remembered_outputs, ..plain(run(1), 1) }));
    bench.done(hashed(plain(run(1), 3)));
    bench.done(hashed(Append { messages: vec![message(run(1), "a")], ..first(run(2)) }));
    assert_eq!(bench.wait_ok(bench.store.mark(vec![mark("started", &[])])), [true]);
    bench.wait_ok(bench.store.record(node(4), vec![entry("said")]));
    let row = Row { kind: Kind::Agent, name: "a".to_owned(), body: json!({"trust_level": 1}) };
    let (expect, remove, entries) = (None, Vec::new(), Vec::new());
    let change = Change { expect, put: vec![row], remove, node: node(4), entries };
    bench.wait_ok(bench.store.change(change));
}

fn remembered_output() -> RememberedOutput {
    RememberedOutput { agent: "m".to_owned(), run: run(1), at_ms: 5, body: b"answer".to_vec() }
}

fn mark(outcome: &str, from: &[&str]) -> Mark {
    let slot = Slot {
        schedule: "s".to_owned(),
        slot_ms: 7,
        count: 1,
        outcome: outcome.to_owned(),
        why: None,
        run: Some(run(1)),
        at_ms: 8,
    };
    Mark { slot, from: from.iter().map(|one| (*one).to_owned()).collect() }
}

/// Everything is present and used.
fn intact(bench: &Bench) {
    let loaded = bench.load(run(1)).expect("it is there");
    assert_eq!(loaded.snapshot, Some((3, b"state".to_vec())));
    assert!(!loaded.has_foreign_snapshot);
    assert_eq!(loaded.frames.iter().map(|frame| frame.first).collect::<Vec<_>>(), [4]);
    assert!(bench.messages(Mailboxes::Run(run(1))).iter().all(|one| one.is_authentic));
    assert_eq!(bench.wait_ok(bench.store.slots("s".to_owned(), None, 9)).len(), 1);
    assert_eq!(
        bench.wait_ok(bench.store.remembered_outputs(vec!["m".to_owned()])),
        [remembered_output()]
    );
    assert!(bench.entries().iter().all(|one| one.is_authentic));
    let rows = bench.wait_ok(bench.store.registry(None));
    assert_eq!((rows.rows.len(), rows.foreign), (1, Vec::new()));
    let examined = bench.wait_ok(bench.store.examine(run(1), 0, usize::MAX));
    assert!(examined.len() == 3 && examined.iter().all(|one| one.is_authentic));
    let fed = bench.wait_ok(bench.store.feed(0, usize::MAX));
    assert!(fed.len() == 4 && fed.iter().all(|one| one.is_authentic));
}

fn is_corrupt<T>(answer: &Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Corrupt(_)))
}

/// The run is not loaded, and an examination reports the change.
fn unreadable(bench: &Bench) {
    let store = &bench.store;
    assert!(is_corrupt(&super::wait(store.frames(run(1), 0, usize::MAX))));
    let examined = bench.wait_ok(store.examine(run(1), 0, usize::MAX));
    assert_eq!(examined.iter().filter(|one| !one.is_authentic).count(), 1);
    let fed = bench.wait_ok(store.feed(0, usize::MAX));
    assert_eq!(fed.iter().filter(|one| !one.is_authentic).count(), 1);
    match super::wait(store.load(run(1))) {
        // Frames before an authentic snapshot are not read.
        Ok(Some(loaded)) => assert_eq!(loaded.snapshot, Some((3, b"state".to_vec()))),
        other => assert!(is_corrupt(&other)),
    }
}

fn without_snapshot(bench: &Bench) {
    let loaded = bench.load(run(1)).expect("it is there");
    assert_eq!((loaded.snapshot, loaded.has_foreign_snapshot), (None, true));
    assert_eq!(loaded.frames.iter().map(|frame| frame.first).collect::<Vec<_>>(), [1, 2, 4]);
}

fn without_message(bench: &Bench) {
    let messages = bench.messages(Mailboxes::Run(run(1)));
    assert!(messages.len() == 1 && !messages[0].is_authentic, "{messages:?}");
    // The message can be marked as read.
    bench.done(hashed(Append { read: vec![messages[0].as_read()], ..plain(run(1), 4) }));
    assert_eq!(bench.messages(Mailboxes::Run(run(1))), []);
}

fn without_key(bench: &Bench) {
    let mut again = first(run(3));
    let name = Key {
        key: "k".to_owned(),
        former: None,
        fingerprint: Hash::of(b"inputs"),
        expires_at_ms: 1_000_000,
    };
    again.create.as_mut().expect("it is created").key = Some(name);
    assert!(is_corrupt(&super::wait(bench.store.append(Arc::new(again)))));
    bench.done(first(run(3)));
}

fn without_slot(bench: &Bench) {
    assert!(is_corrupt(&super::wait(bench.store.slots("s".to_owned(), None, 9))));
    let from = ["started", "skipped"];
    assert!(is_corrupt(&super::wait(bench.store.mark(vec![mark("refused", &from)]))));
}

fn without_remembered_output(bench: &Bench) {
    assert_eq!(bench.wait_ok(bench.store.remembered_outputs(vec!["m".to_owned()])), []);
}

fn without_entry(bench: &Bench) {
    let entries = bench.entries();
    assert!(entries.len() == 1 && !entries[0].is_authentic, "{entries:?}");
}

/// The sealer needs the MAC over its hash; whether the text fits the hash is verified later.
fn unsealed_entry(bench: &Bench) {
    without_entry(bench);
    assert_eq!(bench.unsealed().writers, [], "it is given to the sealer");
}

fn without_row(bench: &Bench) {
    let rows = bench.wait_ok(bench.store.registry(None));
    assert_eq!(rows.rows, []);
    assert_eq!(rows.foreign.len(), 1);
    assert_eq!(rows.foreign[0].0, "agent");
}

/// A frame of a different run is rejected, with its MAC or without.
fn copied(exposed: Exposed) {
    let Exposed { store, clock, sql, .. } = exposed;
    let bench = Bench { store, clock };
    for number in [1, 2] {
        bench.done(hashed(first(run(number))));
    }
    for column in ["body", "chain", "mac"] {
        sql(&format!(
            "UPDATE frame SET {column} = (SELECT other.{column} FROM frame AS other
             WHERE other.run <> frame.run)"
        ));
    }
    // In one dialect a statement sees its own changes, so the second row may be
    // unchanged.
    assert!(is_corrupt(&super::wait(bench.store.load(run(1)))));
}

/// Erasure replaces bodies and their MACs.
fn erased(exposed: Exposed) {
    let Exposed { store, clock, .. } = exposed;
    let bench = Bench { store, clock };
    fill(&bench);
    let erasure = Erasure {
        run: run(1),
        bodies: vec![(4, b"less".to_vec()), (1, b"nothing".to_vec())],
        besides: Vec::new(),
        blobs: Vec::new(),
        node: node(1),
        entries: Vec::new(),
    };
    assert_eq!(bench.wait_ok(bench.store.erase(erasure)), Erased::Done);
    assert_eq!(bodies(&*bench.store, run(1)), ["nothing", "", "less"]);
}

/// The bodies of a run, except the one that was not replaced.
fn bodies(store: &dyn Store, run: RunId) -> Vec<String> {
    let frames = super::wait(store.frames(run, 0, usize::MAX)).expect("all are authentic");
    let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
    let kept = |body: String| if body.contains("after") { String::new() } else { body };
    frames.iter().map(|frame| kept(text(&frame.body))).collect()
}
