//! The `Ledger` port: counters, registry, entries, seals, remembered outputs, erasure.

use super::writer::{Write, WriteOutcome};
use super::{PostgresStore, count, entry, erase, registry, remembered_output, seal};
use sluice_core::port::ledger::{
    Change, Changed, Count, Counter, Entry, Erased, Erasure, Ledger, Recorded, Rows, SealRow,
    Sealed, Sealing, Unsealed,
};
use sluice_core::port::remembered_output::RememberedOutput;
use sluice_core::port::store::{Answer, NodeId};
use std::sync::Arc;

impl Ledger for PostgresStore {
    fn counts(&self, counters: Vec<Counter>) -> Answer<'_, Vec<i64>> {
        self.run_task(async move |pool| {
            pool.read(async |session| {
                // Only a counter over a window needs the time.
                let is_windowed = counters.iter().any(|one| one.window_ms.is_some());
                let now_ms = if is_windowed { pool.now_ms(session).await? } else { 0 };
                count::counts(session, &counters, now_ms).await
            })
            .await
        })
    }

    fn counters(&self, after: String, before: String, limit: usize) -> Answer<'_, Vec<Count>> {
        self.read(async move |session| count::between(session, &after, &before, limit).await)
    }

    fn registry(&self, at: Option<u64>) -> Answer<'_, Rows> {
        self.run_task(async move |pool| {
            let (keys, known) = (&pool.shared.keys, &pool.registry);
            pool.read(async |session| registry::rows(session, keys, at, known).await).await
        })
    }

    fn change(&self, change: Change) -> Answer<'_, Changed> {
        let changed = self.transact(async move |session, pool| {
            registry::change(session, &pool.shared.keys, &change).await
        });
        Box::pin(async move {
            self.shared.keys.for_writing()?;
            changed.await
        })
    }

    fn record(&self, node: NodeId, entries: Vec<Entry>) -> Answer<'_, ()> {
        Box::pin(async move {
            self.shared.keys.for_writing()?;
            match self.writer.write(Write::Record(node, entries)).await? {
                WriteOutcome::Recorded => Ok(()),
                WriteOutcome::Appended(_) | WriteOutcome::Posted(_) => {
                    unreachable!("entries were sent")
                }
            }
        })
    }

    fn entries(&self, after: u64, limit: usize) -> Answer<'_, Vec<Recorded>> {
        let shared = Arc::clone(&self.shared);
        self.read(async move |session| entry::entries(session, &shared.keys, after, limit).await)
    }

    fn unsealed(&self, limit: usize) -> Answer<'_, Unsealed> {
        let shared = Arc::clone(&self.shared);
        self.read(async move |session| seal::unsealed(session, &shared.keys, limit).await)
    }

    fn seal(&self, seal: Sealing) -> Answer<'_, Sealed> {
        self.write(async move |session, _| seal::seal(session, &seal).await)
    }

    fn seals(&self, from: u64, limit: usize) -> Answer<'_, Vec<SealRow>> {
        self.read(async move |session| seal::seals(session, from, limit).await)
    }

    fn remembered_outputs(&self, agents: Vec<String>) -> Answer<'_, Vec<RememberedOutput>> {
        let shared = Arc::clone(&self.shared);
        self.read(async move |session| {
            remembered_output::load(session, &shared.keys, &agents).await
        })
    }

    fn erase(&self, erasure: Erasure) -> Answer<'_, Erased> {
        let erased = self.transact(async move |session, pool| {
            erase::erase(session, &pool.shared.keys, &erasure).await
        });
        Box::pin(async move {
            self.shared.keys.for_writing()?;
            erased.await
        })
    }
}
