mod attacks;
mod bounds;
mod sources;
mod traces;
mod vectors;

use super::*;
use serde_json::{Map, json};
use sluice_govern::facts::CallFacts;

/// An answer with fields.
fn fields(value: Value) -> AnswerSeen {
    AnswerSeen { structured: Some(value), ..AnswerSeen::default() }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Fields that are records.
fn records(fields: &[&str]) -> AnswerFields {
    AnswerFields { records: names(fields), ..AnswerFields::default() }
}

/// The arguments of a call.
fn input(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("arguments are an object")
}

/// The facts about a single argument.
fn facts(index: &SeenIndex, value: &Value) -> sluice_govern::facts::ArgumentFacts {
    let mut facts: CallFacts = index.call_facts(input(&json!({"v": value})));
    facts.arguments.remove("v").unwrap_or_default()
}

/// The best classes of a single argument.
fn seen(index: &SeenIndex, value: &Value) -> Vec<SeenIn> {
    facts(index, value).seen.into_iter().collect()
}
