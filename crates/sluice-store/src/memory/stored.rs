//! Reads everything stored at one moment, for a verification. All of it is authentic,
//! since no other process can write to this memory.

use super::{MemoryState, MemoryStore, Record};
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::inspect::{Each, FrameAt, Inspect, RowVersion, Stored, StoredRun};
use sluice_core::port::ledger::SealRow;
use sluice_core::port::store::Answer;

impl Inspect for MemoryStore {
    fn inspect(&self, mut each: Each) -> Answer<'_, ()> {
        Box::pin(async move {
            self.read(|state, _| {
                state.evidence(&mut each);
                state.triggers(&mut each);
                state.messages(&mut each);
                state.figures(&mut each);
                state.places(&mut each);
                state.runs.iter().map(|(run, record)| row(*run, record)).for_each(each);
            });
            Ok(())
        })
    }
}

impl MemoryState {
    /// Seals, entries and registry rows.
    fn evidence(&self, each: &mut Each) {
        for seal in &self.seals {
            let (text, leaves) = (seal.text.clone(), seal.leaves.clone());
            let row = SealRow { number: seal.number, text, leaves };
            each(Stored::Seal { row, hash: seal.hash, upto: seal.upto });
        }
        self.entries.iter().cloned().map(Stored::Entry).for_each(&mut *each);
        let mut versions: Vec<RowVersion> = Vec::new();
        for ((kind, name), history) in &self.registry {
            let version = |(epoch, body): (&u64, &Option<serde_json::Value>)| RowVersion {
                kind: kind.as_str().to_owned(),
                name: name.clone(),
                epoch: *epoch,
                body: body.as_ref().map(ToString::to_string),
                is_authentic: true,
            };
            versions.extend(history.iter().map(version));
        }
        // Kinds are sorted by name, as in the other stores.
        versions.sort_by(|one, other| (&one.kind, &one.name).cmp(&(&other.kind, &other.name)));
        versions.into_iter().map(Stored::Version).for_each(each);
    }

    /// Idempotency keys and schedule slots.
    fn triggers(&self, each: &mut Each) {
        for (key, row) in &self.keys {
            let (key, run, fingerprint) = (key.clone(), row.run, row.fingerprint);
            each(Stored::Key { key, run, fingerprint, is_authentic: true });
        }
        for slot in self.slots.values() {
            each(Stored::Slot { slot: slot.clone(), is_authentic: true });
        }
    }

    /// Remembered outputs and messages.
    fn messages(&self, each: &mut Each) {
        for (agent, kept) in &self.remembered_outputs {
            for (place, remembered_output) in kept.iter().rev() {
                let (agent, place, is_authentic) = (agent.clone(), *place, true);
                let (run, at_ms) = (remembered_output.run, remembered_output.at_ms);
                each(Stored::RememberedOutput { agent, place, run, at_ms, is_authentic });
            }
        }
        for ((run, key), id) in &self.letter_keys {
            let (run, key, id, is_authentic) = (*run, key.clone(), *id, true);
            let is_read = !self.messages.contains_key(&id);
            each(Stored::Message { run, key, id, is_read, is_authentic });
        }
    }

    /// Counters and provenance edges.
    fn figures(&self, each: &mut Each) {
        for (name, count) in &self.counters {
            each(Stored::Count { name: name.clone(), count: *count });
        }
        for ((source, consumer), count) in &self.edges {
            each(Stored::ProvenanceEdge { source: *source, consumer: *consumer, count: *count });
        }
    }

    /// Blobs that do not match their hash, and the positions of frames.
    fn places(&self, each: &mut Each) {
        let foreign = self.blobs.iter().filter(|(hash, body)| Hash::of(body) != **hash);
        foreign.map(|(hash, _)| Stored::ForeignBlob(*hash)).for_each(&mut *each);
        for (place, ordered) in (1..).zip(&self.order) {
            let record = self.runs.get(&ordered.run).expect("what has a frame was created");
            let frame = &record.frames[ordered.frame];
            let (run, first, count) = (ordered.run, frame.first, frame.count);
            each(Stored::Frame(FrameAt { place, run, first, count }));
        }
    }
}

fn row(run: RunId, record: &Record) -> Stored {
    Stored::Run(StoredRun {
        run,
        workflow: record.workflow.clone(),
        workflow_version: record.workflow_version,
        initiator: record.initiator.clone(),
        status: record.status.as_str().to_owned(),
        started_at_ms: record.started_at_ms,
        ended_at_ms: record.ended_at_ms,
        parent: record.parent,
        fingerprint: record.fingerprint,
        is_owned: record.owner.is_some(),
        due_at_ms: record.due_at_ms,
        asks: record.asks,
        version: record.version,
    })
}
