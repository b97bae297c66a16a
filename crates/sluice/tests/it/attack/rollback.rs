//! Rollback: an older copy of the store is put back, while the seals that were made
//! since are kept in another place.

use crate::database;
use crate::migrate;
use crate::server::Server;
use crate::session::root;
use crate::world::{World, shown};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const FLOW: &str = "name: flow\nsteps: [{id: one, command: one}]\n";
const SEALS: [&str; 2] = ["--seal-file", "seals.txt"];
const RUN: [&str; 6] =
    ["run", "flow.lobsterx.yaml", "--mock", "mock.yaml", "--seal-file", "seals.txt"];
const SERVE: [&str; 7] =
    ["serve", "--listen", "127.0.0.1:0", "--mock", "mock.yaml", "--seal-file", "seals.txt"];
const VERIFY: [&str; 4] = ["audit", "verify", "--seal", "seals.txt"];

fn world() -> World {
    World::new().file("flow.lobsterx.yaml", FLOW).file("mock.yaml", "'*': {text: done}\n")
}

/// Puts the database of one directory in the place of that of another.
fn copy(world: &World, from: &str, to: &str) {
    let (from, to) = (world.path().join(from), world.path().join(to));
    std::fs::create_dir_all(&to).unwrap();
    for file in ["sluice.db", "sluice.db-wal", "sluice.db-shm"] {
        let _ = std::fs::remove_file(to.join(file));
        if from.join(file).exists() {
            std::fs::copy(from.join(file), to.join(file)).unwrap();
        }
    }
}

fn read(world: &World, file: &str) -> String {
    std::fs::read_to_string(world.path().join(file)).unwrap()
}

/// Number of the last seal in a file.
fn last_seal(world: &World, file: &str) -> u64 {
    let text = read(world, file);
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    line["number"].as_u64().unwrap()
}

/// A world whose store was rolled back: `older` has the copy that was put back, `newest`
/// the one in whose place it is.
fn rolled_back() -> World {
    let world = world();
    world.printed(&RUN);
    copy(&world, ".sluice", "older");
    world.printed(&RUN);
    world.printed(&RUN);
    world.printed(&VERIFY);
    copy(&world, ".sluice", "newest");
    copy(&world, "older", ".sluice");
    world
}

#[test]
fn a_store_that_is_older_than_its_seal_file_is_not_written_to() {
    let world = rolled_back();
    let (kept, seals) = (last_seal(&world, "seals.txt"), read(&world, "seals.txt"));
    let agent = [&["agents", "set", "scribe", "trust_level=3"][..], &SEALS].concat();
    for command in [&SERVE[..], &RUN, &agent] {
        let refused = world.told(command);
        assert!(refused.contains("error[store_rolled_back]: the store of `.sluice`"), "{refused}");
        assert!(refused.contains(&format!("`seals.txt` has seal {kept}")), "{refused}");
        assert!(refused.contains("`--accept-rollback REASON`"), "{refused}");
        assert!(refused.ends_with("exit 2\n"), "{refused}");
    }
    assert_eq!(read(&world, "seals.txt"), seals, "nothing was sealed");
    // Looking is allowed, and seals nothing either.
    for look in [&["runs", "list"][..], &["audit", "tail"], &["tokens", "list"]] {
        world.printed(&[look, &SEALS].concat());
    }
    assert_eq!(read(&world, "seals.txt"), seals, "nothing was sealed");
    let found = world.told(&VERIFY);
    assert!(found.contains(&format!("seal {kept} is missing")), "{found}");
    let doctor = world.told(&[&["doctor"][..], &SEALS].concat());
    assert!(doctor.contains("seal file  FAIL  the store of `.sluice` was"), "{doctor}");
    // The newest copy is put back: everything is as it was.
    copy(&world, "newest", ".sluice");
    world.printed(&RUN);
    world.printed(&VERIFY);
    let doctor = world.printed(&[&["doctor"][..], &SEALS].concat());
    assert!(doctor.contains("the store has the newest seal of the file"), "{doctor}");
}

