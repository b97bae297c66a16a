//! Entries, seals, and what no seal covers yet.

use super::MemoryState;
use crate::limits::{ENTRIES_MAX, SEAL_ROWS_MAX, SEALS_MAX};
use sluice_core::evidence::entry::{START, link};
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::ledger::{
    Entry, Erased, Erasure, Recorded, SealMark, SealRow, Sealed, Sealing, Unsealed,
};
use sluice_core::port::store::{Frame, NodeId};
use std::collections::BTreeMap;

impl MemoryState {
    /// Appends entries to a writer's chain.
    pub(super) fn record(&mut self, writer: NodeId, entries: &[Entry]) {
        for entry in entries {
            let (last, prev) = self.chains.get(&writer).copied().unwrap_or((0, START));
            let seq = last + 1;
            let (text, hash) = link(entry, writer, seq, prev);
            self.chains.insert(writer, (seq, hash));
            let place = self.entries.len() as u64 + 1;
            let is_authentic = true;
            self.entries.push(Recorded { place, writer, seq, text, hash, is_authentic });
        }
    }

    pub(super) fn entries(&self, after: u64, limit: usize) -> Vec<Recorded> {
        tail(&self.entries, after).take(limit.min(ENTRIES_MAX)).cloned().collect()
    }

    pub(super) fn unsealed(&self, limit: usize) -> Unsealed {
        let last = self.seals.last();
        let mut upto = last.map_or_else(SealMark::default, |seal| seal.upto);
        let heads = self.heads(&mut upto, limit);
        let mut writers: BTreeMap<NodeId, (u64, Hash)> = BTreeMap::new();
        for entry in tail(&self.entries, upto.entries).take(SEAL_ROWS_MAX) {
            writers.insert(entry.writer, (entry.seq, entry.hash));
            upto.entries = entry.place;
        }
        let writers = writers.into_iter().map(|(writer, (seq, hash))| (writer, seq, hash));
        Unsealed {
            last: last.map(|seal| (seal.number, seal.hash)),
            heads,
            writers: writers.collect(),
            upto,
        }
    }

    fn heads(&self, upto: &mut SealMark, limit: usize) -> Vec<(RunId, u64, Hash)> {
        let mut heads: BTreeMap<RunId, (u64, Hash)> = BTreeMap::new();
        for frame in tail(&self.order, upto.frames).take(SEAL_ROWS_MAX) {
            if let Some(hash) = frame.hash {
                if heads.len() >= limit && !heads.contains_key(&frame.run) {
                    break;
                }
                heads.insert(frame.run, (frame.version, hash));
            }
            upto.frames += 1;
        }
        heads.into_iter().map(|(run, (version, hash))| (run, version, hash)).collect()
    }

    pub(super) fn seal(&mut self, seal: Sealing) -> Sealed {
        if seal.number != self.seals.len() as u64 + 1 {
            return Sealed::Stale;
        }
        self.seals.push(seal);
        Sealed::Done
    }

    pub(super) fn seals(&self, from: u64, limit: usize) -> Vec<SealRow> {
        let seals = tail(&self.seals, from.saturating_sub(1)).take(limit.min(SEALS_MAX));
        let row = |seal: &Sealing| SealRow {
            number: seal.number,
            text: seal.text.clone(),
            leaves: seal.leaves.clone(),
        };
        seals.map(row).collect()
    }

    /// Finds every frame before it changes one.
    pub(super) fn erase(&mut self, erasure: Erasure) -> Erased {
        let Some(record) = self.runs.get_mut(&erasure.run) else {
            return Erased::NoFrame;
        };
        let mut places = Vec::with_capacity(erasure.bodies.len());
        for (first, _) in &erasure.bodies {
            match record.frames.iter().position(|frame| frame.first == *first) {
                Some(place) => places.push(place),
                None => return Erased::NoFrame,
            }
        }
        let mut besides = Vec::with_capacity(erasure.besides.len());
        for (first, _) in &erasure.besides {
            let has = |frame: &Frame| frame.first == *first && !frame.beside.is_empty();
            match record.frames.iter().position(has) {
                Some(place) => besides.push(place),
                None => return Erased::NoFrame,
            }
        }
        if crate::erases_payloads(&erasure) {
            record.snapshot = None;
            for kept in self.remembered_outputs.values_mut() {
                kept.retain(|(_, remembered_output)| remembered_output.run != erasure.run);
            }
        }
        for (place, (_, body)) in places.into_iter().zip(erasure.bodies) {
            record.frames[place].body = body;
        }
        for (place, (_, beside)) in besides.into_iter().zip(erasure.besides) {
            record.frames[place].beside = beside;
        }
        for hash in &erasure.blobs {
            self.blobs.remove(hash);
        }
        self.record(erasure.node, &erasure.entries);
        Erased::Done
    }
}

/// The items after a position; positions start at 1.
pub(super) fn tail<T>(all: &[T], after: u64) -> std::slice::Iter<'_, T> {
    let after = usize::try_from(after).unwrap_or(usize::MAX);
    all.get(after..).unwrap_or_default().iter()
}
