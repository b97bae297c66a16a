//! Which secrets rows may name when they are written over HTTP.

use crate::client::TestRequest;
use crate::world::World;
use serde_json::{Value, json};
use sluice_core::port::ledger::Change;
use sluice_govern::registry::{Kind, Row};

/// The rows that name secrets, each with this reference.
fn rows(reference: &str) -> [(&'static str, &'static str, Value); 3] {
    let gateway =
        json!({"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "key": reference});
    let webhook = json!({"url": "https://example.invalid/x", "events": ["*"], "secret": reference});
    let hook = json!({"workflow": "alfa-flow", "secret": reference});
    [("gateway", "gateways", gateway), ("webhook", "webhooks", webhook), ("hook", "hooks", hook)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_written_over_http_never_names_a_variable_or_a_file() {
    let world = World::new().await;
    let token = world.directory(&world.alfa).join("admin.token");
    let token = format!("file:{}", token.display());
    let before = world.alfa.service().store.registry(None).await.unwrap().epoch;
    for reference in ["env:PATH", "file:/etc/hostname", "file:../x", token.as_str()] {
        for side in [&world.alfa, &world.bravo] {
            for (kind, collection, body) in rows(reference) {
                let mut claims = body.clone();
                claims["operator_secret"] = true.into();
                let path = format!("/api/v1/{collection}/mine");
                let row = json!({"kind": kind, "name": "mine", "body": body});
                let claimed = json!({"kind": kind, "name": "mine", "body": claims});
                let asks = [
                    TestRequest::new("PUT", &path).json(&body),
                    TestRequest::new("PUT", &path).json(&claims),
                    TestRequest::post("/api/v1/apply", &json!({"rows": [row]})),
                    TestRequest::post("/api/v1/apply", &json!({"rows": [claimed]})),
                    TestRequest::post("/api/v1/apply", &json!({"rows": [row], "dry_run": true})),
                ];
                for request in asks {
                    let response = world.send(&request.bearer(side.admin())).await;
                    let told = (response.status, response.code());
                    assert_eq!(told, (403, "secret_not_named".to_owned()), "{}", response.text());
                    assert!(response.text().contains("secret:NAME"), "{}", response.text());
                }
            }
        }
    }
    let after = world.alfa.service().store.registry(None).await.unwrap().epoch;
    assert_eq!(before, after);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_names_only_secrets_that_are_declared_for_its_organisation() {
    let world = World::new().await;
    for reference in ["secret:others", "secret:nothing"] {
        for (_, collection, body) in rows(reference) {
            let request =
                TestRequest::new("PUT", &format!("/api/v1/{collection}/mine")).json(&body);
            let response = world.send(&request.bearer(world.alfa.admin())).await;
            assert_eq!((response.status, response.code()), (422, "secret_unknown".to_owned()));
        }
    }
    for (_, collection, body) in rows("secret:hook") {
        let request = TestRequest::new("PUT", &format!("/api/v1/{collection}/mine")).json(&body);
        world.done(200, &request.bearer(world.alfa.admin())).await;
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_the_operator_cannot_be_pointed_at_another_host_over_http() {
    let world = World::new().await;
    let body = json!({"provider": "openai", "base_url": "https://api.example.invalid/v1",
        "key": "env:PATH", "operator_secret": true});
    let row = Row { kind: Kind::Gateway, name: "own".to_owned(), body };
    let service = world.alfa.service();
    let node = service.engine.node();
    let (remove, entries) = (Vec::new(), Vec::new());
    let change = Change { expect: None, put: vec![row], remove, node, entries };
    service.store.change(change).await.unwrap();
    let patch = |body: Value| {
        TestRequest::new("PATCH", "/api/v1/gateways/own").json(&body).bearer(world.alfa.admin())
    };
    for body in [
        json!({"base_url": "http://127.0.0.1:1/v1"}),
        json!({"url": "http://127.0.0.1:1"}),
        json!({"provider": "http"}),
        json!({"key": "env:HOME"}),
        json!({"key": "env:PATH", "cost_rank": 3, "operator_secret": true}),
    ] {
        let response = world.send(&patch(body.clone())).await;
        assert_eq!(
            (response.status, response.code().as_str()),
            (403, "secret_not_named"),
            "{body}"
        );
    }
    // Maintained fields may change, and the key stays the operator's.
    world.done(200, &patch(json!({"paused": true}))).await;
    let rows = service.store.registry(None).await.unwrap().rows;
    let own = sluice_core::rows::find(&rows, Kind::Gateway, "own").unwrap();
    assert_eq!((&own.body["paused"], &own.body["operator_secret"]), (&json!(true), &json!(true)));
    // A declared secret replaces it, and the row is no longer the operator's.
    let named = json!({"key": "secret:hook", "base_url": "https://example.invalid/v1"});
    world.done(200, &patch(named)).await;
    let rows = service.store.registry(None).await.unwrap().rows;
    let own = sluice_core::rows::find(&rows, Kind::Gateway, "own").unwrap();
    assert_eq!(own.body.get("operator_secret"), None);
    world.stop().await;
}
