//! What policies may refer to, as text for people: the names in force and our schema.

use super::input::{InputType, Paths};
use super::validate::{SCHEMA, typed_schema};
use crate::catalog::{Catalog, CatalogTool};
use crate::facts::SendsTo;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What policies may refer to: the tools, labels, servers, origins and names of secrets of a
/// catalog, and the Cedar schema. With a tool, also the types of its arguments, as a policy
/// about this tool reads them. `None` if the catalog does not have the tool.
pub fn reference(catalog: &Catalog, tool: Option<&str>) -> Option<String> {
    let mut text = "// What a policy may refer to.\n//\n".to_owned();
    match tool {
        None => every_tool(&mut text, catalog),
        Some(name) => {
            let (_, found) = catalog.tools().find(|(known, _)| *known == name)?;
            describe(&mut text, name, found);
            arguments(&mut text, found);
        }
    }
    names(&mut text, "labels", "Label", &catalog.labels());
    names(&mut text, "servers", "ToolServer", &catalog.servers().collect());
    words(&mut text, "origins", &catalog.origins());
    words(&mut text, "secrecy", &catalog.secrecy());
    text.push('\n');
    let schema = tool.and_then(|name| catalog.tool(name)?.input_schema.as_deref());
    match schema.and_then(InputType::from_schema) {
        Some(input) => text.push_str(&typed_schema(&input)),
        None => text.push_str(SCHEMA),
    }
    Some(text)
}

fn every_tool(text: &mut String, catalog: &Catalog) {
    if catalog.tools().next().is_none() {
        text.push_str("// No tools are declared or listed.\n");
    }
    for (name, tool) in catalog.tools() {
        describe(text, name, tool);
    }
}

fn describe(text: &mut String, name: &str, tool: &CatalogTool) {
    let facts = &tool.facts;
    let _ = write!(text, "// Tool::{}", quoted(name));
    let sends_to = facts.sends_to.unwrap_or(SendsTo::External);
    let _ = write!(text, ": {}, sends_to {}", tool.state.as_str(), sends_to.as_str());
    if facts.read_only {
        text.push_str(", read_only");
    }
    let labels: Vec<String> = facts.labels.iter().map(|label| quoted(label)).collect();
    if !labels.is_empty() {
        let _ = write!(text, ", labels {}", labels.join(", "));
    }
    text.push('\n');
}

/// The arguments that have tags, with their roles.
fn arguments(text: &mut String, tool: &CatalogTool) {
    let known = tool.input_schema.as_deref().map(Paths::from_schema);
    let all: BTreeSet<&str> = match &known {
        Some(paths) => paths.known.iter().map(String::as_str).collect(),
        None => tool.facts.roles.keys().map(String::as_str).collect(),
    };
    for path in all {
        let _ = write!(text, "//   context.call.getTag({})", quoted(path));
        if let Some(role) = tool.facts.roles.get(path) {
            let _ = write!(text, ", role {}", role.as_str());
        }
        text.push('\n');
    }
    if known.is_none_or(|paths| !paths.open.is_empty()) {
        text.push_str("//   further arguments are not known\n");
    }
}

fn names(text: &mut String, what: &str, kind: &str, all: &BTreeSet<&str>) {
    let all: Vec<String> = all.iter().map(|name| format!("{kind}::{}", quoted(name))).collect();
    let _ = writeln!(text, "// {what}: {}", list(&all));
}

fn words(text: &mut String, what: &str, all: &BTreeSet<&str>) {
    let all: Vec<String> = all.iter().map(|name| quoted(name)).collect();
    let _ = writeln!(text, "// {what}: {}", list(&all));
}

fn list(all: &[String]) -> String {
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

/// A name as a Cedar text, in one line.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.escape_debug())
}
