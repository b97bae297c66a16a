//! Invariants of counters and admissions, checked after every append.
//!
//! The checker counts on its own, from the events alone: what each dispatch reserved and
//! what its end released. The store's counters must agree, and every dispatch must respect
//! the rows in force at that moment.

use super::caps::{self, Admitted};
use crate::registry::{ASK, BROKEN};
use crate::tally::Tally;
use serde_json::{Map, Value};
use sluice_core::cost::is_spend;
use sluice_core::id::RunId;
use sluice_core::journal::event::{Account, Event, Path, StepAt, StepEvent, Terms};
use sluice_core::money::Money;
use sluice_core::port::adapter::{Request, Usage};
use sluice_core::port::ledger::Rows;
use sluice_core::port::store::Guard;
use sluice_core::run::state::Run;
use sluice_core::status::Waiting;
use sluice_govern::account;
use sluice_govern::registry::{Fabric, Kind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Everything that was reserved and released.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(super) fabric: Fabric,
    /// Whether the current policies can be parsed, and whether they require approval.
    broken: bool,
    pub(super) asks: bool,
    /// Expected counters, from the journals.
    pub(super) expected: BTreeMap<String, i64>,
    /// Counters as the store reports them.
    counted: BTreeMap<String, i64>,
    /// Counters that this append changes.
    touched: BTreeSet<String>,
    /// Dispatches in flight.
    out: BTreeMap<(RunId, StepAt), Out>,
    /// Abandoned dispatches with unknown cost.
    open: BTreeMap<(RunId, StepAt, u32), Arc<Terms>>,
    /// Dispatches that adapters received, and those whose cost they reported.
    begun: BTreeSet<(RunId, String, u32)>,
    costed: BTreeSet<(RunId, String, u32)>,
    told: BTreeSet<(String, u64)>,
    /// Dispatches, not counting repeated ones.
    pub(crate) admissions: u64,
    /// What this append admits and settles.
    admitted: Vec<Admitted>,
    settled: Vec<Account>,
    pub(super) limits: caps::Limits,
}

struct Out {
    terms: Arc<Terms>,
    numbers: Vec<u32>,
}

impl Ledger {
    /// The rows have changed.
    pub(crate) fn set(&mut self, rows: &Rows) {
        self.fabric = Fabric::read(rows.epoch, &rows.rows);
        let policy =
            |name: &str| rows.rows.iter().any(|row| row.kind == Kind::Policy && row.name == name);
        self.broken = policy(BROKEN);
        self.asks = policy(ASK);
    }

    /// An adapter was called.
    pub(super) fn begins(&mut self, request: &Request) {
        self.begun.insert((request.run, request.step.clone(), request.dispatch_no));
    }

    /// An adapter reported a cost.
    pub(crate) fn costs(&mut self, request: &Request) {
        self.costed.insert((request.run, request.step.clone(), request.dispatch_no));
    }

    /// Checks an event before it is folded. `before` is the previous event.
    pub(super) fn event(
        &mut self,
        run: &Run,
        event: &Event,
        before: Option<&Event>,
        tally: &mut Tally,
    ) -> Result<(), String> {
        match event {
            Event::Step(at, node) => self.node(run, *at, node, before, tally),
            Event::BudgetAlert(figures) => self.alert(&figures.0, tally),
            _ => Ok(()),
        }
    }

