//! Envelopes: caps on money.

use crate::money::Money;
use serde::{Deserialize, Serialize};

/// A cap on money.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// What it counts.
    pub scope: Scope,
    /// Which gateway, agent, workflow or run; absent for all of them, each by
    /// itself never: one envelope is one sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// When it starts anew.
    pub period: Period,
    /// The cap.
    #[serde(with = "crate::money::cents")]
    pub amount_cents: Money,
    /// Whether it counts.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub enabled: bool,
    /// Overruns somebody has looked at and accepted: they close the cap no more.
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

/// What an envelope counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Everything.
    Global,
    /// What is dispatched through a gateway.
    Gateway,
    /// What an agent does.
    Agent,
    /// Runs of a workflow.
    Workflow,
    /// One run with all below it.
    Run,
}

/// When an envelope starts anew, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// At midnight.
    Daily,
    /// At midnight before Sunday.
    Weekly,
    /// On the first of a month.
    Monthly,
    /// Never.
    Total,
}
