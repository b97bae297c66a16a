//! Steps that a gate refused for now.

use crate::journal::event::{StepAt, Wait};
use crate::run::phase::StepPhase;
use crate::run::state::{GateWait, Run, StepState};

impl Run {
    /// The step stays queued and waits at the gate.
    pub(super) fn wait_at_gate(&mut self, at: StepAt, wait: &Wait, at_ms: u64) {
        let (tries, since_ms) = self.state(at).waited_at_gates(at_ms);
        self.return_attempt(at);
        // 0 means that only an operator can end the wait.
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

    /// Takes the attempt number back if the step was in flight: its process died, and it
    /// cannot be sent again now. Sent later, it is the same attempt, with the same
    /// idempotency key and grant.
    pub(super) fn return_attempt(&mut self, at: StepAt) {
        if self.index.in_flight.contains_key(&at) {
            let state = self.state_mut(at);
            state.attempt = state.attempt.saturating_sub(1);
        }
    }
}

impl StepState {
    /// How often gates have refused the step, and since when. A wait that only an operator
    /// can end does not count: it has no timeout.
    pub(crate) fn waited_at_gates(&self, now_ms: u64) -> (u32, u64) {
        let needs_operator = matches!(self.phase, StepPhase::AtGate { retry_at_ms: None, .. });
        match &self.gate {
            Some(gate) if !needs_operator => (gate.tries, gate.since_ms),
            _ => (0, now_ms),
        }
    }
}
