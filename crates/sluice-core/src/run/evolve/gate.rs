//! Waits for what a gate said no to.

use crate::journal::event::{StepAt, Wait};
use crate::run::phase::StepPhase;
use crate::run::state::{GateWait, Run, StepState};

impl Run {
    /// The step stays queued, at the gate.
    pub(super) fn waits_at_gate(&mut self, at: StepAt, wait: &Wait, at_ms: u64) {
        let (tries, since_ms) = self.state(at).waited_at_gates(at_ms);
        self.sent_again_later(at);
        // A wait that only an operator ends has no end of its own.
        let retry_at_ms = (wait.until_ms > 0).then_some(wait.until_ms);
        self.enter(at, StepPhase::AtGate { reason: wait.reason, retry_at_ms });
        self.state_mut(at).gate = Some(Box::new(GateWait {
            since_ms,
            tries: tries + 1,
            code: wait.code.clone().unwrap_or_default(),
            hint: wait.hint.clone(),
            gateway: wait.cause.clone().unwrap_or_default(),
        }));
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
        let needs_operator = matches!(self.phase, StepPhase::AtGate { retry_at_ms: None, .. });
        match &self.gate {
            Some(gate) if !needs_operator => (gate.tries, gate.since_ms),
            _ => (0, now_ms),
        }
    }
}
