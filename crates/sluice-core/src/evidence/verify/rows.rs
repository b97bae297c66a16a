//! Verifies the rows around the journals.
//!
//! Each row is compared with its proof: a MAC of the store's key, the audit entries that chain
//! the versions of registry rows, the seals, or the positions of the frames. `folded` compares
//! what follows from the journals themselves.

use super::{Place, Trouble, VerifiedPart, Verifier};
use crate::evidence::entry::START;
use crate::hash::Hash;
use crate::id::RunId;
use crate::port::inspect::{FrameAt, RowVersion, SchemaDifference, Stored, StoredRun};
use crate::port::ledger::{Recorded, SealMark};
use crate::port::store::NodeId;
use crate::rows::{self, AFTER_DIGEST};
use serde_json::Value;
use sluice_govern::account::REGISTRY;
use std::collections::{BTreeMap, BTreeSet};

/// The detail of a finding about a row without a valid MAC.
pub(super) const FORGED: &str = "it has no valid MAC of this store's key";

/// Kind and name of a registry row.
type RowKey = (String, String);

/// The state of the verification of rows.
#[derive(Debug, Default)]
pub(super) struct RowVerifier {
    /// The number of the newest seal, and how far it reaches.
    sealed: (u64, SealMark),
    /// The newest sealed head of each run.
    run_heads: BTreeMap<RunId, u64>,
    writer_heads: BTreeMap<NodeId, u64>,
    /// The versions of each registry row by audit entry that were not found yet.
    recorded: BTreeMap<RowKey, Vec<RecordedChange>>,
    /// The versions of the row that is being read.
    versions: Option<(RowKey, Vec<StoredVersion>)>,
    /// The newest epoch of the registry.
    epoch: u64,
    /// The last position of each table that has positions, and the number of messages.
    places: Places,
    messages: u64,
    /// The first entry that does not follow its predecessor's position, and the expected
    /// position.
    misplaced: Option<(u64, u64)>,
    /// Whether a frame's position was missing; later gaps follow from it.
    has_gap: bool,
    /// Writers with a stored end of chain; `None` if the store records no ends.
    ends: Option<BTreeSet<NodeId>>,
    /// What started the runs.
    pub(super) starts: super::starts::Starts,
    /// Counters without a window.
    pub(super) counts: BTreeMap<String, i64>,
    /// Value flows: by consumer, then source.
    pub(super) provenance_edges: BTreeMap<RunId, BTreeMap<RunId, u64>>,
    /// The number of events in the frames of each run.
    pub(super) frames: BTreeMap<RunId, u64>,
    /// The number of runs whose journals could not be folded.
    pub(super) unfolded: u64,
    /// The list columns of every run that was read.
    pub(super) runs: Vec<StoredRun>,
}

/// A change of a registry row by audit entry.
#[derive(Debug)]
struct RecordedChange {
    entry: Place,
    /// The digest of the row after the change; `Some(None)` if the row was removed. Entries
    /// of earlier versions of Sluice have no digests.
    after: Option<Option<String>>,
}

#[derive(Debug)]
struct StoredVersion {
    epoch: u64,
    digest: Option<String>,
}

#[derive(Debug, Default)]
struct Places {
    frames: u64,
    entries: u64,
    messages: u64,
    remembered_outputs: u64,
}

impl RowVerifier {
    /// Forgets a run that cannot be read: rows that name it are not compared.
    pub(super) fn forget(&mut self, run: RunId) {
        self.starts.forget(run);
        self.provenance_edges.remove(&run);
        self.frames.remove(&run);
    }
}

