//! Verifies the audit entries of one writer.

use super::rows::FORGED;
use super::{Head, Place, START, Trouble, Verifier};
use crate::evidence::{elision, entry, erasure};
use crate::hash::Hash;
use crate::id::RunId;
use crate::port::ledger::Recorded;
use crate::port::store::NodeId;
use serde_json::Value;
use std::collections::VecDeque;

/// The state of a writer's chain.
#[derive(Debug)]
pub(super) struct WriterChain {
    /// The number and the hash of the last entry.
    last: (u64, Hash),
    /// Sealed heads that are not reached yet.
    pub(super) heads: VecDeque<Head>,
    /// The number of a missing entry.
    gap: Option<u64>,
    broken: bool,
}

impl Default for WriterChain {
    fn default() -> WriterChain {
        WriterChain { last: (0, START), heads: VecDeque::new(), gap: None, broken: false }
    }
}

type Wrong = (u64, Trouble, String);

impl WriterChain {
    /// Checks the next entry; returns the problem if the chain was intact so far.
    fn add(&mut self, row: &Recorded, text: Option<&Value>) -> Option<Wrong> {
        if self.gap == Some(row.seq) {
            (self.gap, self.broken) = (None, true);
            return Some((row.seq, Trouble::Reordered, "it comes after later entries".to_owned()));
        }
        if self.broken || self.gap.is_some() {
            return None;
        }
        let next = self.last.0 + 1;
        if row.seq > next {
            self.gap = Some(next);
            return None;
        }
        let wrong = self.check(row, text, next);
        self.broken = wrong.is_some();
        self.last = (row.seq, row.hash);
        wrong
    }

    fn check(&mut self, row: &Recorded, text: Option<&Value>, next: u64) -> Option<Wrong> {
        if row.seq < next {
            return Some((row.seq, Trouble::Reordered, "its number occurs twice".to_owned()));
        }
        let changed = |seq, why: &str| Some((seq, Trouble::Changed, why.to_owned()));
        let Some(text) = text.filter(|_| entry::hash(&row.text) == row.hash) else {
            return changed(next, "its text does not match its hash");
        };
        if text["writer"] != row.writer.to_string() || text["seq"] != row.seq {
            let (writer, seq) = (&text["writer"], &text["seq"]);
            let why = format!("the text in its position is that of entry {seq} of {writer}");
            return Some((next, Trouble::Reordered, why));
        }
        if text["prev"] != self.last.1.to_string() {
            // The entry contains the hash of the entry before, so it is that one
            // which changed.
            return changed(next.saturating_sub(1).max(1), "the next entry contains another hash");
        }
        while let Some((_, hash, seal)) = self.heads.pop_front_if(|head| head.0 <= row.seq) {
            if hash != row.hash {
                return changed(next, &format!("seal {seal} covers another hash"));
            }
        }
        (!row.is_authentic).then(|| (next, Trouble::Forged, FORGED.to_owned()))
    }

    /// The number and the hash of the last entry.
    pub(super) fn last(&self) -> (u64, Hash) {
        self.last
    }

    /// Called after the last entry of the writer.
    fn end(&self) -> Option<Wrong> {
        if self.broken {
            return None;
        }
        if let Some(gap) = self.gap {
            return Some((gap, Trouble::Missing, "later entries exist".to_owned()));
        }
        let (_, _, seal) = self.heads.front()?;
        Some((self.last.0 + 1, Trouble::Missing, format!("seal {seal} covers it")))
    }
}

impl Verifier {
    /// Called after the last entry.
    pub(super) fn end_entries(&mut self) {
        if std::mem::replace(&mut self.entries_ended, true) {
            return;
        }
        let ends = self.writers.iter().filter_map(|(writer, chain)| Some((*writer, chain.end()?)));
        let ends: Vec<(NodeId, Wrong)> = ends.collect();
        for (writer, (seq, trouble, detail)) in ends {
            self.report.add(Place::Entry(writer, seq), trouble, detail);
            self.entries_broken = true;
        }
    }

    /// Verifies the store's next entry.
    pub fn entry(&mut self, row: &Recorded) {
        self.report.entries += 1;
        let text: Option<Value> = serde_json::from_str(&row.text).ok();
        let writer: NodeId = row.writer;
        if let Some((seq, trouble, detail)) =
            self.writers.entry(writer).or_default().add(row, text.as_ref())
        {
            self.report.add(Place::Entry(writer, seq), trouble, detail);
            self.entries_broken = true;
        }
        let Some(text) = text else { return };
        for (run, event, left) in erasure::read(&text) {
            self.erased.insert((run, event), left);
        }
        if let Some((run, elision)) = elision::read(&text) {
            self.elided.entry(run).or_default().push(elision);
        }
        self.refer(&text["event"], Place::Entry(writer, row.seq));
    }

    fn refer(&mut self, event: &Value, place: Place) {
        let run = event["run"].as_str().and_then(RunId::parse);
        let hash = event["hash"].as_str().and_then(Hash::parse);
        let (Some(run), Some(number), Some(hash)) = (run, event["event"].as_u64(), hash) else {
            return;
        };
        if self.scope.has_run(run) {
            self.referred.entry(run).or_default().push((number, hash, place));
        }
    }
}
