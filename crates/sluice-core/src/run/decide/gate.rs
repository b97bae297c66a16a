//! Waits at a gate: refused for now, looked at again.

use super::Turn;
use crate::code::Code;
use crate::failure::Failure;
use crate::journal::event::{StepAt, StepEvent, Wait};
use crate::plan::step::Work;
use crate::run::state::Run;
use crate::status::Waiting;
use sluice_govern::account::Name;
use sluice_govern::decision::{BlockedBy, Decision};
use sluice_govern::registry::{AgentStatus, Health, Held};

/// How long until a refused step is looked at again, the first times.
const TRIES_MS: [u64; 3] = [1000, 2000, 4000];

impl Turn<'_> {
    /// A gate said no. Whether that is the end depends on the gate.
    pub(super) fn refused(&mut self, at: StepAt, gateway: &str, decision: &Decision) {
        let Some(by) = &decision.blocked_by else { return };
        let verdict = decision.gates.iter().find(|verdict| verdict.gate == by.gate);
        let message = verdict.and_then(|verdict| verdict.message.as_deref()).unwrap_or_default();
        let hint = verdict.and_then(|verdict| verdict.hint.as_deref());
        if by.retryable
            && let Some(until_ms) = self.next_look_ms(at, by)
        {
            let delay_ms = until_ms.saturating_sub(self.given.now_ms);
            let slot = matches!(by.gate, "concurrency" | "rate_limit");
            let wait = Wait {
                reason: if slot { Waiting::Queued } else { Waiting::Gate },
                attempt: self.run.state(at).attempt + u32::from(!self.flies(at)),
                cause: Some(gateway.to_owned()),
                delay_ms: if until_ms == 0 { 0 } else { delay_ms },
                until_ms,
                code: Some(by.code.to_owned()),
                hint: hint.map(str::to_owned),
            };
            return self.node(at, StepEvent::Waiting(Box::new(wait)));
        }
        let code = Code::ALL.iter().copied().find(|code| code.as_str() == by.code);
        let code = code.unwrap_or(Code::PolicyBlocked);
        let message = match hint {
            Some(hint) => format!("{message} ({hint})"),
            None => message.to_owned(),
        };
        self.fail(at, Failure::new(code, message));
    }

    /// When a refused step is looked at again by itself: 0 for never, none if
    /// it has waited long enough.
    fn next_look_ms(&mut self, at: StepAt, by: &BlockedBy) -> Option<u64> {
        let now_ms = self.given.now_ms;
        let (tries, since_ms) = self.run.state(at).waited_at_gates(now_ms);
        let full_ms = TRIES_MS.get(tries as usize);
        let entropy = &mut *self.given.entropy;
        let look_ms = full_ms.map(|ms| now_ms.saturating_add(around(*ms, entropy.bits())));
        if by.paused {
            return Some(look_ms.unwrap_or(0));
        }
        let patience_ms = self.queue_ms(at);
        if patience_ms == 0 {
            return look_ms;
        }
        let ends_ms = since_ms.saturating_add(patience_ms);
        (now_ms < ends_ms).then(|| look_ms.unwrap_or(ends_ms).min(ends_ms))
    }

    fn queue_ms(&self, at: StepAt) -> u64 {
        let agent = self.run.agent_of(at.step).and_then(|name| self.given.authority.agent(name));
        let own = agent.and_then(|agent| agent.queue_timeout_s);
        own.map_or(self.given.authority.patience().queue_ms, |seconds| seconds.saturating_mul(1000))
    }

    /// Looks again at every step at a gate whose cause seems to be gone.
    pub(super) fn look_again(&mut self) {
        for at in self.run.index.gated.iter().copied().collect::<Vec<_>>() {
            let free = !self.is_stuck(at) && self.has_room_for(at);
            if free && self.run.index.gated.contains(&at) && self.looked.insert(at) {
                self.start(at);
            }
        }
    }

    /// Whether what a step waits for is plainly still so.
    fn is_stuck(&self, at: StepAt) -> bool {
        let authority = self.given.authority;
        let Some(gate) = &self.run.state(at).gate else { return false };
        let name = self.run.agent_of(at.step).unwrap_or_default();
        let agent = authority.agent(name);
        match gate.code.as_str() {
            "agent_busy" => {
                let max = agent.and_then(|agent| agent.max_concurrent_steps);
                let running = self.guards.count(authority, Name::busy(name));
                max.is_some_and(|max| running >= i64::from(max))
            }
            "rate_limited" => agent.and_then(|agent| agent.rate).is_some_and(|rate| {
                let window_ms = u64::from(rate.window_s) * 1000;
                let count = self.guards.in_window(authority, Name::rate(name), window_ms);
                count >= i64::from(rate.limit)
            }),
            "gateway_unreachable" => {
                authority.fabric().held == Held::Yes
                    || authority.health(&gate.gateway) == Health::Offline
                    || authority.gateway(&gate.gateway).is_some_and(|gateway| gateway.paused)
            }
            "agent_disabled" => agent.is_some_and(|agent| agent.status == AgentStatus::Paused),
            _ => false,
        }
    }
}

impl Run {
    /// The first queued step that could be taken: its fan-out has room, and no
    /// step of the same agent waits at a gate before it.
    pub(crate) fn next_queued(&self) -> Option<StepAt> {
        let mut from = (0, None);
        loop {
            let place = *self.index.queue.range(from..).next()?;
            let at = self.at_place(place);
            if self.fan_out_has_room(at) && self.stands_behind(at).is_none() {
                return Some(at);
            }
            from = (place.0 + 1, None);
        }
    }

    /// The step at a gate that this one stands behind: of the same agent, and
    /// with the same needs. A child run is nobody's.
    pub(crate) fn stands_behind(&self, at: StepAt) -> Option<StepAt> {
        let step = self.step(at);
        if matches!(step.work, Work::Workflow(_)) {
            return None;
        }
        let agent = self.agent_of(at.step);
        let same = |one: &StepAt| {
            self.agent_of(one.step) == agent && self.step(*one).capabilities == step.capabilities
        };
        self.index.gated.iter().copied().find(same)
    }

    pub(crate) fn fan_out_has_room(&self, at: StepAt) -> bool {
        let bound = self.step(at).for_each.as_ref().and_then(|one| one.max_parallel);
        match (at.item, bound, &self.steps[at.step as usize].fan_out) {
            (Some(_), Some(max), Some(fan_out)) => fan_out.in_flight < max,
            _ => true,
        }
    }

    /// The agents and gateways that steps of this run wait for at a gate.
    pub fn gated(&self) -> impl Iterator<Item = (&str, &str)> {
        self.index.gated.iter().filter_map(|at| {
            let gate = self.state(*at).gate.as_ref()?;
            Some((self.agent_of(at.step)?, gate.gateway.as_str()))
        })
    }
}

/// Within a fifth of a delay, as chance has it.
fn around(full_ms: u64, bits: u64) -> u64 {
    let low = full_ms - full_ms / 5;
    let span = full_ms / 5 * 2;
    let share = (u128::from(span) * u128::from(bits)) >> 64;
    low + u64::try_from(share).unwrap_or(span)
}

#[cfg(test)]
mod tests {
    use super::around;

    #[test]
    fn a_look_comes_within_a_fifth_of_its_time() {
        assert_eq!(around(1000, 0), 800);
        assert_eq!(around(1000, u64::MAX), 1199);
        assert_eq!(around(4000, u64::MAX / 2), 3999);
    }
}
