//! Roles: bounds on whoever acts in them.

use crate::money::Money;
use serde::{Deserialize, Serialize};

/// Bounds on whoever acts in a role. A workflow's own bounds and those of the
/// registry both hold: see [`Role::with`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Role {
    /// Most money its steps may cost in one run.
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::money::cents::option")]
    pub max_spend_cents: Option<Money>,
    /// Environments its steps may run in; none named means any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_environments: Vec<String>,
    /// What its inputs must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_context: Option<TrustedContext>,
}

/// What inputs a role accepts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrustedContext {
    /// Source classes of acceptable inputs; none named means any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accepted_source_classes: Vec<String>,
    /// Oldest acceptable input, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_s: Option<u64>,
}
