//! What was decided before, out of the journals.

use super::registry::now_ms;
use super::{Service, find, policies};
use crate::refused::{self, Done};
use serde_json::Value;
use sluice_core::journal::envelope::{Seen, Shown};
use sluice_core::port::store::{Filter, RunRow};
use sluice_core::run::id::RunId;
use sluice_govern::policy::{Policies, PolicyFacts};
use std::collections::{BTreeMap, VecDeque};

/// Runs read at once.
const PAGE: usize = 1000;
/// Most epochs that are looked through for a set that was in force once.
const EPOCHS_MAX: u64 = 10_000;

/// Which decisions of the past.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// Only decisions that are no older than this, in milliseconds.
    pub since: Option<u64>,
    /// Only decisions of this run.
    pub run: Option<String>,
}

/// A decision with what policies saw of it.
pub struct Decided {
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: String,
    /// The event that says so.
    pub event: u64,
    /// When.
    pub at_ms: u64,
    /// The set that was in force.
    pub hash: String,
    /// What policies saw.
    pub facts: PolicyFacts<'static>,
}

/// Goes through decisions of the past, run by run, newest run first.
pub struct Walk {
    from_ms: u64,
    /// Runs that were listed and not looked at yet.
    rows: VecDeque<RunRow>,
    before: Option<RunId>,
    last: bool,
    /// How many decisions could not be shown, since what policies saw of them is
    /// erased or unreadable.
    pub without: u64,
}

impl Walk {
    /// Begins.
    pub async fn begin(service: &Service, past: &Past) -> Done<Walk> {
        let from_ms = past.since.map_or(0, |since| now_ms().saturating_sub(since));
        let mut rows = VecDeque::new();
        if let Some(text) = &past.run {
            rows.push_back(find::run(service, text).await?);
        }
        let last = !rows.is_empty();
        Ok(Walk { from_ms, rows, before: None, last, without: 0 })
    }

    /// The decisions of the next run; none when there are no more runs.
    pub async fn next(&mut self, service: &Service) -> Done<Option<Vec<Decided>>> {
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

    async fn of_run(&mut self, service: &Service, row: &RunRow) -> Done<Vec<Decided>> {
        let mut all = Vec::new();
        let Some(run) = find::load_if_readable(service, row.run).await? else { return Ok(all) };
        let mut after = 0;
        while after < run.version {
            let page = service.engine.events(&run, after).await.map_err(refused::load)?;
            let Some(last) = page.last() else { break };
            after = last.id();
            let shown = page.into_iter().filter_map(Seen::event);
            let decided =
                |one: &Shown| one.kind == "governance.decided" && one.at_ms >= self.from_ms;
            for event in shown.filter(decided) {
                match read(row.run, &event) {
                    Some(decided) => all.push(decided),
                    None => self.without += 1,
                }
            }
        }
        Ok(all)
    }
}

fn read(run: RunId, event: &Shown) -> Option<Decided> {
    let envelope: Value = serde_json::from_str(&event.json).ok()?;
    let payload = &envelope["payload"];
    let facts = serde_json::from_value(payload["facts"].clone()).ok()?;
    let text = |key: &str| payload[key].as_str().unwrap_or_default().to_owned();
    let (step, hash) = (text("nodeId"), text("policyHash"));
    Some(Decided { run, step, event: event.id, at_ms: event.at_ms, hash, facts })
}

/// Sets that were in force, by hash.
#[derive(Default)]
pub struct Sets {
    found: BTreeMap<String, Policies>,
    /// The epoch to look at next; none before the newest was.
    next: Option<u64>,
    looked: u64,
}

impl Sets {
    /// The set of a hash; none if the history does not have it.
    pub async fn get(&mut self, service: &Service, hash: &str) -> Done<Option<&Policies>> {
        while !self.found.contains_key(hash) && self.looked < EPOCHS_MAX {
            let rows = service.store.registry(self.next).await?;
            self.looked += 1;
            // A set that cannot be read any more decides nothing.
            if let Ok(files) = policies::active(&rows.rows)
                && let Ok(loaded) = Policies::load(&files)
            {
                self.found.entry(loaded.hash().to_owned()).or_insert(loaded);
            }
            match rows.epoch.checked_sub(1) {
                Some(earlier) => self.next = Some(earlier),
                None => self.looked = EPOCHS_MAX,
            }
        }
        Ok(self.found.get(hash))
    }
}
