//! Steps that a gate blocks: they wait and are looked at again, or fail.

use super::Admission;
use crate::code::Code;
use crate::failure::Failure;
use crate::journal::event::{StepAt, StepEvent, Wait};
use crate::run::decide::draft::Draft;
use crate::status::Waiting;
use sluice_govern::account::Name;
use sluice_govern::decision::{BlockedBy, Decision};
use sluice_govern::registry::{AgentStatus, Health, Held};

/// Delays before a blocked step is looked at again, the first times.
const TRIES_MS: [u64; 3] = [1000, 2000, 4000];

/// A gate blocks the step: it waits if the block may end in time, else it fails.
pub(super) fn blocked(
    draft: &mut Draft<'_>,
    at: StepAt,
    gateway: &str,
    decision: &Decision,
) -> Admission {
    let by = decision.blocked_by.as_ref().expect("a block names its gate");
    let code = Code::parse(by.code).expect("the code of a gate is a code");
    let verdict = decision.gates.iter().find(|verdict| verdict.gate == by.gate);
    let message = verdict.and_then(|verdict| verdict.message.as_deref()).unwrap_or_default();
    let hint = verdict.and_then(|verdict| verdict.hint.as_deref());
    if by.retryable
        && let Some(until_ms) = next_look_ms(draft, at, by)
    {
        let state = draft.run.state(at);
        let delay_ms = until_ms.saturating_sub(draft.given.now_ms);
        let queued = matches!(code, Code::AgentBusy | Code::RateLimited);
        let wait = Wait {
            reason: if queued { Waiting::Queued } else { Waiting::Gate },
            attempt: state.attempt + u32::from(!state.status().is_dispatched()),
            cause: Some(gateway.to_owned()),
            delay_ms: if until_ms == 0 { 0 } else { delay_ms },
            until_ms,
            code: Some(code.to_string()),
            hint: hint.map(str::to_owned),
        };
        return Admission::Waiting(StepEvent::Waiting(Box::new(wait)));
    }
    let message = match hint {
        Some(hint) => format!("{message} ({hint})"),
        None => message.to_owned(),
    };
    Admission::Refused(Failure::new(code, message).into())
}

/// When a blocked step is looked at again: 0 if only an operator ends the wait, none if
/// it has waited long enough.
fn next_look_ms(draft: &mut Draft<'_>, at: StepAt, by: &BlockedBy) -> Option<u64> {
    let now_ms = draft.given.now_ms;
    let (tries, since_ms) = draft.run.state(at).waited_at_gates(now_ms);
    let full_ms = TRIES_MS.get(tries as usize);
    let entropy = &mut *draft.given.entropy;
    let look_ms = full_ms.map(|ms| now_ms.saturating_add(around(*ms, entropy.bits())));
    if by.paused {
        return Some(look_ms.unwrap_or(0));
    }
    let patience_ms = queue_ms(draft, at);
    if patience_ms == 0 {
        return look_ms;
    }
    let ends_ms = since_ms.saturating_add(patience_ms);
    (now_ms < ends_ms).then(|| look_ms.unwrap_or(ends_ms).min(ends_ms))
}

fn queue_ms(draft: &Draft<'_>, at: StepAt) -> u64 {
    let authority = draft.given.authority;
    let agent = draft.run.agent_of(at.step).and_then(|name| authority.agent(name));
    let own = agent.and_then(|agent| agent.queue_timeout_s);
    own.map_or(authority.patience().queue_ms, |seconds| seconds.saturating_mul(1000))
}

/// Whether the gate that a step waits at would certainly block it again.
pub(crate) fn is_still_blocked(draft: &Draft<'_>, at: StepAt) -> bool {
    let authority = draft.given.authority;
    let Some(gate) = &draft.run.state(at).gate else { return false };
    let name = draft.run.agent_of(at.step).unwrap_or_default();
    let agent = authority.agent(name);
    match Code::parse(&gate.code) {
        Some(Code::AgentBusy) => {
            let max = agent.and_then(|agent| agent.max_concurrent_steps);
            let running = draft.guards.count(authority, Name::busy(name));
            max.is_some_and(|max| running >= i64::from(max))
        }
        Some(Code::RateLimited) => agent.and_then(|agent| agent.rate).is_some_and(|rate| {
            let window_ms = u64::from(rate.window_s) * 1000;
            let count = draft.guards.in_window(authority, Name::rate(name), window_ms);
            count >= i64::from(rate.limit)
        }),
        Some(Code::GatewayUnreachable) => {
            authority.fabric().held == Held::Yes
                || authority.health(&gate.gateway) == Health::Offline
                || authority.gateway(&gate.gateway).is_some_and(|gateway| gateway.paused)
        }
        Some(Code::AgentDisabled) => agent.is_some_and(|agent| agent.status == AgentStatus::Paused),
        _ => false,
    }
}

/// A random delay within a fifth of the given one.
fn around(full_ms: u64, bits: u64) -> u64 {
    let low = full_ms - full_ms / 5;
    let span = full_ms / 5 * 2;
    let share = (u128::from(span) * u128::from(bits)) >> 64;
    low + u64::try_from(share).unwrap_or(span)
}

#[cfg(test)]
mod tests {
    use super::around;
    use crate::code::Code;
    use sluice_govern::decision::gate_codes;

    #[test]
    fn a_look_comes_within_a_fifth_of_its_time() {
        assert_eq!(around(1000, 0), 800);
        assert_eq!(around(1000, u64::MAX), 1199);
        assert_eq!(around(4000, u64::MAX / 2), 3999);
    }

    #[test]
    fn every_gate_that_blocks_has_a_code_that_steps_can_fail_with() {
        let unknown: Vec<&str> = gate_codes().filter(|code| Code::parse(code).is_none()).collect();
        assert_eq!(unknown, ["approval_required"], "this gate holds, and never blocks");
    }
}
