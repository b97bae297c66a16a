//! What every envelope of a run says of it, remembered for the runs at work.

use crate::limits::FEED_RUNS_MAX;
use sluice_core::port::store::Hash;
use sluice_core::run::id::RunId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a run's envelopes say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct About {
    pub(super) workflow: Arc<str>,
    pub(super) registered: bool,
    pub(super) definition_hash: Arc<str>,
    pub(super) trace_id: Arc<str>,
    /// What it is a run of, by hash: definitions are kept once for all runs.
    pub(super) definition: Option<Hash>,
}

/// What is known of runs. Two halves, so that what was asked for lately stays:
/// when the newer is full, it becomes the older, and that one goes.
#[derive(Debug, Default)]
pub(super) struct Abouts {
    newer: BTreeMap<RunId, About>,
    older: BTreeMap<RunId, About>,
}

impl Abouts {
    pub(super) fn get(&mut self, run: RunId) -> Option<About> {
        if let Some(about) = self.newer.get(&run) {
            return Some(about.clone());
        }
        let about = self.older.remove(&run)?;
        self.keep(run, about.clone());
        Some(about)
    }

    pub(super) fn keep(&mut self, run: RunId, about: About) {
        if self.newer.len() >= FEED_RUNS_MAX / 2 {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(run, about);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str) -> About {
        About {
            workflow: name.into(),
            registered: true,
            definition_hash: "5e".into(),
            trace_id: "t".into(),
            definition: None,
        }
    }

    #[test]
    fn what_was_asked_for_lately_is_remembered_and_the_rest_forgotten() {
        let mut abouts = Abouts::default();
        let (kept, forgotten) = (RunId(1), RunId(2));
        abouts.keep(kept, about("kept"));
        abouts.keep(forgotten, about("forgotten"));
        for number in 10..10 + 3 * FEED_RUNS_MAX as u128 {
            abouts.keep(RunId(number), about("other"));
            assert_eq!(abouts.get(kept), Some(about("kept")));
            assert!(abouts.newer.len() + abouts.older.len() <= FEED_RUNS_MAX + 1);
        }
        assert_eq!(abouts.get(forgotten), None);
    }
}
