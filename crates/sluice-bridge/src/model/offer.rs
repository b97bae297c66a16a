//! Selects the tools that a model is offered, and their aliases.
//!
//! Sluice names tools `server.tool`; providers allow fewer characters and shorter names. Each
//! tool gets an alias that every provider accepts and that maps back to one tool.
//!
//! INVARIANT: only tools that the request names and its constraints allow are offered. No two
//! tools have the same alias.

use super::failure::{error, invalid};
use crate::limits::{TOOL_LIST_MS, TOOL_NAME_BYTES_MAX, TOOLS_OFFERED_MAX};
use crate::tools::{Tool, ToolServer};
use sluice_core::port::adapter::{CallError, CallErrorCode, Request};
use sluice_core::tools::names;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Tool servers of a gateway, by name; `None` if the server is not configured in this process.
pub(super) type Toolbox = Vec<(String, Option<Arc<dyn ToolServer>>)>;

/// A tool that a model is offered.
#[derive(Debug, Clone)]
pub(super) struct OfferedTool {
    /// Name that the model uses.
    pub(super) alias: String,
    pub(super) tool: Tool,
    pub(super) server: Arc<dyn ToolServer>,
}

/// Lists the tools that the request may use.
pub(super) async fn list_offered(
    toolbox: &Toolbox,
    request: &Request,
) -> Result<Vec<OfferedTool>, CallError> {
    let mut offered: Vec<OfferedTool> = Vec::new();
    let mut taken = BTreeSet::new();
    for (name, server) in toolbox {
        if !request.tools.iter().any(|one| is_of(one, name)) {
            continue;
        }
        let Some(server) = server else {
            return Err(invalid(format!(
                "the tool server `{name}` is not configured in this process"
            )));
        };
        for tool in list(name, server.as_ref()).await?.iter() {
            if !is_allowed(request, tool) {
                continue;
            }
            if offered.len() == TOOLS_OFFERED_MAX {
                let most = TOOLS_OFFERED_MAX;
                return Err(invalid(format!("a model cannot be offered more than {most} tools")));
            }
            let alias = alias(&tool.name, &mut taken);
            offered.push(OfferedTool { alias, tool: tool.clone(), server: Arc::clone(server) });
        }
    }
    Ok(offered)
}

/// Whether an entry of a tool list can name a tool of the server.
fn is_of(entry: &str, server: &str) -> bool {
    entry.strip_prefix(server).is_some_and(|rest| rest.starts_with('.'))
}

fn is_allowed(request: &Request, tool: &Tool) -> bool {
    let bounds = &request.constraints;
    names(&request.tools, &tool.name)
        && bounds.tools_allow.as_ref().is_none_or(|allow| names(allow, &tool.name))
        && !names(&bounds.tools_deny, &tool.name)
        && (tool.read_only || bounds.data_access.as_deref() != Some("read_only"))
}

async fn list(name: &str, server: &dyn ToolServer) -> Result<Arc<[Tool]>, CallError> {
    let patience = Duration::from_millis(TOOL_LIST_MS);
    let (code, why) = match timeout(patience, server.tools()).await {
        Ok(Ok(tools)) => return Ok(tools),
        Ok(Err(trouble)) => (CallErrorCode::ProviderError, trouble.to_string()),
        Err(_) => (CallErrorCode::Timeout, "did not list its tools in time".to_owned()),
    };
    Err(error(code, format!("the tool server `{name}`: {why}")))
}

/// A unique name that every provider accepts.
fn alias(name: &str, taken: &mut BTreeSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let mut word: String = name.chars().map(plain).collect();
    // Some providers require a letter first.
    if !word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        word.insert(0, '_');
    }
    word.truncate(TOOL_NAME_BYTES_MAX);
    let mut one = word.clone();
    let mut number = 2;
    while taken.contains(&one) {
        let end = format!("_{number}");
        let stem = &word[..word.len().min(TOOL_NAME_BYTES_MAX - end.len())];
        one = format!("{stem}{end}");
        number += 1;
    }
    taken.insert(one.clone());
    one
}

#[cfg(test)]
mod tests;
