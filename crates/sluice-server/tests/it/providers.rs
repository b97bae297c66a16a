//! Rows of gateways and agents that cannot work are refused or cause a warning.

use crate::client::TestRequest;
use crate::world::World;
use serde_json::{Value, json};

async fn put(world: &World, path: &str, row: &Value) -> (u16, Value) {
    let request =
        TestRequest::new("PUT", &format!("/api/v1/{path}")).json(row).bearer(world.alfa.admin());
    let response = world.send(&request).await;
    (response.status, response.json())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_provider_is_refused_with_a_suggestion() {
    let world = World::new().await;
    let (status, said) = put(&world, "gateways/claude", &json!({"provider": "claude"})).await;
    assert_eq!((status, said["code"].as_str()), (422, Some("unknown_provider")), "{said}");
    assert!(said["detail"].as_str().unwrap().contains("did you mean `anthropic`?"), "{said}");
    let bridge = json!({"provider": "claude", "url": "https://bridge.example"});
    assert_eq!(put(&world, "gateways/claude", &bridge).await.0, 200);
    assert_eq!(put(&world, "gateways/here", &json!({"provider": "anthropic"})).await.0, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_native_agent_is_not_pinned_to_a_gateway_with_a_url() {
    let world = World::new().await;
    let far = json!({"provider": "mock", "url": "https://bridge.example"});
    assert_eq!(put(&world, "gateways/far", &far).await.0, 200);
    let native = json!({"execution_target": "native", "gateway": "far"});
    let (status, said) = put(&world, "agents/clerk", &native).await;
    assert_eq!((status, said["code"].as_str()), (422, Some("conflicting_rows")), "{said}");
    let cloud = json!({"execution_target": "cloud", "gateway": "far"});
    assert_eq!(put(&world, "agents/clerk", &cloud).await.0, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_a_suitable_gateway_causes_a_warning() {
    let world = World::new().await;
    let seer = json!({"capabilities": ["vision"]});
    let (status, said) = put(&world, "agents/seer", &seer).await;
    assert_eq!(status, 200, "{said}");
    assert_eq!(said["data"]["warnings"][0]["code"], "agent_without_gateway", "{said}");
    let able = json!({"provider": "anthropic", "capabilities": ["vision"]});
    let (_, said) = put(&world, "gateways/able", &able).await;
    assert_eq!(said["data"]["warnings"], json!([]), "{said}");
    world.stop().await;
}
