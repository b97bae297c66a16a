//! Invariants of a dispatch when it is admitted: caps, slots, rates.

use super::ledger::{Ledger, signed};
use sluice_core::id::RunId;
use sluice_core::journal::event::{Dispatch, StepAt, Terms};
use sluice_core::money::Money;
use sluice_core::run::state::Run;
use sluice_govern::account;
use sluice_govern::registry::{Budget, Fabric, Scope};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A dispatch that an append admits.
pub(super) struct Admitted {
    pub(super) run: RunId,
    pub(super) at: StepAt,
    pub(super) dispatch_no: u32,
    pub(super) terms: Arc<Terms>,
    /// Whether it was already in flight.
    pub(super) again: bool,
    agent: Option<String>,
    gateway: String,
    workflow: String,
    /// Caps of the run and its ancestors.
    family: Vec<(RunId, Money)>,
}

impl Admitted {
    pub(super) fn of(run: &Run, at: StepAt, dispatch: &Dispatch) -> Admitted {
        Admitted {
            run: run.id,
            at,
            dispatch_no: dispatch.dispatch_no,
            terms: Arc::clone(&dispatch.terms),
            again: false,
            agent: dispatch.agent.clone(),
            gateway: dispatch.gateway.clone(),
            workflow: run.started.workflow.clone(),
            family: run.family_caps(),
        }
    }
}

/// A cap: its account, the amount, accepted overruns.
type Cap = (String, Money, Money);

/// The last admission of each account, and the dispatch times of each agent.
#[derive(Default)]
pub(super) struct Limits {
    /// The cap at the last admission, and the overruns by then.
    admitted: BTreeMap<String, (i64, i64)>,
    /// Times of the store's clock, which never goes back in the simulation.
    sent: BTreeMap<String, Vec<u64>>,
}

impl Limits {
    /// At every instant: spent + reserved <= cap + overruns booked since.
    pub(super) fn hold(&self, counters: &BTreeMap<String, i64>) -> Result<(), String> {
        let count = |name: &str| counters.get(name).copied().unwrap_or_default();
        for (name, (cap, over_then)) in &self.admitted {
            let held = count(&account::held(name));
            let over = count(&account::over(name)) - over_then;
            if held > cap + over {
                return Err(format!(
                    "spent and reserved keep to the cap: {held} of {cap} and {over} in {name}"
                ));
            }
        }
        Ok(())
    }
}

/// Checks a dispatch after its append was counted.
pub(super) fn check(ledger: &mut Ledger, one: &Admitted, now_ms: u64) -> Result<(), String> {
    let Some(agent) = &one.agent else { return Ok(()) };
    let Some(row) = ledger.fabric.agents.get(agent).cloned() else {
        return money(ledger, one, agent, now_ms);
    };
    if let Some(rate) = row.rate {
        let sent = ledger.limits.sent.entry(agent.clone()).or_default();
        let at_ms = now_ms.max(sent.last().copied().unwrap_or_default());
        sent.push(at_ms);
        let window_ms = u64::from(rate.window_s) * 1000;
        let inside = sent.iter().rev().take_while(|then| *then + window_ms > at_ms).count();
        if inside > rate.limit as usize {
            let limit = rate.limit;
            return Err(format!("no window exceeds the rate: {inside} of {limit}"));
        }
    }
    if one.again {
        return Ok(());
    }
    if one.terms.slot.as_ref() != Some(agent) {
        return Err(format!("a dispatch takes a slot of {agent}"));
    }
    let busy = ledger.expected.get(&account::busy(agent)).copied().unwrap_or_default();
    if row.max_concurrent_steps.is_some_and(|max| busy > i64::from(max)) {
        return Err(format!("an agent respects its concurrency limit: {agent} has {busy}"));
    }
    money(ledger, one, agent, now_ms)
}

fn money(ledger: &mut Ledger, one: &Admitted, agent: &str, now_ms: u64) -> Result<(), String> {
    if one.again {
        return Ok(());
    }
    for (name, amount, accepted) in caps(&ledger.fabric, one, agent, now_ms) {
        let reserved_in = one.terms.accounts.iter().find(|account| *account.name == *name);
        if reserved_in.is_none_or(|account| account.cap != amount) {
            return Err(format!("a dispatch reserves in every cap: not in {name}"));
        }
        let count = |counter: &str| ledger.expected.get(counter).copied().unwrap_or_default();
        let (held, over) = (count(&account::held(&name)), count(&account::over(&name)));
        if held > signed(amount) {
            return Err(format!(
                "nothing is admitted past a cap: {held} of {} in {name}",
                signed(amount)
            ));
        }
        if over > signed(accepted) {
            return Err(format!("a closed cap admits nothing: {over} over in {name}"));
        }
        ledger.limits.admitted.insert(name, (signed(amount), over));
    }
    Ok(())
}

/// The caps that apply to a dispatch under the current rows.
fn caps(fabric: &Fabric, one: &Admitted, agent: &str, now_ms: u64) -> Vec<Cap> {
    let mut caps = Vec::new();
    if let Some(amount) = fabric.agents.get(agent).and_then(|row| row.budget_monthly_cents) {
        caps.push((account::of_agent(agent, now_ms), amount, Money::ZERO));
    }
    for (run, amount) in &one.family {
        caps.push((account::of_run(&run.to_string()), *amount, Money::ZERO));
    }
    let applies = |budget: &Budget| {
        let of = budget.of.as_deref();
        budget.enabled
            && match budget.scope {
                Scope::Global => true,
                Scope::Gateway => of.is_none_or(|of| of == one.gateway),
                Scope::Agent => of.is_none_or(|of| of == agent),
                Scope::Workflow => of.is_none_or(|of| of == one.workflow),
                // No row of the simulation applies to a single run.
                Scope::Run => false,
            }
    };
    for (name, budget) in fabric.budgets.iter().filter(|(_, budget)| applies(budget)) {
        let name = account::of_budget(name, budget.period, now_ms);
        caps.push((name, budget.amount_cents, budget.accepted_overrun_cents));
    }
    caps
}
