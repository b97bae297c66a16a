//! Rows around the journals: each change of one is found and named.

use super::super::*;
use crate::evidence::entry::link;
use crate::port::inspect::{FrameAt, RowVersion};
use crate::port::ledger::{Entry, Recorded, SealMark};
use crate::port::slots::Slot;
use crate::rows::{AFTER_DIGEST, digest};
use serde_json::{Value, json};

const WRITER: NodeId = NodeId(7);
const RUN: RunId = RunId(0x10);

/// Two changes of one token, as a store has them.
struct Ledger {
    entries: Vec<Recorded>,
    versions: Vec<RowVersion>,
    epoch: i64,
}

fn token(name: &str) -> Value {
    json!({"principal": name})
}

impl Ledger {
    fn new() -> Ledger {
        let mut ledger = Ledger { entries: Vec::new(), versions: Vec::new(), epoch: 0 };
        ledger.change(Some(&token("ada")));
        ledger.change(Some(&token("bob")));
        ledger
    }

    fn change(&mut self, body: Option<&Value>) {
        self.epoch += 1;
        let detail = json!({AFTER_DIGEST: body.map(digest)});
        self.record("token_changed", detail);
        self.versions.push(RowVersion {
            kind: "token".to_owned(),
            name: "t".to_owned(),
            epoch: self.epoch.unsigned_abs(),
            body: body.map(Value::to_string),
            is_authentic: true,
        });
    }

    fn record(&mut self, what: &str, detail: Value) {
        let entry = Entry {
            at_ms: 1,
            category: "configuration",
            what: what.to_owned(),
            actor: "root".to_owned(),
            resource_type: "token".to_owned(),
            resource_id: "t".to_owned(),
            event: None,
            detail,
        };
        let seq = self.entries.len() as u64 + 1;
        let prev = self.entries.last().map_or(START, |last| last.hash);
        let (text, hash) = link(&entry, WRITER, seq, prev);
        let writer = WRITER;
        self.entries.push(Recorded { place: seq, writer, seq, text, hash, is_authentic: true });
    }

    fn rows(self) -> Vec<Stored> {
        let entries = self.entries.into_iter().map(Stored::Entry);
        let versions = self.versions.into_iter().map(Stored::Version);
        let epoch = Stored::Count { name: "registry".to_owned(), count: self.epoch };
        entries.chain(versions).chain([epoch]).collect()
    }
}

/// The findings in rows, one per line.
fn found(rows: impl IntoIterator<Item = Stored>) -> String {
    let mut verifier = Verifier::new([]);
    rows.into_iter().for_each(|row| verifier.row(row));
    verifier.counted(&crate::run::recount::Recount::default());
    let findings = verifier.finish().findings;
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}

fn changed(change: impl FnOnce(&mut Ledger)) -> String {
    let mut ledger = Ledger::new();
    change(&mut ledger);
    found(ledger.rows())
}

#[test]
fn versions_that_entries_chain_are_found_good() {
    assert_eq!(changed(|_| {}), "");
    assert_eq!(changed(|ledger| ledger.change(None)), "");
}

#[test]
fn a_changed_deleted_or_inserted_version_is_named() {
    let body = |at: usize| {
        move |ledger: &mut Ledger| {
            ledger.versions[at].body = Some(token("eve").to_string());
        }
    };
    let newest = changed(body(1));
    assert!(newest.starts_with("row token/t@2 of registry is changed: entry 2 of"), "{newest}");
    let oldest = changed(body(0));
    assert!(oldest.starts_with("row token/t@1 of registry is changed: entry 1 of"), "{oldest}");
    let removed = changed(|ledger| ledger.versions[1].body = None);
    assert!(removed.starts_with("row token/t@2 of registry is changed"), "{removed}");
    let rolled_back = changed(|ledger| _ = ledger.versions.pop());
    assert!(rolled_back.contains("row token/t@1 of registry is changed"), "{rolled_back}");
    assert!(rolled_back.contains("row registry of counter is changed"), "{rolled_back}");
    let first = changed(|ledger| _ = ledger.versions.remove(0));
    assert!(first.contains("row token/t of registry is missing"), "{first}");
    let all = changed(|ledger| ledger.versions.clear());
    assert!(all.contains("row token/t of registry is missing"), "{all}");
    let inserted = changed(|ledger| {
        let forged = RowVersion { name: "eve".to_owned(), ..ledger.versions[1].clone() };
        ledger.versions.insert(0, forged);
    });
    assert!(inserted.contains("row token/eve@2 of registry is inserted"), "{inserted}");
}

