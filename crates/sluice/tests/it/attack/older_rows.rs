//! Older rows: a process that can write to the store, but has no key, puts back what the
//! registry was. Every row is authentic, so only the head of the registry shows it.

use crate::migrate;
use crate::server::Server;
use crate::world::{World, shown};
use serde_json::Value;
use sluice_server::auth::identities::hash;
use std::time::Duration;

const PLAIN: &str = "name: plain\nsteps:\n  - {id: pay, command: pay}\n";
const MOCK: &str = "'*': {text: PAID, cost: 0.5}\n";
const RUN: [&str; 4] = ["run", "plain.lobsterx.yaml", "--mock", "mock.yaml"];
const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--mock", "mock.yaml"];
/// Long enough for a server to act on what it was given.
const WHILE: Duration = Duration::from_millis(2500);
const NEWER: &str = "UPDATE counter SET count = count + 1 WHERE name = 'registry'";

fn files(world: World) -> World {
    world.file("plain.lobsterx.yaml", PLAIN).file("mock.yaml", MOCK)
}

/// A world on each kind of store, and a way to write to it without the key.
fn on_each_store(attack: impl Fn(&World, &dyn Fn(&str))) {
    let world = files(World::new());
    let path = world.path().join(".sluice/sluice.db");
    attack(&world, &|sql| {
        let database = rusqlite::Connection::open(&path).unwrap();
        database.busy_timeout(Duration::from_secs(10)).unwrap();
        database.execute_batch(sql).unwrap();
    });
    let url = migrate::database();
    let world = World::new().file("sluice.toml", "database_url = \"file:url\"\n").file("url", &url);
    let name = url.split_once(":///").unwrap().1.split('?').next().unwrap();
    let world = files(world);
    // Every node of a database uses the same key. The first node makes it.
    drop(Server::start(&world, "127.0.0.1:0"));
    attack(&world, &|sql| drop(migrate::postgres().script(name, sql).unwrap()));
}

