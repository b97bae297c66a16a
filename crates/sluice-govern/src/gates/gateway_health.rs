//! Gate 1: where the work would be done must be there, and not be stopped.

use super::{Finding, Gate, Trial};
use crate::case::Case;
use crate::decision::Figure;
use crate::facts::Subject;
use crate::registry::{Health, Held};

pub(super) const GATE: Gate =
    Gate { name: "gateway_health", code: "gateway_unreachable", trial: Trial::Enforced, judge };

fn judge(case: &mut Case<'_>) -> Finding {
    let facts = case.facts;
    // Whoever lifts the switch acts nowhere: the switch must not stop that.
    let acts = facts.place.is_some() || matches!(facts.subject, Subject::Agent(..));
    if acts && facts.held == Held::Yes {
        let message = "an operator stopped everything".to_owned();
        return Finding::block(message, "an operator must lift the switch".to_owned()).paused();
    }
    let Some(place) = facts.place else { return Finding::skip() };
    let name = place.name;
    if name.is_empty() {
        let message = "no gateway offers what the step needs".to_owned();
        let hint = "look at the routing decision: it says why each gateway lost".to_owned();
        return Finding::block(message, hint);
    }
    let Some(gateway) = place.gateway else {
        let message = format!("there is no gateway {name}");
        return Finding::block(message, format!("register gateway {name}, or route elsewhere"));
    };
    if gateway.paused {
        let message = format!("gateway {name} is paused");
        return Finding::block(message, format!("resume gateway {name}")).paused();
    }
    let finding = match place.health {
        Health::Healthy => Finding::pass(),
        Health::Degraded => Finding::warn(format!("gateway {name} is degraded")),
        Health::Offline => {
            let hint = format!("bring gateway {name} back; the step waits for it");
            Finding::block(format!("gateway {name} is offline"), hint).retryable()
        }
    };
    finding.figures([("gateway", name.into()), ("health", Figure::Word(place.health.as_str()))])
}
