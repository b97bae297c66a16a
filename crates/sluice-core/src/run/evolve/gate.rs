//! Waits for what a gate said no to.

use crate::journal::event::{StepAt, Wait};
use crate::run::index::Timer;
use crate::run::state::{GateWait, Run, StepState};
use crate::run::status::StepStatus;

impl Run {
    /// The step stays queued, at the gate.
    pub(super) fn waits_at_gate(&mut self, at: StepAt, wait: &Wait, at_ms: u64) {
        let (tries, since_ms) = self.state(at).waited_at_gates(at_ms);
        self.sent_again_later(at);
        self.unlist(at);
        let state = self.state_mut(at);
        if state.status != StepStatus::Queued {
            state.change(StepStatus::Queued);
        }
        state.gate = Some(Box::new(GateWait {
            since_ms,
            tries: tries + 1,
            code: wait.code.clone().unwrap_or_default(),
            hint: wait.hint.clone(),
            gateway: wait.cause.clone().unwrap_or_default(),
            active: true,
        }));
        state.waiting = Some(wait.reason);
        // A wait that only an operator ends has no end of its own.
        let until = (wait.until_ms > 0).then_some(wait.until_ms);
        state.wake_at_ms = until;
        self.index.gated.insert(at);
        self.index.timers.extend(until.map(|until_ms| (until_ms, Timer::Retry(at))));
    }

    /// An attempt that was in flight when its process died and cannot be sent
    /// again now is the same attempt when it is: with the same key and grant.
    pub(super) fn sent_again_later(&mut self, at: StepAt) {
        if self.index.in_flight.contains_key(&at) {
            let state = self.state_mut(at);
            state.attempt = state.attempt.saturating_sub(1);
        }
    }
}

impl StepState {
    /// How often gates have refused it, and since when. A wait that only an
    /// operator could end uses up nobody's patience.
    pub(crate) fn waited_at_gates(&self, now_ms: u64) -> (u32, u64) {
        match &self.gate {
            Some(gate) if !gate.active || self.wake_at_ms.is_some() => (gate.tries, gate.since_ms),
            _ => (0, now_ms),
        }
    }
}
