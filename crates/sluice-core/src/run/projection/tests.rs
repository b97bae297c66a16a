mod approvals;
mod contracts;
mod fields;
mod instances;
mod steps;
mod stopped;

use super::project;
use super::script::Script;
use expect_test::Expect;
use serde_json::{Map, Value, json};

/// A document with phases and a step that fails.
const STOPS: &str = "
name: stops
phases: [{id: gather, name: Gather facts}, write]
steps:
  - {id: a, phase: gather, command: Count, outputs: {n: integer}}
  - {id: again, phase: gather, command: 'Count ${a.outputs.n} again', outputs: {n: integer, m: string}}
  - {id: never, command: Never, depends_on: [a], condition: $a.outputs.n > 50}
  - {id: b, phase: write, command: 'Use ${again.outputs.n}'}
  - {id: after, phase: write, command: 'After ${b.stdout}'}
";

/// The projection of a script's run. Null, zero and empty fields of nodes are left out; one
/// test shows all fields.
#[expect(clippy::needless_pass_by_value, reason = "what is expected is written in place")]
fn check(script: Script, expected: Expect) {
    let mut shown = serde_json::to_value(project(&script.run)).unwrap();
    let nodes = shown["node_results"].as_array_mut().unwrap();
    nodes.iter_mut().for_each(|node| prune(node.as_object_mut().unwrap()));
    prune(shown.as_object_mut().unwrap());
    let mut lines = String::new();
    for (name, value) in shown.as_object().unwrap() {
        match value.as_array().filter(|_| name != "outputs") {
            Some(items) => items.iter().for_each(|item| lines += &format!("{name}: {item}\n")),
            None => lines += &format!("{name}: {value}\n"),
        }
    }
    expected.assert_eq(&lines);
}

fn prune(fields: &mut Map<String, Value>) {
    let nothing = [json!(null), json!(0), json!(0.0), json!([]), json!({})];
    fields.retain(|_, value| {
        let route = value.get("provider").is_some_and(Value::is_null);
        !nothing.contains(value) && !route
    });
}
