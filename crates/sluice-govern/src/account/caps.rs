//! The caps of a dispatch, and the thresholds to report.

use super::{of_agent, of_role, of_run, push_budget};
use crate::facts::{Cap, CapGate};
use crate::money::Money;
use crate::registry::{Agent, Budget, Fabric, Period, Role, Scope};
use std::borrow::Cow;

/// Percentages of a cap at which people are notified.
pub const THRESHOLDS: [u8; 3] = [50, 80, 100];

/// The context of a dispatch that spends money.
#[derive(Debug, Clone, Copy)]
pub struct Spender<'a> {
    /// The time.
    pub now_ms: u64,
    /// The agent and its row.
    pub agent: Option<(&'a str, &'a Agent)>,
    /// The role it acts in, with all its bounds.
    pub role: Option<(&'a str, &'a Role)>,
    /// The run of the step, then its ancestors up to the root.
    pub runs: &'a [&'a str],
    /// Caps that documents set on those runs.
    pub run_caps: &'a [RunCap<'a>],
    /// The name of the run's workflow.
    pub workflow: &'a str,
    /// The gateway that the step would be sent to, if there is one.
    pub gateway: Option<&'a str>,
}

/// A cap that a document sets on its run.
#[derive(Debug, Clone, Copy)]
pub struct RunCap<'a> {
    /// Id of the run.
    pub run: &'a str,
    /// Display name.
    pub name: &'a str,
    /// The cap.
    pub amount: Money,
}

/// Every cap that applies: the role's in this run, the agent's month, those of the
/// runs, and all enabled budgets.
///
/// A budget of one run without a period replaces the cap in that run's document, so
/// that an operator can raise it. With a period it is an additional cap.
///
/// The caller reads the counters of each: see [`Cap::count`].
pub fn caps_for<'f>(fabric: &'f Fabric, spender: &Spender<'_>) -> Vec<Cap<'f>> {
    let mut caps = Vec::new();
    let (run, now_ms) = (spender.runs.first().copied().unwrap_or_default(), spender.now_ms);
    if let Some((name, role)) = spender.role
        && let Some(amount) = role.max_spend_cents
    {
        let known_as = Cow::Owned(format!("role {name}, this run"));
        caps.push(Cap::new(CapGate::Agent, known_as, of_role(run, name).into(), amount));
    }
    if let Some((name, agent)) = spender.agent
        && let Some(amount) = agent.budget_monthly_cents
    {
        let known_as = Cow::Owned(format!("agent {name}, monthly"));
        caps.push(Cap::new(CapGate::Agent, known_as, of_agent(name, now_ms).into(), amount));
    }
    let replaced = |run: &str| {
        let mut budgets = fabric.budgets.values();
        budgets.any(|one| one.enabled && whole_run(one) == Some(run))
    };
    for cap in spender.run_caps.iter().filter(|cap| !replaced(cap.run)) {
        let known_as = Cow::Owned(cap.name.to_owned());
        caps.push(Cap::new(CapGate::Budget, known_as, of_run(cap.run).into(), cap.amount));
    }
    let mut text = String::with_capacity(64);
    for (name, budget) in &fabric.budgets {
        if !budget.enabled || !applies(budget, spender) {
            continue;
        }
        let account = match whole_run(budget) {
            Some(run) => of_run(run).into(),
            None => {
                text.clear();
                push_budget(&mut text, name, budget.period, now_ms);
                text.as_str().into()
            }
        };
        let cap = Cap::new(CapGate::Budget, Cow::Borrowed(name), account, budget.amount_cents);
        caps.push(Cap { accepted: budget.accepted_overrun_cents, ..cap });
    }
    caps
}

/// The run whose own cap a budget replaces.
fn whole_run(budget: &Budget) -> Option<&str> {
    let whole = budget.scope == Scope::Run && budget.period == Period::Total;
    budget.of.as_deref().filter(|_| whole)
}

fn applies(budget: &Budget, spender: &Spender<'_>) -> bool {
    let Some(of) = budget.of.as_deref() else {
        return match budget.scope {
            Scope::Global | Scope::Workflow | Scope::Run => true,
            Scope::Gateway => spender.gateway.is_some(),
            Scope::Agent => spender.agent.is_some(),
        };
    };
    match budget.scope {
        Scope::Global => true,
        Scope::Gateway => spender.gateway == Some(of),
        Scope::Agent => spender.agent.is_some_and(|(name, _)| name == of),
        Scope::Workflow => spender.workflow == of,
        Scope::Run => spender.runs.contains(&of),
    }
}

/// The thresholds (50, 80, 100 %) of a cap that a settlement reached.
pub fn crossed(amount: Money, before: Money, after: Money) -> Vec<u8> {
    let percent = |money: Money| u128::from(money.micro_cents()) * 100;
    let reached = |money: Money, threshold: u8| {
        // A cap of zero is reached when anything is spent.
        let due = u128::from(threshold) * u128::from(amount.micro_cents());
        percent(money) >= due.max(1)
    };
    let is_new = |threshold: &u8| reached(after, *threshold) && !reached(before, *threshold);
    THRESHOLDS.into_iter().filter(is_new).collect()
}

#[cfg(test)]
mod tests;