    fn node(
        &mut self,
        run: &Run,
        at: StepAt,
        event: &StepEvent,
        before: Option<&Event>,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let unknown = Usage::unknown();
        let usage = match event {
            StepEvent::Started(dispatch) if dispatch.path != Path::FanOut => {
                self.decided(at, dispatch.digest.as_deref(), before)?;
                let admitted = Admitted::of(run, at, dispatch);
                return self.started(admitted, tally);
            }
            StepEvent::Completed(completed) => &completed.usage,
            StepEvent::Failed(ending) | StepEvent::TimedOut(ending) => &ending.usage,
            StepEvent::Cancelled { usage, .. } => usage,
            StepEvent::Skipped(skip) => &skip.usage,
            StepEvent::Retried(retried) => &retried.usage,
            StepEvent::ApprovalRequested(asked) => &asked.usage,
            StepEvent::Waiting(wait) => {
                if let Some(code) = &wait.code {
                    tally.reach(format!("wait {code}"));
                }
                match wait.reason {
                    Waiting::Queued | Waiting::Gate => &unknown,
                    _ => return Ok(()),
                }
            }
            StepEvent::GovernanceDecided(record) => {
                if let Some(code) = record.value()["blockedBy"]["code"].as_str() {
                    tally.reach(format!("blocked {code}"));
                }
                return Ok(());
            }
            StepEvent::Blocked { .. } | StepEvent::Queued { .. } => &unknown,
            StepEvent::Invalidated => {
                let flying: Vec<StepAt> = (self.out.keys())
                    .filter(|(one, place)| *one == run.id && place.step == at.step)
                    .map(|(_, place)| *place)
                    .collect();
                for one in flying {
                    self.lands(run, one, &unknown, tally)?;
                }
                return Ok(());
            }
            StepEvent::Reconciled { dispatch_no, usage } => {
                tally.reach("reconciled");
                let open = self.open.remove(&(run.id, at, *dispatch_no));
                let terms = open.ok_or("a reservation is settled once")?;
                self.settles(&terms, usage.cost);
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.lands(run, at, usage, tally)
    }

    /// A dispatch directly follows the gates' decision about the same action.
    fn decided(
        &self,
        at: StepAt,
        digest: Option<&str>,
        before: Option<&Event>,
    ) -> Result<(), String> {
        let Some(Event::Step(place, StepEvent::GovernanceDecided(record))) = before else {
            return Err("a dispatch follows a decision: there is none".into());
        };
        let record = record.value();
        let says = |key: &str| record[key].as_str();
        if *place != at || says("disposition") != Some("allow") || says("actionDigest") != digest {
            return Err("a dispatch follows a decision: it is about something else".into());
        }
        let epoch = record["registry"].as_u64();
        if epoch != Some(self.fabric.epoch) || self.broken {
            let now = self.fabric.epoch;
            return Err(format!("a dispatch respects the current rows: {epoch:?}, not {now}"));
        }
        Ok(())
    }

    fn started(&mut self, mut admitted: Admitted, tally: &mut Tally) -> Result<(), String> {
        let key = (admitted.run, admitted.at);
        if let Some(out) = self.out.get_mut(&key) {
            // Sent again after a crash: its new reservation replaces the old one.
            tally.reach("sent again");
            out.numbers.push(admitted.dispatch_no);
            let had = std::mem::replace(&mut out.terms, Arc::clone(&admitted.terms));
            self.holds(&had, -1);
            self.holds(&Arc::clone(&admitted.terms), 1);
            admitted.again = true;
        } else {
            let terms = Arc::clone(&admitted.terms);
            let numbers = vec![admitted.dispatch_no];
            self.holds(&terms, 1);
            self.admissions += 1;
            self.out.insert(key, Out { terms, numbers });
        }
        self.admitted.push(admitted);
        Ok(())
    }

    /// Counts what a dispatch reserves or releases.
    fn holds(&mut self, terms: &Terms, times: i64) {
        if let Some(agent) = &terms.slot {
            self.add(account::busy(agent), times);
        }
        for one in &terms.accounts {
            self.add(account::held(&one.name), times * signed(terms.reserved));
        }
    }

    /// Ends a dispatch, if one is in flight.
    fn lands(
        &mut self,
        run: &Run,
        at: StepAt,
        usage: &Usage,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let Some(Out { terms, numbers }) = self.out.remove(&(run.id, at)) else { return Ok(()) };
        if let Some(agent) = &terms.slot {
            self.add(account::busy(agent), -1);
        }
        if !usage.unknown {
            let name = run.name(at);
            let key = |number: &u32| (run.id, name.clone(), *number);
            let begun = numbers.iter().any(|number| self.begun.contains(&key(number)));
            let costed = numbers.iter().any(|number| self.costed.contains(&key(number)));
            if begun && !costed && !terms.accounts.is_empty() {
                return Err("a step that may have started keeps its reservation".into());
            }
            self.settles(&terms, usage.cost);
        } else {
            if !terms.accounts.is_empty() {
                tally.reach("cost unknown");
            }
            let number = *numbers.last().expect("it was sent");
            self.open.insert((run.id, at, number), terms);
        }
        Ok(())
    }

    fn settles(&mut self, terms: &Terms, cost: Money) {
        let (actual, reserved) = (signed(cost), signed(terms.reserved));
        for one in &terms.accounts {
            self.add(account::held(&one.name), actual - reserved);
            self.add(account::spent(&one.name), actual);
            self.add(account::over(&one.name), (actual - reserved).max(0));
            // Free work reaches no threshold: a node with stale counters need not
            // report one.
            if actual > 0 {
                self.settled.push(one.clone());
            }
        }
    }

    fn alert(&mut self, figures: &Map<String, Value>, tally: &mut Tally) -> Result<(), String> {
        let kind = figures.get("kind").and_then(Value::as_str).unwrap_or_default();
        tally.reach(format!("alert {kind}"));
        if kind != "threshold" {
            return Ok(());
        }
        let account = figures["account"].as_str().unwrap_or_default().to_owned();
        let percent = figures["percent"].as_u64().unwrap_or_default();
        self.add(format!("told:{percent}:{account}"), 1);
        if !self.told.insert((account, percent)) {
            return Err("a threshold is reported once".into());
        }
        Ok(())
    }

    fn add(&mut self, counter: String, delta: i64) {
        self.touched.insert(counter.clone());
        *self.expected.entry(counter).or_default() += delta;
    }

    /// The append is written, at `now_ms` of the store's clock.
    pub(super) fn appended(
        &mut self,
        guards: &[Guard],
        counts: &[i64],
        now_ms: u64,
    ) -> Result<(), String> {
        let admitted = std::mem::take(&mut self.admitted);
        let settled = std::mem::take(&mut self.settled);
        for one in &admitted {
            caps::check(self, one, now_ms)?;
        }
        self.limits.hold(&self.expected)?;
        // Only the last settlement of an account saw everything that was spent.
        let settled: BTreeMap<String, Account> =
            settled.into_iter().map(|one| (one.name.to_string(), one)).collect();
        for one in settled.values() {
            self.thresholds(one)?;
        }
        for (guard, count) in guards.iter().zip(counts) {
            // Spend is compared with the runs when all have ended.
            let kept = guard.counter == account::REGISTRY || is_spend(&guard.counter);
            if guard.window_ms.is_none() && !kept {
                self.touched.insert(guard.counter.whole());
                self.counted.insert(guard.counter.whole(), *count);
            }
        }
        for counter in std::mem::take(&mut self.touched) {
            self.agrees(&counter)?;
        }
        Ok(())
    }

    fn agrees(&self, counter: &str) -> Result<(), String> {
        let expected = self.expected.get(counter).copied().unwrap_or_default();
        let counted = self.counted.get(counter).copied().unwrap_or_default();
        if expected == counted {
            return Ok(());
        }
        Err(format!("counters agree with the journals: {counter} is {counted}, not {expected}"))
    }

    /// Every reached threshold of a cap was reported.
    fn thresholds(&self, one: &Account) -> Result<(), String> {
        let spent = self.expected.get(&account::spent(&one.name)).copied().unwrap_or_default();
        let (spent, cap) = (i128::from(spent), i128::from(one.cap.micro_cents()));
        for percent in [50, 80, 100] {
            let reached = spent > 0 && spent * 100 >= cap * i128::from(percent);
            if reached && !self.told.contains(&(one.name.to_string(), percent)) {
                return Err(format!("a threshold is reported: {percent} of {}", one.name));
            }
        }
        Ok(())
    }

    /// When every run has ended, only spent and unsettled amounts remain.
    pub(crate) fn rests(&self) -> Result<(), String> {
        for (counter, count) in &self.expected {
            if counter.starts_with("busy:") && *count != 0 {
                return Err(format!("every slot is released: {counter} is {count}"));
            }
            let Some(name) = counter.strip_prefix("held:") else { continue };
            let spent = self.expected.get(&account::spent(name)).copied().unwrap_or_default();
            let open = self
                .open
                .values()
                .filter(|terms| terms.accounts.iter().any(|account| *account.name == *name));
            let open: i64 = open.map(|terms| signed(terms.reserved)).sum();
            if *count != spent + open {
                return Err(format!("every unspent reservation is released: {counter} is {count}"));
            }
        }
        Ok(())
    }

    /// Every expected counter with its value.
    pub(crate) fn counters(&self) -> Vec<(String, i64)> {
        self.expected.iter().map(|(name, count)| (name.clone(), *count)).collect()
    }
}

pub(super) fn signed(money: Money) -> i64 {
    i64::try_from(money.micro_cents()).unwrap_or(i64::MAX)
}
