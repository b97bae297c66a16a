//! Heartbeats: a gateway reports only for itself, and a process not for its successor.

use crate::client::TestRequest;
use crate::world::{World, settings};
use serde_json::{Value, json};
use sluice_server::app::Settings;

const GATEWAY: &str = "/api/v1/gateways/alfa-gateways";
/// Instance ids of one bridge before and after a restart.
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
        let request =
            TestRequest::post(&format!("{GATEWAY}/token"), &json!({})).bearer(world.alfa.admin());
        let made = world.done(201, &request).await;
        let token = made["token"].as_str().expect("a token is shown").to_owned();
        Beats { world, token }
    }

    async fn beat(&self, status: &str, instance: &str) -> Value {
        let body = json!({"status": status, "instance_id": instance});
        let request = TestRequest::post(&format!("{GATEWAY}/heartbeat"), &body);
        self.world.done(200, &request.header("x-gateway-token", &self.token)).await
    }

    /// The instance id in the gateway's row.
    async fn seen(&self) -> Value {
        let request = TestRequest::new("GET", GATEWAY).bearer(self.world.alfa.admin());
        let row = self.world.done(200, &request).await;
        assert_eq!(row["provider"], "mock", "{row}");
        row["instance_id"].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_process_does_not_report_for_its_successor() {
    let beats = Beats::new().await;
    let (received, superseded) =
        (json!({"received": true}), json!({"received": true, "superseded": true}));
    assert_eq!(beats.beat("healthy", OLD).await, received);
    assert_eq!(beats.seen().await, OLD);
    assert_eq!(beats.beat("healthy", NEW).await, received);
    assert_eq!(beats.seen().await, NEW);
    // The old process still runs, and stops late.
    assert_eq!(beats.beat("degraded", OLD).await, superseded);
    assert_eq!(beats.beat("offline", OLD).await, superseded);
    assert_eq!(beats.seen().await, NEW);
    // The same for an id that does not contain its start time.
    assert_eq!(beats.beat("offline", "instance-a").await, superseded);
    assert_eq!(beats.seen().await, NEW);
    assert_eq!(beats.beat("offline", NEW).await, received);
    assert_eq!(beats.seen().await, Value::Null);
    // After a sign-off any process may report.
    assert_eq!(beats.beat("healthy", "instance-a").await, received);
    assert_eq!(beats.seen().await, "instance-a");
    assert_eq!(beats.beat("healthy", "instance-b").await, received);
    assert_eq!(beats.seen().await, "instance-b");
    beats.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_reports_only_for_itself() {
    let beats = Beats::new().await;
    let body = json!({"status": "offline", "instance_id": NEW});
    let other = TestRequest::post("/api/v1/gateways/bravo-gateways/heartbeat", &body);
    let none = TestRequest::post(&format!("{GATEWAY}/heartbeat"), &body);
    for request in [
        other.header("x-gateway-token", &beats.token),
        none.clone().header("x-gateway-token", "gwt_0"),
        none.clone(),
        none.bearer(beats.world.alfa.admin()),
    ] {
        let response = beats.world.send(&request).await;
        assert_eq!((response.status, response.code().as_str()), (401, "unauthenticated"));
    }
    assert_eq!(beats.seen().await, Value::Null);
    beats.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_the_instance_id_are_rate_limited() {
    let settings = Settings { instances_per_minute: 5, ..settings() };
    let beats = Beats::with(settings).await;
    let epoch = async || beats.world.alfa.service().store.registry(None).await.unwrap().epoch;
    let before = epoch().await;
    let mut refused = 0;
    for n in 0..40 {
        let body = json!({"status": "healthy", "instance_id": format!("process-{n}")});
        let request = TestRequest::post(&format!("{GATEWAY}/heartbeat"), &body);
        let response = beats.world.send(&request.header("x-gateway-token", &beats.token)).await;
        refused += usize::from(response.code() == "too_many_requests");
    }
    assert!(refused >= 30, "{refused}");
    assert!(epoch().await - before <= 10);
    // The current process is not affected.
    let there = beats.seen().await;
    let there = there.as_str().unwrap();
    assert_eq!(beats.beat("healthy", there).await, json!({"received": true}));
    beats.world.stop().await;
}
