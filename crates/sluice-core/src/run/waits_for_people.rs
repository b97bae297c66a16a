//! Runs that wait only for people: their clock is stopped.

use super::state::Run;
use crate::journal::event::{Path, StepAt};
use crate::status::Waiting;

impl Run {
    /// Whether the run waits for decisions of people and for nothing else, with its own steps
    /// or with child runs that wait only for people.
    pub(crate) fn waits_only_for_people(&self) -> bool {
        let index = &self.index;
        let needs_person = !(index.awaiting.is_empty() && index.blocked.is_empty());
        (needs_person || !index.in_flight.is_empty())
            && index.in_flight.keys().all(|at| self.child_is_paused(*at))
            && index.queue.is_empty()
            && index.retrying.is_empty()
            && index.gated.is_empty()
            && index.checking.is_empty()
            && self.next_ready().is_none()
    }

    /// Whether the clock of the run is stopped because it waits only for people.
    pub(crate) fn is_clock_stopped(&self) -> bool {
        self.version > 0 && self.clock.since_ms.is_none() && !self.status.is_terminal()
    }

    /// Whether a step is a child run that waits only for people.
    pub(crate) fn child_is_paused(&self, at: StepAt) -> bool {
        let state = self.state(at);
        matches!(state.path(), Some(Path::Child(_)))
            && state.phase.waiting() == Some(Waiting::HumanInput)
    }
}
