//! What the operator declared about tools, and which of their definitions are accepted.
//!
//! A catalog is an immutable snapshot. What is declared for a tool's own name comes first, then
//! the longest pattern that fits (`get_*`), then the defaults of its server: a tool that the
//! server has not listed yet has facts as well.

use crate::choice::choices;
use crate::facts::{ArgumentRole, SendsTo, ToolFacts};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Origin of the answers of a tool that declares none.
const UNKNOWN: &str = "unknown";

/// What the fields of a tool's answers are. A name stands for the field at any depth and for
/// everything below it; `*` is the whole answer and `@keys` are the keys of its maps. All other
/// fields are a stranger's text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnswerFields {
    /// Fields with values that a stranger cannot write.
    pub records: Vec<String>,
    /// Fields with private texts.
    pub private: Vec<String>,
    /// Text fields that hold one record in each line.
    pub lists: Vec<String>,
}

choices! {
    /// Whether the definition of a tool is the accepted one.
    pub enum ToolState, "a state of a tool" {
        /// The server listed it, and its definition is accepted.
        Accepted = "accepted",
        /// It appeared after the first listing of its server and was never accepted.
        New = "new",
        /// Its definition is not the accepted one.
        Changed = "changed",
        /// It is declared, or its server is, and no listing had it.
        Unseen = "unseen",
    }
}

impl ToolState {
    /// Why a tool in this state may not be called: a code and a text.
    pub fn refusal(self, tool: &str) -> Option<String> {
        let (code, what) = match self {
            ToolState::New => ("tool_not_accepted", "was added to a known server"),
            ToolState::Changed => ("tool_definition_changed", "has a new definition"),
            ToolState::Accepted | ToolState::Unseen => return None,
        };
        Some(format!("{code}: `{tool}` {what}; `sluice tools accept` accepts it"))
    }
}

/// What is declared about a tool, or about all tools of a server. A field that is absent is
/// taken from a less specific declaration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolDeclaration {
    /// Labels of the tool.
    pub labels: Option<Vec<Arc<str>>>,
    /// Whether it changes nothing.
    pub read_only: Option<bool>,
    /// Where it sends what it is given.
    pub sends_to: Option<SendsTo>,
    /// Where its answers come from.
    pub origins: Option<BTreeSet<Arc<str>>>,
    /// Which secrets its answers contain.
    pub secrecy: Option<BTreeSet<Arc<str>>>,
    /// Fields of its answers that are records.
    pub records: Option<Vec<String>>,
    /// Private fields of its answers.
    pub private: Option<Vec<String>>,
    /// Fields of its answers with one record in each line.
    pub lists: Option<Vec<String>>,
    /// The roles of its arguments, by path.
    pub roles: Option<BTreeMap<String, ArgumentRole>>,
}

/// What is declared about the tools of one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerDeclaration {
    /// Name of the server.
    pub name: Arc<str>,
    /// Applies to all of its tools.
    pub defaults: ToolDeclaration,
    /// By the tool's own name, or by the start of names and `*`: `get_*`.
    pub tools: BTreeMap<String, ToolDeclaration>,
}

impl ServerDeclaration {
    /// Whether a tool is declared to change nothing, by its own name.
    pub fn is_read_only(&self, tool: &str) -> bool {
        let mut declared = self.declarations(tool);
        declared.find_map(|one| one.read_only).unwrap_or_default()
    }

    /// The declarations that apply to a tool, the most specific one first.
    fn declarations<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a ToolDeclaration> {
        let starts = |(name, declared): (&'a String, &'a ToolDeclaration)| {
            let start = name.strip_suffix('*')?;
            tool.starts_with(start).then_some((start.len(), declared))
        };
        let mut patterns: Vec<_> = self.tools.iter().filter_map(starts).collect();
        patterns.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        let own = self.tools.get(tool).filter(|_| !tool.ends_with('*'));
        let patterns = patterns.into_iter().map(|(_, declared)| declared);
        own.into_iter().chain(patterns).chain([&self.defaults])
    }

    /// What applies to a tool, by its own name.
    fn tool(&self, own: &str, definitions: Definitions) -> CatalogTool {
        let declared: Vec<&ToolDeclaration> = self.declarations(own).collect();
        let fields = |of: fn(&ToolDeclaration) -> Option<&Vec<String>>| {
            declared.iter().find_map(|one| of(one)).cloned().unwrap_or_default()
        };
        let names = |of: fn(&ToolDeclaration) -> Option<&BTreeSet<Arc<str>>>| {
            declared.iter().find_map(|one| of(one)).cloned()
        };
        let facts = ToolFacts {
            server: Arc::clone(&self.name),
            labels: declared.iter().find_map(|one| one.labels.clone()).unwrap_or_default(),
            read_only: declared.iter().find_map(|one| one.read_only).unwrap_or_default(),
            sends_to: declared.iter().find_map(|one| one.sends_to),
            roles: declared.iter().find_map(|one| one.roles.clone()).unwrap_or_default(),
        };
        let accepted = definitions.accepted.as_ref();
        let input_schema = accepted.map(|one| Arc::clone(&one.input_schema));
        CatalogTool {
            facts: Arc::new(facts),
            fields: AnswerFields {
                records: fields(|one| one.records.as_ref()),
                private: fields(|one| one.private.as_ref()),
                lists: fields(|one| one.lists.as_ref()),
            },
            origins: names(|one| one.origins.as_ref()).unwrap_or_else(unknown),
            secrecy: names(|one| one.secrecy.as_ref()).unwrap_or_default(),
            input_schema,
            state: definitions.state(),
            definitions,
        }
    }
}

