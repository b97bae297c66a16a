//! Whether an organisation's store takes writes and answers reads.
//!
//! A probe writes the node's lease again, asks for room on the disk and reads the
//! registry's epoch. Its answer counts for `READY_AGE_MS`, however many ask: the route
//! needs no token.

use crate::house::House;
use crate::limits::{READY_AGE_MS, READY_MS};
use sluice_core::port::store::StoreError;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What is known of a store.
#[derive(Debug, Default)]
pub struct Readiness {
    /// When the store was last probed, and what kept it from working.
    probed: tokio::sync::Mutex<Option<(Instant, Option<String>)>>,
    /// What is wrong with the database as a whole, once that was found.
    damage: Mutex<Option<String>>,
}

impl Readiness {
    /// The database is damaged: it is not ready until the process has ended.
    pub fn damaged(&self, why: String) {
        tracing::error!(why, "the store is damaged");
        *self.damage() = Some(why);
    }

    fn damage(&self) -> MutexGuard<'_, Option<String>> {
        self.damage.lock().expect("nobody panics while holding it")
    }
}

/// What keeps an organisation from taking work; none if it is ready.
pub async fn trouble(house: &House) -> Option<String> {
    let readiness = house.readiness();
    if let Some(why) = readiness.damage().clone() {
        return Some(why);
    }
    if let Some(why) = house.service().engine.trouble().borrow().clone() {
        return Some(why);
    }
    // Requests that come meanwhile wait for this probe and take its answer.
    let mut probed = readiness.probed.lock().await;
    if let Some((at, why)) = &*probed
        && at.elapsed() < Duration::from_millis(READY_AGE_MS)
    {
        return why.clone();
    }
    let probe = tokio::time::timeout(Duration::from_millis(READY_MS), probe(house)).await;
    let why = match probe {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("the store does not answer within {READY_MS} ms")),
    };
    *probed = Some((Instant::now(), why.clone()));
    why
}

async fn probe(house: &House) -> Result<(), StoreError> {
    house.service().engine.probe().await?;
    house.rows().await.map(drop)
}
