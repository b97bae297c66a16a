//! The ledger's side of the port.

use super::writer::{Outcome, Write};
use super::{PostgresStore, count, entry, erase, memo, registry, seal};
use sluice_core::port::ledger::{
    Change, Changed, Count, Counter, Entry, Erased, Erasure, Ledger, Recorded, Rows, SealRow,
    Sealed, Sealing, Unsealed,
};
use sluice_core::port::memo::Memo;
use sluice_core::port::store::{Answer, NodeId};
use std::sync::Arc;

impl Ledger for PostgresStore {
    fn counts(&self, counters: Vec<Counter>) -> Answer<'_, Vec<i64>> {
        self.hand(async move |desk| {
            desk.ask(async |session| {
                // Only a window asks what time it is.
                let is_windowed = counters.iter().any(|one| one.window_ms.is_some());
                let now_ms = if is_windowed { desk.now_ms(session).await? } else { 0 };
                count::counts(session, &counters, now_ms).await
            })
            .await
        })
    }

    fn counters(&self, after: String, before: String, limit: usize) -> Answer<'_, Vec<Count>> {
        self.ask(async move |session| count::between(session, &after, &before, limit).await)
    }

    fn registry(&self, at: Option<u64>) -> Answer<'_, Rows> {
        self.hand(async move |desk| {
            let (keys, known) = (&desk.shared.keys, &desk.registry);
            desk.ask(async |session| registry::rows(session, keys, at, known).await).await
        })
    }

    fn change(&self, change: Change) -> Answer<'_, Changed> {
        let changed = self.transact(async move |session, desk| {
            registry::change(session, &desk.shared.keys, &change).await
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
                Outcome::Recorded => Ok(()),
                Outcome::Appended(_) | Outcome::Posted(_) => unreachable!("entries were sent"),
            }
        })
    }

    fn entries(&self, after: u64, limit: usize) -> Answer<'_, Vec<Recorded>> {
        let shared = Arc::clone(&self.shared);
        self.ask(async move |session| entry::entries(session, &shared.keys, after, limit).await)
    }

    fn unsealed(&self, limit: usize) -> Answer<'_, Unsealed> {
        let shared = Arc::clone(&self.shared);
        self.ask(async move |session| seal::unsealed(session, &shared.keys, limit).await)
    }

    fn seal(&self, seal: Sealing) -> Answer<'_, Sealed> {
        self.write(async move |session, _| seal::seal(session, &seal).await)
    }

    fn seals(&self, from: u64, limit: usize) -> Answer<'_, Vec<SealRow>> {
        self.ask(async move |session| seal::seals(session, from, limit).await)
    }

    fn memos(&self, agents: Vec<String>) -> Answer<'_, Vec<Memo>> {
        let shared = Arc::clone(&self.shared);
        self.ask(async move |session| memo::memos(session, &shared.keys, &agents).await)
    }

    fn erase(&self, erasure: Erasure) -> Answer<'_, Erased> {
        let erased = self.transact(async move |session, desk| {
            erase::erase(session, &desk.shared.keys, &erasure).await
        });
        Box::pin(async move {
            self.shared.keys.for_writing()?;
            erased.await
        })
    }
}
