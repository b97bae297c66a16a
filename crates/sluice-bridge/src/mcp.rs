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
mod content;
pub mod http;
mod lines;
mod message;
mod session;
pub mod stdio;
mod stream;
mod trouble;

#[cfg(test)]
mod tests;

use crate::limits::MCP_CALL_MS;
use crate::outbound::Outbound;
use crate::outbound::allow::AllowList;
use crate::outbound::error::Refusal;
use crate::secret::keyring::NamedSecret;
use crate::secret::known;
use crate::tools::{Structured, Tool, ToolAnswer, ToolServer, ToolTrouble};
use crate::wire::Place;
use http::Address;
use reqwest::Url;
use serde_json::{Value, json};
use session::{Link, Session};
use sluice_core::port::Later;
use sluice_core::tools::names;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stdio::Command;
use tokio::sync::Mutex;
use trouble::Trouble;

/// How a tool server is reached.
#[derive(Debug, Clone)]
enum Way {
    Process(Command),
    Elsewhere(Address),
}

/// Client of one tool server.
pub struct McpServer {
    name: String,
    way: Way,
    /// Qualified names of the tools that the operator declares read-only.
    read_only: Vec<String>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    session: Option<Arc<Session>>,
    /// When the last connection attempt failed, and why: callers that waited for that
    /// attempt get the same error and do not try again.
    failed: Option<(Instant, Trouble)>,
}

impl McpServer {
    /// A local process, started when it is first needed.
    pub fn process(name: &str, command: Command) -> McpServer {
        McpServer::new(name, Way::Process(command))
    }

    /// A remote server. The operator configured its URL, so the URL is allowed.
    pub fn elsewhere(
        name: &str,
        url: &str,
        key: Option<NamedSecret>,
    ) -> Result<McpServer, Refusal> {
        let parsed = Url::parse(url).map_err(|_| Refusal::NoUrl)?;
        let outbound = Outbound::new(AllowList::none().and(&parsed));
        outbound.check(url)?;
        let wire = Arc::new(outbound);
        Ok(McpServer::over(name, Address { url: url.to_owned(), key, wire }))
    }

    /// A remote server that is reached through the given `Wire`.
    pub fn over(name: &str, address: Address) -> McpServer {
        McpServer::new(name, Way::Elsewhere(address))
    }

    fn new(name: &str, way: Way) -> McpServer {
        McpServer { name: name.to_owned(), way, read_only: Vec::new(), held: Mutex::default() }
    }

    /// Declares tools read-only, by their names within the server; `*` means all of them.
    #[must_use]
    pub fn with_read_only(mut self, tools: &[String]) -> McpServer {
        self.read_only = tools.iter().map(|tool| format!("{}.{tool}", self.name)).collect();
        self
    }

    /// Returns the live session, or initialises a new one.
    async fn session(&self) -> Result<Arc<Session>, Trouble> {
        let began = Instant::now();
        let mut held = self.held.lock().await;
        if let Some(session) = held.session.as_ref().filter(|session| session.is_alive()) {
            return Ok(Arc::clone(session));
        }
        if let Some((at, why)) = &held.failed
            && *at >= began
        {
            return Err(why.clone());
        }
        held.session = None;
        let greeted = match self.link() {
            Ok(link) => Session::greet(link).await,
            Err(trouble) => Err(trouble),
        };
        match greeted {
            Ok(session) => {
                let session = Arc::new(session);
                *held = Held { session: Some(Arc::clone(&session)), failed: None };
                Ok(session)
            }
            Err(trouble) => {
                held.failed = Some((Instant::now(), trouble.clone()));
                Err(trouble)
            }
        }
    }

    fn link(&self) -> Result<Link, Trouble> {
        match &self.way {
            Way::Process(command) => stdio::Link::start(&self.name, command).map(Link::Process),
            Way::Elsewhere(address) => Ok(Link::Elsewhere(http::Link::new(address))),
        }
    }

    /// Drops an ended session, unless it was already replaced.
    async fn forget(&self, over: &Arc<Session>) {
        let mut held = self.held.lock().await;
        if held.session.as_ref().is_some_and(|session| Arc::ptr_eq(session, over)) {
            held.session = None;
        }
    }

    async fn list(&self) -> Result<Arc<[Tool]>, Trouble> {
        let session = self.session().await?;
        let listed = match session.tools(&self.name).await {
            Err(Trouble::Unsent(_)) => {
                self.forget(&session).await;
                self.session().await?.tools(&self.name).await
            }
            outcome => outcome,
        }?;
        if self.read_only.is_empty() {
            return Ok(listed);
        }
        let marked = |tool: &Tool| Tool { read_only: self.reads_only(&tool.name), ..tool.clone() };
        Ok(listed.iter().map(marked).collect())
    }

    async fn make(&self, tool: &str, input: &Value, place: Place<'_>) -> Result<Value, Trouble> {
        let own = tool.strip_prefix(self.name.as_str()).and_then(|rest| rest.strip_prefix('.'));
        let Some(own) = own else {
            return Err(Trouble::Refused(format!("`{tool}` is not one of its tools")));
        };
        let params = json!({"name": own, "arguments": input});
        let patience = Duration::from_millis(MCP_CALL_MS);
        let session = self.session().await?;
        match session.ask("tools/call", &params, patience, place).await {
            // The server did not execute it: repeat once, on a new connection.
            Err(Trouble::Unsent(_)) => {
                self.forget(&session).await;
                let session = self.session().await?;
                session.ask("tools/call", &params, patience, place).await
            }
            outcome => outcome,
        }
    }

    fn trouble(&self, trouble: &Trouble) -> ToolTrouble {
        let told = format!("the tool server `{}` {trouble}", self.name);
        ToolTrouble(known::process().scrub().text(&told).into_owned())
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
        names(&self.read_only, tool)
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolTrouble>> {
        Box::pin(async move { self.list().await.map_err(|trouble| self.trouble(&trouble)) })
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        place: Place<'a>,
    ) -> Later<'a, Result<ToolAnswer, ToolTrouble>> {
        Box::pin(async move { Ok(self.call_whole(tool, input, place).await?.0) })
    }

    fn call_whole<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        place: Place<'a>,
    ) -> Later<'a, Result<(ToolAnswer, Structured), ToolTrouble>> {
        Box::pin(async move {
            let result = self.make(tool, input, place).await;
            let mut result = result.map_err(|trouble| self.trouble(&trouble))?;
            known::process().scrub().value(&mut result);
            let broken =
                || Trouble::Lost("answered with something that is not a tool result".to_owned());
            content::read(&result).ok_or_else(|| self.trouble(&broken()))
        })
    }
}
