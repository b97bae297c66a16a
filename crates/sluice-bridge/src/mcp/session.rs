//! An initialised MCP session and its tool list.

use super::http;
use super::message;
use super::stdio;
use super::trouble::Trouble;
use crate::limits::{
    MCP_DESCRIPTION_BYTES_MAX, MCP_LIST_AGE_MS, MCP_LIST_MS, MCP_NAME_BYTES_MAX, MCP_PAGES_MAX,
    MCP_START_MS, MCP_TOOLS_MAX,
};
use crate::secret::known;
use crate::tools::Tool;
use crate::wire::Place;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Supported protocol versions, the preferred one first.
const VERSIONS: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];

#[derive(Debug)]
pub(super) enum Link {
    Process(stdio::Link),
    Elsewhere(Arc<http::Link>),
}

#[derive(Debug)]
pub(super) struct Session {
    link: Link,
    list: Mutex<Option<(Instant, Arc<[Tool]>)>>,
}

impl Session {
    /// Initialises a session: negotiates the protocol version.
    pub(super) async fn greet(link: Link) -> Result<Session, Trouble> {
        let session = Session { link, list: Mutex::default() };
        let params = json!({
            "protocolVersion": VERSIONS[0],
            "capabilities": {},
            "clientInfo": {"name": "sluice", "version": env!("CARGO_PKG_VERSION")},
        });
        let start = Duration::from_millis(MCP_START_MS);
        let hello = session.ask("initialize", &params, start, Place::ASIDE).await?;
        let offered = hello.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let Some(version) = VERSIONS.into_iter().find(|version| *version == offered) else {
            let offered = message::told(offered);
            let spoken = VERSIONS.join(", ");
            return Err(Trouble::Lost(format!(
                "offers protocol version `{offered}`, supported are {spoken}"
            )));
        };
        if let Link::Elsewhere(link) = &session.link {
            link.agreed(version);
        }
        session.tell("notifications/initialized").await;
        Ok(session)
    }

    pub(super) fn is_alive(&self) -> bool {
        match &self.link {
            Link::Process(link) => link.is_alive(),
            Link::Elsewhere(_) => true,
        }
    }

    pub(super) async fn ask(
        &self,
        method: &str,
        params: &Value,
        patience: Duration,
        place: Place<'_>,
    ) -> Result<Value, Trouble> {
        match &self.link {
            Link::Process(link) => link.ask(method, params, patience).await,
            Link::Elsewhere(link) => link.ask(method, params, patience, place).await,
        }
    }

    async fn tell(&self, method: &str) {
        match &self.link {
            Link::Process(link) => link.tell(method, &json!({})).await,
            Link::Elsewhere(link) => link.tell(message::notification(method, &json!({}))).await,
        }
    }

    /// The tool list, from a cache. It is loaded again when the server announces a change;
    /// for a remote server, also when it is old, because announcements may be missed.
    pub(super) async fn tools(&self, server: &str) -> Result<Arc<[Tool]>, Trouble> {
        let (changed, age_max) = match &self.link {
            Link::Process(link) => (link.take_changed(), Duration::MAX),
            Link::Elsewhere(link) => (link.take_changed(), Duration::from_millis(MCP_LIST_AGE_MS)),
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
    async fn list(&self, server: &str) -> Result<Vec<Tool>, Trouble> {
        let (mut tools, mut params) = (Vec::new(), json!({}));
        let until = Instant::now() + Duration::from_millis(MCP_LIST_MS);
        for _ in 0..MCP_PAGES_MAX {
            let left = until.saturating_duration_since(Instant::now());
            let mut page = self.ask("tools/list", &params, left, Place::ASIDE).await?;
            // Models read the descriptions: redact a key that a server repeats in
            // one.
            known::process().scrub().value(&mut page);
            let Some(Value::Array(found)) = page.get_mut("tools").map(Value::take) else {
                return Err(Trouble::Lost("sent a malformed tool list".to_owned()));
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
                    return Err(Trouble::Lost(format!("has more than {MCP_TOOLS_MAX} tools")));
                }
                tools.push(tool);
            }
            match page.get("nextCursor").and_then(Value::as_str) {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok(tools),
            }
        }
        Err(Trouble::Lost(format!("has more than {MCP_PAGES_MAX} pages of tools")))
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
