//! Gate 4: the rate limit of an agent.

use super::{Finding, Gate, Trial};
use crate::case::Case;
use crate::facts::Subject;

pub(super) const GATE: Gate =
    Gate { name: "rate_limit", code: "rate_limited", trial: Trial::Enforced, judge };

fn judge(case: &mut Case<'_>) -> Finding {
    let Subject::Agent(name, agent) = case.facts.subject else { return Finding::skip() };
    let Some(rate) = agent.and_then(|agent| agent.rate) else { return Finding::pass() };
    let sent = case.facts.in_window;
    let finding = if sent >= rate.limit {
        let message = format!(
            "agent {name} was sent {sent} steps in {} s, its limit is {}",
            rate.window_s, rate.limit
        );
        let hint = format!("wait until the window has passed, or raise the rate of agent {name}");
        Finding::block(message, hint).retryable()
    } else {
        Finding::pass()
    };
    finding.figures([
        ("sent", sent.into()),
        ("limit", rate.limit.into()),
        ("window_s", rate.window_s.into()),
    ])
}
