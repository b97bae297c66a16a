//! An initialised MCP session and its tool list.

use super::error::McpError;
use super::http;
use super::message;
use super::stdio;
use crate::limits::{
    MCP_DESCRIPTION_BYTES_MAX, MCP_LIST_AGE_MS, MCP_LIST_MS, MCP_NAME_BYTES_MAX, MCP_PAGES_MAX,
    MCP_START_MS, MCP_TOOLS_MAX,
};
use crate::secret::known;
use crate::tools::Tool;
use crate::wire::RequestIndex;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Supported protocol versions, the preferred one first.
const VERSIONS: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];

#[derive(Debug)]
pub(super) enum McpConnection {
    Process(stdio::ProcessConnection),
    Remote(Arc<http::HttpConnection>),
}

#[derive(Debug)]
pub(super) struct Session {
    link: McpConnection,
    list: Mutex<Option<(Instant, Arc<[Tool]>)>>,
}

impl Session {
    /// Initialises a session: negotiates the protocol version.
    pub(super) async fn initialise(link: McpConnection) -> Result<Session, McpError> {
        let session = Session { link, list: Mutex::default() };
        let params = json!({
            "protocolVersion": VERSIONS[0],
            "capabilities": {},
            "clientInfo": {"name": "sluice", "version": env!("CARGO_PKG_VERSION")},
        });
        let start = Duration::from_millis(MCP_START_MS);
        let hello =
            session.request("initialize", &params, start, RequestIndex::OUTSIDE_DISPATCH).await?;
        let offered = hello.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let Some(version) = VERSIONS.into_iter().find(|version| *version == offered) else {
            let offered = message::brief(offered);
            let spoken = VERSIONS.join(", ");
            return Err(McpError::Lost(format!(
                "offers protocol version `{offered}`, supported are {spoken}"
            )));
        };
        if let McpConnection::Remote(link) = &session.link {
            link.set_version(version);
        }
        session.notify("notifications/initialized").await;
        Ok(session)
    }

    pub(super) fn is_alive(&self) -> bool {
        match &self.link {
            McpConnection::Process(link) => link.is_alive(),
            McpConnection::Remote(_) => true,
        }
    }

    pub(super) async fn request(
        &self,
        method: &str,
        params: &Value,
        patience: Duration,
        index: RequestIndex<'_>,
    ) -> Result<Value, McpError> {
        match &self.link {
            McpConnection::Process(link) => link.request(method, params, patience).await,
            McpConnection::Remote(link) => link.request(method, params, patience, index).await,
        }
    }

    async fn notify(&self, method: &str) {
        match &self.link {
            McpConnection::Process(link) => link.notify(method, &json!({})).await,
            McpConnection::Remote(link) => {
                link.send(message::notification(method, &json!({}))).await;
            }
        }
    }

    /// The tool list, from a cache. It is loaded again when the server announces a change;
    /// for a remote server, also when it is old, because announcements may be missed.
    pub(super) async fn tools(&self, server: &str) -> Result<Arc<[Tool]>, McpError> {
        let (changed, age_max) = match &self.link {
            McpConnection::Process(link) => (link.take_changed(), Duration::MAX),
            McpConnection::Remote(link) => {
                (link.take_changed(), Duration::from_millis(MCP_LIST_AGE_MS))
            }
        };
        {
            let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
            if changed {
                *list = None;
            }
            if let Some((since, list)) = &*list
                && since.elapsed() < age_max
            {
                return Ok(Arc::clone(list));
            }
        }
        let now = Instant::now();
        let tools: Arc<[Tool]> = self.list(server).await?.into();
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        *list = Some((now, Arc::clone(&tools)));
        Ok(tools)
    }

    /// Loads every page of the list.
    async fn list(&self, server: &str) -> Result<Vec<Tool>, McpError> {
        let (mut tools, mut params) = (Vec::new(), json!({}));
        let until = Instant::now() + Duration::from_millis(MCP_LIST_MS);
        for _ in 0..MCP_PAGES_MAX {
            let left = until.saturating_duration_since(Instant::now());
            let mut page =
                self.request("tools/list", &params, left, RequestIndex::OUTSIDE_DISPATCH).await?;
            // Models read the descriptions: redact a key that a server repeats in
            // one.
            known::process().scrub().value(&mut page);
            let Some(Value::Array(found)) = page.get_mut("tools").map(Value::take) else {
                return Err(McpError::Lost("sent a malformed tool list".to_owned()));
            };
            for one in found {
                let Some(tool) = tool(server, one) else {
                    tracing::warn!(
                        server,
                        "skipped a tool: its name or its input schema is invalid"
                    );
                    continue;
                };
                if tools.len() >= MCP_TOOLS_MAX {
                    return Err(McpError::Lost(format!("has more than {MCP_TOOLS_MAX} tools")));
                }
                tools.push(tool);
            }
            match page.get("nextCursor").and_then(Value::as_str) {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok(tools),
            }
        }
        Err(McpError::Lost(format!("has more than {MCP_PAGES_MAX} pages of tools")))
    }
}

/// Parses a tool definition; `None` if its name or schema is invalid.
fn tool(server: &str, mut written: Value) -> Option<Tool> {
    let name = written.get("name").and_then(Value::as_str)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    if name.is_empty() || name.len() > MCP_NAME_BYTES_MAX || !name.chars().all(plain) {
        return None;
    }
    let name = format!("{server}.{name}");
    let input_schema = match written.get_mut("inputSchema").map(Value::take) {
        None | Some(Value::Null) => json!({"type": "object"}),
        Some(schema) if schema.is_object() => schema,
        Some(_) => return None,
    };
    let mut description =
        written.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    description.truncate(description.floor_char_boundary(MCP_DESCRIPTION_BYTES_MAX));
    Some(Tool { name, description, input_schema, read_only: false })
}
