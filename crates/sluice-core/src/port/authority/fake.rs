//! A fake authority for tests: a test sets rows and policies, and counters follow the decisions
//! of turns as in a store.

use super::{Authority, Patience};
use crate::money::Money;
use crate::port::adapter::Quote;
use crate::port::remembered_output::RememberedOutput;
use crate::port::store::Guard;
use sluice_govern::account::Name;
use sluice_govern::catalog::Catalog;
use sluice_govern::policy::Policies;
use sluice_govern::registry::{Agent, Fabric, Gateway, Health};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows, policies and counters of a test.
pub(crate) struct FakeAuthority {
    pub(crate) fabric: Fabric,
    pub(crate) policies: Policies,
    pub(crate) catalog: Catalog,
    pub(crate) counts: BTreeMap<String, i64>,
    pub(crate) health: BTreeMap<String, Health>,
    /// The highest cost of each step.
    pub(crate) quotes: BTreeMap<String, Money>,
    /// The quote for every other step.
    pub(crate) otherwise: Quote,
    pub(crate) patience: Patience,
    /// Remembered outputs, newest first.
    pub(crate) remembered_outputs: Vec<RememberedOutput>,
    default_agent: Agent,
    local: Gateway,
}

impl Default for FakeAuthority {
    fn default() -> FakeAuthority {
        FakeAuthority {
            fabric: Fabric::default(),
            policies: Policies::permit_all(),
            catalog: Catalog::default(),
            counts: BTreeMap::new(),
            health: BTreeMap::new(),
            quotes: BTreeMap::new(),
            otherwise: Quote::AtMost(Money::ZERO),
            patience: Patience::default(),
            remembered_outputs: Vec::new(),
            default_agent: Agent::default(),
            local: Gateway::default(),
        }
    }
}

impl FakeAuthority {
    /// Applies the guards of a turn as a store does: all of them, or none and the name of
    /// the first counter that would pass its bound.
    pub(crate) fn take(&mut self, guards: &[Guard]) -> Result<(), String> {
        let mut counts = self.counts.clone();
        counts.insert("registry".to_owned(), i64::try_from(self.fabric.epoch).unwrap());
        for guard in guards {
            let count = counts.entry(guard.counter.whole()).or_default();
            let changed = *count + guard.delta;
            if guard.delta >= 0 && guard.max.is_some_and(|max| changed > max) {
                return Err(guard.counter.whole());
            }
            *count = changed;
        }
        self.counts = counts;
        Ok(())
    }
}

impl Authority for FakeAuthority {
    fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    fn policies(&self) -> &Policies {
        &self.policies
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn agent(&self, name: &str) -> Option<&Agent> {
        let default = (!name.starts_with("unknown")).then_some(&self.default_agent);
        self.fabric.agents.get(name).or(default)
    }

    fn gateway(&self, name: &str) -> Option<&Gateway> {
        self.fabric.gateways.get(name).or((name == "local").then_some(&self.local))
    }

    fn health(&self, gateway: &str) -> Health {
        self.health.get(gateway).copied().unwrap_or_default()
    }

    fn count(&self, counter: Name<'_>) -> i64 {
        self.counts.get(&*counter.text()).copied().unwrap_or_default()
    }

    fn in_window(&self, counter: Name<'_>, _window_ms: u64) -> i64 {
        self.count(counter)
    }

    fn quote(&self, _agent: &str, _gateway: &str, step: &str) -> Quote {
        self.quotes.get(step).map_or(self.otherwise, |most| Quote::AtMost(*most))
    }

    fn remembered_outputs(&self, agent: &str) -> Arc<[RememberedOutput]> {
        self.remembered_outputs
            .iter()
            .filter(|remembered_output| remembered_output.agent == agent)
            .cloned()
            .collect()
    }

    fn patience(&self) -> &Patience {
        &self.patience
    }
}
