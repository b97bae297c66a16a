//! What runs come to, in any store, without an engine on it.

use crate::definition::Definitions;
use crate::error::LoadError;
use crate::load::{replay, replay_counting};
use sluice_core::port::store::{Hash, Store};
use sluice_core::run::id::RunId;
use sluice_core::run::recount::Recount;
use sluice_core::run::snapshot;
use sluice_core::run::state::Run;

/// What the fold of a whole journal comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The id of the last event.
    pub version: u64,
    /// A digest over everything that is known of the run then.
    pub digest: Hash,
}

/// Who reads runs of one store.
#[derive(Debug, Default)]
pub struct Examiner(Definitions);

impl Examiner {
    /// Folds the journal of a run from its first event.
    pub async fn state(&self, store: &dyn Store, run: RunId) -> Result<State, LoadError> {
        let run = replay(store, &self.0, run, u64::MAX).await?.run;
        Ok(State { version: run.version, digest: Hash::of(&snapshot::encode(&run)) })
    }

    /// Folds the journal of a run up to and with the event `upto`. What its events change
    /// in counters is added to `counts`, which are lost where the journal cannot be folded.
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
