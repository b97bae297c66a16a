//! An inspection reports everything in a store, of one moment and in one order,
//! including changes by another process.
//!
//! The cases run on every store. `check_inspect` runs on every persistent store: each
//! attack gets a store with one row of everything, changes it with plain SQL, and must
//! appear in the report.

mod attacks;

pub use attacks::{Attack, Detection, check_inspect, is_foreign};

use super::{Bench, cases, entry, first, guard, hashed, message, node, plain, released, run, wait};
use serde_json::json;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::inspect::{Each, FrameAt, RowVersion, Stored, StoredRun};
use sluice_core::port::ledger::{Change, SealMark, SealRow, Sealed, Sealing};
use sluice_core::port::lineage::ProvenanceEdge;
use sluice_core::port::remembered_output::RememberedOutput;
use sluice_core::port::slots::{Mark, Slot};
use sluice_core::port::store::{Append, Blob, Key, Mailboxes, Received, Store};
use sluice_govern::registry::{Kind, Row};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

cases![
    an_empty_store_shows_nothing,
    everything_is_shown_in_its_order,
    a_write_during_an_inspection_is_not_seen_in_part,
];

/// Everything that a store reports.
pub fn everything(store: &dyn Store) -> Vec<Stored> {
    inspected(store, |_| {})
}

