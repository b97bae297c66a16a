//! The tools of this machine, as clients see them.

use crate::refused::{ROW_UNKNOWN, Refused};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_core::visible;
use sluice_govern::catalog::{Catalog, CatalogTool, ToolDefinition};
use std::collections::BTreeMap;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolShown {
    /// Its full name: `server.tool`.
    pub tool: String,
    /// Name of its server.
    pub server: String,
    /// `accepted`; `new` if it appeared after the first listing of its server; `changed` if its
    /// definition is not the accepted one; `unseen` if no listing had it.
    pub state: String,
    /// Labels that the operator declared.
    pub labels: Vec<String>,
    /// Whether it is declared to change nothing.
    pub read_only: bool,
    /// Where it sends what it is given: `external`, `internal` or `none`; null if not declared.
    pub sends_to: Option<String>,
    /// Roles of its arguments: `to`, `what`, `when`, `amount` or `text`.
    pub arguments: BTreeMap<String, String>,
    /// Where its answers come from.
    pub origin: Vec<String>,
    /// Which secrets its answers contain.
    pub sensitive: Vec<String>,
    /// Fields of its answers with values that a stranger cannot write.
    pub records: Vec<String>,
    /// Private fields of its answers.
    pub private: Vec<String>,
    /// Fields of its answers with one record in each line.
    pub lists: Vec<String>,
    /// The accepted definition.
    pub accepted: Option<DefinitionShown>,
    /// The current definition, if it is not accepted.
    pub changed: Option<DefinitionShown>,
}

/// The definition of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DefinitionShown {
    /// SHA-256 of description and schema.
    pub digest: String,
    /// Description, as the server wrote it. Absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments. Absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
}

/// All tools of a catalog, without the texts of their definitions.
pub fn list(catalog: &Catalog) -> Vec<ToolShown> {
    let digest = |definition: &ToolDefinition| DefinitionShown {
        digest: definition.digest.clone(),
        description: None,
        input_schema: None,
    };
    catalog.tools().map(|(name, tool)| shown(name, tool, digest)).collect()
}

/// One tool.
pub fn find(catalog: &Catalog, name: &str) -> Result<ToolShown, Refused> {
    let whole = |definition: &ToolDefinition| DefinitionShown {
        digest: definition.digest.clone(),
        description: Some(definition.description.clone()),
        input_schema: Some(Value::clone(&definition.input_schema)),
    };
    match catalog.tools().find(|(known, _)| *known == name) {
        Some((name, tool)) => Ok(shown(name, tool, whole)),
        None => Err(unknown(name)),
    }
}

/// The refusal of a tool that is neither listed nor declared by name.
pub fn unknown(tool: &str) -> Refused {
    let message = format!("no tool `{}` is known", visible::brief(tool));
    Refused::new(ROW_UNKNOWN, message, "`sluice tools list` shows the known tools")
}

fn shown(
    name: &str,
    tool: &CatalogTool,
    definition: impl Fn(&ToolDefinition) -> DefinitionShown,
) -> ToolShown {
    let roles = tool.facts.roles.iter();
    ToolShown {
        tool: name.to_owned(),
        server: tool.facts.server.to_string(),
        state: tool.state.to_string(),
        labels: tool.facts.labels.iter().map(ToString::to_string).collect(),
        read_only: tool.facts.read_only,
        sends_to: tool.facts.sends_to.map(|place| place.to_string()),
        arguments: roles.map(|(path, role)| (path.clone(), role.to_string())).collect(),
        origin: tool.origins.iter().map(ToString::to_string).collect(),
        sensitive: tool.secrecy.iter().map(ToString::to_string).collect(),
        records: tool.fields.records.clone(),
        private: tool.fields.private.clone(),
        lists: tool.fields.lists.clone(),
        accepted: tool.definitions.accepted.as_deref().map(&definition),
        changed: tool.definitions.changed.as_deref().map(&definition),
    }
}