/// The findings of `audit verify`, which must find something.
fn findings(world: &World) -> String {
    let output = world.output(&["audit", "verify", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["findings"].to_string()
}

/// Nothing is dispatched, nothing is changed, and no server starts.
fn is_refused(world: &World) {
    let running = world.start(&RUN);
    std::thread::sleep(WHILE);
    let told = world.told(&["runs", "show", &world.newest(), "--json"]);
    assert!(!told.contains("PAID"), "{told}");
    drop(running);
    for command in [&SERVE[..], &["agents", "set", "eve", "trust_level=3"]] {
        let told = world.told(command);
        assert!(told.contains("error[store_not_authentic]"), "{command:?}: {told}");
    }
}

#[test]
fn a_revoked_token_that_was_put_back_lets_nobody_in() {
    on_each_store(|world, sql| {
        let server = Server::start(world, "127.0.0.1:0");
        let made = server.json(world, &["tokens", "create", "eve", "--role", "viewer", "--json"]);
        let (secret, id) = (made["token"].as_str().unwrap(), made["token_id"].as_str().unwrap());
        let list = |secret: &str| {
            server.output_with(world, secret, &["runs", "list", "--json"]).status.code()
        };
        assert_eq!(list(secret), Some(0));
        server.printed(world, &["tokens", "revoke", id]);
        assert_ne!(list(secret), Some(0));
        sql(&format!(
            "DELETE FROM registry WHERE kind = 'token' AND name = '{id}' AND body IS NULL; {NEWER}"
        ));
        std::thread::sleep(WHILE);
        assert_ne!(list(secret), Some(0), "a running server believed it");
        server.kill();
        let told = world.told(&SERVE);
        assert!(told.contains("error[store_not_authentic]"), "a new server believed it: {told}");
        let found = findings(world);
        assert!(found.contains(&format!("token/{id}")), "{found}");
        // The operator accepts what is there, and the audit says so.
        world.printed(&["audit", "adopt"]);
        let server = Server::start(world, "127.0.0.1:0");
        server.printed(world, &["runs", "list"]);
        assert!(world.printed(&["audit", "tail", "--json"]).contains("store_adopted"));
    });
}

#[test]
fn an_older_policy_or_budget_that_was_put_back_is_not_in_force() {
    let forbid = "policies:\n  house: {text: 'permit (principal, action, resource); \
                  forbid (principal, action == Action::\"dispatch_step\", resource);'}\n";
    let permit = "policies:\n  house: {text: 'permit (principal, action, resource);'}\n";
    on_each_store(|world, sql| {
        for (name, text) in [("permit.yaml", permit), ("forbid.yaml", forbid)] {
            std::fs::write(world.path().join(name), text).unwrap();
            world.printed(&["apply", "-f", name]);
        }
        sql(&format!(
            "DELETE FROM registry WHERE kind = 'policy'
             AND epoch = (SELECT max(epoch) FROM registry WHERE kind = 'policy'); {NEWER}"
        ));
        is_refused(world);
        let found = findings(world);
        assert!(found.contains("policy/house"), "{found}");
    });
    on_each_store(|world, sql| {
        for amount in ["amount_cents=1000", "amount_cents=0"] {
            world.printed(&["budgets", "set", "all", "scope=global", "period=total", amount]);
        }
        // Its history is deleted too: then no budget would be in force.
        sql(&format!("DELETE FROM registry WHERE kind = 'envelope'; {NEWER}"));
        is_refused(world);
        let found = findings(world);
        assert!(found.contains("envelope/all"), "{found}");
    });
}

/// Rows that no process with the key wrote, on each kind of store.
#[test]
fn a_forged_token_or_policy_has_no_effect_on_any_store() {
    on_each_store(|world, sql| {
        let server = Server::start(world, "127.0.0.1:0");
        let made = server.json(world, &["tokens", "create", "eve", "--role", "viewer", "--json"]);
        let (secret, id) = (made["token"].as_str().unwrap(), made["token_id"].as_str().unwrap());
        let forged = format!("{secret}x");
        let (old, new) = (hash(secret), hash(&forged));
        sql(&format!(
            "INSERT INTO registry (kind, name, epoch, body, mac)
             SELECT 'token', 'tok_eve', epoch + 9, replace(body, '{old}', '{new}'), mac
             FROM registry WHERE kind = 'token' AND name = '{id}'; {NEWER}"
        ));
        std::thread::sleep(WHILE);
        let list = ["runs", "list", "--json"];
        assert_ne!(server.output_with(world, &forged, &list).status.code(), Some(0));
        assert_eq!(server.output_with(world, secret, &list).status.code(), Some(0));
        let found = findings(world);
        assert!(found.contains("token/tok_eve"), "{found}");
    });
    let forbid = "policies:\n  house: {text: 'permit (principal, action, resource); \
                  forbid (principal, action, resource == Row::\"agent/eve\");'}\n";
    on_each_store(|world, sql| {
        std::fs::write(world.path().join("setup.yaml"), forbid).unwrap();
        world.printed(&["apply", "-f", "setup.yaml"]);
        sql(&format!(
            "UPDATE registry SET body = replace(body, 'agent/eve', 'agent/bob')
             WHERE kind = 'policy'; {NEWER}"
        ));
        let refused = world.told(&["agents", "set", "eve", "trust_level=3"]);
        assert!(refused.contains("error[store_not_authentic]"), "{refused}");
        let found = findings(world);
        assert!(found.contains("policy/house"), "{found}");
    });
}

/// What the head cannot show: everything that it covers is put back with it, and no process
/// has seen the newer one. `audit verify` shows it, because audit entries are chained.
#[test]
fn a_whole_registry_that_was_put_back_is_named_by_verify() {
    let world = files(World::new());
    let database = world.path().join(".sluice/sluice.db");
    world.printed(&["agents", "set", "ada", "trust_level=3"]);
    let open = || rusqlite::Connection::open(&database).unwrap();
    let read = |row: &rusqlite::Row<'_>| row.get::<_, Vec<u8>>(0);
    let head = "SELECT mark FROM authentic WHERE one = 2";
    let old = open().query_row(head, [], read).unwrap();
    world.printed(&["agents", "set", "ada", "trust_level=1"]);
    let put_back = || {
        let database = open();
        database.execute("DELETE FROM registry WHERE epoch > 1", []).unwrap();
        database.execute("UPDATE authentic SET mark = ?1 WHERE one = 2", [&old]).unwrap();
        database.execute("UPDATE counter SET count = 1 WHERE name = 'registry'", []).unwrap();
    };
    put_back();
    let found = findings(&world);
    assert!(found.contains("agent/ada"), "{found}");
}

/// Counters of money have no MAC: an older value with an older MAC would be as good as a
/// new one. They are recounted from the journals.
#[test]
fn a_spent_budget_that_was_set_to_nothing_is_named_by_verify() {
    on_each_store(|world, sql| {
        let all = ["scope=global", "period=total", "amount_cents=100"];
        world.printed(&["budgets", "set", "all", all[0], all[1], all[2]]);
        world.printed(&RUN);
        let clean = world.output(&["audit", "verify", "--json"]);
        assert_eq!(clean.status.code(), Some(0), "{}", shown(&clean));
        sql("UPDATE counter SET count = 0 WHERE name LIKE '%spent%'");
        let found = findings(world);
        assert!(found.contains("counter") && found.contains("spent"), "{found}");
    });
}
