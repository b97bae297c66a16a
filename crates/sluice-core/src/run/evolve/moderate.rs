//! Moderation of the inputs of a step.

use crate::journal::event::{Prepared, StepAt};
use crate::plan::policy::ModerationPhase;
use crate::run::phase::StepPhase;
use crate::run::state::Run;
use std::sync::Arc;

impl Run {
    /// The step stays queued until the moderator has answered. The prepared request is kept,
    /// so that exactly the checked text is sent.
    pub(super) fn moderation_requested(
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

    /// The step goes back to the queue.
    pub(super) fn moderation_cleared(&mut self, at: StepAt, phase: ModerationPhase, digest: &str) {
        if phase == ModerationPhase::Output || self.state(at).phase.moderated().is_none() {
            return;
        }
        self.state_mut(at).cleared = Some(digest.to_owned());
        self.enter(at, StepPhase::Queued);
    }
}
