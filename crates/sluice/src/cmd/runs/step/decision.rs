//! The decisions about a step and its tool calls.

use super::words;
use crate::cmd::policies::explain::about;
use crate::table::Table;
use serde_json::{Map, Value};
use sluice_core::visible;

/// The decisions that did not simply allow a dispatch, one on a line, and the arguments of
/// tool calls.
pub(super) fn draw(step: &Value) -> String {
    let decisions = step["decisions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut table = Table::plain();
    let mut drawn = 0;
    for decision in decisions.iter().map(|event| &event["payload"]) {
        let (verb, facts) = (words(&decision["facts"]["verb"]), &decision["facts"]);
        let is_plain = decision["disposition"] == "allow" && matched(decision).is_empty();
        if is_plain && verb != "use_tool" {
            continue;
        }
        drawn += 1;
        let what = facts["what"].as_object().and_then(|what| what.values().next());
        let what = what.map(|what| words(what.get("name").unwrap_or(what))).unwrap_or_default();
        let disposition = words(&decision["disposition"]).to_owned();
        table.row([format!("{verb} {what}"), disposition, why(decision)]);
        for argument in arguments(facts) {
            let name = visible::brief(words(&argument["argument"])).into_owned();
            table.row([format!("  {name}"), String::new(), about(&argument)]);
        }
    }
    if drawn == 0 {
        return String::new();
    }
    let step = visible::brief(words(&step["node"]["node_id"]));
    format!("{}  `sluice policies explain RUN {step}` shows the policies\n", table.draw())
}

/// The message of the gate that decided, else the policies that matched.
fn why(decision: &Value) -> String {
    let gates = decision["gates"].as_array().map(Vec::as_slice).unwrap_or_default();
    let decides = |gate: &&Value| gate["outcome"] == "block" || gate["outcome"] == "hold";
    match gates.iter().find(decides) {
        Some(gate) => words(&gate["message"]).to_owned(),
        None => matched(decision).join(", "),
    }
}

/// The policies that matched, of the set in force and of the one in shadow.
fn matched(decision: &Value) -> Vec<String> {
    let names = |set: &Value, before: &str| -> Vec<String> {
        let all = set["matched"].as_array().into_iter().flatten();
        all.map(|one| format!("{before}{}", words(&one["policy"]))).collect()
    };
    let mut all = names(decision, "");
    all.extend(names(&decision["shadow"], "shadow/"));
    all
}

/// The arguments of a tool call, with where their values were seen.
fn arguments(facts: &Value) -> Vec<Value> {
    if facts["verb"] != "use_tool" {
        return Vec::new();
    }
    let known = &facts["call"]["arguments"];
    let input = facts["input"].as_object().into_iter().flatten();
    let argument = |(name, value): (&String, &Value)| {
        let mut argument = known[name].as_object().cloned().unwrap_or_else(Map::new);
        argument.insert("argument".to_owned(), name.clone().into());
        argument.insert("value".to_owned(), value.clone());
        Value::Object(argument)
    };
    input.map(argument).collect()
}
