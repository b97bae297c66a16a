//! Who can be asked to do a step.

use sluice_core::port::adapter::{Adapter, Gateways};
use sluice_govern::registry::{ANYTHING, Gateway};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The gateway of everything that runs in this process.
pub const LOCAL_GATEWAY: &str = "local";

/// The provider of adapters that answer from a script.
const SCRIPTED: &str = "mock";

/// Who does an agent's work at a gateway.
enum Found<'a> {
    /// An adapter of this process.
    Here(&'a Arc<dyn Adapter>),
    /// What the gateway's row says.
    Spoken(&'a Arc<dyn Gateways>),
}

/// Agents by name.
#[derive(Clone, Default)]
pub struct Agents {
    by_name: BTreeMap<String, Arc<dyn Adapter>>,
    /// Who speaks to gateways that have something to be spoken to by.
    gateways: Option<Arc<dyn Gateways>>,
    /// Who answers for names nobody has.
    fallback: Option<Arc<dyn Adapter>>,
}

impl Agents {
    /// Nobody.
    pub fn new() -> Agents {
        Agents::default()
    }

    /// Adds an agent.
    #[must_use]
    pub fn with(mut self, name: &str, adapter: Arc<dyn Adapter>) -> Agents {
        self.by_name.insert(name.to_owned(), adapter);
        self
    }

    /// Lets an adapter answer for every name nobody has.
    #[must_use]
    pub fn with_fallback(mut self, adapter: Arc<dyn Adapter>) -> Agents {
        self.fallback = Some(adapter);
        self
    }

    /// Lets somebody speak to gateways as their rows say.
    #[must_use]
    pub fn with_gateways(mut self, gateways: Arc<dyn Gateways>) -> Agents {
        self.gateways = Some(gateways);
        self
    }

    /// The agent of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Adapter>> {
        self.by_name.get(name).or(self.fallback.as_ref())
    }

    /// Who does an agent's work at a gateway.
    pub fn at(&self, name: &str, gateway: Option<(&str, &Gateway)>) -> Option<Arc<dyn Adapter>> {
        match self.find(name, gateway.map(|(_, row)| row))? {
            Found::Here(adapter) => Some(Arc::clone(adapter)),
            Found::Spoken(gateways) => {
                let (name, row) = gateway?;
                gateways.adapter(name, row)
            }
        }
    }

    /// Whether an agent's work can be done at a gateway.
    pub fn serves(&self, name: &str, gateway: &Gateway) -> bool {
        self.find(name, Some(gateway)).is_some()
    }

    /// Who does an agent's work at a gateway. An agent of this process is done in
    /// it, or where its own provider is; any other by what the gateway speaks to.
    /// A fallback stands in for every gateway, but not for agents of this process.
    fn find(&self, name: &str, gateway: Option<&Gateway>) -> Option<Found<'_>> {
        let fallback = || self.fallback.as_ref().map(Found::Here);
        let own = self.by_name.get(name);
        let Some(row) = gateway else { return own.map(Found::Here).or_else(fallback) };
        let provider = row.provider.as_str();
        // Without adapters for gateways, everything is done in this process.
        let near = row.url.is_none() || self.gateways.is_none();
        let spoken = self.gateways.as_ref().filter(|all| all.speaks_to(row)).map(Found::Spoken);
        let Some(own) = own else {
            let by_provider = || self.by_name.get(provider).filter(|_| near).map(Found::Here);
            return spoken.or_else(by_provider).or_else(fallback);
        };
        if ![own.provider(), name, ""].contains(&provider) {
            return fallback().map(|_| Found::Here(own));
        }
        spoken.or_else(|| near.then_some(Found::Here(own)))
    }

    /// The gateway of this process, as it is without a row. It offers nothing in
    /// particular, but a script can stand in for anything.
    pub(crate) fn implied_gateway(&self) -> Gateway {
        let scripted = self.fallback.is_some()
            || self.by_name.values().any(|adapter| adapter.provider() == SCRIPTED);
        let capabilities = if scripted { vec![ANYTHING.to_owned()] } else { Vec::new() };
        Gateway { capabilities, ..Gateway::default() }
    }

    /// The names there are.
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
