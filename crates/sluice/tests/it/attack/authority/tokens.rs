//! Tokens of few rights, and keys of other people.

use super::{ask, person, refused, register, served, token};
use crate::world::World;
use serde_json::{Value, json};

#[test]
fn a_token_that_manages_tokens_revokes_only_what_it_made() {
    let (world, server) = served(World::new());
    let tokens = world.json(&["tokens", "list", "--json"]);
    let root = tokens["data"][0]["token_id"].as_str().unwrap().to_owned();
    let manage = json!({"principal": "hr", "roles": ["admin"], "scopes": ["token:manage"]});
    let (hr, hr_id) = token(&server, &manage);
    let (_, other) = token(&server, &json!({"principal": "ben", "roles": ["viewer"]}));
    let revoke = |by: &str, id: &str| {
        ask(&server, by, "DELETE", &format!("/api/v1/tokens/{id}"), &Value::Null)
    };
    refused(revoke(&hr, &root), (403, "forbidden"));
    refused(revoke(&hr, &other), (403, "forbidden"));
    assert_eq!(ask(&server, &server.token, "GET", "/api/v1/session", &Value::Null).0, 200);
    let (status, made) = ask(&server, &hr, "POST", "/api/v1/tokens", &manage);
    assert_eq!(status, 201, "{made}");
    let (_, grandchild) = {
        let child = made["data"]["token"].as_str().unwrap();
        let (status, made) = ask(&server, child, "POST", "/api/v1/tokens", &manage);
        (status, made["data"]["token_id"].as_str().unwrap().to_owned())
    };
    assert_eq!(revoke(&hr, &grandchild).0, 200);
    assert_eq!(revoke(&hr, made["data"]["token_id"].as_str().unwrap()).0, 200);
    let (status, answer) = revoke(&server.token, &other);
    assert_eq!(status, 200, "an admin with every permission: {answer}");
    assert_eq!(revoke(&hr, &hr_id).0, 200, "a token may always end itself");
}

#[test]
fn the_idempotency_key_of_another_person_is_another_key() {
    let (_world, server) = served(World::new());
    register(&server, "name: order\nsteps: [{id: a, agent: shell, command: \"true\"}]\n");
    let (ada, ben) = (person(&server, "ada", &["operator"]), person(&server, "ben", &["operator"]));
    let start = |token: &str| {
        let body = json!({"idempotency_key": "order-7"});
        let (status, answer) = ask(&server, token, "POST", "/api/v1/workflows/order/runs", &body);
        assert_eq!(status, 202, "{answer}");
        let data = &answer["data"];
        (data["run_id"].as_str().unwrap().to_owned(), data["existed"].as_bool().unwrap())
    };
    let (first, _) = start(&ada);
    assert_eq!(start(&ada), (first.clone(), true), "the same person means the same run");
    let (other, existed) = start(&ben);
    assert!(!existed && other != first, "another person has a run of their own");
}
