//! Gate 1: the gateway must exist, work, and not be paused.

use super::{Finding, Gate, Trial};
use crate::case::Case;
use crate::decision::Figure;
use crate::facts::Subject;
use crate::registry::{Gateway, Health, Held};
use crate::route::is_out_of_reach;

pub(super) const GATE: Gate =
    Gate { name: "gateway_health", code: "gateway_unreachable", trial: Trial::Enforced, judge };

fn judge(case: &mut Case<'_>) -> Finding {
    let facts = case.facts;
    // Lifting the switch is not dispatched, so the switch must not block it.
    let acts = facts.place.is_some() || matches!(facts.subject, Subject::Agent(..));
    if acts && facts.held == Held::Yes {
        let message = "an operator stopped all work".to_owned();
        return Finding::block(message, "an operator must lift the switch".to_owned()).paused();
    }
    let Some(place) = facts.place else { return Finding::skip() };
    let name = place.name;
    if name.is_empty() {
        let message = "no gateway offers what the step needs".to_owned();
        let hint = "see the routing decision for the reason of each gateway".to_owned();
        return Finding::block(message, hint);
    }
    let Some(gateway) = place.gateway else {
        let message = format!("there is no gateway {name}");
        return Finding::block(
            message,
            format!("register gateway {name}, or route to another gateway"),
        );
    };
    if let Some((message, hint)) = unfit(case, name, gateway) {
        return Finding::block(message, hint);
    }
    if gateway.paused {
        let message = format!("gateway {name} is paused");
        return Finding::block(message, format!("resume gateway {name}")).paused();
    }
    let finding = match place.health {
        Health::Healthy => Finding::pass(),
        Health::Degraded => Finding::warn(format!("gateway {name} is degraded")),
        Health::Offline => {
            let hint = format!("bring gateway {name} back; `sluice doctor` says what is wrong");
            Finding::block(format!("gateway {name} is offline"), hint).retryable()
        }
    };
    finding.figures([("gateway", name.into()), ("health", Figure::Word(place.health.as_str()))])
}

/// Why a gateway can never do the step's work, even if it is healthy, with a hint.
/// Checked before an approval is requested.
fn unfit(case: &Case<'_>, name: &str, gateway: &Gateway) -> Option<(String, String)> {
    let facts = case.facts;
    // The next gate reports a missing agent.
    let Subject::Agent(agent, Some(row)) = facts.subject else { return None };
    if is_out_of_reach(row, gateway) {
        let message = format!("agent {agent} is native, and gateway {name} has a URL");
        let hint = format!("route {agent} to a gateway without a URL, or make it `cloud`");
        return Some((message, hint));
    }
    if facts.place.is_none_or(|place| place.serves) {
        return None;
    }
    let message = format!("gateway {name} cannot do the work of agent {agent}");
    let hint = match gateway.provider.as_str() {
        "" => format!(
            "set `provider` or `url` of gateway {name}, or route {agent} to another gateway"
        ),
        provider => {
            format!("this process has no adapter for {provider}; route {agent} to another gateway")
        }
    };
    Some((message, hint))
}
