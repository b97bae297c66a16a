//! What this process knows of governance: rows, rules, counters, health.
//!
//! Everything here is a copy. The store has the last word on counters and on
//! whether the rows are those that were looked at: guards say so, and a refusal
//! brings the copy up to date before the run decides again.

mod counts;
mod health;
mod keep;
mod recall;
mod rules;
mod view;
mod waiters;

pub use rules::{PolicySource, RulesError};

pub(crate) use rules::Rules;
pub(crate) use view::View;

use counts::Counts;
use health::Pulse;
use recall::Recall;
use sluice_core::port::authority::Patience;
use sluice_govern::policy::Policies;
use sluice_govern::registry::Gateway;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;
use waiters::Waiters;

/// What this process knows of governance.
pub(crate) struct Trust {
    rules: Mutex<Arc<Rules>>,
    counts: Counts,
    pulse: Pulse,
    waiters: Waiters,
    recall: Recall,
    source: PolicySource,
    /// The gateway of this process where no row says what it is.
    implied: Gateway,
    /// Gateways are to be looked at now.
    doubt: Notify,
    /// The newest rows whose rules cannot be read, and why: they are not read
    /// again and again.
    refused: Mutex<Option<(u64, RulesError)>>,
    patience: Patience,
}

impl Trust {
    pub(crate) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&held(&self.rules))
    }

    /// Replaces the rules by newer ones. Of two reads at once the older may end
    /// last: it must not undo the newer.
    fn replace_rules(&self, rules: Rules) {
        let mut known = held(&self.rules);
        if known.fabric.epoch < rules.fabric.epoch {
            *known = Arc::new(rules);
        }
    }

    /// The rules that count whatever the registry says, if there are such.
    pub(crate) fn fixed(&self) -> Option<Arc<Policies>> {
        match &self.source {
            PolicySource::Fixed(policies) => Some(Arc::clone(policies)),
            PolicySource::Registry => None,
        }
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().expect("nobody panics while holding it")
}
