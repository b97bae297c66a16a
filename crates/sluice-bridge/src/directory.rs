//! Who speaks to a gateway, made from its row and kept while the row stays as it is.

use crate::model::ModelAdapter;
use crate::token::DispatchKey;
use crate::tools::ToolServer;
use crate::wire::Wire;
use sluice_core::port::adapter::{Adapter, Gateways};
use sluice_core::secret::SecretRef;
use sluice_govern::registry::Gateway;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a provider is reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Connection {
    /// Which one: `openai`, `anthropic`, `google`, `http`, `mcp`.
    pub provider: String,
    /// Where its API is, if not where it is known to be.
    pub base_url: Option<String>,
    /// Where its key is kept.
    pub key: Option<SecretRef>,
    /// Servers of tools that its models may be offered.
    pub tool_servers: Vec<String>,
}

/// How results come back from elsewhere.
#[derive(Debug, Clone)]
pub struct Callbacks {
    /// Where they are sent.
    pub url: String,
    /// Makes the tokens that they must show.
    pub key: DispatchKey,
}

/// What adapters are made with.
#[derive(Debug, Clone)]
pub struct Kit {
    /// Carries requests.
    pub wire: Arc<dyn Wire>,
    /// Servers of tools, by the operator's names.
    pub tool_servers: BTreeMap<String, Arc<dyn ToolServer>>,
    /// How results come back; none where nobody could bring any.
    pub callbacks: Option<Callbacks>,
}

impl Kit {
    /// Who speaks to a provider; none if nobody here can.
    pub fn adapter(&self, gateway: &str, connection: &Connection) -> Option<Arc<dyn Adapter>> {
        let _ = gateway;
        match connection.provider.as_str() {
            "openai" | "anthropic" | "google" => {
                ModelAdapter::of(self, connection).map(|adapter| Arc::new(adapter) as _)
            }
            _ => None,
        }
    }
}

/// Adapters by gateway.
pub struct Directory {
    kit: Kit,
    made: Mutex<BTreeMap<String, (Gateway, Option<Arc<dyn Adapter>>)>>,
}

impl Directory {
    /// One that makes adapters with these means.
    pub fn new(kit: Kit) -> Directory {
        Directory { kit, made: Mutex::default() }
    }

    fn made(&self) -> MutexGuard<'_, BTreeMap<String, (Gateway, Option<Arc<dyn Adapter>>)>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, name: &str, row: &Gateway) -> Option<Arc<dyn Adapter>> {
        let connection = Connection {
            provider: row.provider.clone(),
            base_url: row.base_url.clone(),
            key: row.key.clone(),
            tool_servers: row.tool_servers.clone(),
        };
        self.kit.adapter(name, &connection)
    }
}

impl Gateways for Directory {
    fn adapter(&self, name: &str, row: &Gateway) -> Option<Arc<dyn Adapter>> {
        if let Some((of, adapter)) = self.made().get(name)
            && of == row
        {
            return adapter.clone();
        }
        let adapter = self.make(name, row);
        self.made().insert(name.to_owned(), (row.clone(), adapter.clone()));
        adapter
    }
}
