//! Names and words in policies that nothing has: a misspelt tool, label, server, argument or
//! keyword makes a rule that never holds.
//!
//! A new set with such a rule is refused. A stored set stays in force when a name disappears
//! later, because a refused set would stop all work on every node. Then a permit grants less
//! than before, and a forbid that names a missing label or server blocks every tool call in
//! its scope: it cannot say any more which calls it means.

use super::input::Paths;
use super::keyword::{nearest, unknown};
use super::rule::{Rule, What};
use crate::catalog::{Catalog, CatalogTool, ToolState};
use crate::choice::Choice;
use crate::facts::{ArgumentRole, SeenIn, SendsTo, Verb};
use crate::flow_label::is_name;
use crate::registry::{AgentStatus, Kind, Phase, Posture};
use cedar_policy::{Policy, ResourceConstraint};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const WEEKDAYS: [&str; 7] =
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
const STEP_KINDS: [&str; 4] = ["command", "lens", "workflow", "approval"];
const CLASSES: [&str; 4] = ["caller", "agent", "tool", "human"];
const CARRIED: [&str; 2] = [SeenIn::Private.as_str(), SeenIn::Stranger.as_str()];

/// A name or word that nothing has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) message: String,
    /// Whether a forbid with it does not know any more which calls it means.
    pub(super) breaks: bool,
}

/// The names and words of a policy that nothing has.
pub(super) fn missing(rule: &Rule, policy: &Policy, catalog: &Catalog) -> Vec<Missing> {
    let mut found = Names { catalog, rule, missing: Vec::new() };
    for literal in policy.entity_literals() {
        found.entity(&literal.type_name().to_string(), literal.id().unescaped());
    }
    for (field, name) in &rule.history_names {
        match &**field {
            "tool" => found.entity("Tool", name),
            "label" => found.entity("Label", name),
            "server" => found.entity("ToolServer", name),
            _ => {}
        }
    }
    if let ResourceConstraint::In(uid) | ResourceConstraint::IsIn(_, uid) =
        policy.resource_constraint()
        && uid.type_name().to_string() == "Tool"
    {
        let name = uid.id().unescaped();
        found.say(format!("a tool contains no tools: write `resource == Tool::\"{name}\"`"));
    }
    if let Ok(Value::Object(mut tree)) = policy.to_json()
        && let Some(conditions) = tree.remove("conditions")
    {
        found.expression(&conditions);
    }
    found.missing
}

struct Names<'c> {
    catalog: &'c Catalog,
    rule: &'c Rule,
    missing: Vec<Missing>,
}

impl Names<'_> {
    fn say(&mut self, message: String) {
        self.add(Missing { message, breaks: false });
    }

    fn add(&mut self, missing: Missing) {
        if !self.missing.contains(&missing) {
            self.missing.push(missing);
        }
    }

    fn entity(&mut self, kind: &str, name: &str) {
        match kind {
            "Tool" => self.tool(name),
            "Label" => {
                let labels: Vec<&str> = self.catalog.labels().into_iter().collect();
                self.known("label", name, &labels);
            }
            "ToolServer" => {
                let servers: Vec<&str> = self.catalog.servers().collect();
                self.known("server of tools", name, &servers);
            }
            _ => {}
        }
    }

    fn known(&mut self, what: &str, name: &str, all: &[&str]) {
        if !all.contains(&name) {
            let message = no_such(what, name, all);
            self.add(Missing { message, breaks: true });
        }
    }

    fn tool(&mut self, name: &str) {
        if let Some((server, _)) = name.split_once('.').filter(|_| name.contains('*')) {
            self.say(format!(
                "a tool's name has no wildcards: write `resource in ToolServer::\"{server}\"`"
            ));
            return;
        }
        let names: Vec<&str> = self.catalog.tools().map(|(name, _)| name).collect();
        let server = name.split_once('.').map(|(server, _)| server);
        if names.contains(&name) || self.catalog.servers().next().is_none() {
            // Without servers there is a remote bridge, which has its own.
            return;
        }
        if nearest(name, &names).is_some() {
            return self.say(no_such("tool", name, &names));
        }
        match server {
            Some(server) if self.is_listed(server) => self.say(no_such("tool", name, &names)),
            Some(server) if !self.catalog.servers().any(|known| known == server) => {
                let servers: Vec<&str> = self.catalog.servers().collect();
                let message = no_such("server of tools", server, &servers);
                self.say(format!("there is no tool `{name}`: {message}"));
            }
            // A server that was never listed may have any tool.
            _ => {}
        }
    }

    /// Whether the tools of a server are known.
    fn is_listed(&self, server: &str) -> bool {
        self.catalog
            .tools()
            .any(|(_, tool)| *tool.facts.server == *server && tool.state != ToolState::Unseen)
    }

    /// Looks at every comparison and every tag of an expression.
    fn expression(&mut self, tree: &Value) {
        match tree {
            Value::Array(parts) => parts.iter().for_each(|part| self.expression(part)),
            Value::Object(node) => {
                for operator in ["==", "!=", "contains", "containsAll", "containsAny"] {
                    if let Some((left, right)) = operands(node, operator) {
                        self.compare(left, right);
                        self.compare(right, left);
                    }
                }
                for operator in ["hasTag", "getTag"] {
                    if let Some((left, right)) = operands(node, operator)
                        && path(left).as_deref() == Some("context.call")
                        && let Some(argument) = word(right)
                    {
                        self.argument(argument);
                    }
                }
                node.values().for_each(|part| self.expression(part));
            }
            _ => {}
        }
    }

    /// Checks the words that an attribute is compared with.
    fn compare(&mut self, attribute: &Value, words: &Value) {
        let Some(attribute) = path(attribute) else { return };
        let list = words.get("Set").and_then(Value::as_array);
        let list = list.map_or(std::slice::from_ref(words), Vec::as_slice);
        let mut words = list.iter().filter_map(word);
        if is_label(&attribute) {
            // Any document may declare a name, but not every text is one.
            if let Some(word) = words.find(|word| !is_name(word)) {
                self.say(format!(
                    "`{attribute}` never contains \"{word}\": names of origins and secrets have \
                     lower-case letters, digits and `_ . -`"
                ));
            }
            return;
        }
        let Some(known) = words_of(&attribute) else { return };
        for word in words {
            if !known.contains(&word) {
                self.say(format!("`{attribute}`: {}", unknown(word, known)));
            }
        }
    }

    /// Checks that some tool in scope has an argument.
    fn argument(&mut self, argument: &str) {
        if self.rule.scope.verbs != [Verb::UseTool] {
            return;
        }
        let servers_are_listed = match &self.rule.scope.what {
            What::One(..) => true,
            What::Server(server) => self.is_listed(server),
            _ => self.catalog.servers().all(|server| self.is_listed(server)),
        };
        let tools = self.catalog.tools().filter(|(name, tool)| in_scope(self.rule, name, tool));
        let schemas: Vec<_> = tools.map(|(_, tool)| tool.input_schema.as_deref()).collect();
        // A tool that was never listed may have any argument.
        let Some(schemas) = schemas.into_iter().collect::<Option<Vec<_>>>() else { return };
        let paths: Vec<Paths> = schemas.into_iter().map(Paths::from_schema).collect();
        if servers_are_listed
            && !paths.is_empty()
            && !paths.iter().any(|paths| paths.may_have(argument))
        {
            let known = paths.iter().flat_map(|paths| &paths.known).map(String::as_str);
            let known: BTreeSet<&str> = known.collect();
            let known: Vec<&str> = known.into_iter().collect();
            let message = no_such("argument of a tool in scope", argument, &known);
            self.say(message);
        }
    }
}