#[test]
fn an_epoch_that_was_set_back_is_named() {
    let found = changed(|ledger| ledger.epoch = 1);
    assert_eq!(found, "row registry of counter is changed: it is 1, and the newest change is 2\n");
}

#[test]
fn entries_of_before_digests_count_versions() {
    let mut ledger = Ledger { entries: Vec::new(), versions: Vec::new(), epoch: 0 };
    ledger.change(Some(&token("ada")));
    ledger.entries.clear();
    ledger.record("token_changed", json!({}));
    ledger.change(Some(&token("bob")));
    assert_eq!(found(ledger.rows()), "");
}

#[test]
fn what_is_not_authentic_is_forged() {
    let version = changed(|ledger| ledger.versions[0].is_authentic = false);
    assert!(version.starts_with("row token/t@1 of registry is forged"), "{version}");
    let entry = changed(|ledger| ledger.entries[1].is_authentic = false);
    assert!(entry.starts_with("entry 2 of node_"), "{entry}");
    assert!(entry.contains("is forged"), "{entry}");
    let slot = Slot {
        schedule: "s".to_owned(),
        slot_ms: 5,
        count: 1,
        outcome: "skipped".to_owned(),
        why: None,
        run: None,
        at_ms: 5,
    };
    let rows = [
        Stored::Slot { slot, is_authentic: false },
        Stored::RememberedOutput {
            agent: "a".to_owned(),
            place: 1,
            run: RUN,
            at_ms: 1,
            is_authentic: false,
        },
        Stored::Message {
            run: RUN,
            key: "k".to_owned(),
            id: 1,
            is_read: true,
            is_authentic: false,
        },
        Stored::ForeignSnapshot(RUN),
    ];
    let found = found(rows);
    for table in ["slot", "memo", "letter", "snapshot"] {
        assert!(found.contains(&format!(" of {table} is forged")), "{table}: {found}");
    }
}

#[test]
fn frames_stand_in_the_order_of_their_events_and_belong_to_a_run() {
    let frame = |place, first| Stored::Frame(FrameAt { place, run: RUN, first, count: 1 });
    let swapped = found([frame(1, 2), frame(2, 1)]);
    assert!(swapped.contains("row 1 of frame is reordered"), "{swapped}");
    let twice = found([frame(1, 1), frame(2, 1)]);
    assert!(twice.contains("row 2 of frame is reordered"), "{twice}");
    let orphan = found([frame(1, 1)]);
    assert!(orphan.contains("of run is missing: it has frames"), "{orphan}");
}

#[test]
fn places_that_a_store_notes_are_those_it_has() {
    let positions =
        |frames| Stored::Positions { frames, entries: 0, messages: 0, remembered_outputs: 9 };
    assert_eq!(found([positions(0)]), "");
    assert!(found([positions(3)]).contains("row frames of position is changed: it is 3"));
}

#[test]
fn a_counter_that_no_journal_explains_is_named() {
    let count = |name: &str, count| Stored::Count { name: name.to_owned(), count };
    assert_eq!(found([count("held:envelope/a/2026-11", 0)]), "");
    let found = found([count("spent:envelope/a/2026-11", 5)]);
    assert!(found.contains("row spent:envelope/a/2026-11 of counter is changed"), "{found}");
}

#[test]
fn a_seal_goes_on_where_the_one_before_it_ended() {
    let mut store = crate::evidence::fake_store::FakeStore::new();
    let seals = std::mem::take(&mut store.seals);
    let stored = |marks: [(u64, u64); 2], is_hashed: bool| {
        let rows = seals.iter().zip(marks).map(|(row, (frames, entries))| {
            let text = if is_hashed { row.text.clone() } else { "another".to_owned() };
            let hash = Hash::of(text.as_bytes());
            Stored::Seal { row: row.clone(), hash, upto: SealMark { frames, entries } }
        });
        found(rows)
    };
    let back = stored([(5, 2), (4, 3)], true);
    assert!(back.contains("row 2 of seal is changed: it goes on before"), "{back}");
    let hash = stored([(1, 1), (2, 2)], false);
    assert!(hash.contains("row 1 of seal is changed: its text does not match"), "{hash}");
}

#[test]
fn an_entry_that_was_moved_to_another_place_is_named() {
    let noted = || {
        let mut ledger = Ledger { entries: Vec::new(), versions: Vec::new(), epoch: 0 };
        ledger.record("sign_in_refused", json!({}));
        ledger.record("sign_in_refused", json!({}));
        ledger
    };
    assert_eq!(found(noted().rows()), "");
    let mut moved = noted();
    moved.entries[1].place = 3;
    assert_eq!(
        found(moved.rows()),
        "row 3 of entry is reordered: it is where entry 2 of all writers belongs\n"
    );
}
