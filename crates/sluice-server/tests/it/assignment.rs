//! Bodies that set forbidden fields, and bodies that are not valid JSON objects.

use crate::client::{TestRequest, raw};
use crate::world::World;
use serde_json::json;
use sluice_server::api;

const FIELDS: [&str; 10] = [
    "organisation",
    "initiator",
    "by",
    "roles",
    "session",
    "parent",
    "sha256",
    "token_sha256",
    "created_at_ms",
    "__proto__",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_body_cannot_set_forbidden_fields() {
    let world = World::new().await;
    let before = world.alfa.everything().await;
    let mut tried = 0;
    for route in api::routes().into_iter().filter(|route| route.method != "GET") {
        let target = world.alfa.fixture.target(&route);
        for field in FIELDS {
            let token = route.path == "/api/v1/tokens" && field == "roles";
            let deployment = route.path.starts_with("/api/v1/deployments") && field == "roles";
            if token || deployment {
                continue;
            }
            let mut body = world.alfa.fixture.body(&route);
            body[field] = json!(["admin"]);
            let request = TestRequest::new(route.method.as_str(), &target).json(&body);
            let response = world.send(&request.bearer(world.alfa.admin())).await;
            let what = format!("{route:?} {body}: {}", response.text());
            // Inbound webhooks and gateways check their own secrets first.
            assert!(matches!(response.status, 400 | 401 | 422), "{what}");
            tried += 1;
        }
    }
    assert!(tried > 500, "{tried}");
    assert_eq!(before, world.alfa.everything().await, "a body changed something");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ambiguous_body_is_refused() {
    let world = World::new().await;
    let before = world.alfa.everything().await;
    let deep = format!("{{\"args\": {}1{}}}", "[".repeat(100), "]".repeat(100));
    let bodies = [
        r#"{"args": {}, "args": {}}"#,
        r#"{"args": {"who": "a", "who": "b"}}"#,
        r#"{"args": {"who": NaN}}"#,
        r#"{"args": {"who": 1e400}}"#,
        r#"{"args": {"who": -1e400}}"#,
        r#"{"args": {"who": "\ud800"}}"#,
        r#"{"args": {"who": "\udc00\ud800"}}"#,
        r#"{"args": {}} {}"#,
        r#"[]"#,
        "",
        "null",
        "{",
        &deep,
        "\u{feff}{}",
    ];
    for body in bodies {
        let request = TestRequest::new("POST", "/api/v1/workflows/alfa-flow/runs");
        let request = request.text("application/json", body).bearer(world.alfa.admin());
        let response = world.send(&request).await;
        assert_eq!((response.status, response.code().as_str()), (400, "bad_request"), "{body}");
    }
    for media in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        let request =
            TestRequest::new("POST", "/api/v1/workflows/alfa-flow/runs").text(media, "{}");
        let response = world.send(&request.bearer(world.alfa.admin())).await;
        assert_eq!(response.status, 415, "{media}");
    }
    // Bytes that are not UTF-8.
    let mut bytes = TestRequest::new("POST", "/api/v1/workflows/alfa-flow/runs")
        .text("application/json", "{\"args\": {\"who\": \"xx\"}}")
        .bearer(world.alfa.admin())
        .bytes();
    let at = bytes.len() - 5;
    bytes[at] = 0xff;
    assert_eq!(raw(world.address, &bytes).await.unwrap().status, 400);
    assert_eq!(before, world.alfa.everything().await);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_come_back_as_they_were_sent() {
    let world = World::new().await;
    let document = "name: numbers\nargs: {n: {type: object}}\nsteps: [{id: a, command: b}]\n";
    let sent = r#"{"big": 9007199254740993, "max": 18446744073709551615, "low": -9223372036854775808, "part": 0.1, "text": "\u2028é\u0000"}"#;
    let body = format!(
        r#"{{"document": {}, "default_agent": "mock", "args": {{"n": {sent}}}}}"#,
        json!(document)
    );
    let request = TestRequest::new("POST", "/api/v1/runs").text("application/json", &body);
    let made = world.done(202, &request.bearer(world.alfa.admin())).await;
    let run = made["run_id"].as_str().unwrap();
    let request = TestRequest::get(&format!("/api/v1/runs/{run}")).bearer(world.alfa.admin());
    let shown = world.done(200, &request).await;
    let sent: serde_json::Value = serde_json::from_str(sent).unwrap();
    assert_eq!(shown["args"]["n"], sent);
    assert_eq!(shown["args"]["n"]["big"].to_string(), "9007199254740993");
    world.stop().await;
}
