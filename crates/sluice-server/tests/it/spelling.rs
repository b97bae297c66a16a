//! Other spellings of paths, and other methods: no route is reached by a detour.

use crate::client::{TestRequest, raw};
use crate::world::World;
use serde_json::json;
use sluice_server::api;
use sluice_server::api::route::Need;
use sluice_server::auth::permission::Role;

const DETOURS: [&str; 28] = [
    "//api/v1/tokens",
    "/api//v1/tokens",
    "/api/v1//tokens",
    "/./api/v1/tokens",
    "/api/v1/./tokens",
    "/api/v1/x/../tokens",
    "/healthz/../api/v1/tokens",
    "/api/docs/../v1/tokens",
    "/api/v1/tokens/",
    "/api/v1/tokens/.",
    "/api/v1/tokens/..",
    "/api/v1/tokens//",
    "/api/v1/%2e/tokens",
    "/api/v1/%2e%2e/v1/tokens",
    "/healthz/%2e%2e/api/v1/tokens",
    "/healthz/..;/api/v1/tokens",
    "/api/v1/tokens;x=y",
    "/api;x=y/v1/tokens",
    "/api/v1/tokens%00",
    "/api/v1/tokens%20",
    "/api/v1/tokens%2f",
    "/api/v1%2ftokens",
    "/api/v1/%74okens",
    "/API/v1/tokens",
    "/api/v1/TOKENS",
    "/api/v1/tokens.json",
    "/api/v1/tokens%23",
    "/api/v1/tokens\u{2024}",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_path_has_one_spelling() {
    let world = World::new().await;
    for detour in DETOURS {
        let bytes = |token: &str| {
            let signed = if token.is_empty() {
                TestRequest::get(detour)
            } else {
                TestRequest::get(detour).bearer(token)
            };
            signed.bytes()
        };
        for token in ["", world.alfa.token(Role::Viewer), world.alfa.admin()] {
            let response = raw(world.address, &bytes(token)).await.expect("an answer");
            assert!(matches!(response.status, 400..=404), "{detour}: {}", response.text());
            assert!(!response.text().contains("tok_"), "{detour}: {}", response.text());
        }
    }
    // No spelling bypasses authentication.
    for detour in ["http://elsewhere/api/v1/tokens", "*", "api/v1/tokens", "\\api\\v1\\tokens"] {
        let request = TestRequest::get(detour).bearer(world.alfa.token(Role::Viewer));
        let response = raw(world.address, &request.bytes()).await.expect("an answer");
        assert!(matches!(response.status, 400..=404), "{detour}: {}", response.text());
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_parameter_is_not_a_path() {
    let world = World::new().await;
    let before = world.alfa.everything().await;
    let names =
        ["..%2f..%2fx", "%2e%2e%2fx", "a%2fb", "..", "%2e", "a%5cb", "%00", "%0a", "a%7f", "%ff"];
    for name in names {
        for collection in ["agents", "lenses", "hooks", "library", "policies", "notes"] {
            let target = format!("/api/v1/{collection}/{name}");
            let request = TestRequest::get(&target).bearer(world.alfa.admin());
            assert_eq!(world.send(&request).await.status, 404, "{target}");
            let request = TestRequest::new("PUT", &target)
                .json(&json!({"text": "x"}))
                .bearer(world.alfa.admin());
            let response = world.send(&request).await;
            assert!(matches!(response.status, 400..=422), "{target}: {}", response.text());
        }
        let target = format!("/api/v1/workflows/{name}/runs");
        let request = TestRequest::post(&target, &json!({})).bearer(world.alfa.admin());
        assert_eq!(world.send(&request).await.status, 404, "{target}");
    }
    for name in ["../../x", "a/b", "", "..", "a\nb", "\u{202e}x"] {
        let document = format!("name: {}\nsteps: [{{id: a, command: b}}]\n", json!(name));
        let request = TestRequest::post("/api/v1/workflows", &json!({"document": document}));
        let response = world.send(&request.bearer(world.alfa.admin())).await;
        assert_eq!(response.status, 422, "{name}: {}", response.text());
    }
    assert_eq!(before, world.alfa.everything().await);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_cannot_be_overridden() {
    let world = World::new().await;
    let before = world.alfa.everything().await;
    for route in api::routes() {
        let target = world.alfa.fixture.target(&route);
        for method in ["OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "GETT"] {
            let request = TestRequest::new(method, &target).bearer(world.alfa.admin());
            let Some(response) = raw(world.address, &request.bytes()).await else { continue };
            assert!(matches!(response.status, 400..=405), "{method} {target}: {}", response.text());
        }
        if route.method != "GET" || route.lasting {
            continue;
        }
        let admin = world.alfa.admin();
        let whole = world.send(&TestRequest::get(&target).bearer(admin)).await;
        let head = world.send(&TestRequest::new("HEAD", &target).bearer(admin)).await;
        assert_eq!((head.status, head.body.len()), (whole.status, 0), "HEAD {target}");
        for header in ["x-http-method-override", "x-method-override", "x-http-method"] {
            let request = TestRequest::get(&target).bearer(admin).header(header, "DELETE");
            assert_eq!(world.send(&request).await.status, whole.status, "{target}");
        }
        let request = TestRequest::get(&format!("{target}?_method=DELETE")).bearer(admin);
        let response = world.send(&request).await;
        let open = matches!(route.need, Need::Nothing | Need::Gateway);
        assert_eq!(response.status, if open { whole.status } else { 400 }, "{target}");
    }
    let refused = world.send(&TestRequest::new("DELETE", "/api/v1/runs")).await;
    assert_eq!((refused.status, refused.header("allow")), (405, Some("GET, POST")));
    assert_eq!(before, world.alfa.everything().await, "another method changed something");
    world.stop().await;
}