impl Verifier {
    /// Verifies the store's next row.
    pub fn row(&mut self, row: Stored) {
        if !self.scope.has(&row) {
            return;
        }
        match row {
            Stored::Schema { object, difference } => self.schema(&object, difference),
            Stored::Seal { row, hash, upto } => {
                self.seal(&row);
                self.check_mark(
                    row.number,
                    (Hash::of(row.text.as_bytes()) == hash).then_some(upto),
                );
            }
            Stored::Entry(entry) => {
                self.entry(&entry);
                self.note_change(&entry);
                self.check_sealed_entry(&entry);
            }
            Stored::Version(version) => self.version(version),
            Stored::ChainEnd { writer, seq, hash } => self.check_chain_end(writer, seq, hash),
            Stored::Key { key, run, fingerprint, is_authentic } => {
                self.check_mac("key", &key, is_authentic);
                self.rows.starts.key(run, fingerprint);
            }
            Stored::Slot { slot, is_authentic } => {
                let key = format!("{} {}", slot.schedule, slot.slot_ms);
                self.check_mac("slot", &key, is_authentic);
                self.rows.starts.slot(slot, key);
            }
            Stored::RememberedOutput { agent, place, is_authentic, .. } => {
                self.rows.places.remembered_outputs =
                    self.rows.places.remembered_outputs.max(place);
                self.check_mac("memo", &format!("{agent} {place}"), is_authentic);
            }
            Stored::Message { run, key, id, is_authentic, .. } => {
                self.rows.places.messages = self.rows.places.messages.max(id);
                self.rows.messages += 1;
                self.check_mac("letter", &format!("{run} {key}"), is_authentic);
            }
            Stored::Count { name, count } => _ = self.rows.counts.insert(name, count),
            Stored::ProvenanceEdge { source, consumer, count } => {
                self.rows.provenance_edges.entry(consumer).or_default().insert(source, count);
            }
            Stored::ForeignBlob(hash) => {
                self.wrong_row("blob", &hash, Trouble::Changed, "its body does not match its hash");
            }
            Stored::ForeignSnapshot(run) => {
                self.wrong_row("snapshot", &run, Trouble::Forged, FORGED);
            }
            Stored::Frame(frame) => self.check_place(frame),
            Stored::Positions { frames, entries, messages, remembered_outputs } => {
                self.check_positions(&Places { frames, entries, messages, remembered_outputs });
            }
            Stored::Run(run) => self.rows.runs.push(run),
            Stored::Damaged { table, key, detail } => {
                self.wrong_row(table, &key, Trouble::Damaged, &detail);
            }
        }
    }

    /// Called after the last row: reports what is missing.
    pub(super) fn end_rows(&mut self) {
        self.end_versions();
        // A missing entry leaves its position empty and is reported already.
        if let Some((place, next)) = self.rows.misplaced.filter(|_| !self.entries_broken) {
            let detail = format!("it is where entry {next} of all writers belongs");
            self.wrong_row("entry", &place, Trouble::Reordered, &detail);
        }
        for ((kind, name), changes) in std::mem::take(&mut self.rows.recorded) {
            let Some(last) = changes.last().filter(|_| !self.entries_broken) else { continue };
            let detail = format!("{} changed it, and no version of it is there", last.entry);
            self.wrong_row("registry", &format!("{kind}/{name}"), Trouble::Missing, &detail);
        }
        self.check_chain_ends();
        let epoch = self.rows.counts.remove(REGISTRY).unwrap_or(0);
        if u64::try_from(epoch) != Ok(self.rows.epoch) {
            let detail = format!("it is {epoch}, and the newest change is {}", self.rows.epoch);
            self.wrong_row("counter", &REGISTRY, Trouble::Changed, &detail);
        }
        let (there, numbered) = (self.rows.messages, self.rows.places.messages);
        // A store that records positions also numbers messages that it drops as
        // duplicates.
        if there != numbered && self.rows.ends.is_none() {
            let trouble = if there < numbered { Trouble::Missing } else { Trouble::Reordered };
            let detail = format!("there are {there}, and the last one is number {numbered}");
            self.wrong_row("letter", &"messages", trouble, &detail);
        }
        let ((seal, upto), places) = (self.rows.sealed, &self.rows.places);
        let is_behind = upto.frames > places.frames || upto.entries > places.entries;
        // A cut-off tail is reported already.
        if is_behind && !self.entries_broken {
            let detail = "the next seal would go on behind what there is";
            self.wrong_row("seal", &seal, Trouble::Changed, detail);
        }
    }

    pub(super) fn wrong_row(
        &mut self,
        table: &'static str,
        key: &dyn std::fmt::Display,
        trouble: Trouble,
        detail: &str,
    ) {
        self.report.add(Place::Row { table, key: key.to_string() }, trouble, detail);
    }

