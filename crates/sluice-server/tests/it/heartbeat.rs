//! Gateways say how they are, each for itself, and no process for its successor.

use crate::client::Ask;
use crate::world::{World, settings};
use serde_json::{Value, json};
use sluice_server::app::Settings;

const GATEWAY: &str = "/api/v1/gateways/alfa-gateways";
/// Two lives of a bridge of ours, the second started later.
const OLD: &str = "brg_019a00000000ffffffffffffffff";
const NEW: &str = "brg_019a000000010000000000000000";

struct Beats {
    world: World,
    token: String,
}

impl Beats {
    async fn new() -> Beats {
        Beats::with(settings()).await
    }

    async fn with(settings: Settings) -> Beats {
        let world = World::with(settings, "'*': {text: a}\n").await;
        let ask = Ask::post(&format!("{GATEWAY}/token"), &json!({})).bearer(world.alfa.admin());
        let made = world.done(201, &ask).await;
        let token = made["token"].as_str().expect("a token is shown").to_owned();
        Beats { world, token }
    }

    async fn beat(&self, status: &str, instance: &str) -> Value {
        let body = json!({"status": status, "instance_id": instance});
        let ask = Ask::post(&format!("{GATEWAY}/heartbeat"), &body);
        self.world.done(200, &ask.header("x-gateway-token", &self.token)).await
    }

    /// Which process is behind the gateway.
    async fn seen(&self) -> Value {
        let ask = Ask::new("GET", GATEWAY).bearer(self.world.alfa.admin());
        let row = self.world.done(200, &ask).await;
        assert_eq!(row["provider"], "mock", "{row}");
        row["instance_id"].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_process_does_not_speak_for_its_successor() {
    let beats = Beats::new().await;
    let (received, superseded) =
        (json!({"received": true}), json!({"received": true, "superseded": true}));
    assert_eq!(beats.beat("healthy", OLD).await, received);
    assert_eq!(beats.seen().await, OLD);
    assert_eq!(beats.beat("healthy", NEW).await, received);
    assert_eq!(beats.seen().await, NEW);
    // The old one lingers, and stops late.
    assert_eq!(beats.beat("degraded", OLD).await, superseded);
    assert_eq!(beats.beat("offline", OLD).await, superseded);
    assert_eq!(beats.seen().await, NEW);
    // Also one whose id says nothing about when it was started.
    assert_eq!(beats.beat("offline", "somebody").await, superseded);
    assert_eq!(beats.seen().await, NEW);
    assert_eq!(beats.beat("offline", NEW).await, received);
    assert_eq!(beats.seen().await, Value::Null);
    // Nobody is there: whoever comes is.
    assert_eq!(beats.beat("healthy", "somebody").await, received);
    assert_eq!(beats.seen().await, "somebody");
    assert_eq!(beats.beat("healthy", "somebody else").await, received);
    assert_eq!(beats.seen().await, "somebody else");
    beats.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_speaks_for_itself_alone() {
    let beats = Beats::new().await;
    let body = json!({"status": "offline", "instance_id": NEW});
    let other = Ask::post("/api/v1/gateways/bravo-gateways/heartbeat", &body);
    let none = Ask::post(&format!("{GATEWAY}/heartbeat"), &body);
    for ask in [
        other.header("x-gateway-token", &beats.token),
        none.clone().header("x-gateway-token", "gwt_0"),
        none.clone(),
        none.bearer(beats.world.alfa.admin()),
    ] {
        let answer = beats.world.send(&ask).await;
        assert_eq!((answer.status, answer.code().as_str()), (401, "unauthenticated"));
    }
    assert_eq!(beats.seen().await, Value::Null);
    beats.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_names_a_new_process_each_time_changes_the_registry_seldom() {
    let settings = Settings { instances_per_minute: 5, ..settings() };
    let beats = Beats::with(settings).await;
    let epoch = async || beats.world.alfa.service().store.registry(None).await.unwrap().epoch;
    let before = epoch().await;
    let mut refused = 0;
    for n in 0..40 {
        let body = json!({"status": "healthy", "instance_id": format!("process-{n}")});
        let ask = Ask::post(&format!("{GATEWAY}/heartbeat"), &body);
        let answer = beats.world.send(&ask.header("x-gateway-token", &beats.token)).await;
        refused += usize::from(answer.code() == "too_many_requests");
    }
    assert!(refused >= 30, "{refused}");
    assert!(epoch().await - before <= 10);
    // The process that is there goes on.
    let there = beats.seen().await;
    let there = there.as_str().unwrap();
    assert_eq!(beats.beat("healthy", there).await, json!({"received": true}));
    beats.world.stop().await;
}
