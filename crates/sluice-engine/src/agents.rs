//! Who can be asked to do a step.

use sluice_core::port::adapter::Adapter;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Agents by name.
#[derive(Clone, Default)]
pub struct Agents {
    by_name: BTreeMap<String, Arc<dyn Adapter>>,
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

    /// The agent of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Adapter>> {
        self.by_name.get(name).or(self.fallback.as_ref())
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
