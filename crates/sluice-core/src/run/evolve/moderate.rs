//! What the moderator is asked, and lets pass.

use crate::journal::event::{Prepared, StepAt};
use crate::port::moderator::Phase;
use crate::run::phase::StepPhase;
use crate::run::state::Run;
use std::sync::Arc;

impl Run {
    /// The step stays queued until the moderator has answered. What was
    /// prepared is kept: exactly what is judged is sent.
    pub(super) fn asks_moderator(
        &mut self,
        at: StepAt,
        digest: &str,
        prepared: Option<&Arc<Prepared>>,
    ) {
        self.enter(at, StepPhase::Moderating { digest: digest.to_owned() });
        let state = self.state_mut(at);
        if let Some(prepared) = prepared {
            state.prepared = Some(Arc::clone(prepared));
            state.reask = false;
        }
    }

    /// The step goes back to where it was about to go.
    pub(super) fn cleared(&mut self, at: StepAt, phase: Phase, digest: &str) {
        if phase == Phase::Output || self.state(at).phase.moderated().is_none() {
            return;
        }
        self.state_mut(at).cleared = Some(digest.to_owned());
        self.enter(at, StepPhase::Queued);
    }
}
