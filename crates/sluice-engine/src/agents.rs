//! Who can be asked to do a step.

use sluice_core::port::adapter::{Adapter, Gateways};
use sluice_govern::registry::Gateway;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The gateway of everything that runs in this process.
pub const LOCAL_GATEWAY: &str = "local";

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

    /// Who does an agent's work at a gateway: whoever its row names, else the
    /// agent of that name in this process, else whoever speaks to what the
    /// gateway speaks to.
    pub fn at(&self, name: &str, gateway: Option<(&str, &Gateway)>) -> Option<Arc<dyn Adapter>> {
        let spoken = gateway.zip(self.gateways.as_ref());
        let by_row = spoken.and_then(|((gateway, row), all)| all.adapter(gateway, row));
        by_row.or_else(|| {
            let provider = gateway.map(|(_, row)| row.provider.as_str()).unwrap_or_default();
            let by_provider = || self.by_name.get(provider);
            let found = match self.by_name.get(name) {
                Some(own) if provider.is_empty() || own.provider() == provider => Some(own),
                own => by_provider().or(own).or(self.fallback.as_ref()),
            };
            found.cloned()
        })
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
