//! The ledger's side of the port.

use super::writer::{Outcome, Write};
use super::{PostgresStore, count, entry, erase, memo, registry, seal};
use sluice_core::port::ledger::{
    Change, Changed, Count, Counter, Entry, Erased, Erasure, Ledger, Recorded, Rows, SealRow,
    Sealed, Sealing, Unsealed,
};
use sluice_core::port::memo::Memo;
use sluice_core::port::store::{Answer, NodeId};

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
            desk.ask(async |session| registry::rows(session, at, &desk.registry).await).await
        })
    }

    fn change(&self, change: Change) -> Answer<'_, Changed> {
        self.transact(async move |session, _| registry::change(session, &change).await)
    }

    fn record(&self, node: NodeId, entries: Vec<Entry>) -> Answer<'_, ()> {
        Box::pin(async move {
            match self.writer.write(Write::Record(node, entries)).await? {
                Outcome::Recorded => Ok(()),
                Outcome::Appended(_) | Outcome::Posted(_) => unreachable!("entries were sent"),
            }
        })
    }

    fn entries(&self, after: u64, limit: usize) -> Answer<'_, Vec<Recorded>> {
        self.ask(async move |session| entry::entries(session, after, limit).await)
    }

    fn unsealed(&self, limit: usize) -> Answer<'_, Unsealed> {
        self.ask(async move |session| seal::unsealed(session, limit).await)
    }

    fn seal(&self, seal: Sealing) -> Answer<'_, Sealed> {
        self.write(async move |session, _| seal::seal(session, &seal).await)
    }

    fn seals(&self, from: u64, limit: usize) -> Answer<'_, Vec<SealRow>> {
        self.ask(async move |session| seal::seals(session, from, limit).await)
    }

    fn memos(&self, agents: Vec<String>) -> Answer<'_, Vec<Memo>> {
        self.ask(async move |session| memo::memos(session, &agents).await)
    }

    fn erase(&self, erasure: Erasure) -> Answer<'_, Erased> {
        self.transact(async move |session, _| erase::erase(session, &erasure).await)
    }
}
