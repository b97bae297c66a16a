//! Runs that wait at a gate for an agent.
//!
//! Freed concurrency slots wake as many runs, in the order they came. A run that does not
//! get a slot queues again after its turn. All waiting runs also poll, so that a lost
//! wake-up, or one on another node, only delays them.

use super::lock;
use sluice_core::id::RunId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

/// Waiting runs, by agent.
#[derive(Default)]
pub(super) struct Waiters {
    by_agent: Mutex<BTreeMap<String, VecDeque<RunId>>>,
}

impl Waiters {
    /// Queues a run for an agent.
    pub(super) fn add(&self, agent: &str, run: RunId) {
        let mut lines = lock(&self.by_agent);
        let line = match lines.get_mut(agent) {
            Some(line) => line,
            None => lines.entry(agent.to_owned()).or_default(),
        };
        if !line.contains(&run) {
            line.push_back(run);
        }
    }

    /// Removes the runs that have waited longest for an agent.
    pub(super) fn take(&self, agent: &str, many: usize) -> Vec<RunId> {
        let mut lines = lock(&self.by_agent);
        let Some(line) = lines.get_mut(agent) else { return Vec::new() };
        let taken = line.drain(..many.min(line.len())).collect();
        if line.is_empty() {
            lines.remove(agent);
        }
        taken
    }

    /// Removes all runs.
    pub(super) fn take_all(&self) -> Vec<RunId> {
        let mut runs: Vec<RunId> =
            std::mem::take(&mut *lock(&self.by_agent)).into_values().flatten().collect();
        runs.sort_unstable();
        runs.dedup();
        runs
    }

    /// Agents with waiting runs.
    pub(super) fn agents(&self) -> Vec<String> {
        lock(&self.by_agent).keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_woken_in_order_and_queued_once() {
        let waiters = Waiters::default();
        for run in [3, 1, 3, 2] {
            waiters.add("a", RunId(run));
        }
        waiters.add("b", RunId(1));
        assert_eq!(waiters.take("a", 2), [RunId(3), RunId(1)]);
        assert_eq!(waiters.agents(), ["a", "b"]);
        assert_eq!(waiters.take_all(), [RunId(1), RunId(2)]);
        assert_eq!(waiters.take("a", 9), []);
    }
}
