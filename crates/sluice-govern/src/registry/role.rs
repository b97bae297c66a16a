//! Roles: bounds on the agents that act in them.

use super::row::{Form, row};
use crate::money::Money;

/// Seconds, up to a year.
pub(super) const SECONDS: Form = Form::Number(0, 31_622_400);

// The bounds of a workflow and those of the registry both apply: see `Role::with`.
row! {
    /// Bounds on the agents in a role.
    pub struct Role, "RoleDoc", default {
        /// The maximum cost of its steps in one run, in cents.
        optional max_spend_cents: Option<Money>,
        /// Environments in which its steps may run; by default any.
        optional allowed_environments: Vec<String>,
        /// Requirements for its inputs.
        optional trusted_context: Option<TrustedContext>,
    }
}

row! {
    /// Requirements for the inputs of a role.
    #[derive(Eq)]
    pub struct TrustedContext, "ContextDoc", default {
        /// Source classes of acceptable inputs; by default any.
        optional accepted_source_classes: Vec<String>,
        /// The maximum age of an input, in seconds.
        optional max_age_s: Option<u64> as SECONDS,
    }
}

/// Marks a list from which nothing is left, because an empty list means no bound. No
/// environment and no source class has this name.
pub const NOTHING: &str = "(nothing)";

impl Role {
    /// Both bounds together: what either forbids is forbidden.
    #[must_use]
    pub fn with(&self, other: &Role) -> Role {
        Role {
            max_spend_cents: least(self.max_spend_cents, other.max_spend_cents),
            allowed_environments: meet(&self.allowed_environments, &other.allowed_environments),
            trusted_context: match (&self.trusted_context, &other.trusted_context) {
                (Some(own), Some(other)) => Some(own.with(other)),
                (own, other) => own.clone().or_else(|| other.clone()),
            },
        }
    }

    /// Whether its steps may run in an environment.
    pub fn allows(&self, environment: &str) -> bool {
        among(&self.allowed_environments, environment)
    }
}

impl TrustedContext {
    /// Both bounds together.
    #[must_use]
    pub fn with(&self, other: &TrustedContext) -> TrustedContext {
        TrustedContext {
            accepted_source_classes: meet(
                &self.accepted_source_classes,
                &other.accepted_source_classes,
            ),
            max_age_s: least(self.max_age_s, other.max_age_s),
        }
    }

    /// Whether inputs of a class are accepted.
    pub fn accepts(&self, class: &str) -> bool {
        among(&self.accepted_source_classes, class)
    }
}

fn among(list: &[String], one: &str) -> bool {
    list.is_empty() || (one != NOTHING && list.iter().any(|other| other == one))
}

fn least<T: Ord>(own: Option<T>, other: Option<T>) -> Option<T> {
    match (own, other) {
        (Some(own), Some(other)) => Some(own.min(other)),
        (own, other) => own.or(other),
    }
}

/// The intersection of two lists, where an empty one means no bound. An empty
/// intersection is [`NOTHING`].
pub(crate) fn meet(own: &[String], other: &[String]) -> Vec<String> {
    if own.is_empty() || other.is_empty() {
        return if own.is_empty() { other } else { own }.to_vec();
    }
    let both: Vec<String> = own.iter().filter(|one| other.contains(one)).cloned().collect();
    if both.is_empty() { vec![NOTHING.to_owned()] } else { both }
}

#[cfg(test)]
mod tests;