    fn schema(&mut self, object: &str, difference: SchemaDifference) {
        let (trouble, detail) = match difference {
            SchemaDifference::Added => {
                (Trouble::Inserted, "Sluice has no such object; it may change rows")
            }
            SchemaDifference::Changed => (Trouble::Changed, "it is not defined as Sluice made it"),
            SchemaDifference::Missing => (Trouble::Missing, "Sluice made it"),
        };
        self.wrong_row("schema", &object, trouble, detail);
    }

    fn check_mac(&mut self, table: &'static str, key: &str, is_authentic: bool) {
        if !is_authentic {
            self.wrong_row(table, &key, Trouble::Forged, FORGED);
        }
    }

    /// Checks that a seal's position does not go back behind the previous seal's.
    fn check_mark(&mut self, number: u64, upto: Option<SealMark>) {
        let Some(upto) = upto else {
            self.wrong_row("seal", &number, Trouble::Changed, "its text does not match its hash");
            return;
        };
        let before = self.rows.sealed.1;
        if upto.frames < before.frames || upto.entries < before.entries {
            let detail = "it goes on before where the seal before it ended";
            self.wrong_row("seal", &number, Trouble::Changed, detail);
        }
        self.rows.sealed = (number, upto);
    }

    /// Records a sealed head.
    pub(super) fn note_head(&mut self, of: super::LeafOwner, number: u64) {
        let newest = match of {
            super::LeafOwner::Run(run) => self.rows.run_heads.entry(run).or_default(),
            super::LeafOwner::Writer(writer) => self.rows.writer_heads.entry(writer).or_default(),
        };
        *newest = number.max(*newest);
    }

    /// Checks that an entry before the seals' position is covered by a seal.
    fn check_sealed_entry(&mut self, entry: &Recorded) {
        let next = self.rows.places.entries + 1;
        self.rows.places.entries = self.rows.places.entries.max(entry.place);
        if entry.place != next {
            self.rows.misplaced.get_or_insert((entry.place, next));
        }
        let (seal, upto) = self.rows.sealed;
        let head = self.rows.writer_heads.get(&entry.writer).copied().unwrap_or(0);
        let is_passed = entry.is_authentic && entry.place <= upto.entries;
        if is_passed && entry.seq > head && !self.seals_broken {
            let detail = format!("it says that entry {} of {} is sealed", entry.seq, entry.writer);
            self.wrong_row("seal", &seal, Trouble::Changed, &detail);
        }
    }

    /// Records the change of a registry row that an audit entry describes.
    fn note_change(&mut self, entry: &Recorded) {
        let text = serde_json::from_str::<Value>(&entry.text);
        let Some(text) = text.ok().filter(|_| entry.is_authentic) else { return };
        let word = |name: &str| text[name].as_str().unwrap_or_default().to_owned();
        let named = (word("resource_type"), word("resource_id"));
        let after = text["detail"].get(AFTER_DIGEST);
        if after.is_none() && text["type"] != format!("{}_changed", named.0) {
            return;
        }
        let after = after.map(|after| after.as_str().map(str::to_owned));
        let entry = Place::Entry(entry.writer, entry.seq);
        self.rows.recorded.entry(named).or_default().push(RecordedChange { entry, after });
    }

    fn version(&mut self, version: RowVersion) {
        let RowVersion { kind, name, epoch, body, is_authentic } = version;
        self.check_mac("registry", &format!("{kind}/{name}@{epoch}"), is_authentic);
        self.rows.epoch = self.rows.epoch.max(epoch);
        let digest = |body: &String| {
            let body: Option<Value> = serde_json::from_str(body).ok();
            body.map_or_else(|| "not JSON".to_owned(), |body| rows::digest(&body))
        };
        let version = StoredVersion { epoch, digest: body.as_ref().map(digest) };
        let named = (kind, name);
        match &mut self.rows.versions {
            Some((current, versions)) if *current == named => versions.push(version),
            _ => {
                self.end_versions();
                self.rows.versions = Some((named, vec![version]));
            }
        }
    }

