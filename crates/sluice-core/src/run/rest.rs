//! Runs that wait only for people: their time stands still.

use super::state::Run;
use super::status::Waiting;
use crate::journal::event::{Path, StepAt};

impl Run {
    /// Whether nothing but answers of people would make the run go on: asked for by its
    /// own steps, or by child runs that wait for nothing else.
    pub(crate) fn has_only_people(&self) -> bool {
        let index = &self.index;
        let asks = !(index.awaiting.is_empty() && index.blocked.is_empty());
        (asks || !index.in_flight.is_empty())
            && index.in_flight.keys().all(|at| self.child_is_paused(*at))
            && index.queue.is_empty()
            && index.retrying.is_empty()
            && index.gated.is_empty()
            && index.checking.is_empty()
            && self.next_ready().is_none()
    }

    /// Whether the run's time stands still because only people are waited for.
    pub(crate) fn rests(&self) -> bool {
        self.version > 0 && self.clock.since_ms.is_none() && !self.status.is_terminal()
    }

    /// Whether a step is a child run that only waits for people.
    pub(crate) fn child_is_paused(&self, at: StepAt) -> bool {
        let state = self.state(at);
        matches!(state.path(), Some(Path::Child(_)))
            && state.phase.waiting() == Some(Waiting::HumanInput)
    }
}
