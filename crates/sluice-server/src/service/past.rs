//! Reads past decisions from the journals.

use super::registry::now_ms;
use super::{Service, find, policies};
use crate::refused::{self, ServiceResult};
use serde_json::Value;
use sluice_core::id::RunId;
use sluice_core::journal::envelope::{Seen, Shown};
use sluice_core::port::store::{Filter, RunRow};
use sluice_govern::facts::Verb;
use sluice_govern::policy::{Policies, PolicyFacts};
use sluice_govern::registry::PolicySet;
use std::collections::{BTreeMap, VecDeque};

/// Runs per query.
const PAGE: usize = 1000;
/// Maximum number of epochs that are searched for a policy set.
const EPOCHS_MAX: u64 = 10_000;

/// Selects past decisions.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// Only decisions that are no older than this, in milliseconds.
    pub since: Option<u64>,
    /// Only decisions of this run.
    pub run: Option<String>,
}

/// A past decision, with the facts that policies decided on.
pub struct PastDecision {
    /// The run that the decision belongs to.
    pub run: RunId,
    /// Id of the step.
    pub step: String,
    /// The event that records the decision.
    pub event: u64,
    /// When the decision was made.
    pub at_ms: u64,
    /// Hash of the policy set that was in force.
    pub hash: String,
    /// What the policies decided on.
    pub facts: PolicyFacts<'static>,
    /// Id of the tool call that the decision is about.
    pub call: Option<String>,
}

/// Iterates over past decisions, run by run, newest run first.
pub struct PastDecisions {
    from_ms: u64,
    /// Runs that were listed and not read yet.
    rows: VecDeque<RunRow>,
    before: Option<RunId>,
    last: bool,
    /// Number of decisions that were left out, because their facts are erased or unreadable.
    pub without: u64,
}

impl PastDecisions {
    /// Starts before the first run.
    pub async fn new(service: &Service, past: &Past) -> ServiceResult<PastDecisions> {
        let from_ms = past.since.map_or(0, |since| now_ms().saturating_sub(since));
        let mut rows = VecDeque::new();
        if let Some(text) = &past.run {
            rows.push_back(find::run(service, text).await?);
        }
        let last = !rows.is_empty();
        Ok(PastDecisions { from_ms, rows, before: None, last, without: 0 })
    }

    /// The decisions of the next run; `None` after the last run.
    pub async fn next(&mut self, service: &Service) -> ServiceResult<Option<Vec<PastDecision>>> {
        loop {
            if let Some(row) = self.rows.pop_front() {
                return Ok(Some(self.of_run(service, &row).await?));
            }
            if self.last {
                return Ok(None);
            }
            let page = Filter { before: self.before, limit: PAGE, ..Filter::default() };
            let page = service.store.list(page).await?;
            self.before = page.last().map(|row| row.run);
            self.last = page.len() < PAGE;
            let recent =
                |row: &RunRow| row.ended_at_ms.is_none_or(|ended_ms| ended_ms >= self.from_ms);
            self.rows.extend(page.into_iter().filter(recent));
        }
    }

    async fn of_run(
        &mut self,
        service: &Service,
        row: &RunRow,
    ) -> ServiceResult<Vec<PastDecision>> {
        let mut all = Vec::new();
        let Some(run) = find::load_if_readable(service, row.run).await? else { return Ok(all) };
        let mut after = 0;
        while after < run.version {
            let page = service.engine.events(&run, after).await.map_err(refused::load)?;
            let Some(last) = page.last() else { break };
            after = last.id();
            let shown = page.into_iter().filter_map(Seen::event);
            for event in shown.filter(|one| one.at_ms >= self.from_ms) {
                match event.kind.as_str() {
                    "governance.decided" => match read(row.run, &event) {
                        Some(decided) => all.push(decided),
                        None => self.without += 1,
                    },
                    "node.log" => name_call(&mut all, &event),
                    _ => {}
                }
            }
        }
        Ok(all)
    }
}

fn read(run: RunId, event: &Shown) -> Option<PastDecision> {
    let envelope: Value = serde_json::from_str(&event.json).ok()?;
    let payload = &envelope["payload"];
    let facts = serde_json::from_value(payload["facts"].clone()).ok()?;
    let text = |key: &str| payload[key].as_str().unwrap_or_default().to_owned();
    let (step, hash) = (text("nodeId"), text("policyHash"));
    Some(PastDecision { run, step, event: event.id, at_ms: event.at_ms, hash, facts, call: None })
}

/// Gives the newest decision the id of its tool call: the ruling follows the decision.
fn name_call(all: &mut [PastDecision], event: &Shown) {
    let Some(last) = all.last_mut().filter(|last| last.facts.verb == Verb::UseTool) else { return };
    // Most log lines are no rulings.
    if last.call.is_some() || !event.json.contains("\"ruling\"") {
        return;
    }
    let envelope: Value = serde_json::from_str(&event.json).unwrap_or_default();
    let line = &envelope["payload"];
    if line["nodeId"] == last.step && line["tool"] == last.facts.what.name() {
        last.call = line["callId"].as_str().map(str::to_owned);
    }
}

/// Policy sets that were in force or in shadow, by hash.
#[derive(Default)]
pub struct PolicyHistory {
    found: BTreeMap<String, Policies>,
    /// The epoch to read next; `None` means the newest.
    next: Option<u64>,
    looked: u64,
}

impl PolicyHistory {
    /// The policy set with this hash; `None` if the history does not contain it.
    pub async fn get(&mut self, service: &Service, hash: &str) -> ServiceResult<Option<&Policies>> {
        while !self.found.contains_key(hash) && self.looked < EPOCHS_MAX {
            let rows = service.store.registry(self.next).await?;
            self.looked += 1;
            let shadow = policies::stored(&rows.rows, PolicySet::Shadow);
            for files in [policies::active(&rows.rows), shadow].into_iter().flatten() {
                // A set that cannot be loaded any more is skipped.
                if !files.is_empty()
                    && let Ok(loaded) = Policies::load_stored(&files, &service.engine.catalog())
                {
                    self.found.entry(loaded.hash().to_owned()).or_insert(loaded);
                }
            }
            match rows.epoch.checked_sub(1) {
                Some(earlier) => self.next = Some(earlier),
                None => self.looked = EPOCHS_MAX,
            }
        }
        Ok(self.found.get(hash))
    }
}