/// The same; `at` is called before each row, with the number of rows so far.
fn inspected(store: &dyn Store, mut at: impl FnMut(usize) + Send + 'static) -> Vec<Stored> {
    let rows: Arc<Mutex<Vec<Stored>>> = Arc::default();
    let kept = Arc::clone(&rows);
    let each: Each = Box::new(move |row| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        at(kept.len());
        kept.push(row);
    });
    wait(store.inspect(each)).expect("the store works");
    std::mem::take(&mut *rows.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The rows without those that only some stores have: their own bookkeeping, and
/// counters that were read but never changed.
pub fn common(rows: Vec<Stored>) -> Vec<Stored> {
    let is_common = |row: &Stored| {
        !matches!(
            row,
            Stored::ChainEnd { .. } | Stored::Positions { .. } | Stored::Count { count: 0, .. }
        )
    };
    rows.into_iter().filter(is_common).collect()
}

/// One row of everything; run 3 has the given number of frames.
fn furnish(bench: &Bench, frames: u64) {
    let mut create = first(run(1));
    let fingerprint = Hash::of(b"inputs");
    let key = Key { key: "k".to_owned(), former: None, fingerprint, expires_at_ms: 1_000_000 };
    create.create.as_mut().expect("it is created").key = Some(key);
    bench.done(hashed(Append {
        beside: b"beside".to_vec(),
        blobs: vec![Blob { hash: Hash::of(b"blob"), body: b"blob".to_vec() }],
        guards: vec![guard("c", 7, None)],
        entries: vec![entry("created")],
        ..create
    }));
    let head = Some(released(Some(1500)));
    bench.done(hashed(Append { head, ..first(run(2)) }));
    for name in ["read", "unread"] {
        bench.post(message(run(1), name));
    }
    let read = bench.messages(Mailboxes::Run(run(1))).first().map(Received::as_read);
    bench.done(hashed(Append {
        count: 2,
        snapshot: Some(b"state".to_vec()),
        read: read.into_iter().collect(),
        provenance_edges: vec![ProvenanceEdge { from: run(2), values: 4 }],
        remembered_outputs: vec![remembered_output("one"), remembered_output("two")],
        ..plain(run(1), 1)
    }));
    bench.done(hashed(first(run(3))));
    for after in 1..frames {
        bench.done(hashed(plain(run(3), after)));
    }
    let marked = bench.store.mark(vec![Mark { slot: slot(), from: Vec::new() }]);
    assert_eq!(bench.wait_ok(marked), [true]);
    bench.wait_ok(bench.store.record(node(4), vec![entry("said")]));
    for remove in [Vec::new(), vec![(Kind::Agent, "a".to_owned())]] {
        let row = Row { kind: Kind::Agent, name: "a".to_owned(), body: json!({"trust_level": 1}) };
        let put = if remove.is_empty() { vec![row] } else { Vec::new() };
        let (expect, entries) = (None, vec![entry("changed")]);
        bench.wait_ok(bench.store.change(Change { expect, put, remove, node: node(4), entries }));
    }
    assert_eq!(bench.wait_ok(bench.store.seal(sealing())), Sealed::Done);
}

fn remembered_output(body: &str) -> RememberedOutput {
    RememberedOutput {
        agent: "m".to_owned(),
        run: run(1),
        at_ms: 5,
        body: body.as_bytes().to_vec(),
    }
}

fn slot() -> Slot {
    Slot {
        schedule: "s".to_owned(),
        slot_ms: 7,
        count: 1,
        outcome: "started".to_owned(),
        why: None,
        run: Some(run(1)),
        at_ms: 8,
    }
}

fn sealing() -> Sealing {
    let (text, leaves) = ("seal".to_owned(), vec![7; 3]);
    let (hash, upto) = (Hash::of(b"seal"), SealMark { frames: 2, entries: 1 });
    Sealing { number: 1, text, leaves, hash, upto }
}

/// The rows that `furnish` has written, in order.
fn furnished(bench: &Bench, frames: u64) -> Vec<Stored> {
    let Sealing { number, text, leaves, hash, upto } = sealing();
    let mut rows = vec![Stored::Seal { row: SealRow { number, text, leaves }, hash, upto }];
    rows.extend(bench.entries().into_iter().map(Stored::Entry));
    assert_eq!(rows.len(), 5, "a seal and four entries");
    rows.extend([(1, Some(json!({"trust_level": 1}).to_string())), (2, None)].map(version));
    let (key, fingerprint, is_authentic) = ("k".to_owned(), Hash::of(b"inputs"), true);
    rows.push(Stored::Key { key, run: run(1), fingerprint, is_authentic });
    rows.push(Stored::Slot { slot: slot(), is_authentic });
    for place in [1, 2] {
        let (agent, at_ms) = ("m".to_owned(), 5);
        rows.push(Stored::RememberedOutput { agent, place, run: run(1), at_ms, is_authentic });
    }
    for (id, name, is_read) in [(1, "read", true), (2, "unread", false)] {
        let key = name.to_owned();
        rows.push(Stored::Message { run: run(1), key, id, is_read, is_authentic });
    }
    for (name, count) in [("c", 7), ("registry", 2)] {
        rows.push(Stored::Count { name: name.to_owned(), count });
    }
    rows.push(Stored::ProvenanceEdge { source: run(2), consumer: run(1), count: 4 });
    let known = [(1, 1, 1), (2, 1, 1), (1, 2, 2)].map(|(of, first, count)| (run(of), first, count));
    let places = known.into_iter().chain((1..=frames).map(|first| (run(3), first, 1)));
    for (place, (run, first, count)) in (1..).zip(places) {
        rows.push(Stored::Frame(FrameAt { place, run, first, count }));
    }
    rows.push(shown(run(1), 3));
    let parked = StoredRun {
        status: "paused".to_owned(),
        is_owned: false,
        due_at_ms: Some(1500),
        ..listed(run(2), 1)
    };
    rows.extend([Stored::Run(parked), shown(run(3), frames)]);
    rows
}

fn version((epoch, body): (u64, Option<String>)) -> Stored {
    let (kind, name) = ("agent".to_owned(), "a".to_owned());
    Stored::Version(RowVersion { kind, name, epoch, body, is_authentic: true })
}

fn shown(run: RunId, version: u64) -> Stored {
    Stored::Run(listed(run, version))
}

fn listed(of: RunId, version: u64) -> StoredRun {
    StoredRun {
        run: of,
        workflow: "review".to_owned(),
        workflow_version: None,
        initiator: "ada".to_owned(),
        status: "queued".to_owned(),
        started_at_ms: 900,
        ended_at_ms: None,
        parent: None,
        fingerprint: (of == run(1)).then(|| Hash::of(b"inputs")),
        is_owned: true,
        due_at_ms: None,
        asks: false,
        version,
    }
}

fn an_empty_store_shows_nothing(bench: &Bench) {
    assert_eq!(common(notes_aside(everything(&*bench.store))), []);
}

/// Without the positions of an empty store.
fn notes_aside(rows: Vec<Stored>) -> Vec<Stored> {
    let is_zero = |row: &Stored| match row {
        Stored::Positions { frames, entries, messages, remembered_outputs } => {
            [frames, entries, messages, remembered_outputs].into_iter().all(|last| *last == 0)
        }
        _ => false,
    };
    rows.into_iter().filter(|row| !is_zero(row)).collect()
}

fn everything_is_shown_in_its_order(bench: &Bench) {
    furnish(bench, 3);
    let rows = everything(&*bench.store);
    let mut ends = Vec::new();
    for row in &rows {
        match row {
            Stored::ChainEnd { writer, seq, hash } => ends.push((*writer, *seq, *hash)),
            Stored::Positions { frames, entries, messages, remembered_outputs } => {
                assert_eq!([*frames, *entries, *messages, *remembered_outputs], [6, 4, 2, 2]);
            }
            _ => {}
        }
    }
    if !ends.is_empty() {
        assert_eq!(ends, bench.unsealed_writers());
    }
    assert_eq!(common(rows), furnished(bench, 3));
}

impl Bench {
    /// End of each writer's entry chain, by writer.
    fn unsealed_writers(&self) -> Vec<(sluice_core::port::store::NodeId, u64, Hash)> {
        let mut last = std::collections::BTreeMap::new();
        for one in self.entries() {
            last.insert(one.writer, (one.seq, one.hash));
        }
        last.into_iter().map(|(writer, (seq, hash))| (writer, seq, hash)).collect()
    }
}

/// Waits a short time for a write: a store may delay it until the inspection ends.
fn a_moment(done: &Receiver<()>) {
    // Both outcomes are fine.
    let _ = done.recv_timeout(Duration::from_millis(200));
}

fn a_write_during_an_inspection_is_not_seen_in_part(bench: &Bench) {
    furnish(bench, 3);
    let before = furnished(bench, 3);
    let store = Arc::clone(&bench.store);
    let (said, done) = channel();
    let rows = inspected(&*bench.store, move |rows| {
        if rows == 1 {
            let (store, said) = (Arc::clone(&store), said.clone());
            std::thread::spawn(move || {
                let written = Append {
                    entries: vec![entry("late")],
                    messages: vec![message(run(1), "late")],
                    guards: vec![guard("c", 1, None)],
                    remembered_outputs: vec![remembered_output("late")],
                    ..hashed(plain(run(3), 3))
                };
                wait(store.append(Arc::new(written))).expect("the store works");
                // The case may be over.
                let _ = said.send(());
            });
            a_moment(&done);
        }
    });
    assert_eq!(common(rows), before);
}
