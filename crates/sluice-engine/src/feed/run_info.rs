//! Cache of the run details that every envelope carries.

use crate::limits::FEED_RUNS_MAX;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Details of a run that its envelopes carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunInfo {
    pub(super) workflow: Arc<str>,
    pub(super) registered: bool,
    pub(super) definition_hash: Arc<str>,
    pub(super) trace_id: Arc<str>,
    /// Hash of the definition; definitions are cached separately.
    pub(super) definition: Option<Hash>,
}

/// A bounded cache in two generations: when the newer one is full it replaces the older
/// one, so that recently used entries stay.
#[derive(Debug, Default)]
pub(super) struct RunInfoCache {
    newer: BTreeMap<RunId, RunInfo>,
    older: BTreeMap<RunId, RunInfo>,
}

impl RunInfoCache {
    pub(super) fn get(&mut self, run: RunId) -> Option<RunInfo> {
        if let Some(info) = self.newer.get(&run) {
            return Some(info.clone());
        }
        let info = self.older.remove(&run)?;
        self.keep(run, info.clone());
        Some(info)
    }

    pub(super) fn keep(&mut self, run: RunId, info: RunInfo) {
        if self.newer.len() >= FEED_RUNS_MAX / 2 {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(run, info);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(name: &str) -> RunInfo {
        RunInfo {
            workflow: name.into(),
            registered: true,
            definition_hash: "5e".into(),
            trace_id: "t".into(),
            definition: None,
        }
    }

    #[test]
    fn recently_used_entries_stay_and_the_rest_is_evicted() {
        let mut run_infos = RunInfoCache::default();
        let (kept, forgotten) = (RunId(1), RunId(2));
        run_infos.keep(kept, info("kept"));
        run_infos.keep(forgotten, info("forgotten"));
        for number in 10..10 + 3 * FEED_RUNS_MAX as u128 {
            run_infos.keep(RunId(number), info("other"));
            assert_eq!(run_infos.get(kept), Some(info("kept")));
            assert!(run_infos.newer.len() + run_infos.older.len() <= FEED_RUNS_MAX + 1);
        }
        assert_eq!(run_infos.get(forgotten), None);
    }
}
