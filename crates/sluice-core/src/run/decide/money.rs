//! Money: settled when a dispatch ends, told of when a cap comes near.
//!
//! INVARIANT: what was reserved is given back exactly once, in the accounts it
//! was reserved in: with the end of the dispatch if its cost is known then, else
//! when it becomes known, else a day later at what was reserved.

use super::Turn;
use crate::cost;
use crate::journal::event::{Account, BudgetFigures, Event, StepAt, StepEvent, Terms};
use crate::limits::{COST_MICRO_CENTS_MAX, TOKENS_MAX};
use crate::money::Money;
use crate::port::adapter::Usage;
use crate::run::evolve::money::Landing;
use crate::run::state::Run;
use serde_json::{Map, Value, json};
use sluice_govern::account::{self, CounterName, Name, Settlement, THRESHOLDS, Tokens};
use sluice_govern::registry::Price;

impl Turn<'_> {
    /// A dispatch has come to its end.
    pub(super) fn landed(&mut self, landing: &Landing) {
        let Landing { at, dispatch_no, terms, usage } = landing;
        if let Some(agent) = &terms.slot {
            self.guards.add(Name::busy(agent), -1);
        }
        if let Some(usage) = usage {
            self.settle(*at, *dispatch_no, terms, usage.cost);
            self.book(*at, terms, usage);
        }
    }

    /// An answer to a dispatch that was given up: nothing but its cost counts.
    /// Whether it was one.
    pub(super) fn reconcile(&mut self, at: StepAt, dispatch_no: u32, usage: Usage) -> bool {
        let open = self.run.open.get(&(at, dispatch_no));
        let open = open.filter(|open| !usage.unknown && self.given.now_ms < open.until_ms);
        let Some(open) = open else { return false };
        let (price, is_reserved) = (open.terms.price.clone(), open.is_reserved());
        let usage = charged(usage, price.as_ref());
        if !is_reserved && taken(&usage) == [0; 3] {
            return false;
        }
        let usage = self.believed(at, usage);
        if usage.unknown {
            // What it says it cost nobody believes, and it says nothing more.
            self.settle_unknown(at, dispatch_no);
        } else {
            self.close_reservation(at, dispatch_no, &usage);
        }
        true
    }

    /// Nobody has said what a dispatch cost: what was reserved is taken for it.
    pub(super) fn settle_unknown(&mut self, at: StepAt, dispatch_no: u32) {
        let reserved = self.run.open.get(&(at, dispatch_no)).map(|open| open.terms.reserved);
        let usage = Usage { cost: reserved.unwrap_or_default(), ..Usage::default() };
        self.close_reservation(at, dispatch_no, &usage);
    }

    fn close_reservation(&mut self, at: StepAt, dispatch_no: u32, usage: &Usage) {
        let Some(open) = self.run.open.get(&(at, dispatch_no)).cloned() else { return };
        self.node(at, StepEvent::Reconciled { dispatch_no, usage: usage.clone() });
        self.settle(at, dispatch_no, &open.terms, usage.cost);
        self.book(at, &open.terms, usage);
    }

    /// What it cost is counted by hour, agent, workflow and model.
    fn book(&mut self, at: StepAt, terms: &Terms, usage: &Usage) {
        for (name, count) in booked(self.run, at, terms, usage, self.given.now_ms) {
            self.guards.note(name, count);
        }
    }

    /// What it cost takes the place of what was reserved.
    fn settle(&mut self, at: StepAt, dispatch_no: u32, terms: &Terms, cost: Money) {
        let settled = settlement(terms, cost);
        for one in &terms.accounts {
            let account = self.guards.account(self.given.authority, &one.name);
            account.held.add(settled.held_delta);
            account.spent.add(settled.spent_delta);
            account.over.add(settled.over_delta);
        }
        if settled.over_delta > 0 && !terms.accounts.is_empty() {
            let accounts: Vec<&str> = terms.accounts.iter().map(|one| &*one.name).collect();
            self.alert(json!({
                "kind": "budget_overrun", "node": self.run.name(at),
                "dispatchNo": dispatch_no, "accounts": accounts,
                "reserved": usd(terms.reserved), "cost": usd(cost),
            }));
        }
        for one in &terms.accounts {
            self.tell_thresholds(one);
        }
    }

    /// Tells of every share of a cap that is reached and was not told of. What is
    /// spent is believed to be below the next one: another process may have spent
    /// more, and then it is decided again.
    fn tell_thresholds(&mut self, one: &Account) {
        let authority = self.given.authority;
        let account = self.guards.account(authority, &one.name);
        let spent = u64::try_from(account.tally().spent).unwrap_or(0);
        account.spent.believe(below_next(one.cap, spent));
        for percent in account::crossed(one.cap, Money::ZERO, Money::from_micro_cents(spent)) {
            let told = account::told(&one.name, percent);
            if self.guards.count(authority, Name::of(&told)) > 0 {
                continue;
            }
            self.guards.take(Name::of(&told), 1, Some(1));
            self.alert(json!({
                "kind": "threshold", "account": &*one.name, "percent": percent,
                "spent": usd(Money::from_micro_cents(spent)), "cap": usd(one.cap),
            }));
        }
    }

    pub(super) fn alert(&mut self, figures: Value) {
        let figures = match figures {
            Value::Object(figures) => figures,
            _ => Map::new(),
        };
        self.emit(Event::BudgetAlert(BudgetFigures(figures)));
    }

    /// What tokens that the dispatch in flight took cost, by the price that was pinned.
    pub(super) fn priced(&self, at: StepAt, usage: Usage) -> Usage {
        let terms = self.run.in_flight_terms(at);
        charged(usage, terms.and_then(|terms| terms.price.as_ref()))
    }

    /// Figures that nobody can believe are left out, and that is told.
    pub(super) fn believed(&mut self, at: StepAt, usage: Usage) -> Usage {
        let tokens = usage.input_tokens.max(usage.output_tokens).max(usage.thinking_tokens);
        if usage.cost.micro_cents() <= COST_MICRO_CENTS_MAX && tokens <= TOKENS_MAX {
            return usage;
        }
        self.alert(json!({
            "kind": "figures_refused", "node": self.run.name(at),
            "cost": usd(usage.cost), "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens, "thinkingTokens": usage.thinking_tokens,
        }));
        Usage { model: usage.model, ..Usage::unknown() }
    }
}

