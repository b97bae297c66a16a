//! Idempotency keys over HTTP.

use crate::client::{TestRequest, TestResponse};
use crate::world::World;
use serde_json::{Value, json};

/// Registers a document as the next version of its workflow.
async fn register(world: &World, document: &str) {
    let body = json!({"document": document});
    world
        .done(201, &TestRequest::post("/api/v1/workflows", &body).bearer(world.alfa.admin()))
        .await;
}

async fn start(world: &World, reference: &str, key: &str, args: &Value) -> TestResponse {
    let (workflow, version) = reference.split_once('@').unzip();
    let workflow = workflow.unwrap_or(reference);
    let version: Option<u64> = version.map(|version| version.parse().unwrap());
    let body = json!({"args": args, "default_agent": "mock", "version": version});
    let request = TestRequest::post(&format!("/api/v1/workflows/{workflow}/runs"), &body);
    world.send(&request.header("idempotency-key", key).bearer(world.alfa.admin())).await
}

fn started(response: &TestResponse) -> (Value, bool) {
    let data = &response.json()["data"];
    (data["run_id"].clone(), data["existed"].as_bool().unwrap())
}

fn order(name: &str, what: &str) -> String {
    format!("name: {name}\nargs: {{n: {{type: integer}}}}\nsteps: [{{id: a, command: {what}}}]\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_scoped_to_a_workflow_and_its_version() {
    let world = World::new().await;
    register(&world, &order("orders", "Buy.")).await;
    register(&world, &order("returns", "Buy.")).await;
    let mut runs = Vec::new();
    for key in ["auto", "monday"] {
        let (first, existed) = started(&start(&world, "orders", key, &json!({"n": 1})).await);
        assert!(!existed, "{key}");
        assert_eq!(
            started(&start(&world, "orders", key, &json!({"n": 1})).await),
            (first.clone(), true)
        );
        let (other, existed) = started(&start(&world, "returns", key, &json!({"n": 1})).await);
        assert!(!existed && other != first, "another workflow with the same key is another run");
        runs.push(first);
    }
    register(&world, &order("orders", "Buy more.")).await;
    for (key, before) in ["auto", "monday"].iter().zip(&runs) {
        let (next, existed) = started(&start(&world, "orders", key, &json!({"n": 1})).await);
        assert!(!existed && next != *before, "a new version with the same key is another run");
        let old = started(&start(&world, "orders@1", key, &json!({"n": 1})).await);
        assert_eq!(old, (before.clone(), true), "the old version is still known");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_names_the_difference() {
    let world = World::new().await;
    register(&world, &order("orders", "Buy.")).await;
    let (run, _) = started(&start(&world, "orders", "k", &json!({"n": 1})).await);
    let refused = start(&world, "orders", "k", &json!({"n": 2})).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "idempotency_conflict"));
    let told = refused.json()["title"].as_str().unwrap().to_owned();
    let run = run.as_str().unwrap();
    let expected =
        format!("the idempotency key belongs to {run}, which differs in the argument `n`");
    assert_eq!(told, expected);
    world.stop().await;
}
