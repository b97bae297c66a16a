//! What the console's pages read: the audit from its end, the policy sets, and the newest
//! seal.

use crate::client::TestRequest;
use crate::world::World;
use serde_json::{Value, json};

/// All pages of the audit from its end, each of about this many facts.
async fn backwards(world: &World, query: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut fixture = "now".to_owned();
    for _ in 0..200 {
        let target = format!("/api/v1/audit?before={fixture}&{query}");
        let response = world.send(&TestRequest::get(&target).bearer(world.alfa.admin())).await;
        assert_eq!(response.status, 200, "{}", response.text());
        let page = response.json();
        all.extend(page["data"].as_array().unwrap().iter().cloned());
        match page["meta"]["next_cursor"].as_str() {
            Some(next) => fixture = next.to_owned(),
            None => return all,
        }
    }
    panic!("the pages do not end");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_is_paged_from_its_end_without_a_gap() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let forwards =
        world.done(200, &TestRequest::get("/api/v1/audit?limit=500").bearer(admin)).await;
    let mut forwards: Vec<String> =
        forwards.as_array().unwrap().iter().map(Value::to_string).collect();
    let pages = backwards(&world, "limit=3").await;
    let times: Vec<&str> = pages.iter().map(|one| one["at"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older), "{times:?}");
    let mut shown: Vec<String> = pages.iter().map(Value::to_string).collect();
    shown.sort();
    forwards.sort();
    assert_eq!(shown, forwards);
    let run = &world.alfa.fixture.ended;
    let of_run = backwards(&world, &format!("limit=2&run={run}")).await;
    assert!(of_run.len() > 2 && of_run.iter().all(|one| one["resource_id"] == **run));
    let decided = backwards(&world, "limit=2&type=dispatch_decided").await;
    assert!(!decided.is_empty() && decided.iter().all(|one| one["type"] == "dispatch_decided"));
    let unknown = backwards(&world, "actor=unknown").await;
    assert_eq!(unknown, Vec::<Value>::new());
    for bad in ["before=then", "before=now&newest=true", "before=now&cursor=1.1", "before=1.x"] {
        let response =
            world.send(&TestRequest::get(&format!("/api/v1/audit?{bad}")).bearer(admin)).await;
        assert_eq!(response.code(), "bad_request", "{bad}");
    }
    // A position beyond the end means the end.
    let far = format!("/api/v1/audit?limit=1&before={}.{}", u64::MAX, u64::MAX);
    let page = world.done(200, &TestRequest::get(&far).bearer(admin)).await;
    assert_eq!(page[0], pages[0]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_sets_are_shown_as_they_are_loaded() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let sets = || TestRequest::get("/api/v1/policy-sets").bearer(admin);
    let before = world.done(200, &sets()).await;
    assert_eq!(before["active"]["origin"], "stored");
    assert_eq!(before["active"]["files"][0]["name"], "alfa.cedar");
    assert_eq!(before["shadow"], Value::Null);
    let text = "@id(\"dear\") @action(\"require_approval\") @approvers(\"ada\") \
        @category(\"budget\") @description(\"ask first\")\n\
        forbid (principal, action == Action::\"dispatch_step\", resource);\n\
        permit (principal, action, resource);";
    let shadow = json!({"text": text, "set": "shadow"});
    let put = TestRequest::new("PUT", "/api/v1/policies/shadow%2Fdear.cedar").json(&shadow);
    world.done(200, &put.bearer(admin)).await;
    let after = world.done(200, &sets()).await;
    assert_eq!(after["active"], before["active"]);
    let file = &after["shadow"]["files"][0];
    assert_eq!((&file["name"], &file["text"]), (&json!("dear.cedar"), &json!(text)));
    let expected = json!({"name": "dear.cedar/dear", "line": 1, "effect": "forbid",
        "action": "require_approval", "enforcement": "hard", "category": "budget",
        "approvers": ["ada"], "description": "ask first"});
    assert_eq!(file["policies"][0], expected);
    assert_eq!(file["policies"][1]["effect"], "permit");
    assert_eq!(file["policies"][1]["action"], Value::Null);
    // The hash is the one in decisions.
    let tried = json!({"set": "active", "run": world.alfa.fixture.ended});
    let tried = TestRequest::post("/api/v1/policies/test", &tried).bearer(admin);
    assert_eq!(world.done(200, &tried).await["differ"], 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_shows_the_version_and_the_newest_seal_is_shown() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let session = world.done(200, &TestRequest::get("/api/v1/session").bearer(admin)).await;
    assert_eq!(session["version"], env!("CARGO_PKG_VERSION"));
    let sealed = world.done(200, &TestRequest::get("/api/v1/audit/seal").bearer(admin)).await;
    // No sealer runs in this test.
    assert_eq!((&sealed["number"], &sealed["seal"]), (&json!(0), &Value::Null));
    world.stop().await;
}
