//! Who speaks to a gateway, made from its row and kept while the row stays as it is.

use crate::http::HttpAdapter;
use crate::mcp::adapter::McpAdapter;
use crate::model::ModelAdapter;
use crate::remote::RemoteAdapter;
use crate::scrubbed::Scrubbed;
use crate::secret::keyring::{Keyring, NamedSecret};
use crate::secret::known;
use crate::token::DispatchKey;
use crate::tools::ToolServer;
use crate::wire::Wire;
use sluice_core::port::adapter::{Adapter, Gateways};
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
    /// The key that it is shown.
    pub key: Option<NamedSecret>,
    /// Servers of tools that its models may be offered.
    pub tool_servers: Vec<String>,
}

/// How results come back from elsewhere.
#[derive(Debug, Clone)]
pub struct Callbacks {
    /// Where they are sent.
    pub url: String,
    /// Where it is asked whether a tool may be called, if it can be.
    pub tool_url: Option<String>,
    /// Where parts of answers are sent.
    pub parts_url: Option<String>,
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
    /// The secrets that rows may name.
    pub secrets: Keyring,
    /// How results come back; none where nobody could bring any.
    pub callbacks: Option<Callbacks>,
}

impl Kit {
    /// Who speaks to a provider; none if nobody here can.
    pub fn adapter(&self, gateway: &str, connection: &Connection) -> Option<Arc<dyn Adapter>> {
        // A recording asks for no key, and whoever replays one may have none.
        let keyless =
            (!self.wire.is_live()).then(|| Connection { key: None, ..connection.clone() });
        let bare = self.bare(gateway, keyless.as_ref().unwrap_or(connection))?;
        // Whoever is shown a key may repeat it.
        Some(Arc::new(Scrubbed::new(bare, known::process())))
    }

    /// Who sends a step to the URL that its command names.
    pub fn http(&self) -> Arc<dyn Adapter> {
        let adapter = HttpAdapter::by_command(Arc::clone(&self.wire));
        Arc::new(Scrubbed::new(Arc::new(adapter), known::process()))
    }

    fn bare(&self, gateway: &str, connection: &Connection) -> Option<Arc<dyn Adapter>> {
        let callbacks = || self.callbacks.clone();
        match connection.provider.as_str() {
            "openai" | "anthropic" | "google" => {
                ModelAdapter::of(self, connection).map(|adapter| Arc::new(adapter) as _)
            }
            "http" => {
                let wire = Arc::clone(&self.wire);
                let adapter = HttpAdapter::new(gateway, connection, callbacks(), wire)?;
                Some(Arc::new(adapter))
            }
            "mcp" => Some(Arc::new(McpAdapter::new(self.servers(connection)))),
            _ => None,
        }
    }

    /// The servers of tools that a connection names and the operator has.
    pub fn servers(&self, connection: &Connection) -> Vec<Arc<dyn ToolServer>> {
        let named = connection.tool_servers.iter();
        named.filter_map(|name| self.tool_servers.get(name)).cloned().collect()
    }
}

/// By gateway, the row an adapter was made for, and the adapter if there is one.
type Made = BTreeMap<String, (Gateway, Option<Arc<dyn Adapter>>)>;

/// Adapters by gateway.
pub struct Directory {
    kit: Kit,
    made: Mutex<Made>,
}

impl Directory {
    /// One that makes adapters with these means.
    pub fn new(kit: Kit) -> Directory {
        Directory { kit, made: Mutex::default() }
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, name: &str, row: &Gateway) -> Option<Arc<dyn Adapter>> {
        if row.url.is_some() {
            let (callbacks, wire) = (self.kit.callbacks.clone(), Arc::clone(&self.kit.wire));
            let adapter = RemoteAdapter::new(name, row, &self.kit.secrets, callbacks, wire)?;
            return Some(Arc::new(Scrubbed::new(Arc::new(adapter), known::process())));
        }
        let key = |reference| self.kit.secrets.of_row(reference, row.operator_secret);
        let connection = Connection {
            provider: row.provider.clone(),
            base_url: row.base_url.clone(),
            key: row.key.as_ref().map(key),
            tool_servers: row.tool_servers.clone(),
        };
        self.kit.adapter(name, &connection)
    }
}

impl Gateways for Directory {
    fn speaks_to(&self, row: &Gateway) -> bool {
        match row.provider.as_str() {
            _ if row.url.is_some() => true,
            "openai" | "anthropic" | "google" | "mcp" => true,
            "http" => row.base_url.is_some(),
            _ => false,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbound::Outbound;
    use crate::outbound::allow::AllowList;
    use sluice_govern::registry::PROVIDERS;

    #[test]
    fn what_is_said_to_be_spoken_to_is() {
        let wire: Arc<dyn Wire> = Arc::new(Outbound::new(AllowList::none()));
        let (tool_servers, secrets) = (BTreeMap::new(), Keyring::default());
        let kit = Kit { wire, tool_servers, secrets, callbacks: None };
        let directory = Directory::new(kit);
        for provider in PROVIDERS.into_iter().chain(["", "claude"]) {
            for (url, base_url) in [(None, None), (None, Some("x")), (Some("x"), None)] {
                let row = Gateway {
                    provider: provider.to_owned(),
                    url: url.map(str::to_owned),
                    base_url: base_url.map(str::to_owned),
                    ..Gateway::default()
                };
                let spoken = directory.adapter("g", &row).is_some();
                assert_eq!(directory.speaks_to(&row), spoken, "{provider} {url:?} {base_url:?}");
            }
        }
    }
}
