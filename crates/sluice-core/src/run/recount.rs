//! The values of counters, computed from the journals.
//!
//! A turn changes counters in the append that makes its events durable. The verifier folds the
//! journals and computes the same changes; the counters of the store must agree.
//!
//! INVARIANT: every change of a plain counter follows from an event and the state of the run
//! before it. Counters over a window are not recounted, because they change with time.

use super::decide::draft::costs::{booked, settlement, signed};
use super::evolve::money::Landing;
use super::history::counters::{ends, open_name, takes};
use super::state::Run;
use crate::journal::event::{Event, StepAt, StepEvent, Terms};
use crate::port::adapter::Usage;
use serde_json::{Map, Value};
use sluice_govern::account;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Counters, computed from the folded journals.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recount(BTreeMap<String, i64>);

impl Recount {
    /// Folds an event into a run, and applies its changes of counters.
    pub fn fold(&mut self, run: &mut Run, event: &Event, at_ms: u64) {
        match event {
            Event::Step(at, started @ StepEvent::Started(dispatch)) => {
                self.history(run, *at, started, &[]);
                if let Some(previous) = run.in_flight_terms(*at).cloned() {
                    self.reserve(&previous, -1);
                }
                self.reserve(&dispatch.terms, 1);
                run.evolve(event, at_ms);
            }
            Event::Step(at, StepEvent::Reconciled { dispatch_no, usage }) => {
                let open = run.open.get(&(*at, *dispatch_no)).map(|open| Arc::clone(&open.terms));
                run.evolve(event, at_ms);
                if let Some(terms) = open {
                    self.settle(run, *at, &terms, usage, at_ms);
                }
            }
            Event::Step(at, node) => {
                let landings = run.landings(*at, node);
                self.history(run, *at, node, &landings);
                run.evolve(event, at_ms);
                for landing in landings {
                    self.land(run, &landing, at_ms);
                }
            }
            Event::BudgetAlert(figures) => {
                self.alert(&figures.0);
                run.evolve(event, at_ms);
            }
            _ => run.evolve(event, at_ms),
        }
    }

    /// Counters that are not zero, by name.
    pub fn counts(&self) -> impl Iterator<Item = (&str, i64)> {
        let counts = self.0.iter().filter(|(_, count)| **count != 0);
        counts.map(|(name, count)| (name.as_str(), *count))
    }

    fn add(&mut self, name: String, delta: i64) {
        let count = self.0.entry(name).or_default();
        *count = count.saturating_add(delta);
    }

    /// Takes a slot and reserves money for a dispatch, or returns both.
    fn reserve(&mut self, terms: &Terms, times: i64) {
        for one in &terms.accounts {
            self.add(account::held(&one.name), times * signed(terms.reserved));
        }
        if let Some(agent) = &terms.slot {
            self.add(account::busy(agent), times);
        }
    }

    /// Applies what an event takes and ends of counters about history. Must be called
    /// before the event is folded.
    fn history(&mut self, run: &Run, at: StepAt, event: &StepEvent, landings: &[Landing]) {
        for end in ends(run, at, event, landings) {
            self.add(open_name(&end.taken.counter), -end.taken.amount);
        }
        for taken in takes(event) {
            self.add(open_name(&taken.counter), taken.amount);
        }
    }

    fn land(&mut self, run: &Run, landing: &Landing, at_ms: u64) {
        let Landing { at, terms, usage, .. } = landing;
        if let Some(agent) = &terms.slot {
            self.add(account::busy(agent), -1);
        }
        if let Some(usage) = usage {
            self.settle(run, *at, terms, usage, at_ms);
        }
    }

    fn settle(&mut self, run: &Run, at: StepAt, terms: &Terms, usage: &Usage, at_ms: u64) {
        let settled = settlement(terms, usage.cost);
        for one in &terms.accounts {
            self.add(account::held(&one.name), settled.held_delta);
            self.add(account::spent(&one.name), settled.spent_delta);
            self.add(account::over(&one.name), settled.over_delta);
        }
        for (name, count) in booked(run, at, terms, usage, at_ms) {
            self.add(name.to_string(), count);
        }
    }

    /// Counts an alert: each threshold of a budget is reported once.
    fn alert(&mut self, figures: &Map<String, Value>) {
        let text = |name: &str| figures.get(name).and_then(Value::as_str);
        let percent = figures.get("percent").and_then(Value::as_u64);
        let percent = percent.and_then(|percent| u8::try_from(percent).ok());
        if let (Some("threshold"), Some(account), Some(percent)) =
            (text("kind"), text("account"), percent)
        {
            self.add(account::alerted(account, percent), 1);
        }
    }
}