    /// Checks each version of a row against the audit entries, after its last version.
    fn end_versions(&mut self) {
        self.end_entries();
        let Some((named, versions)) = self.rows.versions.take() else { return };
        // Entries that are wrong themselves prove nothing about rows.
        if self.entries_broken {
            return;
        }
        let changes = self.rows.recorded.remove(&named).unwrap_or_default();
        let row = format!("{}/{}", named.0, named.1);
        // Newest first, because the newest version is active.
        let mut expected = changes.iter().rev();
        for version in versions.iter().rev() {
            let key = format!("{row}@{}", version.epoch);
            let Some(change) = expected.next() else {
                let detail = "no audit entry says who wrote it";
                self.wrong_row("registry", &key, Trouble::Inserted, detail);
                return;
            };
            if change.after.as_ref().is_some_and(|after| *after != version.digest) {
                let detail = format!("{} says that the row is another one", change.entry);
                self.wrong_row("registry", &key, Trouble::Changed, &detail);
                return;
            }
        }
        if let Some(change) = expected.next() {
            let detail = format!("{} wrote a version that is not there", change.entry);
            self.wrong_row("registry", &row, Trouble::Missing, &detail);
        }
    }

    fn check_chain_end(&mut self, writer: NodeId, seq: u64, hash: Hash) {
        self.rows.ends.get_or_insert_default().insert(writer);
        let last = self.writers.get(&writer).map_or((0, START), super::chain::WriterChain::last);
        if last != (seq, hash) {
            let detail = format!("it ends at entry {seq}, and the entries end at {}", last.0);
            self.wrong_row("chain", &writer, Trouble::Changed, &detail);
        }
    }

    /// Checks that the frames of a run are complete, in the order of their events and
    /// without repetition.
    fn check_place(&mut self, frame: FrameAt) {
        let FrameAt { place, run, first, count } = frame;
        let due = self.rows.places.frames + 1;
        self.rows.places.frames = self.rows.places.frames.max(place);
        let is_all = !matches!(self.scope, VerifiedPart::Run(_));
        if place != due && is_all && !std::mem::replace(&mut self.rows.has_gap, true) {
            let detail = format!("it is where append {due} of all runs belongs");
            self.wrong_row("frame", &place, Trouble::Reordered, &detail);
        }
        let events = self.rows.frames.entry(run).or_default();
        let next = *events + 1;
        *events = (first + u64::from(count)).saturating_sub(1).max(*events);
        let last = *events;
        if first != next {
            let detail = format!("event {first} of {run} stands where event {next} belongs");
            self.wrong_row("frame", &place, Trouble::Reordered, &detail);
        }
        let (seal, upto) = self.rows.sealed;
        let head = self.rows.run_heads.get(&run).copied().unwrap_or(0);
        if place <= upto.frames && last > head && !self.is_hashless(run) && !self.seals_broken {
            let detail = format!("it says that event {last} of {run} is sealed");
            self.wrong_row("seal", &seal, Trouble::Changed, &detail);
        }
    }

    /// Whether no seal covers a run: its events have no hashes, or were never authentic.
    /// Both are reported when its journal is read.
    fn is_hashless(&self, run: RunId) -> bool {
        !self.rows.run_heads.contains_key(&run)
    }

    /// Checks that every writer has a stored end of chain, if the store records ends.
    fn check_chain_ends(&mut self) {
        let Some(ends) = self.rows.ends.take() else { return };
        let writers: Vec<NodeId> = self.writers.keys().copied().collect();
        for writer in writers.into_iter().filter(|writer| !ends.contains(writer)) {
            let detail = "the writer has entries, and nothing says where they end";
            self.wrong_row("chain", &writer, Trouble::Missing, detail);
        }
    }

    fn check_positions(&mut self, noted: &Places) {
        // Only a store that records positions records ends of chains, perhaps none.
        self.rows.ends.get_or_insert_default();
        let Places { frames, entries, messages, remembered_outputs } = &self.rows.places;
        let places = [
            ("frames", *frames, noted.frames),
            ("entries", *entries, noted.entries),
            // A duplicate message is numbered and dropped; remembered outputs of an
            // erased run are deleted, even the newest.
            ("letters", *messages, noted.messages.min(*messages)),
            ("memos", *remembered_outputs, noted.remembered_outputs.min(*remembered_outputs)),
        ];
        for (name, last, noted) in places {
            if last != noted {
                let detail = format!("it is {noted}, and the last one is {last}");
                self.wrong_row("position", &name, Trouble::Changed, &detail);
            }
        }
    }
}
