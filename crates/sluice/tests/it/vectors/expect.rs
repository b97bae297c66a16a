//! What a case expects, held against what was seen.

use super::case::Case;
use super::law;
use super::matching::{compare, meets};
use super::through::Seen;
use serde_json::{Map, Value};

/// Everything that is not as the case wants it.
pub(super) fn faults(case: &Case, seen: &Seen) -> Vec<String> {
    let mut faults = Vec::new();
    let refusal = if seen.refused.is_some() { "refused" } else { "diagnostics" };
    if seen.shown.is_none() && !case.expect.contains_key(refusal) {
        let why = seen.refused.as_ref().map_or_else(|| seen.report.to_string(), String::clone);
        return vec![format!("there was no run: {why}")];
    }
    for (key, wanted) in &case.expect {
        match key.as_str() {
            "exit" => compare("exit", wanted, Some(&seen.exit.into()), &mut faults),
            "diagnostics" => diagnostics(wanted, &seen.report, &mut faults),
            "refused" => {
                compare(
                    "refused",
                    wanted,
                    seen.refused.clone().map(Value::from).as_ref(),
                    &mut faults,
                );
            }
            "nodes" => nodes(wanted, seen, &mut faults),
            "events" => in_order(wanted, seen, &mut faults),
            "absent" => absent(wanted, seen, &mut faults),
            "order" => before(wanted, seen, &mut faults),
            "counts" => counts(wanted, seen, &mut faults),
            "sequences" => sequences(wanted, seen, &mut faults),
            field => match seen.shown.as_ref().and_then(|shown| shown.get(field)) {
                Some(value) => compare(field, wanted, Some(value), &mut faults),
                None => faults.push(format!("{field}: the projection has no such field")),
            },
        }
    }
    faults.extend(law::faults(seen));
    faults
}

/// Every problem is expected, and every expected one is there.
fn diagnostics(wanted: &Value, report: &Value, faults: &mut Vec<String>) {
    let mut told: Vec<Value> = Vec::new();
    for (severity, list) in [("error", "errors"), ("warning", "warnings")] {
        for one in report[list].as_array().into_iter().flatten() {
            let mut one = one.clone();
            one["severity"] = severity.into();
            told.push(one);
        }
    }
    for one in wanted.as_array().into_iter().flatten() {
        match told.iter().position(|told| meets(one, Some(told))) {
            Some(at) => drop(told.remove(at)),
            None => faults.push(format!("diagnostics: no {one}")),
        }
    }
    faults.extend(told.iter().map(|one| format!("diagnostics: unexpected {one}")));
}

fn node<'s>(seen: &'s Seen, id: &str) -> Option<&'s Map<String, Value>> {
    let nodes = seen.shown.as_ref()?["node_results"].as_array()?;
    nodes.iter().find(|node| node["node_id"] == id)?.as_object()
}

fn nodes(wanted: &Value, seen: &Seen, faults: &mut Vec<String>) {
    for (id, wanted) in wanted.as_object().into_iter().flatten() {
        let place = format!("nodes.{id}");
        let Some(node) = node(seen, id) else {
            faults.push(format!("{place}: there is no such node"));
            continue;
        };
        // A text is the status alone.
        let status = Map::from_iter([("status".to_owned(), wanted.clone())]);
        let fields = wanted.as_object().unwrap_or(&status);
        for (field, wanted) in fields {
            match node.get(field) {
                Some(value) => compare(&format!("{place}.{field}"), wanted, Some(value), faults),
                None => faults.push(format!("{place}.{field}: a node has no such field")),
            }
        }
    }
}

/// A pattern, with what it is called; none if it names a node that is not there.
fn pattern(
    place: &str,
    said: &Value,
    seen: &Seen,
    faults: &mut Vec<String>,
) -> Option<(Value, String)> {
    let pattern = law::pattern(said).expect("a case is checked when it is read");
    if let Some(id) = pattern["payload"]["nodeId"].as_str()
        && node(seen, id).is_none()
    {
        faults.push(format!("{place}: there is no node `{id}`"));
        return None;
    }
    let name = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
    Some((pattern, name))
}

/// The place of the first event from `from` on that is as wanted.
fn find(pattern: &Value, seen: &Seen, from: usize) -> Option<usize> {
    (from..seen.events.len()).find(|at| meets(pattern, seen.events.get(*at)))
}

fn in_order(wanted: &Value, seen: &Seen, faults: &mut Vec<String>) {
    let mut from = 0;
    for (at, said) in wanted.as_array().into_iter().flatten().enumerate() {
        let place = format!("events[{at}]");
        let Some((pattern, name)) = pattern(&place, said, seen, faults) else { continue };
        match find(&pattern, seen, from) {
            Some(found) => from = found + 1,
            None => {
                let near = near(&pattern, seen);
                faults.push(format!("{place}: no `{name}` after event {from}{near}"));
            }
        }
    }
}

/// What the events of the wanted type and node hold instead.
fn near(pattern: &Value, seen: &Seen) -> String {
    let node = &pattern["payload"]["nodeId"];
    let alike = seen.events.iter().filter(|event| {
        event["type"] == pattern["type"] && (node.is_null() || event["payload"]["nodeId"] == *node)
    });
    let mut text = String::new();
    for event in alike {
        let mut faults = Vec::new();
        compare("", pattern, Some(event), &mut faults);
        if !faults.is_empty() {
            text += &format!("\n    event {}: {}", event["eventId"], faults.join("; "));
        }
    }
    text
}

fn absent(wanted: &Value, seen: &Seen, faults: &mut Vec<String>) {
    for said in wanted.as_array().into_iter().flatten() {
        let Some((pattern, name)) = pattern("absent", said, seen, faults) else { continue };
        if let Some(at) = find(&pattern, seen, 0) {
            faults.push(format!("absent: event {} is `{name}`", at + 1));
        }
    }
}

fn before(wanted: &Value, seen: &Seen, faults: &mut Vec<String>) {
    for pair in wanted.as_array().into_iter().flatten() {
        let mut places = Vec::new();
        for said in pair.as_array().into_iter().flatten() {
            let Some((pattern, name)) = pattern("order", said, seen, faults) else { continue };
            match find(&pattern, seen, 0) {
                Some(at) => places.push((at, name)),
                None => faults.push(format!("order: no `{name}`")),
            }
        }
        if let [(first, one), (second, other)] = places.as_slice()
            && first >= second
        {
            faults.push(format!("order: `{one}` is event {}, `{other}` {}", first + 1, second + 1));
        }
    }
}

fn counts(wanted: &Value, seen: &Seen, faults: &mut Vec<String>) {
    for pair in wanted.as_array().into_iter().flatten() {
        let Some((pattern, name)) = pattern("counts", &pair[0], seen, faults) else { continue };
        let count = seen.events.iter().filter(|event| meets(&pattern, Some(event))).count();
        if pair[1] != count {
            faults.push(format!("counts: wanted {} of `{name}`, there are {count}", pair[1]));
        }
    }
}

fn sequences(wanted: &Value, seen: &Seen, faults: &mut Vec<String>) {
    for (id, wanted) in wanted.as_object().into_iter().flatten() {
        let of_node = seen.events.iter().filter(|event| event["payload"]["nodeId"] == **id);
        let types: Vec<&Value> = of_node.map(|event| &event["type"]).collect();
        let same = wanted.as_array().is_some_and(|wanted| wanted.iter().eq(types.iter().copied()));
        if !same {
            faults.push(format!("sequences.{id}: {types:?}"));
        }
    }
}
