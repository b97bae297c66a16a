//! Adapters that execute steps, by agent and gateway.

use sluice_core::port::adapter::{Adapter, Gateways};
use sluice_govern::registry::{ANYTHING, Gateway};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Name of the gateway for adapters in this process.
pub(crate) const LOCAL_GATEWAY: &str = "local";

/// Provider of adapters with scripted answers.
const SCRIPTED: &str = "mock";

/// The adapter for an agent at a gateway.
enum AdapterChoice<'a> {
    /// An adapter in this process.
    Local(&'a Arc<dyn Adapter>),
    /// An adapter made from the gateway's row.
    Gateway(&'a Arc<dyn Gateways>),
}

/// Adapters by agent name.
#[derive(Clone, Default)]
pub struct Agents {
    by_name: BTreeMap<String, Arc<dyn Adapter>>,
    /// Makes adapters from rows of gateways.
    gateways: Option<Arc<dyn Gateways>>,
    /// Adapter for agents without one of their own.
    fallback: Option<Arc<dyn Adapter>>,
}

impl Agents {
    /// No adapters.
    pub fn new() -> Agents {
        Agents::default()
    }

    /// Adds the adapter of an agent.
    #[must_use]
    pub fn with(mut self, name: &str, adapter: Arc<dyn Adapter>) -> Agents {
        self.by_name.insert(name.to_owned(), adapter);
        self
    }

    /// Sets the adapter for all agents without one of their own.
    #[must_use]
    pub fn with_fallback(mut self, adapter: Arc<dyn Adapter>) -> Agents {
        self.fallback = Some(adapter);
        self
    }

    /// Sets the factory of adapters for gateways.
    #[must_use]
    pub fn with_gateways(mut self, gateways: Arc<dyn Gateways>) -> Agents {
        self.gateways = Some(gateways);
        self
    }

    /// The local adapter of an agent.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Adapter>> {
        self.by_name.get(name).or(self.fallback.as_ref())
    }

    /// The adapter that executes an agent's steps at a gateway.
    pub fn at(&self, name: &str, gateway: Option<(&str, &Gateway)>) -> Option<Arc<dyn Adapter>> {
        match self.choose(name, gateway.map(|(_, row)| row))? {
            AdapterChoice::Local(adapter) => Some(Arc::clone(adapter)),
            AdapterChoice::Gateway(gateways) => {
                let (name, row) = gateway?;
                gateways.adapter(name, row)
            }
        }
    }

    /// Whether an agent's steps can be executed at a gateway.
    pub fn serves(&self, name: &str, gateway: &Gateway) -> bool {
        self.choose(name, Some(gateway)).is_some()
    }

    /// Chooses the adapter for an agent at a gateway. An agent with a local adapter uses it,
    /// or a gateway of the same provider; any other agent uses the gateway's adapter. The
    /// fallback replaces every gateway, but no local adapter.
    fn choose(&self, name: &str, gateway: Option<&Gateway>) -> Option<AdapterChoice<'_>> {
        let fallback = || self.fallback.as_ref().map(AdapterChoice::Local);
        let own = self.by_name.get(name);
        let Some(row) = gateway else { return own.map(AdapterChoice::Local).or_else(fallback) };
        let provider = row.provider.as_str();
        // Without a gateway factory everything runs in this process.
        let is_local = row.url.is_none() || self.gateways.is_none();
        let at_gateway =
            self.gateways.as_ref().filter(|all| all.speaks_to(row)).map(AdapterChoice::Gateway);
        let Some(own) = own else {
            let by_provider =
                || self.by_name.get(provider).filter(|_| is_local).map(AdapterChoice::Local);
            return at_gateway.or_else(by_provider).or_else(fallback);
        };
        if ![own.provider(), name, ""].contains(&provider) {
            return fallback().map(|_| AdapterChoice::Local(own));
        }
        at_gateway.or_else(|| is_local.then_some(AdapterChoice::Local(own)))
    }

    /// The gateway of this process when no row defines it. It offers no capabilities,
    /// except that scripted answers can stand in for any.
    pub(crate) fn implied_gateway(&self) -> Gateway {
        let scripted = self.fallback.is_some()
            || self.by_name.values().any(|adapter| adapter.provider() == SCRIPTED);
        let capabilities = if scripted { vec![ANYTHING.to_owned()] } else { Vec::new() };
        Gateway { capabilities, ..Gateway::default() }
    }

    /// Names of agents with a local adapter.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

impl std::fmt::Debug for Agents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

#[cfg(test)]
mod tests;
