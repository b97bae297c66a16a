//! Client for tool servers that speak the Model Context Protocol (MCP).
//!
//! A server is a local process (`stdio`) or a remote one (`http`). It is started and
//! initialised when it is first needed, and again when it has died or lost the session;
//! concurrent calls share one connection. Its messages are untrusted: bounded, never obeyed,
//! and redacted.
//!
//! INVARIANT: every request ends, with an answer or with an error that names the server. A call
//! that the server may have received is never repeated.

pub mod adapter;
mod bounded_lines;
mod content;
mod error;
pub mod http;
mod message;
mod session;
mod sse;
pub mod stdio;

#[cfg(test)]
mod tests;

use crate::limits::MCP_CALL_MS;
use crate::outbound::Outbound;
use crate::outbound::allow::AllowList;
use crate::outbound::error::OutboundRefusal;
use crate::secret::keyring::NamedSecret;
use crate::secret::known;
use crate::tools::{Structured, Tool, ToolAnswer, ToolServer, ToolServerError};
use crate::wire::RequestIndex;
use error::McpError;
use http::McpEndpoint;
use reqwest::Url;
use serde_json::{Value, json};
use session::{McpConnection, Session};
use sluice_core::port::Later;
use sluice_govern::catalog::{ServerDeclaration, own_name};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stdio::Command;
use tokio::sync::Mutex;

/// How a tool server is reached.
#[derive(Debug, Clone)]
enum Transport {
    Process(Command),
    Remote(McpEndpoint),
}

/// Client of one tool server.
pub struct McpServer {
    name: String,
    transport: Transport,
    /// What the operator declared about its tools.
    declared: ServerDeclaration,
    cache: Mutex<SessionCache>,
}

#[derive(Default)]
struct SessionCache {
    session: Option<Arc<Session>>,
    /// When the last connection attempt failed, and why: callers that waited for that
    /// attempt get the same error and do not try again.
    failed: Option<(Instant, McpError)>,
}

impl McpServer {
    /// A local process, started when it is first needed.
    pub fn process(name: &str, command: Command) -> McpServer {
        McpServer::new(name, Transport::Process(command))
    }

    /// A remote server. The operator configured its URL, so the URL is allowed.
    pub fn remote(
        name: &str,
        url: &str,
        key: Option<NamedSecret>,
    ) -> Result<McpServer, OutboundRefusal> {
        let parsed = Url::parse(url).map_err(|_| OutboundRefusal::NoUrl)?;
        let outbound = Outbound::new(AllowList::none().and(&parsed));
        outbound.check(url)?;
        let wire = Arc::new(outbound);
        Ok(McpServer::with_endpoint(name, McpEndpoint { url: url.to_owned(), key, wire }))
    }

    /// A remote server that is reached through the given `Wire`.
    pub fn with_endpoint(name: &str, address: McpEndpoint) -> McpServer {
        McpServer::new(name, Transport::Remote(address))
    }

    fn new(name: &str, transport: Transport) -> McpServer {
        McpServer {
            name: name.to_owned(),
            transport,
            declared: ServerDeclaration::default(),
            cache: Mutex::default(),
        }
    }

    /// Adds what the operator declared about the tools.
    #[must_use]
    pub fn with_declaration(self, declared: ServerDeclaration) -> McpServer {
        McpServer { declared, ..self }
    }

    /// Returns the live session, or initialises a new one.
    async fn session(&self) -> Result<Arc<Session>, McpError> {
        let began = Instant::now();
        let mut cache = self.cache.lock().await;
        if let Some(session) = cache.session.as_ref().filter(|session| session.is_alive()) {
            return Ok(Arc::clone(session));
        }
        if let Some((at, why)) = &cache.failed
            && *at >= began
        {
            return Err(why.clone());
        }
        cache.session = None;
        let greeted = match self.connect() {
            Ok(link) => Session::initialise(link).await,
            Err(error) => Err(error),
        };
        match greeted {
            Ok(session) => {
                let session = Arc::new(session);
                *cache = SessionCache { session: Some(Arc::clone(&session)), failed: None };
                Ok(session)
            }
            Err(error) => {
                cache.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    fn connect(&self) -> Result<McpConnection, McpError> {
        match &self.transport {
            Transport::Process(command) => {
                stdio::ProcessConnection::start(&self.name, command).map(McpConnection::Process)
            }
            Transport::Remote(address) => {
                Ok(McpConnection::Remote(http::HttpConnection::new(address)))
            }
        }
    }

    /// Drops an ended session, unless it was already replaced.
    async fn drop_session(&self, ended: &Arc<Session>) {
        let mut cache = self.cache.lock().await;
        if cache.session.as_ref().is_some_and(|session| Arc::ptr_eq(session, ended)) {
            cache.session = None;
        }
    }

    async fn list(&self) -> Result<Arc<[Tool]>, McpError> {
        let session = self.session().await?;
        let listed = match session.tools(&self.name).await {
            Err(McpError::Unsent(_)) => {
                self.drop_session(&session).await;
                self.session().await?.tools(&self.name).await
            }
            outcome => outcome,
        }?;
        if !listed.iter().any(|tool| self.reads_only(&tool.name)) {
            return Ok(listed);
        }
        let marked = |tool: &Tool| Tool { read_only: self.reads_only(&tool.name), ..tool.clone() };
        Ok(listed.iter().map(marked).collect())
    }

    async fn call_tool(
        &self,
        tool: &str,
        input: &Value,
        index: RequestIndex<'_>,
    ) -> Result<Value, McpError> {
        let Some(own) = own_name(tool, &self.name) else {
            return Err(McpError::Refused(format!("`{tool}` is not one of its tools")));
        };
        let params = json!({"name": own, "arguments": input});
        let patience = Duration::from_millis(MCP_CALL_MS);
        let session = self.session().await?;
        match session.request("tools/call", &params, patience, index).await {
            // The server did not execute it: repeat once, on a new connection.
            Err(McpError::Unsent(_)) => {
                self.drop_session(&session).await;
                let session = self.session().await?;
                session.request("tools/call", &params, patience, index).await
            }
            outcome => outcome,
        }
    }

    fn tool_error(&self, error: &McpError) -> ToolServerError {
        let message = format!("the tool server `{}` {error}", self.name);
        ToolServerError(known::process().scrub().text(&message).into_owned())
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ToolServer for McpServer {
    fn name(&self) -> &str {
        &self.name
    }

    fn reads_only(&self, tool: &str) -> bool {
        own_name(tool, &self.name).is_some_and(|own| self.declared.is_read_only(own))
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolServerError>> {
        Box::pin(async move { self.list().await.map_err(|error| self.tool_error(&error)) })
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        index: RequestIndex<'a>,
    ) -> Later<'a, Result<(ToolAnswer, Structured), ToolServerError>> {
        Box::pin(async move {
            let result = self.call_tool(tool, input, index).await;
            let mut result = result.map_err(|error| self.tool_error(&error))?;
            known::process().scrub().value(&mut result);
            let broken =
                || McpError::Lost("answered with something that is not a tool result".to_owned());
            content::read(&result).ok_or_else(|| self.tool_error(&broken()))
        })
    }
}