/// The words that an attribute can have; `None` if it can have any.
fn words_of(path: &str) -> Option<&'static [&'static str]> {
    Some(match path {
        "context.posture" => Posture::NAMES,
        "context.time.weekday" => &WEEKDAYS,
        "context.step.kind" => &STEP_KINDS,
        "context.inputs.classes" => &CLASSES,
        "principal.phase" => Phase::NAMES,
        "principal.status" => AgentStatus::NAMES,
        "resource.kind" => Kind::NAMES,
        "resource.sends_to" => SendsTo::NAMES,
        _ => match path.strip_prefix("context.call.")?.split_once('.')?.1 {
            "seen" | "mentions" => SeenIn::NAMES,
            "carries" => &CARRIED,
            "role" => ArgumentRole::NAMES,
            _ => return None,
        },
    })
}

/// Whether an attribute has names of origins or secrets.
fn is_label(path: &str) -> bool {
    path.starts_with("context.") && (path.ends_with(".origins") || path.ends_with(".secrecy"))
}

/// Whether the scope of a policy admits a tool.
fn in_scope(rule: &Rule, name: &str, tool: &CatalogTool) -> bool {
    match &rule.scope.what {
        What::Anything => true,
        What::Kind(kind) => kind == "Tool",
        What::One(_, id) => id == name,
        What::Label(label) => tool.facts.labels.iter().any(|known| **known == **label),
        What::Server(server) => *tool.facts.server == **server,
        What::Nothing => false,
    }
}

/// `there is no tool `mail.sned`; did you mean "mail.send"?`
fn no_such(what: &str, name: &str, all: &[&str]) -> String {
    let name: String = name.chars().take(80).collect();
    match nearest(&name, all) {
        Some(nearest) => format!("there is no {what} `{name}`; did you mean \"{nearest}\"?"),
        None => format!("there is no {what} `{name}`"),
    }
}

/// The operands of a node, if it has this operator.
fn operands<'t>(node: &'t Map<String, Value>, operator: &str) -> Option<(&'t Value, &'t Value)> {
    let operands = node.get(operator)?;
    Some((operands.get("left")?, operands.get("right")?))
}

/// A text of an expression.
fn word(tree: &Value) -> Option<&str> {
    tree.get("Value").and_then(Value::as_str)
}

/// The path of an attribute chain that begins with a variable. A tag is `(tag)`.
fn path(tree: &Value) -> Option<String> {
    if let Some(Value::String(name)) = tree.get("Var") {
        return Some(name.clone());
    }
    if let Some(access) = tree.get(".") {
        let left = path(access.get("left")?)?;
        return Some(format!("{left}.{}", access.get("attr")?.as_str()?));
    }
    let left = path(tree.get("getTag")?.get("left")?)?;
    Some(format!("{left}.(tag)"))
}
