//! What a dispatch cost: booked when it ends, with alerts when a cap comes near.
//!
//! INVARIANT: what was reserved is returned exactly once, to the accounts it was
//! reserved in: with the end of the dispatch if its cost is known then, else when it
//! becomes known, else a day later as if everything reserved had been spent.

use super::Draft;
use crate::cost;
use crate::journal::event::{Account, BudgetFigures, Event, StepAt, Terms};
use crate::money::Money;
use crate::port::adapter::Usage;
use crate::run::state::Run;
use serde_json::{Map, Value, json};
use sluice_govern::account::{self, CounterName, Name, Settlement, THRESHOLDS};

/// Replaces a reservation by the cost, and counts the cost by hour, agent, workflow and
/// model. Returns the alerts to record.
pub(super) fn settle_cost(
    draft: &mut Draft<'_>,
    at: StepAt,
    dispatch_no: u32,
    terms: &Terms,
    usage: &Usage,
) -> Vec<Event> {
    let mut alerts = Vec::new();
    let settled = settlement(terms, usage.cost);
    for one in &terms.accounts {
        let account = draft.guards.account(draft.given.authority, &one.name);
        account.held.add(settled.held_delta);
        account.spent.add(settled.spent_delta);
        account.over.add(settled.over_delta);
    }
    if settled.over_delta > 0 && !terms.accounts.is_empty() {
        let accounts: Vec<&str> = terms.accounts.iter().map(|one| &*one.name).collect();
        alerts.push(alert(json!({
            "kind": "budget_overrun", "node": draft.run.name(at),
            "dispatchNo": dispatch_no, "accounts": accounts,
            "reserved": usd(terms.reserved), "cost": usd(usage.cost),
        })));
    }
    for one in &terms.accounts {
        report_thresholds(draft, one, &mut alerts);
    }
    for (name, count) in booked(draft.run, at, terms, usage, draft.given.now_ms) {
        draft.guards.note(name, count);
    }
    alerts
}

/// Reports every share of a cap that is reached and was not reported. The amount spent
/// is believed to be below the next share: if another process has spent more, the
/// append is refused and the turn is decided again.
fn report_thresholds(draft: &mut Draft<'_>, one: &Account, alerts: &mut Vec<Event>) {
    let authority = draft.given.authority;
    let account = draft.guards.account(authority, &one.name);
    let spent = u64::try_from(account.tally().spent).unwrap_or(0);
    account.spent.believe(below_next(one.cap, spent));
    for percent in account::crossed(one.cap, Money::ZERO, Money::from_micro_cents(spent)) {
        let alerted = account::alerted(&one.name, percent);
        if draft.guards.count(authority, Name::of(&alerted)) > 0 {
            continue;
        }
        draft.guards.take(Name::of(&alerted), 1, Some(1));
        alerts.push(alert(json!({
            "kind": "threshold", "account": &*one.name, "percent": percent,
            "spent": usd(Money::from_micro_cents(spent)), "cap": usd(one.cap),
        })));
    }
}

/// An alert about a budget, with its figures.
pub(crate) fn alert(figures: Value) -> Event {
    let figures = match figures {
        Value::Object(figures) => figures,
        _ => Map::new(),
    };
    Event::BudgetAlert(BudgetFigures(figures))
}

/// What the end of a dispatch adds to each of its accounts.
pub(crate) fn settlement(terms: &Terms, cost: Money) -> Settlement {
    let settled = account::settle(countable(terms.reserved), countable(cost));
    settled.expect("countable amounts are counted")
}

/// What a dispatch with a known cost adds to the counters of costs: nothing if it was free.
pub(crate) fn booked(
    run: &Run,
    at: StepAt,
    terms: &Terms,
    usage: &Usage,
    now_ms: u64,
) -> impl Iterator<Item = (CounterName, i64)> {
    let counts = counted(usage);
    let names = (counts != [0; 3]).then(|| {
        // A registered agent is named with its slot; another one by the step, which may
        // no longer exist when the cost becomes known.
        let doing = || run.get(at).and_then(|state| state.agent());
        let agent = terms.slot.as_deref().or_else(doing).or_else(|| run.agent_of(at.step));
        let of = cost::Of {
            agent: agent.unwrap_or_default(),
            workflow: &run.started.workflow,
            model: usage.model.as_deref().or(terms.model.as_deref()).unwrap_or_default(),
        };
        cost::names(now_ms, of)
    });
    let counts = counts.into_iter().chain([1]);
    names.into_iter().flatten().zip(counts).filter(|(_, count)| *count != 0)
}

/// The counted parts of a usage: money, and tokens in and out.
pub(crate) fn counted(usage: &Usage) -> [i64; 3] {
    let tokens = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    [signed(usage.cost), tokens(usage.input_tokens), tokens(usage.output_tokens)]
}

/// The most that can be spent without reaching the next share that is reported.
fn below_next(cap: Money, spent: u64) -> Option<i64> {
    let share = |percent: u8| {
        let share = u128::from(cap.micro_cents()) * u128::from(percent);
        u64::try_from(share.div_ceil(100)).unwrap_or(u64::MAX)
    };
    let next = THRESHOLDS.into_iter().map(share).find(|share| *share > spent)?;
    Some(i64::try_from(next - 1).unwrap_or(i64::MAX))
}

/// As much of an amount as counters have room for.
fn countable(money: Money) -> Money {
    Money::from_micro_cents(signed(money).unsigned_abs())
}

/// Micro-cents as counters have them.
pub(crate) fn signed(money: Money) -> i64 {
    i64::try_from(money.micro_cents()).unwrap_or(i64::MAX)
}

/// Dollars, as events have them.
pub(crate) fn usd(money: Money) -> Value {
    serde_json::from_str(&money.to_string()).expect("dollars are written as a number")
}
