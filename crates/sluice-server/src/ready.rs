//! Readiness: whether an organisation's store accepts writes and answers reads.
//!
//! A probe renews the node's lease, checks for free disk space and reads the registry's
//! epoch. Its result is valid for `READY_AGE_MS`, however many requests come, because the
//! route needs no token.

use crate::limits::{READY_AGE_MS, READY_MS};
use crate::organisation::Organisation;
use sluice_core::port::ledger::ROLLED_BACK;
use sluice_core::port::store::StoreError;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The known state of a store.
#[derive(Debug, Default)]
pub struct Readiness {
    /// When the store was last probed, and the error if the probe failed.
    probed: tokio::sync::Mutex<Option<(Instant, Option<String>)>>,
    /// The damage of the database, once it was found.
    damage: Mutex<Option<String>>,
}

impl Readiness {
    /// Marks the database as damaged: it is not ready until the process is restarted.
    pub fn damaged(&self, why: String) {
        tracing::error!(why, "the store is damaged");
        *self.damage() = Some(why);
    }

    fn damage(&self) -> MutexGuard<'_, Option<String>> {
        self.damage.lock().expect("no thread panics while it holds the lock")
    }
}

/// Why an organisation cannot accept work; `None` if it is ready.
pub async fn trouble(organisation: &Organisation) -> Option<String> {
    let readiness = organisation.readiness();
    if let Some(why) = readiness.damage().clone() {
        return Some(why);
    }
    if let Some(why) = organisation.service().engine.trouble().borrow().clone() {
        return Some(why);
    }
    // Concurrent requests wait for this probe and use its result.
    let mut probed = readiness.probed.lock().await;
    if let Some((at, why)) = &*probed
        && at.elapsed() < Duration::from_millis(READY_AGE_MS)
    {
        return why.clone();
    }
    let probe = tokio::time::timeout(Duration::from_millis(READY_MS), probe(organisation)).await;
    let why = match probe {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("the store does not answer within {READY_MS} ms")),
    };
    *probed = Some((Instant::now(), why.clone()));
    why
}

async fn probe(organisation: &Organisation) -> Result<(), StoreError> {
    organisation.service().engine.probe().await?;
    let rows = organisation.rows().await?;
    if rows.is_rolled_back {
        return Err(StoreError::Corrupt(ROLLED_BACK.to_owned()));
    }
    Ok(())
}
