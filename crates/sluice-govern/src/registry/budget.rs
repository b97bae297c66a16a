//! Budgets.

use super::row::row;
use crate::choice::choices;
use crate::money::Money;

row! {
    /// An amount that spending must not exceed in a period.
    pub struct Budget, "BudgetRowDoc" {
        /// What it applies to.
        required scope: Scope,
        /// The gateway, agent, workflow or run; without it, all of them together.
        optional of: Option<String>,
        /// When it starts again, in UTC.
        required period: Period,
        /// The limit, in cents.
        required amount_cents: Money,
        /// Whether it is enforced (true).
        optional enabled: bool = true,
        /// Overruns that an operator has accepted: they no longer close the cap.
        maintained accepted_overrun_cents: Money,
    }
}

choices! {
    /// What a budget bounds.
    pub enum Scope, "a scope of a budget" {
        /// Everything.
        Global = "global",
        /// Dispatches through a gateway.
        Gateway = "gateway",
        /// Work of an agent.
        Agent = "agent",
        /// Runs of a workflow.
        Workflow = "workflow",
        /// One run and its descendants.
        Run = "run",
    }
}

choices! {
    /// When a budget starts again at zero, in UTC.
    pub enum Period, "a period of a budget" {
        /// Every day at midnight.
        Daily = "daily",
        /// Every week at midnight before Sunday.
        Weekly = "weekly",
        /// On the first of each month.
        Monthly = "monthly",
        /// Never.
        Total = "total",
    }
}
