//! The `Ledger` port: counters, registry, entries, seals, remembered outputs, erasure.

use super::reader::ReadConnection;
use super::{SqliteStore, count, entry, erase, registry, remembered_output, seal};
use sluice_core::port::ledger::{
    Change, Changed, Count, Counter, Entry, Erased, Erasure, Ledger, Recorded, Rows, SealRow,
    Sealed, Sealing, Unsealed,
};
use sluice_core::port::remembered_output::RememberedOutput;
use sluice_core::port::store::{Answer, NodeId};

impl Ledger for SqliteStore {
    fn counts(&self, counters: Vec<Counter>) -> Answer<'_, Vec<i64>> {
        let counts = move |reader: &ReadConnection| {
            let now_ms = reader.shared.clock.now_ms();
            count::counts(&reader.connection, &counters, now_ms)
        };
        Box::pin(self.readers.read(counts))
    }

    fn counters(&self, after: String, before: String, limit: usize) -> Answer<'_, Vec<Count>> {
        let counters = move |reader: &ReadConnection| {
            count::between(&reader.connection, &after, &before, limit)
        };
        Box::pin(self.readers.read(counters))
    }

    fn registry(&self, at: Option<u64>) -> Answer<'_, Rows> {
        Box::pin(self.readers.read(move |reader| registry::rows(reader, at)))
    }

    fn change(&self, change: Change) -> Answer<'_, Changed> {
        let bytes = registry::bytes(&change);
        Box::pin(async move {
            self.shared.keys.for_writing()?;
            self.writer.write(bytes, move |work| registry::change(work, &change)).await
        })
    }

    fn record(&self, node: NodeId, entries: Vec<Entry>) -> Answer<'_, ()> {
        let bytes = crate::entries_bytes(&entries);
        Box::pin(async move {
            self.shared.keys.for_writing()?;
            self.writer.write(bytes, move |work| entry::record(work, node, &entries)).await
        })
    }

    fn entries(&self, after: u64, limit: usize) -> Answer<'_, Vec<Recorded>> {
        Box::pin(self.readers.read(move |reader| entry::entries(reader, after, limit)))
    }

    fn unsealed(&self, limit: usize) -> Answer<'_, Unsealed> {
        let unsealed = move |reader: &ReadConnection| seal::unsealed(reader, limit);
        Box::pin(self.readers.read(unsealed))
    }

    fn seal(&self, seal: Sealing) -> Answer<'_, Sealed> {
        let bytes = seal.text.len() + seal.leaves.len();
        Box::pin(self.writer.write(bytes, move |work| seal::seal(work, &seal)))
    }

    fn seals(&self, from: u64, limit: usize) -> Answer<'_, Vec<SealRow>> {
        Box::pin(self.readers.read(move |reader| seal::seals(&reader.connection, from, limit)))
    }

    fn remembered_outputs(&self, agents: Vec<String>) -> Answer<'_, Vec<RememberedOutput>> {
        Box::pin(self.readers.read(move |reader| remembered_output::load(reader, &agents)))
    }

    fn erase(&self, erasure: Erasure) -> Answer<'_, Erased> {
        let bytes = erase::bytes(&erasure);
        Box::pin(async move {
            self.shared.keys.for_writing()?;
            self.writer.write(bytes, move |work| erase::erase(work, &erasure)).await
        })
    }
}
