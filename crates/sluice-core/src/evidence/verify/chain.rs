//! One writer's audit entries.

use super::rows::FORGED;
use super::{Head, Place, START, Trouble, Verifier};
use crate::evidence::{elision, entry, erasure};
use crate::id::RunId;
use crate::port::ledger::Recorded;
use crate::port::store::{Hash, NodeId};
use serde_json::Value;
use std::collections::VecDeque;

/// Where a writer's chain has come to.
#[derive(Debug)]
pub(super) struct WriterChain {
    /// The number and the hash of the last entry.
    last: (u64, Hash),
    /// Heads under seals that are not reached yet.
    pub(super) heads: VecDeque<Head>,
    /// An entry that was not where it should be.
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
    /// What is wrong with an entry, if the writer's chain was good so far.
    fn add(&mut self, row: &Recorded, text: Option<&Value>) -> Option<Wrong> {
        if self.gap == Some(row.seq) {
            (self.gap, self.broken) = (None, true);
            return Some((row.seq, Trouble::Reordered, "it comes after later ones".to_owned()));
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
            return Some((row.seq, Trouble::Reordered, "its number was there before".to_owned()));
        }
        let changed = |seq, why: &str| Some((seq, Trouble::Changed, why.to_owned()));
        let Some(text) = text.filter(|_| entry::hash(&row.text) == row.hash) else {
            return changed(next, "its text does not have its hash");
        };
        if text["writer"] != row.writer.to_string() || text["seq"] != row.seq {
            let (writer, seq) = (&text["writer"], &text["seq"]);
            let why = format!("the text in its place is that of entry {seq} of {writer}");
            return Some((next, Trouble::Reordered, why));
        }
        if text["prev"] != self.last.1.to_string() {
            // It says what the one before it was: that one is another now.
            return changed(next.saturating_sub(1).max(1), "the entry after it names another hash");
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

    /// Everything of the writer was seen.
    fn end(&self) -> Option<Wrong> {
        if self.broken {
            return None;
        }
        if let Some(gap) = self.gap {
            return Some((gap, Trouble::Missing, "later ones are there".to_owned()));
        }
        let (_, _, seal) = self.heads.front()?;
        Some((self.last.0 + 1, Trouble::Missing, format!("seal {seal} covers it")))
    }
}

impl Verifier {
    /// Every entry was shown.
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

    /// The store's next entry.
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
