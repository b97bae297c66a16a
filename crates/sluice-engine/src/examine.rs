//! Folds runs of any store without an engine, for verification.

use crate::definition::Definitions;
use crate::error::LoadError;
use crate::load::{replay, replay_counting};
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::store::Store;
use sluice_core::run::recount::Recount;
use sluice_core::run::snapshot;
use sluice_core::run::state::Run;

/// Result of folding a whole journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExaminedState {
    /// Id of the last event.
    pub version: u64,
    /// Digest of the complete state of the run.
    pub digest: Hash,
}

/// Reads runs of one store, with a cache of definitions.
#[derive(Debug, Default)]
pub struct Examiner(Definitions);

impl Examiner {
    /// Folds the journal of a run from its first event.
    pub async fn state(&self, store: &dyn Store, run: RunId) -> Result<ExaminedState, LoadError> {
        let run = replay(store, &self.0, run, u64::MAX).await?.run;
        Ok(ExaminedState { version: run.version, digest: Hash::of(&snapshot::encode(&run)) })
    }

    /// Folds the journal of a run up to and including the event `upto`. Counter changes of
    /// its events are added to `counts`, which is reset if the journal cannot be folded.
    pub async fn fold(
        &self,
        store: &dyn Store,
        run: RunId,
        upto: u64,
        counts: &mut Recount,
    ) -> Result<Run, LoadError> {
        let given = Some(std::mem::take(counts));
        let folded = replay_counting(store, &self.0, run, upto, given).await?;
        *counts = folded.counts.unwrap_or_default();
        Ok(folded.run)
    }
}
