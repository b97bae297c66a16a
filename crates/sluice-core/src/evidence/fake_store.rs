//! A fake store for tests: runs with their frames, writers with their entries, and seals over
//! both.

use super::elision::{self, Left};
use super::entry::{self, START};
use super::key::{PublicKey, Signer};
use super::verify::{Report, Verifier, needs};
use super::{erasure, seal};
use crate::hash::Hash;
use crate::id::{Entropy, RunId};
use crate::journal::chain::Link;
use crate::journal::wire;
use crate::port::ledger::{Entry, Recorded, SealMark, SealRow, Unsealed};
use crate::port::store::{Examined, Frame, NodeId};
use crate::run::projection::script::Script;
use crate::run::projection::script::documents::{ASKS, CHAIN};
use serde_json::json;
use std::collections::BTreeMap;

/// The contents of the store.
#[derive(Clone)]
pub(super) struct FakeStore {
    pub(super) runs: BTreeMap<RunId, Vec<Frame>>,
    pub(super) blobs: BTreeMap<Hash, Vec<u8>>,
    pub(super) entries: Vec<Recorded>,
    pub(super) seals: Vec<SealRow>,
}

struct Counter(u64);

impl Entropy for Counter {
    fn bits(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

pub(super) fn signer() -> Signer {
    Signer::new(&[7; 32])
}

pub(super) const RUN: RunId = RunId(0x10);
pub(super) const WRITER: NodeId = NodeId(0xa);

impl FakeStore {
    /// Two runs and two writers, with a seal in the middle and one at the end.
    pub(super) fn new() -> FakeStore {
        let mut store = FakeStore {
            runs: BTreeMap::new(),
            blobs: BTreeMap::new(),
            entries: Vec::new(),
            seals: Vec::new(),
        };
        let script = Script::lobsterx(CHAIN).streams("a", "one").gives("a", json!({"n": 7}));
        store.append(RUN, &script, 0);
        store.record(WRITER, "agent_changed");
        store.record(NodeId(0xb), "agent_changed");
        store.seal();
        let already = script.journal.len();
        let script = script.says("b", &"x".repeat(70_000)).says("c", "y");
        store.append(RUN, &script, already);
        store.append(RunId(0x11), &Script::lobsterx(ASKS), 0);
        for what in ["token_refused", "agent_changed", "budget_changed"] {
            store.record(WRITER, what);
        }
        store.seal();
        store
    }

    /// Appends the events of a script after the first `from`, one frame for each time.
    fn append(&mut self, run: RunId, script: &Script, from: usize) {
        let frames = self.runs.entry(run).or_default();
        let tip = frames.last().and_then(|frame| crate::journal::chain::tip(&frame.chain));
        let mut link = Link { run, next: from as u64 + 1, tip: tip.unwrap_or(START) };
        for events in script.journal[from..].chunk_by(|one, other| one.1 == other.1) {
            let at_ms = events[0].1;
            let first = link.next;
            let events: Vec<_> = events.iter().map(|(event, _)| event.clone()).collect();
            let plan = &script.run.definition.plan;
            let encoded = wire::encode(&events, at_ms, plan, &mut link, &mut Counter(first));
            let blobs = encoded.blobs.iter().map(|blob| (blob.hash, blob.body.clone()));
            self.blobs.extend(blobs);
            let wire::Encoded { body, beside, chain, .. } = encoded;
            let count = u32::try_from(events.len()).unwrap();
            frames.push(Frame { first, count, body, beside, chain });
        }
    }

    pub(super) fn record(&mut self, writer: NodeId, what: &str) {
        self.write(
            writer,
            &Entry {
                at_ms: 5,
                category: "configuration",
                what: what.to_owned(),
                actor: "ada".to_owned(),
                resource_type: "agent".to_owned(),
                resource_id: "scribe".to_owned(),
                event: None,
                detail: json!({"n": self.entries.len()}),
            },
        );
    }

    pub(super) fn write(&mut self, writer: NodeId, entry: &Entry) {
        let last = self.entries.iter().rev().find(|row| row.writer == writer);
        let (seq, prev) = last.map_or((0, START), |row| (row.seq, row.hash));
        let (text, hash) = entry::link(entry, writer, seq + 1, prev);
        let place = self.entries.len() as u64 + 1;
        let is_authentic = true;
        self.entries.push(Recorded { place, writer, seq: seq + 1, text, hash, is_authentic });
    }

    /// Seals every head.
    pub(super) fn seal(&mut self) {
        let head = |(run, frames): (&RunId, &Vec<Frame>)| {
            let last = frames.last().unwrap();
            let version = last.first + u64::from(last.count) - 1;
            (*run, version, crate::journal::chain::tip(&last.chain).unwrap())
        };
        let writers: BTreeMap<NodeId, (u64, Hash)> =
            self.entries.iter().map(|row| (row.writer, (row.seq, row.hash))).collect();
        let last = self.seals.last().map(|row| (row.number, Hash::of(row.text.as_bytes())));
        let sealing = seal::next(
            &Unsealed {
                last,
                heads: self.runs.iter().map(head).collect(),
                writers: writers.into_iter().map(|(one, (seq, hash))| (one, seq, hash)).collect(),
                upto: SealMark::default(),
            },
            1000 + self.seals.len() as u64,
            &signer(),
        );
        let sealing = sealing.unwrap();
        let (number, text, leaves) = (sealing.number, sealing.text, sealing.leaves);
        self.seals.push(SealRow { number, text, leaves });
    }

    /// Erases payloads of a run; with an audit entry if `writer` is set.
    pub(super) fn erase(
        &mut self,
        run: RunId,
        which: impl Fn(u64) -> bool,
        writer: Option<NodeId>,
    ) {
        let mut gone = Vec::new();
        for frame in self.runs.get_mut(&run).unwrap() {
            let named = |place: usize| which(frame.first + place as u64);
            let erased = wire::erase(frame, named, &self.blobs).unwrap();
            gone.extend(
                erased.gone.iter().map(|(place, hash)| (frame.first + *place as u64, *hash)),
            );
            for blob in erased.blobs {
                self.blobs.remove(&blob);
            }
            frame.body = erased.body;
            frame.beside = erased.beside;
        }
        let Some(writer) = writer else { return };
        for entry in erasure::entries(run, 9, "ada", "asked to", &gone) {
            self.write(writer, &entry);
        }
    }

    /// Elides stream deltas of a run; with an audit entry if `writer` is set.
    pub(super) fn elide(&mut self, run: RunId, writer: Option<NodeId>) {
        let mut left = Left::default();
        for frame in self.runs.get_mut(&run).unwrap() {
            let Some(elided) = wire::elide(frame).unwrap() else { continue };
            elided.gone.iter().for_each(|(id, stand_in)| left.add(*id, stand_in));
            frame.beside = elided.beside;
        }
        let elision = left.end().expect("something was elided");
        if let Some(writer) = writer {
            self.write(writer, &elision::entry(run, 9, "ada", "old", &elision));
        }
    }

    pub(super) fn verify(&self) -> Report {
        self.verify_with(Verifier::new([signer().public()]))
    }

    pub(super) fn verify_with(&self, mut verifier: Verifier) -> Report {
        for row in &self.seals {
            verifier.seal(row);
        }
        for row in &self.entries {
            verifier.entry(row);
        }
        for (run, frames) in &self.runs {
            for frame in frames {
                let needs = needs(frame).unwrap_or_default();
                let found = needs
                    .into_iter()
                    .filter_map(|hash| Some((hash, self.blobs.get(&hash)?.clone())));
                let examined = Examined { frame: frame.clone(), is_authentic: true };
                verifier.frame(*run, &examined, &found.collect());
            }
        }
        verifier.finish()
    }

    /// The findings, one per line.
    pub(super) fn findings(&self) -> String {
        lines(&self.verify())
    }
}

pub(super) fn lines(report: &Report) -> String {
    report.findings.iter().map(|finding| format!("{finding}\n")).collect()
}

pub(super) fn stranger() -> PublicKey {
    Signer::new(&[8; 32]).public()
}
