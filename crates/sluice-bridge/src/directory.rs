//! Creates the adapter of a gateway from its row, and caches it until the row changes.

use crate::http::HttpAdapter;
use crate::mcp::adapter::McpAdapter;
use crate::model::ModelAdapter;
use crate::redacting_adapter::RedactingAdapter;
use crate::remote::RemoteAdapter;
use crate::secret::keyring::{Keyring, NamedSecret};
use crate::secret::known;
use crate::token::DispatchKey;
use crate::tools::ToolServer;
use crate::wire::Wire;
use sluice_core::port::adapter::{Adapter, Gateways};
use sluice_govern::registry::Gateway;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How to reach a provider.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Connection {
    /// Provider: `openai`, `anthropic`, `google`, `http` or `mcp`.
    pub provider: String,
    /// Base URL of its API, if not the provider's default.
    pub base_url: Option<String>,
    /// Key that Sluice sends to the provider.
    pub key: Option<NamedSecret>,
    /// Names of the tool servers that its models may use.
    pub tool_servers: Vec<String>,
}

/// How remote workers return results.
#[derive(Debug, Clone)]
pub struct Callbacks {
    /// URL for results.
    pub url: String,
    /// URL for tool requests, if tools are supported.
    pub tool_url: Option<String>,
    /// URL for parts of answers, if they are accepted.
    pub parts_url: Option<String>,
    /// Creates the dispatch tokens that authorise callbacks.
    pub key: DispatchKey,
}

/// What adapters are created with.
#[derive(Debug, Clone)]
pub struct AdapterContext {
    /// Sends requests.
    pub wire: Arc<dyn Wire>,
    /// Tool servers, by the operator's names.
    pub tool_servers: BTreeMap<String, Arc<dyn ToolServer>>,
    /// Secrets that rows may reference.
    pub secrets: Keyring,
    /// How remote results come back; `None` if this process has no callback address.
    pub callbacks: Option<Callbacks>,
}

impl AdapterContext {
    /// Creates the adapter of a provider; `None` if the provider is unknown.
    pub fn adapter(&self, gateway: &str, connection: &Connection) -> Option<Arc<dyn Adapter>> {
        // A replay sends no key and may run where none is configured.
        let keyless =
            (!self.wire.is_live()).then(|| Connection { key: None, ..connection.clone() });
        let inner = self.unredacted_adapter(gateway, keyless.as_ref().unwrap_or(connection))?;
        // A provider may repeat the key it received.
        Some(Arc::new(RedactingAdapter::new(inner, known::process())))
    }

    /// Adapter for steps that name a URL in their command.
    pub fn http(&self) -> Arc<dyn Adapter> {
        let adapter = HttpAdapter::by_command(Arc::clone(&self.wire));
        Arc::new(RedactingAdapter::new(Arc::new(adapter), known::process()))
    }

    fn unredacted_adapter(
        &self,
        gateway: &str,
        connection: &Connection,
    ) -> Option<Arc<dyn Adapter>> {
        let callbacks = || self.callbacks.clone();
        match connection.provider.as_str() {
            "openai" | "anthropic" | "google" => {
                ModelAdapter::for_connection(self, connection).map(|adapter| Arc::new(adapter) as _)
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

    /// The connection's tool servers that the operator has configured.
    pub fn servers(&self, connection: &Connection) -> Vec<Arc<dyn ToolServer>> {
        let named = connection.tool_servers.iter();
        named.filter_map(|name| self.tool_servers.get(name)).cloned().collect()
    }
}

/// By gateway: the row that an adapter was created from, and the adapter, if any.
type AdapterCache = BTreeMap<String, (Gateway, Option<Arc<dyn Adapter>>)>;

/// Cache of adapters, by gateway.
pub struct Directory {
    context: AdapterContext,
    cache: Mutex<AdapterCache>,
}

impl Directory {
    /// A directory without cached adapters.
    pub fn new(context: AdapterContext) -> Directory {
        Directory { context, cache: Mutex::default() }
    }

    fn cache(&self) -> MutexGuard<'_, AdapterCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn create(&self, name: &str, row: &Gateway) -> Option<Arc<dyn Adapter>> {
        if row.url.is_some() {
            let (callbacks, wire) =
                (self.context.callbacks.clone(), Arc::clone(&self.context.wire));
            let adapter = RemoteAdapter::new(name, row, &self.context.secrets, callbacks, wire)?;
            return Some(Arc::new(RedactingAdapter::new(Arc::new(adapter), known::process())));
        }
        let key = |reference| self.context.secrets.of_row(reference, row.operator_secret);
        let connection = Connection {
            provider: row.provider.clone(),
            base_url: row.base_url.clone(),
            key: row.key.as_ref().map(key),
            tool_servers: row.tool_servers.clone(),
        };
        self.context.adapter(name, &connection)
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
        if let Some((of, adapter)) = self.cache().get(name)
            && of == row
        {
            return adapter.clone();
        }
        let adapter = self.create(name, row);
        self.cache().insert(name.to_owned(), (row.clone(), adapter.clone()));
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
    fn a_gateway_that_is_supported_has_an_adapter() {
        let wire: Arc<dyn Wire> = Arc::new(Outbound::new(AllowList::none()));
        let (tool_servers, secrets) = (BTreeMap::new(), Keyring::default());
        let context = AdapterContext { wire, tool_servers, secrets, callbacks: None };
        let directory = Directory::new(context);
        for provider in PROVIDERS.into_iter().chain(["", "claude"]) {
            for (url, base_url) in [(None, None), (None, Some("x")), (Some("x"), None)] {
                let row = Gateway {
                    provider: provider.to_owned(),
                    url: url.map(str::to_owned),
                    base_url: base_url.map(str::to_owned),
                    ..Gateway::default()
                };
                let supported = directory.adapter("g", &row).is_some();
                assert_eq!(directory.speaks_to(&row), supported, "{provider} {url:?} {base_url:?}");
            }
        }
    }
}
