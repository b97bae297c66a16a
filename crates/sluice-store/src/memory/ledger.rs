//! The `Ledger` port: counters, registry, entries, seals, remembered outputs, erasure.

use super::{MemoryState, MemoryStore};
use crate::REGISTRY;
use sluice_core::limits::REMEMBERED_OUTPUTS_MAX;
use sluice_core::port::ledger::{
    Change, Changed, Count, Counter, Entry, Erased, Erasure, Ledger, Recorded, Rows, SealRow,
    Sealed, Sealing, Unsealed,
};
use sluice_core::port::remembered_output::RememberedOutput;
use sluice_core::port::store::{Answer, NodeId};
use sluice_govern::registry::Row;

impl Ledger for MemoryStore {
    fn counts(&self, counters: Vec<Counter>) -> Answer<'_, Vec<i64>> {
        Box::pin(async move { Ok(self.read(|state, now_ms| state.counts(&counters, now_ms))) })
    }

    fn counters(&self, after: String, before: String, limit: usize) -> Answer<'_, Vec<Count>> {
        Box::pin(async move { Ok(self.read(|state, _| state.between(&after, &before, limit))) })
    }

    fn registry(&self, at: Option<u64>) -> Answer<'_, Rows> {
        Box::pin(async move { Ok(self.read(|state, _| state.rows(at))) })
    }

    fn change(&self, change: Change) -> Answer<'_, Changed> {
        Box::pin(async move { Ok(self.write(|state, _| state.change(change))) })
    }

    fn record(&self, node: NodeId, entries: Vec<Entry>) -> Answer<'_, ()> {
        Box::pin(async move {
            self.write(|state, _| state.record(node, &entries));
            Ok(())
        })
    }

    fn entries(&self, after: u64, limit: usize) -> Answer<'_, Vec<Recorded>> {
        Box::pin(async move { Ok(self.read(|state, _| state.entries(after, limit))) })
    }

    fn unsealed(&self, limit: usize) -> Answer<'_, Unsealed> {
        Box::pin(async move { Ok(self.read(|state, _| state.unsealed(limit))) })
    }

    fn seal(&self, seal: Sealing) -> Answer<'_, Sealed> {
        Box::pin(async move { Ok(self.write(|state, _| state.seal(seal))) })
    }

    fn seals(&self, from: u64, limit: usize) -> Answer<'_, Vec<SealRow>> {
        Box::pin(async move { Ok(self.read(|state, _| state.seals(from, limit))) })
    }

    fn remembered_outputs(&self, agents: Vec<String>) -> Answer<'_, Vec<RememberedOutput>> {
        Box::pin(async move { Ok(self.read(|state, _| state.remembered_outputs(&agents))) })
    }

    fn erase(&self, erasure: Erasure) -> Answer<'_, Erased> {
        Box::pin(async move { Ok(self.write(|state, _| state.erase(erasure))) })
    }
}

impl MemoryState {
    /// Stores a remembered output and deletes the agent's oldest ones beyond the limit.
    pub(super) fn remember_output(&mut self, remembered_output: RememberedOutput) {
        self.remembered_outputs_kept += 1;
        let kept = self.remembered_outputs.entry(remembered_output.agent.clone()).or_default();
        kept.push_front((self.remembered_outputs_kept, remembered_output));
        kept.truncate(REMEMBERED_OUTPUTS_MAX);
    }

    fn remembered_outputs(&self, agents: &[String]) -> Vec<RememberedOutput> {
        let kept = agents.iter().filter_map(|agent| self.remembered_outputs.get(agent));
        kept.flatten().map(|(_, remembered_output)| remembered_output.clone()).collect()
    }

    fn epoch(&self) -> u64 {
        let count = self.counters.get(REGISTRY).copied().unwrap_or(0);
        u64::try_from(count).unwrap_or(0)
    }

    /// Puts rows, then removes rows: the last change to a row wins.
    fn change(&mut self, change: Change) -> Changed {
        let epoch = self.epoch();
        if change.expect.is_some_and(|expected| expected != epoch) {
            return Changed::Stale { epoch };
        }
        let epoch = epoch + 1;
        let put = change.put.into_iter().map(|row| ((row.kind, row.name), Some(row.body)));
        let removed = change.remove.into_iter().map(|key| (key, None));
        for (key, body) in put.chain(removed) {
            self.registry.entry(key).or_default().insert(epoch, body);
        }
        let count = i64::try_from(epoch).expect("changes are counted one by one");
        self.counters.insert(REGISTRY.to_owned(), count);
        self.record(change.node, &change.entries);
        Changed::Done { epoch }
    }

    fn rows(&self, at: Option<u64>) -> Rows {
        let epoch = at.map_or(self.epoch(), |at| at.min(self.epoch()));
        let mut rows = Vec::new();
        for ((kind, name), history) in &self.registry {
            let newest = history.range(..=epoch).next_back();
            if let Some(body) = newest.and_then(|(_, body)| body.clone()) {
                rows.push(Row { kind: *kind, name: name.clone(), body });
            }
        }
        Rows { epoch, rows, ..Rows::default() }
    }
}
