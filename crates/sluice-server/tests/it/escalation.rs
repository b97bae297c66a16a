//! Tokens cannot gain permissions.

use crate::client::TestRequest;
use crate::world::{World, token};
use serde_json::{Value, json};
use sluice_govern::registry::Token;

async fn child(world: &World, parent: &str, body: &Value) -> (u16, String, String) {
    let response = world.send(&TestRequest::post("/api/v1/tokens", body).bearer(parent)).await;
    let made = response.json()["data"].clone();
    let text = |field: &str| made[field].as_str().unwrap_or_default().to_owned();
    (response.status, text("token"), text("token_id"))
}

async fn may(world: &World, token: &str) -> Vec<String> {
    let response = world.send(&TestRequest::get("/api/v1/session").bearer(token)).await;
    if response.status == 401 {
        return vec!["nothing".to_owned()];
    }
    serde_json::from_value(response.json()["data"]["permissions"].clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_token_has_no_more_permissions_than_its_parent() {
    let world = World::new().await;
    let scopes = Some(vec!["token:manage".to_owned(), "workflow:read".to_owned()]);
    let narrow = Token { scopes, ..token("narrow", &["admin"]) };
    let (narrow, _) = world.alfa.grant(narrow).await;
    for more in [
        json!({"principal": "x", "roles": ["admin"]}),
        json!({"principal": "x", "roles": ["viewer"]}),
        json!({"principal": "x", "roles": ["admin"], "scopes": ["workflow:read", "run:cancel"]}),
        json!({"principal": "x", "roles": ["operator", "approver"]}),
    ] {
        assert_eq!(child(&world, &narrow, &more).await.0, 403, "{more}");
    }
    let fits = json!({"principal": "x", "roles": ["admin"], "scopes": ["workflow:read"]});
    let (status, made, _) = child(&world, &narrow, &fits).await;
    assert_eq!((status, may(&world, &made).await), (201, vec!["workflow:read".to_owned()]));
    // Unknown roles and scopes grant nothing, and a lifetime of zero is refused.
    for odd in [
        json!({"principal": "x", "roles": ["root"]}),
        json!({"principal": "x", "roles": []}),
        json!({"principal": "x", "roles": ["viewer"], "scopes": ["*"]}),
        json!({"principal": "x", "roles": ["viewer"], "scopes": ["workflow:READ"]}),
        json!({"principal": "", "roles": ["viewer"]}),
        json!({"principal": "a\u{202e}b", "roles": ["viewer"]}),
        json!({"principal": "x", "roles": ["viewer"], "expires_in_s": 0}),
        json!({"principal": "x", "roles": ["viewer"], "expires_in_s": -1}),
        json!({"principal": "x", "roles": ["viewer"], "expires_in_s": u64::MAX}),
    ] {
        assert_eq!(child(&world, world.alfa.admin(), &odd).await.0, 400, "{odd}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn descendants_are_revoked_with_their_ancestor() {
    let world = World::new().await;
    let admin = json!({"principal": "p", "roles": ["admin"]});
    let (_, mut parent, top) = child(&world, world.alfa.admin(), &admin).await;
    let mut family = vec![parent.clone()];
    // A token with too many ancestors is not valid.
    for depth in 0..12 {
        let (status, made, _) = child(&world, &parent, &admin).await;
        if status != 201 {
            assert!(depth > 4 && matches!(status, 400..=422), "{depth}: {status}");
            break;
        }
        let can = may(&world, &made).await;
        assert!(can == ["nothing"] || can.len() == 12, "{depth}: {can:?}");
        if can == ["nothing"] {
            break;
        }
        family.push(made.clone());
        parent = made;
    }
    let request =
        TestRequest::new("DELETE", &format!("/api/v1/tokens/{top}")).bearer(world.alfa.admin());
    world.done(200, &request).await;
    for one in &family {
        assert_eq!(may(&world, one).await, ["nothing"]);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_shown_once() {
    let world = World::new().await;
    let body = json!({"principal": "p", "roles": ["viewer"]});
    let (_, secret, id) = child(&world, world.alfa.admin(), &body).await;
    assert!(secret.starts_with("slk_"));
    let hash = sluice_server::auth::identities::hash(&secret);
    for target in ["/api/v1/tokens", "/api/v1/audit?limit=500", &format!("/api/v1/tokens/{id}")] {
        let told = world.send(&TestRequest::get(target).bearer(world.alfa.admin())).await.text();
        assert!(!told.contains(&secret), "{target} tells it: {told}");
        // The audit contains the hash, as rows do; 256 random bits cannot be guessed from it.
        let audit = target.contains("audit");
        assert!(audit || !told.contains(&hash), "{target} tells its hash: {told}");
    }
    // An error does not repeat the secret that was sent.
    let request = TestRequest::get(&format!("/api/v1/tokens/{secret}")).bearer(world.alfa.admin());
    assert_eq!(world.send(&request).await.status, 404);
    world.stop().await;
}
