//! Workflows derived from the seed.

mod govern;

use crate::random::SeededRandom;
use crate::sabotage::Sabotage;
use serde_json::{Map, Value, json};
use sluice_core::doc::{self, Format, Registry};
use sluice_core::hash::Hash;
use sluice_engine::definition::Stored;
use std::collections::BTreeMap;

/// A workflow and its references.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub(crate) stored: Stored,
    pub(crate) children: BTreeMap<String, Hash>,
    pub(crate) bring: Vec<Stored>,
}

/// The workflows of a seed; with budgets and approvals if it is governed.
pub(crate) fn flows(
    chance: &mut SeededRandom,
    mut governed: Option<SeededRandom>,
    sabotage: Option<Sabotage>,
) -> Vec<Flow> {
    let mut stored = |mut document: Value, format| {
        if let Some(chance) = &mut governed {
            govern::govern(chance, &mut document);
        }
        if sabotage == Some(Sabotage::ReuseGrants) {
            govern::cover_retries(&mut document);
        }
        stored(&document, format)
    };
    let leaf = stored(steps(chance, "leaf", &[]), Format::Lobsterx);
    let middle = stored(steps(chance, "middle", &["leaf"]), Format::Lobsterx);
    let children: BTreeMap<String, Hash> =
        [("leaf".to_owned(), leaf.hash), ("middle".to_owned(), middle.hash)].into();
    let bring = vec![leaf.clone(), middle.clone()];
    let plain = |stored| Flow { stored, children: BTreeMap::new(), bring: Vec::new() };
    let mut flows = vec![plain(leaf)];
    for number in 0..chance.between(2, 4) {
        let document = steps(chance, &format!("flow-{number}"), &["leaf", "middle"]);
        flows.push(Flow {
            stored: stored(document, Format::Lobsterx),
            children: children.clone(),
            bring: bring.clone(),
        });
    }
    flows.push(plain(stored(lens(chance), Format::Lens)));
    if chance.permille(200) {
        flows.push(plain(stored(crowd(chance), Format::Lobsterx)));
    }
    flows
}

/// Fifty steps per run, of which a cap admits few.
pub(crate) fn fifty() -> Flow {
    let items: Vec<u64> = (0..50).collect();
    let document = json!({
        "name": "fifty",
        "steps": [{
            "id": "each", "command": "do one", "agent": "edge", "on_failure": "skip",
            "for_each": {"items": items, "max_parallel": 50}, "timeout": "10m",
        }],
    });
    Flow {
        stored: stored(&document, Format::Lobsterx),
        children: BTreeMap::new(),
        bring: Vec::new(),
    }
}

fn stored(document: &Value, format: Format) -> Stored {
    let text = document.to_string();
    let checked = doc::check(text.as_bytes(), Some(format), &Registry::default());
    let plan = checked.plan.unwrap_or_else(|| panic!("{text}: {:?}", checked.diagnostics));
    Stored::new(plan, &text)
}

/// Steps that refer to earlier ones.
fn steps(chance: &mut SeededRandom, name: &str, children: &[&str]) -> Value {
    let count = chance.between(1, if children.is_empty() { 4 } else { 8 });
    let shape = chance.below(3);
    let mut steps: Vec<Value> = Vec::new();
    // Steps whose `x` later steps may read.
    let mut readable: Vec<String> = Vec::new();
    for number in 0..count {
        let id = format!("s{number}");
        let mut step = Map::new();
        step.insert("id".to_owned(), json!(id));
        let depends_on = dependencies(chance, shape, number);
        let mut command = format!("do {id}");
        if let Some(read) = depends_on.iter().find(|one| readable.contains(one)) {
            if chance.permille(300) {
                command = format!("do {id} with ${{{read}.outputs.x}}");
            }
            if chance.permille(200) {
                let bound = chance.between(1, 6);
                step.insert("condition".to_owned(), json!(format!("{read}.outputs.x > {bound}")));
            }
        }
        step.insert("depends_on".to_owned(), json!(depends_on));
        if work(chance, &mut step, &command, children) {
            readable.push(id);
        }
        policies(chance, &mut step);
        steps.push(Value::Object(step));
    }
    let mut document = json!({"name": name, "steps": steps});
    if chance.permille(200) {
        document["timeout"] = json!(format!("{}s", chance.between(5, 60)));
    }
    if chance.permille(400) {
        document["max_parallel"] = json!(chance.between(1, 3));
    }
    if chance.permille(250) {
        document["scheduling"] = json!("waves");
    }
    document
}

fn dependencies(chance: &mut SeededRandom, shape: u64, number: u64) -> Vec<String> {
    let earlier = |one: u64| format!("s{one}");
    match shape {
        // A chain.
        0 if number > 0 => vec![earlier(number - 1)],
        // One root, many in the middle, a join.
        1 if number > 0 && chance.permille(800) => vec![earlier(0)],
        1 => (0..number).map(earlier).collect(),
        _ => (0..number).filter(|_| chance.permille(350)).map(earlier).collect(),
    }
}

