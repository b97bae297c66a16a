//! This node's copy of governance data: registry rows, policies, counters, gateway
//! health.
//!
//! The store has the last word on counters and on the epoch of the rows: every append
//! carries guards, and a refused guard refreshes the copy before the run decides again.

mod counters;
mod health;
mod history;
mod refresh;
mod remembered;
mod rules;
mod view;
mod waiters;

pub use rules::{PolicySource, RulesError};

pub(crate) use rules::Rules;
pub(crate) use view::View;

use counters::CounterCache;
use health::GatewayHealth;
use history::HistoryReads;
use remembered::RememberedOutputs;
use sluice_core::port::authority::{CatalogSource, Patience};
use sluice_govern::catalog::Catalog;
use sluice_govern::policy::Policies;
use sluice_govern::registry::Gateway;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;
use waiters::Waiters;

/// Cached governance data of this node.
pub(crate) struct GovernanceCache {
    rules: Mutex<Arc<Rules>>,
    counts: CounterCache,
    gateway_health: GatewayHealth,
    waiters: Waiters,
    remembered: RememberedOutputs,
    history: HistoryReads,
    source: PolicySource,
    catalog: Option<Arc<dyn CatalogSource>>,
    /// The gateway of this process when no row defines it.
    implied: Gateway,
    /// Wakes the health checks.
    recheck: Notify,
    /// Epoch and error of the newest rows if they cannot be used, so that they are not
    /// parsed again.
    refused: Mutex<Option<(u64, RulesError)>>,
    patience: Patience,
}

impl GovernanceCache {
    /// The rules in force, with policies for the current catalog of tools.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        let rules = Arc::clone(&lock(&self.rules));
        let catalog = self.catalog();
        if rules.is_for(catalog.as_ref()) {
            return rules;
        }
        match rules.under(catalog) {
            Ok(renewed) => {
                let renewed = Arc::new(renewed);
                let mut known = lock(&self.rules);
                if Arc::ptr_eq(&known, &rules) {
                    *known = Arc::clone(&renewed);
                }
                renewed
            }
            Err(error) => {
                tracing::error!(%error, "the policies cannot be loaded for the tools there are now");
                rules
            }
        }
    }

    /// The current catalog of tools; `None` if this machine declares no tools.
    pub(crate) fn catalog(&self) -> Option<Arc<Catalog>> {
        self.catalog.as_ref().map(|source| source.catalog())
    }

    /// Replaces the rules by newer ones. Of two concurrent reads the older may finish last
    /// and must not win.
    fn replace_rules(&self, rules: Rules) {
        let mut known = lock(&self.rules);
        if known.fabric.epoch < rules.fabric.epoch {
            *known = Arc::new(rules);
        }
    }

    /// Policies fixed by configuration, if any.
    pub(crate) fn fixed(&self) -> Option<Arc<Policies>> {
        match &self.source {
            PolicySource::Fixed(policies) => Some(Arc::clone(policies)),
            PolicySource::Registry => None,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("the lock is not poisoned")
}
