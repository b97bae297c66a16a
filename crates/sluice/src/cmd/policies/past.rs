//! What was decided before, out of the journals.

use crate::cli::registry::Past;
use crate::local::Local;
use serde_json::Value;
use sluice_core::journal::envelope::Seen;
use sluice_core::port::store::{Filter, RunRow};
use sluice_core::run::id::RunId;
use sluice_govern::policy::{Policies, PolicyFacts};
use sluice_server::refused;
use sluice_server::service::find;
use sluice_server::service::policies;
use sluice_server::service::registry::now_ms;
use std::collections::BTreeMap;

/// Runs read at once.
const PAGE: usize = 1000;
/// Most epochs that are looked through for a set that was in force once.
const EPOCHS_MAX: u64 = 10_000;

/// A decision with what policies saw of it.
pub(super) struct Decided {
    pub(super) run: RunId,
    pub(super) step: String,
    pub(super) event: u64,
    pub(super) at_ms: u64,
    /// The set that was in force.
    pub(super) hash: String,
    pub(super) facts: PolicyFacts,
}

/// Shows every decision that was asked for to `see`. Answers how many could not
/// be shown, since what policies saw of them is erased or unreadable.
pub(super) async fn each(
    local: &Local,
    past: &Past,
    mut see: impl AsyncFnMut(Decided) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let from_ms = past.since.map_or(0, |since| now_ms().saturating_sub(since));
    let mut without = 0;
    if let Some(text) = &past.run {
        let row = find::run(local, text).await?;
        return of_run(local, &row, from_ms, &mut see).await;
    }
    let mut before = None;
    loop {
        let page = Filter { before, limit: PAGE, ..Filter::default() };
        let page = local.store.list(page).await?;
        for row in &page {
            if row.ended_at_ms.is_none_or(|ended_ms| ended_ms >= from_ms) {
                without += of_run(local, row, from_ms, &mut see).await?;
            }
        }
        before = page.last().map(|row| row.run);
        if page.len() < PAGE {
            return Ok(without);
        }
    }
}

async fn of_run(
    local: &Local,
    row: &RunRow,
    from_ms: u64,
    see: &mut impl AsyncFnMut(Decided) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let Some(run) = find::load_if_readable(local, row.run).await? else { return Ok(0) };
    let (mut after, mut without) = (0, 0);
    while after < run.version {
        let page = local.engine.events(&run, after).await.map_err(refused::load)?;
        let Some(last) = page.last() else { break };
        after = last.id();
        let decided = |kind: &str| kind == "governance.decided";
        let shown = page.into_iter().filter_map(Seen::event);
        for event in shown.filter(|one| decided(&one.kind) && one.at_ms >= from_ms) {
            let envelope: Value = serde_json::from_str(&event.json).unwrap_or_default();
            let payload = &envelope["payload"];
            let Ok(facts) = serde_json::from_value(payload["facts"].clone()) else {
                without += 1;
                continue;
            };
            let text = |key: &str| payload[key].as_str().unwrap_or_default().to_owned();
            let (step, hash) = (text("nodeId"), text("policyHash"));
            let (event, at_ms) = (event.id, event.at_ms);
            see(Decided { run: row.run, step, event, at_ms, hash, facts }).await?;
        }
    }
    Ok(without)
}

/// Sets that were in force, by hash.
#[derive(Default)]
pub(super) struct Sets {
    found: BTreeMap<String, Policies>,
    /// The epoch to look at next; none before the newest was.
    next: Option<u64>,
    looked: u64,
}

impl Sets {
    /// The set of a hash; none if the history does not have it.
    pub(super) async fn get(
        &mut self,
        local: &Local,
        hash: &str,
    ) -> anyhow::Result<Option<&Policies>> {
        while !self.found.contains_key(hash) && self.looked < EPOCHS_MAX {
            let rows = local.store.registry(self.next).await?;
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