/// The work of a step; returns whether it has an `x` to read.
fn work(
    chance: &mut SeededRandom,
    step: &mut Map<String, Value>,
    command: &str,
    children: &[&str],
) -> bool {
    let kind = chance.below(100);
    if kind < 9 {
        step.insert("approval".to_owned(), approval(chance));
        return false;
    }
    if kind < 20 && !children.is_empty() {
        step.insert("workflow_ref".to_owned(), json!(chance.pick(children)));
        return false;
    }
    step.insert("command".to_owned(), json!(command));
    let agent = *chance.pick(&["edge", "edge", "edge", "async"]);
    step.insert("agent".to_owned(), json!(agent));
    step.insert("outputs".to_owned(), json!({"x": "integer"}));
    if chance.permille(120) {
        step.insert("success_criteria".to_owned(), json!(["outputs.x > 1"]));
    }
    if chance.permille(120) {
        step.insert("repair".to_owned(), json!({"reask": 1}));
    }
    if chance.permille(120) {
        step.insert("idempotent".to_owned(), json!(false));
    }
    if kind < 30 {
        step.insert("approval".to_owned(), approval(chance));
    }
    if kind >= 85 {
        let items: Vec<u64> = (0..chance.between(0, 5)).collect();
        let parallel = chance.between(1, 4);
        step.insert("for_each".to_owned(), json!({"items": items, "max_parallel": parallel}));
    }
    kind < 85
}

fn approval(chance: &mut SeededRandom) -> Value {
    if chance.permille(300) {
        return json!("required");
    }
    let expires = format!("{}s", chance.between(3, 30));
    json!({"required": true, "expires_in": expires, "covers_retries": chance.permille(300)})
}

fn policies(chance: &mut SeededRandom, step: &mut Map<String, Value>) {
    step.insert("timeout".to_owned(), json!(format!("{}s", chance.between(1, 12))));
    if chance.permille(500) {
        let policy = *chance.pick(&[
            "halt",
            "skip",
            "skip",
            "retry_once",
            "retry_once_then_escalate",
            "retry",
        ]);
        step.insert("on_failure".to_owned(), json!(policy));
    } else if chance.permille(500) {
        let (attempts, backoff_ms) = (chance.between(2, 4), chance.between(50, 4000));
        let retry = json!({
            "attempts": attempts, "backoff_ms": backoff_ms,
            "retry_on": ["timeout", "provider_error", "rate_limit", "contract_violated"],
        });
        step.insert("retry".to_owned(), retry);
    }
    if chance.permille(200) {
        step.insert("parallel_failure_policy".to_owned(), json!("fail_fast"));
    }
    if chance.permille(300) {
        let policy = *chance.pick(&["propagate", "skip", "substitute_default"]);
        step.insert("on_parent_failure".to_owned(), json!(policy));
    }
}

/// The lens node whose input the caller should have supplied.
const BLOCKED: u64 = 3;

/// A lens graph whose failures do not spread.
fn lens(chance: &mut SeededRandom) -> Value {
    let count = chance.between(2, 6);
    let mut nodes = Vec::new();
    let mut edges = Vec::new();
    for number in 0..count {
        let mut config = json!({"timeout_ms": chance.between(1000, 9000)});
        config["agent"] = json!(*chance.pick(&["edge", "edge", "async"]));
        if chance.permille(400) {
            let policy = *chance.pick(&["propagate", "skip", "substitute_default"]);
            config["on_parent_failure"] = json!(policy);
        }
        if chance.permille(300) {
            config["retry"] = json!({"attempts": 2, "backoff_ms": 500});
        }
        let lens = if chance.permille(600) { "say" } else { "must" };
        let lens = if number == 0 { "say" } else { lens };
        // A node is blocked if none of its edges delivers.
        let applied = if lens == "must" && number == BLOCKED { "lacks" } else { lens };
        nodes.push(json!({"id": format!("n{number}"), "lens_id": applied, "config": config}));
        for from in 0..number {
            let last = from + 1 == number;
            if last || chance.permille(300) {
                edges.push(edge(chance, from, number, lens));
            }
        }
        if lens == "must" {
            // It runs because of this edge, whatever happens to its other input.
            edges.push(json!({
                "id": format!("other-{number}"), "source_node_id": "n0",
                "target_node_id": format!("n{number}"), "target_param_label": "other",
            }));
        }
    }
    let version = |template: &str| json!({"versions": {"1": {"template": template}}});
    json!({
        "name": "graph", "nodes": nodes, "edges": edges,
        "lenses": {
            "say": version("Say [[text!]] [[topic!]]"),
            "must": version("Say [[text]] [[other!]]"),
            "lacks": version("Say [[text]] [[other!]] [[topic]]"),
        },
    })
}

fn edge(chance: &mut SeededRandom, from: u64, to: u64, lens: &str) -> Value {
    let mut edge = json!({
        "id": format!("e{from}-{to}"), "source_node_id": format!("n{from}"),
        "target_node_id": format!("n{to}"), "target_param_label": "text",
    });
    if chance.permille(if lens == "must" { 700 } else { 300 }) {
        edge["source_output_key"] = json!("x");
        edge["condition"] = match chance.below(3) {
            0 => json!({"type": "truthy"}),
            1 => json!({"type": "equals", "value": chance.below(10).to_string()}),
            _ => json!({"type": "present"}),
        };
    }
    edge
}

/// Enough events for a snapshot.
fn crowd(chance: &mut SeededRandom) -> Value {
    let items: Vec<u64> = (0..chance.between(60, 90)).collect();
    json!({
        "name": "crowd",
        "steps": [{
            "id": "each", "command": "do one", "agent": "edge", "outputs": {"x": "integer"},
            "for_each": {"items": items, "max_parallel": 16}, "timeout": "6s",
            "on_failure": "skip", "retry": {"attempts": 3, "backoff_ms": 100},
        }],
    })
}
