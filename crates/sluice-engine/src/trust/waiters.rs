//! Runs that wait at a gate, and who wakes them.
//!
//! A slot that comes free wakes as many runs as there are slots, in the order
//! they came. One that does not take its slot stands in line again after its
//! turn; and all of them look by themselves now and then, so that a wake that
//! is lost, or happens in another process, delays and never strands.

use super::held;
use sluice_core::run::id::RunId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

/// Runs by the agent they wait for.
#[derive(Default)]
pub(super) struct Waiters {
    by_agent: Mutex<BTreeMap<String, VecDeque<RunId>>>,
}

impl Waiters {
    /// A run waits for an agent.
    pub(super) fn add(&self, agent: &str, run: RunId) {
        let mut lines = held(&self.by_agent);
        let line = match lines.get_mut(agent) {
            Some(line) => line,
            None => lines.entry(agent.to_owned()).or_default(),
        };
        if !line.contains(&run) {
            line.push_back(run);
        }
    }

    /// The runs that have waited longest for an agent, out of line.
    pub(super) fn take(&self, agent: &str, many: usize) -> Vec<RunId> {
        let mut lines = held(&self.by_agent);
        let Some(line) = lines.get_mut(agent) else { return Vec::new() };
        let taken = line.drain(..many.min(line.len())).collect();
        if line.is_empty() {
            lines.remove(agent);
        }
        taken
    }

    /// All of them, out of line.
    pub(super) fn take_all(&self) -> Vec<RunId> {
        let mut runs: Vec<RunId> =
            std::mem::take(&mut *held(&self.by_agent)).into_values().flatten().collect();
        runs.sort_unstable();
        runs.dedup();
        runs
    }

    /// The agents that are waited for.
    pub(super) fn agents(&self) -> Vec<String> {
        held(&self.by_agent).keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_came_first_are_woken_first_and_stand_in_line_once() {
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
