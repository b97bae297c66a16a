//! `sluice cost`.

use crate::world::World;
use expect_test::expect;
use serde_json::{Value, json};

const FLOW: &str = "
name: review
steps:
  - {id: read, command: go}
  - {id: write, command: go, depends_on: [read], retry: {attempts: 2, backoff_ms: 1}}
  - {id: free, command: go, depends_on: [write]}
";
const MOCK: &str = "
read: {text: done, cost: 0.02, model: m-1, input_tokens: 100, output_tokens: 10}
write:
  - {error: no, cost: 0.01}
  - {text: done, cost: 0.03, input_tokens: 5}
free: {text: done, cost: 0, input_tokens: 0, output_tokens: 0}
";

fn world() -> World {
    let world = World::new().file("flow.lobsterx.yaml", FLOW).file("mock.yaml", MOCK);
    for _ in 0..2 {
        world.printed(&["run", "flow.lobsterx.yaml", "--mock", "mock.yaml", "--json"]);
    }
    world
}

/// The rows, without their times.
fn rows(world: &World, args: &[&str]) -> Value {
    let mut told = world.json(&[&["cost", "--json"], args].concat());
    for row in told["data"].as_array_mut().unwrap() {
        let start = row.as_object_mut().unwrap().remove("start").unwrap();
        assert!(start.as_str().unwrap().ends_with("Z"), "{start}");
    }
    told["data"].take()
}

#[test]
fn what_work_has_cost_is_told_by_whatever_is_asked() {
    let world = world();
    assert_eq!(
        rows(&world, &["--bucket", "month"]),
        json!([{"cost": 0.12, "input_tokens": 210, "output_tokens": 20, "steps": 6}])
    );
    assert_eq!(
        rows(&world, &["--by", "model", "--by", "agent", "--bucket", "week"]),
        json!([
            {"agent": "mock", "model": "", "cost": 0.08, "input_tokens": 10, "output_tokens": 0, "steps": 4},
            {"agent": "mock", "model": "m-1", "cost": 0.04, "input_tokens": 200, "output_tokens": 20, "steps": 2},
        ])
    );
    let table =
        world.printed(&["cost", "--by", "workflow,model", "--bucket", "month", "--since", "1h"]);
    let table: Vec<_> = table
        .lines()
        .map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "))
        .collect();
    expect![[r#"
        (UTC) WORKFLOW MODEL COST TOKENS IN TOKENS OUT STEPS
        review - $0.08 10 0 4
        review m-1 $0.04 200 20 2"#]]
    .assert_eq(&table.join("\n"));
}

#[test]
fn where_nothing_was_spent_nothing_is_told() {
    let world = World::new()
        .file("flow.lobsterx.yaml", "name: f\nsteps: [{id: a, command: go}]")
        .file("mock.yaml", "a: {text: done, cost: 0, input_tokens: 0, output_tokens: 0}");
    world.printed(&["run", "flow.lobsterx.yaml", "--mock", "mock.yaml", "--json"]);
    assert_eq!(world.told(&["cost"]), "stderr:\nnothing has cost anything\nexit 0\n");
    assert_eq!(world.json(&["cost", "--json"]), json!({"data": [], "meta": {"next_cursor": null}}));
    for wrong in [["--by", "moon"], ["--bucket", "year"], ["--since", "yesterday"]] {
        let output = world.output(&["cost", wrong[0], wrong[1]]);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}
