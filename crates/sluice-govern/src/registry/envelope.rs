//! Budgets.

use crate::money::Money;
use serde::{Deserialize, Serialize};

/// A budget: a cap on money.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// What it bounds.
    pub scope: Scope,
    /// The gateway, agent, workflow or run; absent means the sum over all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// When it starts again at zero.
    pub period: Period,
    /// The cap.
    #[serde(with = "crate::money::cents")]
    pub amount_cents: Money,
    /// Whether it is in force.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub enabled: bool,
    /// Overruns that an operator has accepted: they no longer close the cap.
    #[serde(default, skip_serializing_if = "Money::is_zero", with = "crate::money::cents")]
    pub accepted_overrun_cents: Money,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_true(enabled: &bool) -> bool {
    *enabled
}

/// What a budget bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Everything.
    Global,
    /// Dispatches through a gateway.
    Gateway,
    /// Work of an agent.
    Agent,
    /// Runs of a workflow.
    Workflow,
    /// One run and its descendants.
    Run,
}

/// When a budget starts again at zero, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// Every day at midnight.
    Daily,
    /// Every week at midnight before Sunday.
    Weekly,
    /// On the first of each month.
    Monthly,
    /// Never.
    Total,
}
