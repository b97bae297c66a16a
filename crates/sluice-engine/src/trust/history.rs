//! When the counters about the history of agents were last read.

use super::{GovernanceCache, lock};
use sluice_core::port::ledger::Counter;
use sluice_core::run::history::counters::counters;
use sluice_core::run::state::Run;
use sluice_govern::policy::history::HistoryFact;
use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;

/// A window is read again after this part of its length, as stores keep it in as many
/// slices.
const SLICES: u64 = 60;
/// Most agents in the table. A full table is cleared, so that counters are read again.
const AGENTS_MAX: usize = 10_000;

/// By agent: the epoch of the rules, and the time of the last read.
#[derive(Default)]
pub(super) struct HistoryReads {
    agents: Mutex<HashMap<String, (u64, u64)>>,
}

impl GovernanceCache {
    /// The counters about the history of the agents of a run that have to be read before
    /// the next decision. The caller reads them.
    pub(crate) fn stale_history(&self, run: &Run, now_ms: u64) -> Vec<Counter> {
        let rules = self.rules();
        let facts = || rules.policies.facts_of_agents();
        let Some(shortest_ms) = facts().map(HistoryFact::window_ms).min() else {
            return Vec::new();
        };
        let age_ms = shortest_ms / SLICES;
        let epoch = rules.fabric.epoch;
        let steps = u32::try_from(run.steps.len()).unwrap_or(u32::MAX);
        let agents: BTreeSet<&str> = (0..steps).filter_map(|step| run.agent_of(step)).collect();
        let mut known = lock(&self.history.agents);
        let is_fresh = |agent: &str| {
            let read = known.get(agent).filter(|(of, _)| *of == epoch);
            read.is_some_and(|(_, at_ms)| now_ms.saturating_sub(*at_ms) <= age_ms)
        };
        let stale: Vec<&str> = agents.into_iter().filter(|agent| !is_fresh(agent)).collect();
        if known.len() + stale.len() > AGENTS_MAX {
            known.clear();
        }
        known.extend(stale.iter().map(|agent| ((*agent).to_owned(), (epoch, now_ms))));
        stale.into_iter().flat_map(|agent| facts().flat_map(|fact| counters(fact, agent))).collect()
    }
}
