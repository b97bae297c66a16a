//! What runs come to, in any store, without an engine on it.

use crate::definition::Definitions;
use crate::error::LoadError;
use crate::load::replay;
use sluice_core::port::store::{Hash, Store};
use sluice_core::run::id::RunId;
use sluice_core::run::snapshot;

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
}
