//! The values that a policy reads.

use super::super::facts::PolicyFacts;
use super::super::request::CedarRequest;
use super::condition::{node, text};
use crate::choice::Choice as _;
use crate::facts::ArgumentRole;
use cedar_policy::{EvalResult, Expression, eval_expression};
use serde::Serialize;
use serde_json::{Map, Number, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A value that a policy reads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadValue {
    /// Its path: `context.call.amount.number`.
    pub path: String,
    /// The value; absent if the request has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// An argument that a policy reads, or a property of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedArgument {
    /// Path of the argument.
    pub argument: String,
    /// Its value; of a list of objects, the values at this path. Absent if it was not
    /// recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Where it was seen, its labels and its role.
    #[serde(flatten)]
    pub properties: Map<String, Value>,
}

/// Properties of an argument that describe the value and are not the value.
const PROPERTIES: [&str; 7] =
    ["role", "seen", "mentions", "carries", "origins", "secrecy", "truncated"];

impl ReadValue {
    /// Whether it is a label that flows into the action, or depends on one.
    pub(super) fn is_flow(&self) -> bool {
        let of_argument = self.path.starts_with("context.call.")
            && (self.path.ends_with(".origins") || self.path.ends_with(".secrecy"));
        let of_inputs = ["context.inputs.untrusted", "context.inputs.private"];
        self.path.starts_with("context.flow")
            || of_argument
            || of_inputs.contains(&self.path.as_str())
    }
}

/// The values that the conditions of a policy read, with what Cedar sees there.
pub(super) fn values(policy: &Value, request: Option<&CedarRequest>) -> Vec<ReadValue> {
    let mut paths = BTreeSet::new();
    collect(&policy["conditions"], &mut paths);
    // Who reads a part of a value does not read the whole.
    let is_part = |whole: &str| {
        paths.iter().any(|path| path.strip_prefix(whole).is_some_and(|rest| rest.starts_with('.')))
    };
    let read = paths.iter().filter(|path| !is_part(path));
    read.map(|path| ReadValue { path: path.clone(), value: evaluated(path, request) }).collect()
}

/// Collects the paths that begin with a variable.
fn collect(tree: &Value, paths: &mut BTreeSet<String>) {
    if let Some(path) = path(tree) {
        if path.contains('.') {
            paths.insert(path);
        }
        return;
    }
    match tree {
        Value::Array(parts) => parts.iter().for_each(|part| collect(part, paths)),
        Value::Object(parts) => parts.values().for_each(|part| collect(part, paths)),
        _ => {}
    }
}

/// The path of an expression, if it only reads one value.
fn path(tree: &Value) -> Option<String> {
    let (operator, operands) = node(tree)?;
    match operator {
        "Var" => Some(text(tree)),
        "." => path(&operands["left"]).map(|_| text(tree)),
        "getTag" => {
            operands["right"].get("Value")?;
            path(&operands["left"]).map(|_| text(tree))
        }
        "hasTag" => {
            operands["right"].get("Value")?;
            let left = path(&operands["left"])?;
            Some(format!("{left}.getTag({})", text(&operands["right"])))
        }
        "has" => {
            let access = json!({".": operands});
            path(&operands["left"]).map(|_| text(&access))
        }
        _ => None,
    }
}

fn evaluated(path: &str, request: Option<&CedarRequest>) -> Option<Value> {
    let request = request?;
    let expression: Expression = path.parse().ok()?;
    let value = eval_expression(&request.request, &request.entities, &expression).ok()?;
    Some(shown(&value))
}

fn shown(value: &EvalResult) -> Value {
    match value {
        EvalResult::Bool(flag) => json!(flag),
        EvalResult::Long(number) => json!(number),
        EvalResult::String(text) => json!(text),
        EvalResult::EntityUid(id) => json!(id.to_string()),
        EvalResult::Set(set) => set.iter().map(shown).collect(),
        EvalResult::Record(record) => {
            record.iter().map(|(name, value)| (name.clone(), shown(value))).collect()
        }
        EvalResult::ExtensionValue(text) => decimal(text).unwrap_or_else(|| json!(text)),
    }
}

/// The number of `decimal("5.0")`.
fn decimal(text: &str) -> Option<Value> {
    let digits = text.strip_prefix("decimal(\"")?.strip_suffix("\")")?;
    let plain = digits.trim_end_matches('0').trim_end_matches('.');
    plain.parse::<Number>().ok().map(Value::Number)
}

/// The arguments that the values belong to, with everything that is known about them.
pub(super) fn arguments(
    values: &[ReadValue],
    request: Option<&CedarRequest>,
    facts: &PolicyFacts<'_>,
) -> Vec<ExplainedArgument> {
    let mut all = BTreeMap::new();
    for name in values.iter().filter_map(|value| argument(&value.path)) {
        let is_union = name == "all" || ArgumentRole::WORDS.iter().any(|(word, _)| *word == name);
        let named = if is_union {
            let paths = evaluated(&format!("context.call.{name}.arguments"), request);
            let paths = paths.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
            paths.iter().filter_map(|path| path.as_str().map(str::to_owned)).collect()
        } else {
            serde_json::from_str(&name).into_iter().collect::<Vec<String>>()
        };
        for path in named {
            let tag = format!("context.call.getTag({})", json!(path));
            let known = evaluated(&tag, request);
            let properties = PROPERTIES.iter().filter_map(|name| {
                let value = known.as_ref()?.get(name)?.clone();
                let is_said = value != json!([]) && value != json!(false);
                is_said.then(|| ((*name).to_owned(), value))
            });
            let properties = properties.collect();
            let value = facts.input.as_deref().and_then(|input| at(input, &path));
            all.insert(path.clone(), ExplainedArgument { argument: path, value, properties });
        }
    }
    all.into_values().collect()
}

/// What a path is about: a role, `all`, or the quoted path of an argument.
fn argument(path: &str) -> Option<String> {
    if let Some(rest) = path.strip_prefix("context.input.") {
        let name = rest.split('.').next().unwrap_or_default();
        return Some(json!(name).to_string());
    }
    let rest = path.strip_prefix("context.call.")?;
    if let Some(tag) = rest.strip_prefix("getTag(") {
        let end = tag.find(')')?;
        return Some(tag[..end].to_owned());
    }
    let name = rest.split('.').next().unwrap_or_default();
    (!["arguments", "exposed"].contains(&name)).then(|| name.to_owned())
}

/// The value at the path of an argument. A path leads through lists to each of their items.
fn at(input: &Map<String, Value>, path: &str) -> Option<Value> {
    if let Some(value) = input.get(path) {
        return Some(value.clone());
    }
    // A name may contain a dot itself.
    let splits = path.match_indices('.').map(|(at, _)| (&path[..at], &path[at + 1..]));
    splits.into_iter().find_map(|(name, rest)| below(input.get(name)?, rest))
}

fn below(value: &Value, path: &str) -> Option<Value> {
    match value {
        Value::Object(map) => at(map, path),
        Value::Array(items) => {
            let found: Vec<Value> = items.iter().filter_map(|item| below(item, path)).collect();
            (!found.is_empty()).then(|| Value::Array(found))
        }
        _ => None,
    }
}
