//! What pages of the console look through: the audit from its end, the sets of
//! policies, how far everything is sealed.

use crate::client::Ask;
use crate::world::World;
use serde_json::{Value, json};

/// All pages of the audit from its end, each of about so many.
async fn backwards(world: &World, query: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut place = "now".to_owned();
    for _ in 0..200 {
        let target = format!("/api/v1/audit?before={place}&{query}");
        let answer = world.send(&Ask::get(&target).bearer(world.alfa.admin())).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let page = answer.json();
        all.extend(page["data"].as_array().unwrap().iter().cloned());
        match page["meta"]["next_cursor"].as_str() {
            Some(next) => place = next.to_owned(),
            None => return all,
        }
    }
    panic!("the pages do not end");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_is_paged_from_its_end_without_a_gap() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let forwards = world.done(200, &Ask::get("/api/v1/audit?limit=500").bearer(admin)).await;
    let mut forwards: Vec<String> =
        forwards.as_array().unwrap().iter().map(Value::to_string).collect();
    let pages = backwards(&world, "limit=3").await;
    let times: Vec<&str> = pages.iter().map(|one| one["at"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older), "{times:?}");
    let mut shown: Vec<String> = pages.iter().map(Value::to_string).collect();
    shown.sort();
    forwards.sort();
    assert_eq!(shown, forwards);
    let run = &world.alfa.place.ended;
    let of_run = backwards(&world, &format!("limit=2&run={run}")).await;
    assert!(of_run.len() > 2 && of_run.iter().all(|one| one["resource_id"] == **run));
    let decided = backwards(&world, "limit=2&type=dispatch_decided").await;
    assert!(!decided.is_empty() && decided.iter().all(|one| one["type"] == "dispatch_decided"));
    let nobody = backwards(&world, "actor=nobody%20at%20all").await;
    assert_eq!(nobody, Vec::<Value>::new());
    for bad in ["before=then", "before=now&newest=true", "before=now&cursor=1.1", "before=1.x"] {
        let answer = world.send(&Ask::get(&format!("/api/v1/audit?{bad}")).bearer(admin)).await;
        assert_eq!(answer.code(), "bad_request", "{bad}");
    }
    // A place beyond the end is the end.
    let far = format!("/api/v1/audit?limit=1&before={}.{}", u64::MAX, u64::MAX);
    let page = world.done(200, &Ask::get(&far).bearer(admin)).await;
    assert_eq!(page[0], pages[0]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_of_policies_are_told_as_they_are_read() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let sets = || Ask::get("/api/v1/policy-sets").bearer(admin);
    let before = world.done(200, &sets()).await;
    assert_eq!(before["active"]["origin"], "stored");
    assert_eq!(before["active"]["files"][0]["name"], "alfa.cedar");
    assert_eq!(before["shadow"], Value::Null);
    let text = "@id(\"dear\") @action(\"require_approval\") @approvers(\"ada\") \
        @category(\"budget\") @description(\"ask first\")\n\
        forbid (principal, action == Action::\"dispatch_step\", resource);\n\
        permit (principal, action, resource);";
    let shadow = json!({"text": text, "set": "shadow"});
    let put = Ask::new("PUT", "/api/v1/policies/shadow%2Fdear.cedar").json(&shadow);
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
    // The hash is the one that decisions name.
    let tried = json!({"set": "active", "run": world.alfa.place.ended});
    let tried = Ask::post("/api/v1/policies/test", &tried).bearer(admin);
    assert_eq!(world.done(200, &tried).await["differ"], 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_is_told_the_version_and_how_far_everything_is_sealed() {
    let world = World::new().await;
    let admin = world.alfa.admin();
    let session = world.done(200, &Ask::get("/api/v1/session").bearer(admin)).await;
    assert_eq!(session["version"], env!("CARGO_PKG_VERSION"));
    let sealed = world.done(200, &Ask::get("/api/v1/audit/seal").bearer(admin)).await;
    // Nobody seals here.
    assert_eq!((&sealed["number"], &sealed["seal"]), (&json!(0), &Value::Null));
    world.stop().await;
}
