//! Gate 7: the trust level that a gateway requires.

use super::{Finding, Gate, Trial};
use crate::case::Case;
use crate::facts::Subject;

pub(super) const GATE: Gate =
    Gate { name: "trust_level", code: "trust_level_insufficient", trial: Trial::Observed, judge };

fn judge(case: &mut Case<'_>) -> Finding {
    let facts = case.facts;
    let Subject::Agent(name, agent) = facts.subject else { return Finding::skip() };
    let own = agent.map_or(0, |agent| agent.trust_level);
    let trust = own.min(facts.trust_ceiling);
    let place = facts.place.and_then(|place| Some((place.name, place.gateway?)));
    let Some((at, gateway)) = place else {
        return Finding::pass().figures([("trust", trust.into())]);
    };
    let minimum = gateway.min_trust_level;
    let finding = if trust < minimum {
        let capped = if trust < own { ", capped by the deployment" } else { "" };
        let message = format!(
            "agent {name} has trust level {trust}{capped}, gateway {at} requires {minimum}"
        );
        let hint = if trust < own && own >= minimum {
            "raise trust_ceiling of the deployment, or route to another gateway".to_owned()
        } else {
            format!("raise the trust level of agent {name}, or route to another gateway")
        };
        Finding::block(message, hint)
    } else {
        Finding::pass()
    };
    finding.figures([("trust", trust.into()), ("minimum", minimum.into())])
}
