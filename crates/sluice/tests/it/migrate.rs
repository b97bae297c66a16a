//! `sluice migrate`: from a data directory into a database, and on from there.

mod moved;

use crate::world::{World, plain, shown};
use sluice_testing::postgres::Server as Postgres;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A PostgreSQL for these tests. It ends with the process.
pub(crate) fn postgres() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(|| Postgres::start(&["fsync=off"]).unwrap_or_else(|why| panic!("{why}")))
}

/// The URL of a new database: organisations have schemas of their own in it.
pub(crate) fn database() -> String {
    static DATABASES: AtomicU32 = AtomicU32::new(0);
    let name = format!("moved_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
    postgres().psql(&format!("CREATE DATABASE {name}"));
    postgres().url().replace(":///postgres?", &format!(":///{name}?"))
}

const SETUP: &str = "
gateways:
  near: {provider: mock, capabilities: [text], default: true}
agents:
  worker: {trust_level: 5, max_concurrent_steps: 100, capabilities: [text]}
  spender: {trust_level: 5, max_concurrent_steps: 20, capabilities: [text]}
budgets:
  purse: {scope: agent, of: spender, period: total, amount_cents: 9}
workflows: [spends.lobsterx.yaml, asks.lobsterx.yaml, quick.lobsterx.yaml]
schedules:
  often: {workflow: quick, every: 1s}
";
const SPENDS: &str = "
name: spends
steps:
  - {id: spend, command: buy, agent: spender}
  - {id: tell, command: tell, depends_on: [spend]}
";
const ASKS: &str = "
name: asks
steps:
  - {id: prepare, command: prepare}
  - {id: act, command: act, depends_on: [prepare], approval: required}
";

/// A world with a setup that was applied, and some runs that have ended.
fn world() -> World {
    let world = World::new()
        .file("setup.yaml", SETUP)
        .file("spends.lobsterx.yaml", SPENDS)
        .file("asks.lobsterx.yaml", ASKS)
        .file(
            "quick.lobsterx.yaml",
            "name: quick\nsteps: [{id: one, command: one, agent: worker}]\n",
        )
        .file("mock.yaml", "spend: {text: bought, cost: 0.02}\n'*': {text: done}\n")
        .file(
            "stuck.yaml",
            "spend: {text: bought, cost: 0.02, delay_ms: 600000}\n'*': {text: done}\n",
        );
    world.printed(&["apply", "-f", "setup.yaml"]);
    world.printed(&["run", "spends", "--mock", "mock.yaml", "--agent", "worker"]);
    world
}

fn migrate(world: &World, url: &str) -> String {
    let args = ["migrate", "--from", "sqlite:.sluice", "--to", "env:TARGET"];
    let mut command = world.command(&args);
    command.env("TARGET", url);
    plain(&shown(&crate::world::Running::spawn(command).output()))
}

#[test]
fn a_directory_is_moved_once_and_what_was_it_is_put_away() {
    let (world, url) = (world(), postgres().schema());
    let told = migrate(&world, &url);
    assert!(told.ends_with("exit 0\n"), "{told}");
    assert!(told.contains("1 runs come to the same"), "{told}");
    assert!(told.contains("its store is put away as `.sluice/sluice.db.moved`"), "{told}");
    assert!(!world.path().join(".sluice/sluice.db").exists());
    for kept in ["sluice.db.moved", "seal.key", "seal.pub", "dispatch.key"] {
        assert!(world.path().join(".sluice").join(kept).exists(), "{kept}");
    }
    let again = migrate(&world, &url);
    assert!(
        again.contains("error[data_unusable]: everything of `.sluice` was moved before"),
        "{again}"
    );
    let audit = world.told(&["audit", "verify", "--data", ".sluice", "--database-url", &url]);
    assert!(audit.contains("nothing is wrong"), "{audit}");
}

#[test]
fn what_cannot_be_moved_is_refused_and_stays_where_it_is() {
    let (world, url) = (world(), postgres().schema());
    let before = world.told(&["runs", "list"]);
    // Another process uses the directory.
    let running = world.start(&["run", "spends", "--mock", "stuck.yaml", "--agent", "worker"]);
    world.until_step("spend", "running");
    let told = migrate(&world, &url);
    assert!(
        told.contains("error[migrate_refused]: a node is still running on the store"),
        "{told}"
    );
    assert!(told.ends_with("exit 2\n"), "{told}");
    running.signal(rustix::process::Signal::KILL);
    running.output();
    // The database is one that something else is in.
    let other = World::new().file("setup.yaml", "agents: {a: {trust_level: 1}}\n");
    other.printed(&["apply", "-f", "setup.yaml", "--database-url", &url]);
    let told = migrate(&world, &url);
    assert!(told.contains("error[migrate_refused]: the target is not empty"), "{told}");
    let told = migrate(&world, "mysql://elsewhere/db");
    assert!(told.contains("error[config_invalid]: `--to` is not a URL of a PostgreSQL"), "{told}");
    let told = migrate(&World::new(), &url);
    assert!(told.contains("error[data_unusable]: there are no runs in `.sluice`"), "{told}");
    let wrong = world.told(&["migrate", "--from", ".sluice", "--to", &url]);
    assert!(wrong.contains("expected `sqlite:DIR`") && wrong.ends_with("exit 2\n"), "{wrong}");
    assert!(world.told(&["runs", "list"]).lines().count() > before.lines().count());
}

#[test]
fn an_audit_that_does_not_verify_is_not_moved() {
    let (world, url) = (world(), postgres().schema());
    world.printed(&["audit", "seal"]);
    let store = rusqlite::Connection::open(world.path().join(".sluice/sluice.db")).unwrap();
    let changed = "UPDATE entry SET text = replace(text, 'ada', 'eve') WHERE place = 1";
    assert_eq!(store.execute(changed, []).unwrap(), 1);
    drop(store);
    let told = migrate(&world, &url);
    assert!(told.contains("error[migrate_unverified]: the audit does not verify"), "{told}");
    assert!(world.path().join(".sluice/sluice.db").exists());
    // An incomplete copy is not opened as a store.
    let told = world.told(&["runs", "list", "--database-url", &url]);
    assert!(told.contains("run the same `sluice migrate` again"), "{told}");
    assert!(told.contains("error[data_unusable]"), "{told}");
}

#[test]
fn programs_are_told_how_much_there_was_and_what_was_verified() {
    let (world, url) = (world(), postgres().schema());
    let told = world.json(&["migrate", "--from", "sqlite:.sluice", "--to", &url, "--json"]);
    let all = told["organisations"].as_array().unwrap();
    let [one] = &all[..] else { panic!("{told}") };
    assert_eq!((&one["name"], &one["moved_before"]), (&"default".into(), &false.into()));
    assert_eq!((&one["rows"]["run"], &one["runs_folded"]), (&1.into(), &1.into()), "{told}");
    assert_eq!((&one["audit"]["ok"], &one["runs_unreadable"]), (&true.into(), &0.into()));
    assert_eq!(one["digests"]["frame"].as_str().map(str::len), Some(64), "{told}");
    assert_eq!(one["put_away_as"], ".sluice/sluice.db.moved");
}
