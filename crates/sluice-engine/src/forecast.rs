//! What the gates would say of a run that was started now.
//!
//! The run is drafted as one that only looks: it asks the gates about every step,
//! as if each before it had been skipped. Its first append would hold all of that.
//!
//! INVARIANT: nothing is written and nothing is sent. The draft is shown, and dropped.

use crate::admit::{check_bindings, posture};
use crate::engine::{Engine, Inner};
use crate::error::StartError;
use crate::load::subject;
use crate::start::{Start, check_args};
use sluice_core::journal::envelope::{Seen, Shown, envelopes};
use sluice_core::port::store::{Append, Frame, Hash, Hold, StoreError};
use sluice_core::run::command::Dispatching;
use sluice_core::run::id::RunId;
use sluice_core::run::state::Run;
use sluice_govern::registry::Posture;
use std::collections::BTreeMap;

/// What would come of a run, as far as that can be told without doing anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// The events of a run that only looks, in their order.
    pub events: Vec<Shown>,
    /// Whether every step was come to.
    pub whole: bool,
}

impl Engine {
    /// What the gates would say of each step of a run.
    pub async fn forecast(&self, request: Start) -> Result<Forecast, StartError> {
        self.inner().refresh_rules().await?;
        self.inner().forecast(request)
    }
}

impl Inner {
    fn forecast(&self, mut request: Start) -> Result<Forecast, StartError> {
        let args = check_args(&request.stored.definition.plan, &request.args)?;
        let rules = self.trust.rules();
        check_bindings(&rules, &request)?;
        self.check_agents(&rules, &request)?;
        let id = RunId::new(self.clock.now_ms(), &mut *(self.entropy)());
        if let Some(verdict) = self.stopped(&rules, &request, id) {
            let (code, message) = (verdict.code, verdict.message);
            return Err(StartError::Blocked { code, message });
        }
        let ahead_for = Some(posture(&rules, &request));
        request.posture = Some(Posture::Advisory);
        request.dispatching = Dispatching::Allowed;
        request.key = None;
        let (draft, append) = self.draft(&rules, &request, id, args, Hold::Release, ahead_for);
        let events = shown(&draft.run, append)?;
        Ok(Forecast { events, whole: draft.run.status.is_terminal() })
    }
}

/// What the append would write, as readers would see it.
fn shown(run: &Run, append: Append) -> Result<Vec<Shown>, StartError> {
    let Append { count, body, beside, chain, blobs, .. } = append;
    let frame = Frame { first: 1, count, body, beside, chain };
    let blobs: BTreeMap<Hash, Vec<u8>> =
        blobs.into_iter().map(|blob| (blob.hash, blob.body)).collect();
    let seen = envelopes(subject(run), &frame, &blobs);
    // It was written a moment ago by the same process.
    let seen = seen.map_err(|error| StoreError::Unavailable(error.to_string()))?;
    Ok(seen.into_iter().filter_map(Seen::event).collect())
}