#[test]
fn an_accepted_rollback_is_in_the_audit_and_its_fork_is_found_for_ever() {
    let world = rolled_back();
    let kept = last_seal(&world, "seals.txt");
    let reason = "restored from the backup of Monday";
    let server =
        Server::of(&world, world.command(&[&SERVE[..], &["--accept-rollback", reason]].concat()));
    server.kill();
    let entries = world.printed(&["audit", "tail", "--category", "security", "--json"]);
    let entries: Vec<Value> =
        entries.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let accepted: Vec<&Value> =
        entries.iter().filter(|entry| entry["type"] == "rollback_accepted").collect();
    let [accepted] = accepted[..] else { panic!("{entries:?}") };
    assert_eq!(accepted["actor"], "ada");
    let detail = &accepted["detail"];
    assert_eq!((&detail["reason"], &detail["kept_seal"]), (&reason.into(), &kept.into()));
    assert!(detail["store_seal"].as_u64().unwrap() < kept, "{detail}");
    // Later starts need no flag, and leave no entry.
    world.printed(&RUN);
    drop(Server::of(&world, world.command(&SERVE)));
    world.printed(&RUN);
    let entries = world.printed(&["audit", "tail", "--category", "security", "--json"]);
    assert_eq!(entries.matches("rollback_accepted").count(), 1, "{entries}");
    // By itself the store is in order; with the seals that were kept it never is again.
    world.printed(&["audit", "verify"]);
    let found = world.told(&VERIFY);
    assert!(found.contains("is forked: two different seals of this number"), "{found}");
    assert!(found.ends_with("exit 1\n"), "{found}");
    let script = root().join("tools/verify_packet.py");
    let mut python = Command::new("python3");
    let python = python.arg("-B").arg(script).arg("--seals").arg(world.path().join("seals.txt"));
    let python = shown(&python.output().unwrap());
    assert!(python.contains("is forked: two different seals") && python.ends_with("exit 1\n"));
    // The store whose place it took is the other one now.
    copy(&world, "newest", ".sluice");
    let refused = world.told(&RUN);
    assert!(refused.contains("error[store_rolled_back]"), "{refused}");
    let found = world.told(&VERIFY);
    assert!(found.contains("is forked"), "{found}");
}

#[test]
fn an_accepted_rollback_needs_a_reason_and_a_directory() {
    let world = rolled_back();
    let empty = world.told(&[&RUN[..], &["--accept-rollback", ""]].concat());
    assert!(empty.contains("a value is required") && empty.ends_with("exit 2\n"), "{empty}");
    let remote =
        ["agents", "remove", "scribe", "--accept-rollback", "why", "--url", "http://[::1]:1"];
    let remote = world.told(&remote);
    assert!(remote.contains("error[needs_data_directory]"), "{remote}");
    // A command that writes may accept it too, and only where there is one.
    for _ in 0..2 {
        world.printed(&[&RUN[..], &["--accept-rollback", "why not"]].concat());
    }
    let entries = world.printed(&["audit", "tail", "--category", "security", "--json"]);
    assert_eq!(entries.matches("rollback_accepted").count(), 1, "{entries}");
}

#[test]
fn organisations_have_a_seal_file_each_and_both_are_clean() {
    let world = world();
    world.printed(&[&["organisations", "add", "acme"][..], &SEALS].concat());
    let acme = ".sluice/organisations/acme";
    let verify = |data: &str, seals: &str| {
        world.output(&["audit", "verify", "--data", data, "--seal", seals]).status.code()
    };
    let server = Server::of(&world, world.command(&SERVE));
    world.until("both have sealed", |world| {
        let there = |file: &str| Path::exists(&world.path().join(file));
        (there("seals.txt") && there("seals.txt.acme")).then_some(())
    });
    drop(server);
    // A command on the directory of an organisation uses the same file.
    world.printed(&RUN);
    world.printed(&[&RUN[..], &["--data", acme]].concat());
    for (data, seals) in [(".sluice", "seals.txt"), (acme, "seals.txt.acme")] {
        assert!(read(&world, seals).lines().count() > 0);
        assert_eq!(verify(data, seals), Some(0), "{data}");
    }
    assert_eq!(verify(acme, "seals.txt"), Some(1), "those are another organisation's");
    // A rollback of one of them is found in its own file.
    copy(&world, acme, "older");
    world.printed(&[&RUN[..], &["--data", acme]].concat());
    copy(&world, "older", acme);
    let refused = world.told(&SERVE);
    assert!(refused.contains("error[store_rolled_back]"), "{refused}");
    assert!(refused.contains("`seals.txt.acme`"), "{refused}");
}

#[test]
fn a_node_on_an_older_database_does_not_start() {
    let world = database::world();
    let server = Server::of(&world, world.command(&SERVE));
    world.until("something is sealed", |world| {
        let seals = std::fs::read_to_string(world.path().join("seals.txt")).unwrap_or_default();
        seals.ends_with('\n').then_some(())
    });
    server.kill();
    drop(Server::of(&world, world.command(&SERVE)));
    let world = world.file("url", &migrate::database());
    let refused = world.told(&SERVE);
    assert!(refused.contains("error[store_rolled_back]"), "{refused}");
    assert!(refused.contains("its newest seal is 0"), "{refused}");
}
