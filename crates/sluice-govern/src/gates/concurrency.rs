//! Gate 3: the concurrency limit of an agent.
//!
//! The transaction that marks the step as running checks the counter again; this gate
//! only blocks early.

use super::{Finding, Gate, Trial};
use crate::case::Case;
use crate::facts::Subject;

pub(super) const GATE: Gate =
    Gate { name: "concurrency", code: "agent_busy", trial: Trial::Enforced, judge };

fn judge(case: &mut Case<'_>) -> Finding {
    let Subject::Agent(name, agent) = case.facts.subject else { return Finding::skip() };
    let Some(max) = agent.and_then(|agent| agent.max_concurrent_steps) else {
        return Finding::pass();
    };
    let running = case.facts.running;
    let finding = if running >= max {
        let message = format!("agent {name} runs {running} steps, its limit is {max}");
        let hint = format!("wait for one to end, or raise max_concurrent_steps of agent {name}");
        Finding::block(message, hint).retryable()
    } else {
        Finding::pass()
    };
    finding.figures([("running", running.into()), ("max", max.into())])
}