/// What the end of a dispatch adds to each of its accounts.
pub(in crate::run) fn settlement(terms: &Terms, cost: Money) -> Settlement {
    let settled = account::settle(countable(terms.reserved), countable(cost));
    settled.expect("what is countable is counted")
}

/// What a dispatch whose cost is known adds to the counters of costs. Most work costs
/// nothing, and nothing is counted.
pub(in crate::run) fn booked(
    run: &Run,
    at: StepAt,
    terms: &Terms,
    usage: &Usage,
    now_ms: u64,
) -> impl Iterator<Item = (CounterName, i64)> {
    let taken = taken(usage);
    let names = (taken != [0; 3]).then(|| {
        // A registered agent is named with its slot; others by the step, which
        // may be gone when the cost becomes known.
        let doing = || run.get(at).and_then(|state| state.agent());
        let agent = terms.slot.as_deref().or_else(doing).or_else(|| run.agent_of(at.step));
        let of = cost::Of {
            agent: agent.unwrap_or_default(),
            workflow: &run.started.workflow,
            model: usage.model.as_deref().or(terms.model.as_deref()).unwrap_or_default(),
        };
        cost::names(now_ms, of)
    });
    let counts = taken.into_iter().chain([1]);
    names.into_iter().flatten().zip(counts).filter(|(_, count)| *count != 0)
}

/// What is counted of a usage: money, and tokens in and out.
fn taken(usage: &Usage) -> [i64; 3] {
    let tokens = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    [signed(usage.cost), tokens(usage.input_tokens), tokens(usage.output_tokens)]
}

/// What tokens cost where whoever did the work did not say. Without a price
/// nobody can.
fn charged(usage: Usage, price: Option<&Price>) -> Usage {
    if !usage.unpriced {
        return usage;
    }
    let tokens = Tokens {
        input: usage.input_tokens,
        cached: usage.cached_tokens,
        output: usage.output_tokens.saturating_add(usage.thinking_tokens),
    };
    let cost = price.map_or(usage.cost, |price| account::bill(price, tokens));
    Usage { cost, unpriced: false, ..usage }
}

/// The most that can be spent without reaching the next share that is told of.
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
pub(in crate::run) fn signed(money: Money) -> i64 {
    i64::try_from(money.micro_cents()).unwrap_or(i64::MAX)
}

/// Dollars, as every wire has them.
fn usd(money: Money) -> Value {
    serde_json::from_str(&money.to_string()).expect("dollars are written as a number")
}
