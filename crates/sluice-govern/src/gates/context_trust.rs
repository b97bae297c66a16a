//! Gate 8: the environments of the role, and the sources of its inputs.

use super::{Finding, Gate, Trial};
use crate::case::Case;
use crate::facts::{Inputs, Subject};
use crate::registry::{NOTHING, TrustedContext};

pub(super) const GATE: Gate =
    Gate { name: "context_trust", code: "context_untrusted", trial: Trial::Observed, judge };

fn judge(case: &mut Case<'_>) -> Finding {
    let facts = case.facts;
    if matches!(facts.subject, Subject::User(_)) {
        return Finding::skip();
    }
    let Some((name, role)) = facts.role else { return Finding::pass() };
    if let Some(gateway) = facts.place.and_then(|place| place.gateway) {
        let environment = gateway.environment.as_str();
        if !role.allows(environment) {
            let message = format!(
                "role {name} may act in {}, the gateway is in {environment}",
                list(&role.allowed_environments)
            );
            let hint = format!("route to another gateway, or allow {environment} for role {name}");
            return Finding::block(message, hint).figures([("environment", environment.into())]);
        }
    }
    match role.trusted_context.as_ref() {
        Some(trusted) => inputs(name, trusted, &facts.inputs),
        None => Finding::pass(),
    }
}

fn inputs(role: &str, trusted: &TrustedContext, inputs: &Inputs<'_>) -> Finding {
    if let Some(class) = inputs.classes.iter().find(|class| !trusted.accepts(class)) {
        let message = format!(
            "an input comes from {class}, role {role} accepts {}",
            list(&trusted.accepted_source_classes)
        );
        let hint = format!("let a person check it first, or accept {class} for role {role}");
        return Finding::block(message, hint).figures([("class", (*class).into())]);
    }
    let Some(max_age_s) = trusted.max_age_s else { return Finding::pass() };
    let Some(age_ms) = inputs.age_ms else {
        if inputs.classes.is_empty() {
            return Finding::pass();
        }
        let message = format!("the age of the inputs is unknown, role {role} requires it");
        return Finding::block(message, "run the steps that make them again".to_owned())
            .figures([("max_age_s", max_age_s.into())]);
    };
    let finding = if age_ms > max_age_s.saturating_mul(1000) {
        let message = format!(
            "an input is {} s old, role {role} takes {max_age_s} s at most",
            age_ms.div_ceil(1000)
        );
        let hint = format!("run the step that made it again, or raise max_age_s of role {role}");
        Finding::block(message, hint)
    } else {
        Finding::pass()
    };
    finding.figures([("age_ms", age_ms.into()), ("max_age_s", max_age_s.into())])
}

fn list(names: &[String]) -> String {
    if names == [NOTHING] { "nothing that both bounds allow".to_owned() } else { names.join(", ") }
}
