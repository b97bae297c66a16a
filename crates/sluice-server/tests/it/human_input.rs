//! A lens node that needs values from a person, over HTTP.

use crate::client::TestRequest;
use crate::world::World;
use serde_json::{Value, json};
use std::time::Duration;

const DOCUMENT: &str = "
name: tone
lenses: {use: {versions: {1: {template: 'write in a [[tone]] tone'}}}}
nodes:
  - id: ask
    config:
      human_input:
        summary: Which tone?
        schema: {tone: {type: string, enum: [warm, dry], description: How it sounds}}
  - {id: write, lens_id: use}
edges: [{source_node_id: ask, target_node_id: write, target_param_label: tone}]
";

async fn state(world: &World, run: &str, status: &str) -> Value {
    let request = TestRequest::get(&format!("/api/v1/runs/{run}/state")).bearer(world.alfa.admin());
    let looked = async {
        loop {
            let state = world.done(200, &request).await;
            if state["status"] == status {
                return state;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), looked).await.expect("the run gets there")
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_an_approver_are_checked_and_become_the_output_of_the_step() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let body = json!({
        "document": DOCUMENT, "default_agent": "mock", "default_model": "vendor/small",
        "max_recursion_depth": 1,
    });
    let made = world.done(202, &TestRequest::post("/api/v1/runs", &body).bearer(admin)).await;
    let run = made["run_id"].as_str().unwrap();
    let paused = state(&world, run, "paused").await;
    assert_eq!(paused["node_results"][0]["waiting_reason"], "human_input");
    let id = paused["approvals"][0]["approval_id"].as_str().unwrap();
    let asked = TestRequest::get(&format!("/api/v1/approvals/{id}")).bearer(admin);
    let asked = world.done(200, &asked).await;
    assert_eq!(asked["summary"], "Which tone?");
    let wanted = json!([{"name": "tone", "type": "string", "required": true,
        "enum": ["warm", "dry"], "description": "How it sounds"}]);
    assert_eq!(asked["asks_for"], wanted);
    let target = format!("/api/v1/approvals/{id}/resolve");
    let resolve = |values: Value| {
        let body = json!({"decision": "approve", "values": values});
        TestRequest::post(&target, &body).bearer(admin)
    };
    for unfit in [json!({}), json!({"tone": "loud"})] {
        let response = world.send(&resolve(unfit)).await;
        assert_eq!((response.status, response.code().as_str()), (422, "invalid_values"));
    }
    world.done(200, &resolve(json!({"tone": "dry"}))).await;
    let done = state(&world, run, "completed").await;
    assert_eq!(done["node_results"][0]["output"], "dry");
    assert_eq!(done["node_results"][0]["outputs"]["approved"], true);
    assert_eq!(done["node_results"][1]["prompt"], "write in a dry tone");
    let shown = TestRequest::get(&format!("/api/v1/runs/{run}")).bearer(admin);
    let shown = world.done(200, &shown).await;
    assert_eq!(
        (&shown["default_model"], &shown["max_recursion_depth"]),
        (&json!("vendor/small"), &json!(1))
    );
    for odd in [json!({"default_model": " "}), json!({"max_recursion_depth": -1})] {
        let mut body = body.clone();
        body.as_object_mut().unwrap().extend(odd.as_object().unwrap().clone());
        let response = world.send(&TestRequest::post("/api/v1/runs", &body).bearer(admin)).await;
        assert_eq!(response.status, 400, "{odd}");
    }
    world.stop().await;
}
