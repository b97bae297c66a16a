//! Forecasts: what the gates would decide about a run that is not started.

use crate::client::TestRequest;
use crate::world::World;
use serde_json::{Value, json};

const FLOW: &str = "
name: ahead
version: 1
args: {who: {type: string, required: true}}
steps:
  - {id: look, agent: mock, command: 'Look at ${args.who}.', outputs: {found: string}}
  - {id: pay, agent: mock, command: 'Pay ${look.outputs.found}.', approval: required, depends_on: [look]}
  - {id: ask, approval: required, depends_on: [pay]}
  - {id: never, agent: mock, command: Go., condition: 'false', depends_on: [ask]}
  - {id: maybe, agent: mock, command: Go., condition: look.outputs.found == 'x', depends_on: [look]}
";

async fn outcomes(world: &World, body: &Value) -> (Value, Vec<String>) {
    let request =
        TestRequest::post("/api/v1/workflows/ahead/forecast", body).bearer(world.alfa.admin());
    let forecast = world.done(200, &request).await;
    let steps = forecast["steps"].as_array().unwrap().iter();
    let told = steps
        .map(|step| {
            format!("{} {}", step["node_id"].as_str().unwrap(), step["outcome"].as_str().unwrap())
        })
        .collect();
    (forecast, told)
}

async fn put(world: &World, path: &str, body: &Value) {
    let request = TestRequest::new("PUT", path).json(body).bearer(world.alfa.admin());
    let response = world.send(&request).await;
    assert_eq!(response.status, 200, "{}", response.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forecast_reports_each_step_and_starts_nothing() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let added = TestRequest::post("/api/v1/workflows", &json!({"document": FLOW})).bearer(admin);
    world.done(201, &added).await;
    let before = world.alfa.everything().await;
    let args = json!({"args": {"who": "Northwind"}});
    let (forecast, told) = outcomes(&world, &args).await;
    assert_eq!(told, ["look send", "pay ask", "ask ask", "never skip", "maybe depends"]);
    assert_eq!(forecast["whole"], true);
    let decision = &forecast["steps"][0]["decision"];
    assert_eq!(decision["disposition"], "allow");
    assert!(decision["gates"].as_array().unwrap().len() >= 10, "{decision}");
    assert_eq!(forecast["gateways"][0]["health"], "healthy", "{forecast}");
    assert_eq!(before, world.alfa.everything().await, "a forecast left something behind");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forecast_uses_the_posture_that_the_run_would_have() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let added = TestRequest::post("/api/v1/workflows", &json!({"document": FLOW})).bearer(admin);
    world.done(201, &added).await;
    let deployment = json!({"workflow": "ahead", "posture": "approval_required"});
    put(&world, "/api/v1/deployments/ahead", &deployment).await;
    let args = json!({"args": {"who": "Northwind"}});
    let (_, told) = outcomes(&world, &args).await;
    assert_eq!(told, ["look ask", "pay ask", "ask ask", "never skip", "maybe depends"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_be_started_has_no_forecast() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let added = TestRequest::post("/api/v1/workflows", &json!({"document": FLOW})).bearer(admin);
    world.done(201, &added).await;
    let refused = |path: &str, body: Value| {
        let request = TestRequest::post(path, &body).bearer(admin);
        let world = &world;
        async move {
            let response = world.send(&request).await;
            (response.status, response.json()["code"].as_str().unwrap().to_owned())
        }
    };
    let path = "/api/v1/workflows/ahead/forecast";
    assert_eq!(refused(path, json!({})).await.1, "invalid_args");
    let other = json!({"args": {"who": "x"}, "version": 9});
    assert_eq!(refused(path, other).await.0, 404);
    let gone = "/api/v1/workflows/nothing/forecast";
    assert_eq!(refused(gone, json!({})).await.0, 404);
    // With everything on hold the run would not start; this is not audited.
    put(
        &world,
        "/api/v1/policies/no-start.cedar",
        &json!({"text":
        "forbid (principal, action == Action::\"start_run\", resource);"}),
    )
    .await;
    let audit = TestRequest::get("/api/v1/audit?category=governance&limit=500").bearer(admin);
    let before = world.done(200, &audit).await;
    let args = json!({"args": {"who": "x"}});
    let (status, code) = refused(path, args).await;
    assert_eq!((status, code.as_str()), (422, "policy_blocked"));
    assert_eq!(before, world.done(200, &audit).await, "a look at the future was written down");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forecast_of_a_long_run_is_bounded() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let mut document = "name: ahead\nversion: 1\nsteps:\n".to_owned();
    for number in 0..520 {
        document += &format!("  - {{id: s{number}, agent: mock, command: go}}\n");
    }
    let added =
        TestRequest::post("/api/v1/workflows", &json!({"document": document})).bearer(admin);
    world.done(201, &added).await;
    let (forecast, told) = outcomes(&world, &json!({})).await;
    assert!(told.len() == 520 && told.iter().all(|one| one.ends_with(" send")), "{told:?}");
    let steps = forecast["steps"].as_array().unwrap();
    assert_eq!(steps.iter().filter(|step| step["decision"].is_object()).count(), 500);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_traced_as_far_as_requested() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let run = world
        .start(
            &world.alfa,
            "name: chain\nsteps:\n  - {id: a, command: go}\n  - {id: b, command: 'use ${a.stdout}'}\n  \
             - {id: c, command: 'use ${b.stdout}'}\n",
        )
        .await;
    world.until(&world.alfa, &run, "completed").await;
    let count = |query: &'static str| {
        let request =
            TestRequest::get(&format!("/api/v1/runs/{run}/provenance?step=c&direction=up{query}"));
        let (request, world) = (request.bearer(admin), &world);
        async move { world.done(200, &request).await["rows"].as_array().unwrap().len() }
    };
    assert_eq!((count("").await, count("&steps=1").await), (2, 1));
    let none = TestRequest::get(&format!("/api/v1/runs/{run}/provenance?steps=0")).bearer(admin);
    assert_eq!(world.send(&none).await.status, 400);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_reports_the_steps_that_it_would_repeat() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let document =
        "name: fork\nsteps:\n  - {id: a, command: go}\n  - {id: b, command: 'use ${a.stdout}'}\n";
    let run = world.start(&world.alfa, document).await;
    world.until(&world.alfa, &run, "completed").await;
    let preview = |at: u64| {
        let body = json!({"at": at, "preview": true});
        let request = TestRequest::post(&format!("/api/v1/runs/{run}/branch"), &body).bearer(admin);
        let world = &world;
        async move { world.done(202, &request).await["repeats"].clone() }
    };
    assert_eq!(preview(1).await, json!(["b"]));
    assert_eq!(preview(2).await, json!([]));
    assert_eq!(preview(0).await, json!(["a", "b"]));
    world.stop().await;
}
