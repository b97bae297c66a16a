//! Verifies the audit of a migrated store, and compares every run.

use super::MIGRATE_UNVERIFIED;
use crate::data_location::DataLocation;
use crate::key;
use crate::refused::{by_database, by_store};
use serde_json::Value;
use sluice_core::evidence::verify::Verifier;
use sluice_core::port::store::{Filter, Store};
use sluice_engine::error::LoadError;
use sluice_engine::examine::Examiner;
use sluice_engine::world::SystemClock;
use sluice_server::refused::Refused;
use sluice_server::service::audit::verify;
use sluice_store::postgres::Time;
use sluice_store::sqlite::SqliteStore;
use sluice_store::transfer::Transfer;
use std::sync::Arc;

const PAGE: usize = 1000;

/// The result of the checks.
pub(super) struct Checked {
    /// The report of `audit verify`.
    pub(super) audit: Value,
    /// Runs with the same state in both stores.
    pub(super) runs: u64,
    /// Runs that are unreadable in both stores.
    pub(super) unreadable: u64,
}

impl Checked {
    pub(super) fn summary(&self) -> String {
        let number = |name: &str| self.audit[name].as_u64().unwrap_or(0);
        let [seals, entries, events] = ["seals", "entries", "events"].map(number);
        let mut said = format!(
            "compared; {seals} seals, {entries} entries and {events} events verify; \
             {} runs come to the same",
            self.runs
        );
        if self.unreadable > 0 {
            said.push_str(&format!(", {} could not be read before either", self.unreadable));
        }
        said
    }
}

/// Verifies the audit of the database, loads every run from both stores, and registers the keys
/// in the database.
pub(super) async fn check(place: &DataLocation, transfer: &Transfer) -> anyhow::Result<Checked> {
    let dir = place.dir();
    let here = SqliteStore::open(dir, Arc::new(SystemClock));
    let here = here.map_err(|error| by_store(dir, &error))?;
    let there = transfer.target(Time::Database).map_err(|error| by_database(&error))?;
    let report = verify::read(&there, Verifier::new(key::public(dir))).await?;
    if !report.is_clean() {
        let findings = report.findings.len() as u64 + report.more;
        let message = format!("the audit does not verify: {findings} findings");
        let remedy = format!(
            "look at them with `sluice audit verify --data {}`: the directory is as it was",
            dir.display()
        );
        return Err(Refused::new(MIGRATE_UNVERIFIED, message, remedy).into());
    }
    let (runs, unreadable) = folds(&here, &there).await?;
    place.register_keys(&there).await?;
    Ok(Checked { audit: verify::object(&report), runs, unreadable })
}

/// Counts equal and unreadable runs.
async fn folds(here: &dyn Store, there: &dyn Store) -> anyhow::Result<(u64, u64)> {
    let (one, other) = (Examiner::default(), Examiner::default());
    let (mut runs, mut unreadable) = (0, 0);
    let mut filter = Filter { limit: PAGE, ..Filter::default() };
    loop {
        let rows = here.list(filter.clone()).await?;
        let Some(last) = rows.last() else { return Ok((runs, unreadable)) };
        filter.before = Some(last.run);
        for run in rows.iter().map(|row| row.run) {
            match (one.state(here, run).await, other.state(there, run).await) {
                (Ok(one), Ok(other)) if one == other => runs += 1,
                (Err(LoadError::Store(error)), _) | (_, Err(LoadError::Store(error))) => {
                    return Err(error.into());
                }
                (Err(_), Err(_)) => unreadable += 1,
                _ => {
                    let message = format!("{run} is not the same in both stores");
                    let remedy = "drop what was moved to the database and run it again; the \
                                  directory is as it was";
                    return Err(Refused::new(MIGRATE_UNVERIFIED, message, remedy).into());
                }
            }
        }
    }
}
