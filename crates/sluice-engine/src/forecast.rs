//! Forecast: what the gates would decide about a run without starting it.
//!
//! The run is drafted as a dry run: the gates decide about every step as if the steps
//! before it had been skipped. Its first append would contain all of that.
//!
//! INVARIANT: nothing is written and nothing is dispatched. The draft is returned as
//! events and dropped.

use crate::admit::{check_bindings, posture};
use crate::engine::{Engine, Inner};
use crate::error::StartError;
use crate::load::subject;
use crate::start::{Start, check_args};
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::journal::envelope::{Seen, Shown, envelopes};
use sluice_core::port::store::{Append, Frame, Ownership, StoreError};
use sluice_core::run::command::Dispatching;
use sluice_core::run::state::Run;
use sluice_govern::registry::Posture;
use std::collections::BTreeMap;

/// Predicted events of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// Events of the dry run, in order.
    pub events: Vec<Shown>,
    /// Whether the dry run reached every step.
    pub whole: bool,
}

impl Engine {
    /// Predicts the gates' decisions about each step of a run.
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
        if let Some(denial) = self.start_denial(&rules, &request, id) {
            let (code, message) = (denial.code, denial.message);
            return Err(StartError::Blocked { code, message });
        }
        let ahead_for = Some(posture(&rules, &request));
        request.posture = Some(Posture::Advisory);
        request.dispatching = Dispatching::Allowed;
        request.key = None;
        let (draft, append) = self.draft(&rules, &request, id, args, Ownership::Release, ahead_for);
        let events = shown(&draft.run, append)?;
        Ok(Forecast { events, whole: draft.run.status.is_terminal() })
    }
}

/// The envelopes of the events that the append would write.
fn shown(run: &Run, append: Append) -> Result<Vec<Shown>, StartError> {
    let Append { count, body, beside, chain, blobs, .. } = append;
    let frame = Frame { first: 1, count, body, beside, chain };
    let blobs: BTreeMap<Hash, Vec<u8>> =
        blobs.into_iter().map(|blob| (blob.hash, blob.body)).collect();
    let seen = envelopes(subject(run), &frame, &blobs);
    // Cannot fail: this process has just encoded the frame.
    let seen = seen.map_err(|error| StoreError::Unavailable(error.to_string()))?;
    Ok(seen.into_iter().filter_map(Seen::event).collect())
}