fn unknown() -> BTreeSet<Arc<str>> {
    BTreeSet::from([UNKNOWN.into()])
}

/// Definition of a tool, as its server sent it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// SHA-256 of description and schema.
    pub digest: String,
    /// Description, as the server wrote it.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Arc<Value>,
}

/// The definitions of a tool; empty if no server has listed it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Definitions {
    /// The definition that models see; absent for a tool that is new on a known server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Arc<ToolDefinition>>,
    /// The current definition, if it is not the accepted one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Arc<ToolDefinition>>,
}

impl Definitions {
    /// State of the tool.
    pub fn state(&self) -> ToolState {
        match (&self.accepted, &self.changed) {
            (None, None) => ToolState::Unseen,
            (Some(_), None) => ToolState::Accepted,
            (Some(_), Some(_)) => ToolState::Changed,
            (None, Some(_)) => ToolState::New,
        }
    }
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogTool {
    /// What policies see of the tool.
    pub facts: Arc<ToolFacts>,
    /// What the fields of its answers are.
    pub fields: AnswerFields,
    /// Where its answers come from.
    pub origins: BTreeSet<Arc<str>>,
    /// Which secrets its answers contain.
    pub secrecy: BTreeSet<Arc<str>>,
    /// JSON Schema of the arguments in the accepted definition.
    pub input_schema: Option<Arc<Value>>,
    /// State of its definition.
    pub state: ToolState,
    /// Its definitions.
    pub definitions: Definitions,
}

/// The tools of a machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Catalog {
    tools: BTreeMap<String, CatalogTool>,
    /// What applies to tools without an own entry. By server; each list is sorted by the start
    /// of the tool's own name, the longest one first, and ends with the empty start.
    others: BTreeMap<Arc<str>, Vec<(String, CatalogTool)>>,
}

static EMPTY: Catalog = Catalog { tools: BTreeMap::new(), others: BTreeMap::new() };

impl Catalog {
    /// The catalog of these servers. `listed` has the known tools by qualified name; those of
    /// other servers are ignored.
    pub fn new(
        servers: &[ServerDeclaration],
        listed: impl IntoIterator<Item = (String, Definitions)>,
    ) -> Catalog {
        let mut catalog = Catalog::default();
        for server in servers {
            let mut others: Vec<(String, CatalogTool)> = Vec::new();
            for name in server.tools.keys() {
                match name.strip_suffix('*') {
                    Some(start) => {
                        others.push((start.to_owned(), server.tool(name, Definitions::default())));
                    }
                    None => {
                        let whole = format!("{}.{name}", server.name);
                        catalog.tools.insert(whole, server.tool(name, Definitions::default()));
                    }
                }
            }
            others.sort_by_key(|(start, _)| std::cmp::Reverse(start.len()));
            others.push((String::new(), server.tool("", Definitions::default())));
            catalog.others.insert(Arc::clone(&server.name), others);
        }
        for (name, definitions) in listed {
            let of = |server: &&ServerDeclaration| own_name(&name, &server.name).is_some();
            if let Some(server) = servers.iter().find(of) {
                let own = own_name(&name, &server.name).unwrap_or_default();
                let tool = server.tool(own, definitions);
                catalog.tools.insert(name, tool);
            }
        }
        catalog
    }

    /// A catalog without tools.
    pub fn empty() -> &'static Catalog {
        &EMPTY
    }

    /// A tool, by its qualified name `server.tool`; `None` if its server is not declared.
    pub fn tool(&self, name: &str) -> Option<&CatalogTool> {
        self.tools.get(name).or_else(|| {
            let (server, own) = name.split_once('.')?;
            let others = self.others.get(server)?;
            others.iter().find(|(start, _)| own.starts_with(start.as_str())).map(|(_, tool)| tool)
        })
    }

    /// The tools that are listed or declared by name.
    pub fn tools(&self) -> impl Iterator<Item = (&str, &CatalogTool)> {
        self.tools.iter().map(|(name, tool)| (name.as_str(), tool))
    }

    /// The declared servers.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.others.keys().map(|name| &**name)
    }

    /// Every declared label of a tool.
    pub fn labels(&self) -> BTreeSet<&str> {
        self.all().flat_map(|tool| tool.facts.labels.iter().map(|name| &**name)).collect()
    }

    /// Every declared origin.
    pub fn origins(&self) -> BTreeSet<&str> {
        self.all().flat_map(|tool| tool.origins.iter().map(|name| &**name)).collect()
    }

    /// Every declared name of secrets.
    pub fn secrecy(&self) -> BTreeSet<&str> {
        self.all().flat_map(|tool| tool.secrecy.iter().map(|name| &**name)).collect()
    }

    fn all(&self) -> impl Iterator<Item = &CatalogTool> {
        let others = self.others.values().flatten().map(|(_, tool)| tool);
        self.tools.values().chain(others)
    }
}

/// The tool's own name, if it is a tool of the server.
pub fn own_name<'a>(tool: &'a str, server: &str) -> Option<&'a str> {
    tool.strip_prefix(server)?.strip_prefix('.')
}

#[cfg(test)]
mod tests;
