//! The tools that a model is offered, and under which names.
//!
//! Governance names tools `server.tool`; providers take fewer characters, and not
//! many of them. Each tool gets a name that every provider takes, and the name
//! leads back to one tool.
//!
//! INVARIANT: nothing is offered that the request does not name, or that its
//! constraints leave out. No two tools are offered under one name.

use super::failure::{error, invalid};
use crate::limits::{TOOL_LIST_MS, TOOL_NAME_BYTES_MAX, TOOLS_OFFERED_MAX};
use crate::tools::{Tool, ToolServer};
use sluice_core::port::adapter::{CallError, CallErrorCode, Request};
use sluice_core::tools::names;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Servers of tools that a gateway may use: each by its name, none where nobody
/// here has it.
pub(super) type Toolbox = Vec<(String, Option<Arc<dyn ToolServer>>)>;

/// A tool that a model is offered.
#[derive(Debug, Clone)]
pub(super) struct Offered {
    /// What the model calls it.
    pub(super) alias: String,
    /// The tool.
    pub(super) tool: Tool,
    /// Who has it.
    pub(super) server: Arc<dyn ToolServer>,
}

/// The tools that a request may be offered.
pub(super) async fn gather(
    toolbox: &Toolbox,
    request: &Request,
) -> Result<Vec<Offered>, CallError> {
    let mut offered: Vec<Offered> = Vec::new();
    let mut taken = BTreeSet::new();
    for (name, server) in toolbox {
        if !request.tools.iter().any(|one| is_of(one, name)) {
            continue;
        }
        let Some(server) = server else {
            return Err(invalid(format!("the server of tools `{name}` is not set up here")));
        };
        for tool in list(name, server.as_ref()).await?.iter() {
            if !may(request, tool) {
                continue;
            }
            if offered.len() == TOOLS_OFFERED_MAX {
                let most = TOOLS_OFFERED_MAX;
                return Err(invalid(format!(
                    "more than {most} tools cannot be offered to a model"
                )));
            }
            let alias = alias(&tool.name, &mut taken);
            offered.push(Offered { alias, tool: tool.clone(), server: Arc::clone(server) });
        }
    }
    Ok(offered)
}

/// Whether an entry of a list could name a tool of a server.
fn is_of(entry: &str, server: &str) -> bool {
    entry.strip_prefix(server).is_some_and(|rest| rest.starts_with('.'))
}

fn may(request: &Request, tool: &Tool) -> bool {
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
        Err(_) => (CallErrorCode::Timeout, "does not say what it has".to_owned()),
    };
    Err(error(code, format!("the server of tools `{name}`: {why}")))
}

/// A name that every provider takes and that no other tool has.
fn alias(name: &str, taken: &mut BTreeSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let mut word: String = name.chars().map(plain).collect();
    // Some want a letter first.
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
