//! Policies that lock their own operators out.

use super::{admin, ask, person, police, refused, served, token};
use crate::world::{World, shown};
use serde_json::{Value, json};

/// Work goes on under it, and no principal can change anything.
const LOCK: &str = "permit (principal, action in [Action::\"dispatch_step\", \
                    Action::\"start_run\"], resource);\n";

fn only(name: &str) -> String {
    format!(
        "forbid (principal, action == Action::\"change_config\", resource) \
         unless {{ principal == User::\"{name}\" }};\n"
    )
}

#[test]
fn a_set_under_which_no_principal_may_change_policies_is_refused_on_every_way() {
    let world = World::new()
        .file("lock.cedar", LOCK)
        .file("lock.yaml", "policies: {lock.cedar: {file: lock.cedar}}\n")
        .file("a.lobsterx.yaml", "name: a\nsteps: [{id: a, agent: shell, command: \"true\"}]\n");
    let (world, server) = served(world);
    let body = json!({"text": LOCK});
    let put = ask(&server, &server.token, "PUT", "/api/v1/policies/lock.cedar", &body);
    let told = refused(put, (422, "policies_refused"));
    assert!(told.contains("no policy lets a principal change policies"), "{told}");
    let row = json!({"kind": "policy", "name": "lock.cedar", "body": {"text": LOCK}});
    let apply = ask(&server, &server.token, "POST", "/api/v1/apply", &json!({"rows": [row]}));
    refused(apply, (422, "policies_refused"));
    let lock = |output| {
        let told = shown(&output);
        let why = "no policy lets a principal change policies";
        assert!(told.contains("policies_refused") && told.contains(why), "{told}");
        assert_eq!(output.status.code(), Some(2), "{told}");
    };
    lock(server.output(&world, &["apply", "-f", "lock.yaml"]));
    lock(world.output(&["apply", "-f", "lock.yaml"]));
    lock(world.output(&["policies", "check", "lock.cedar"]));
    lock(world.output(&["serve", "--listen", "127.0.0.1:0", "--policies", "lock.cedar"]));
    let mut variable = world.command(&["run", "a.lobsterx.yaml"]);
    lock(variable.env("SLUICE_POLICIES", "lock.cedar").output().unwrap());
    // The way is open, and nothing of it is in force.
    admin(&server, "PUT", "/api/v1/agents/scribe", &json!({"trust_level": 3}));
}

#[test]
fn a_rule_about_changes_stops_neither_sign_in_nor_revocation() {
    let (_world, server) = served(World::new());
    let approver = person(&server, "ben", &["approver"]);
    let (leaked, leaked_id) = token(&server, &json!({"principal": "eve", "roles": ["viewer"]}));
    let second = person(&server, "second", &["admin"]);
    police(&server, &only("admin"));
    let (status, answer) = ask(&server, &approver, "POST", "/api/v1/session", &Value::Null);
    assert_eq!(status, 201, "an approver signs in: {answer}");
    let made = json!({"principal": "x", "roles": ["viewer"]});
    refused(ask(&server, &second, "POST", "/api/v1/tokens", &made), (403, "change_refused"));
    let path = format!("/api/v1/tokens/{leaked_id}");
    let (status, answer) = ask(&server, &second, "DELETE", &path, &Value::Null);
    assert_eq!(status, 200, "a leaked token is revoked: {answer}");
    assert_eq!(ask(&server, &leaked, "GET", "/api/v1/session", &Value::Null).0, 401);
}

#[test]
fn the_owner_of_the_directory_breaks_the_glass_and_the_audit_says_so() {
    let world = World::new()
        .file("open.cedar", "permit (principal, action, resource);\n")
        .file("open.yaml", "policies: {rules.cedar: {file: open.cedar}}\n");
    let (world, server) = served(world);
    // Zoe has no token, and cannot be given one.
    police(&server, &only("zoe"));
    let made = json!({"principal": "zoe", "roles": ["admin"]});
    let create = ask(&server, &server.token, "POST", "/api/v1/tokens", &made);
    refused(create, (403, "change_refused"));
    for args in [
        &["tokens", "create", "zoe", "--role", "admin"][..],
        &["apply", "-f", "open.yaml"],
        &["agents", "set", "scribe", "trust_level=3"],
    ] {
        let told = shown(&world.output(args));
        assert!(told.contains("change_refused"), "without breaking the glass: {told}");
    }
    let glass = ["--break-glass", "zoe left the company"];
    let there = server.output(&world, &[&["apply", "-f", "open.yaml"], &glass[..]].concat());
    assert!(shown(&there).contains("needs_data_directory"), "{}", shown(&there));
    world.printed(&[&["tokens", "create", "zoe", "--role", "viewer"], &glass[..]].concat());
    world.printed(&[&["apply", "-f", "open.yaml", "--as", "root"], &glass[..]].concat());
    admin(&server, "PUT", "/api/v1/agents/scribe", &json!({"trust_level": 3}));
    let audit = admin(&server, "GET", "/api/v1/audit?limit=100", &Value::Null);
    let broken = |actor: &str, row: &str| {
        audit.as_array().unwrap().iter().any(|entry| {
            entry["category"] == "security"
                && entry["type"] == "break_glass"
                && entry["actor"] == actor
                && entry.to_string().contains("zoe left the company")
                && entry.to_string().contains(row)
        })
    };
    assert!(broken("ada", "token/tok_") && broken("root", "policy/rules.cedar"), "{audit}");
}
