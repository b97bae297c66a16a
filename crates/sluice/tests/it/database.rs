//! A database instead of a data directory, and nodes that share it.

use crate::migrate::database;
use crate::server::Server;
use crate::world::{PATIENCE, World};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

const FLOW: &str = "name: flow\nsteps: [{id: one, command: one}]\n";

/// A world whose commands keep everything in a new database.
pub(crate) fn world() -> World {
    World::new()
        .file("sluice.toml", "database_url = \"file:url\"\n")
        .file("url", &database())
        .file("mock.yaml", "'*': {text: done}\n")
        .file("flow.lobsterx.yaml", FLOW)
        .file("setup.yaml", "workflows: [flow.lobsterx.yaml]\n")
}

#[test]
fn every_command_works_on_a_database() {
    let world = world();
    let looked = world.told(&["runs", "list"]);
    assert!(looked.contains("error[data_unusable]: there are no runs in the database"), "{looked}");
    let doctor = world.told(&["doctor"]);
    assert!(doctor.contains("it is reached and empty"), "{doctor}");
    world.printed(&["run", "flow.lobsterx.yaml", "--mock", "mock.yaml", "--agent", "mock"]);
    assert!(world.printed(&["runs", "list"]).contains("flow"));
    assert!(!world.path().join(".sluice/sluice.db").exists());
    let doctor = world.told(&["doctor"]);
    assert!(doctor.contains("whole, with schema"), "{doctor}");
    let backup = world.told(&["backup", "copy.db"]);
    assert!(backup.contains("error[data_unusable]: `backup` copies the store"), "{backup}");
    assert!(world.printed(&["config", "show"]).contains("file:"));
    // The directory is meant where it is named.
    let directory = world.told(&["runs", "list", "--data", ".sluice"]);
    assert!(directory.contains("there are no runs in `.sluice`"), "{directory}");
}

#[test]
fn a_database_that_is_not_reached_is_refused_and_its_password_kept() {
    let url = "postgres://sluice:s3cret@127.0.0.1:1/none?connect_timeout=1";
    let told = World::new().told(&["runs", "list", "--database-url", url]);
    assert!(told.contains("error[data_unusable]: the database cannot be opened"), "{told}");
    assert!(!told.contains("s3cret"), "{told}");
}

#[test]
fn nodes_that_start_at_once_have_one_key_and_one_token() {
    for _ in 0..4 {
        let world = world();
        let start = || {
            let mut node = world.command(&["serve", "--listen", "127.0.0.1:0"]);
            node.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
        };
        let nodes = [start(), start(), start()];
        let told = nodes.map(|mut node| {
            let mut line = String::new();
            BufReader::new(node.stdout.take().unwrap()).read_line(&mut line).unwrap();
            (node, line)
        });
        let tokens = world.printed(&["tokens", "list"]);
        for (mut node, line) in told {
            node.kill().unwrap();
            node.wait().unwrap();
            assert!(line.contains("sluice serves at"), "a node was refused");
        }
        assert_eq!(tokens.matches("tok_").count(), 1, "{tokens}");
    }
}

#[test]
fn a_node_without_the_keys_of_the_database_is_refused() {
    let world = world();
    let _first = Server::start(&world, "127.0.0.1:0");
    let serve =
        ["serve", "--listen", "127.0.0.1:0", "--data", "other", "--database-url", "file:url"];
    let refused = world.told(&serve);
    assert!(refused.contains("error[seal_unusable]: `other/seal.key` is not the key"), "{refused}");
    assert!(!world.path().join("other/seal.key").exists(), "it created a key that no node has");
    for key in ["seal.key", "dispatch.key"] {
        let at = |dir: &str| world.path().join(dir).join(key);
        std::fs::copy(at(".sluice"), at("other")).unwrap();
    }
    let mut node = world.command(&serve);
    let mut node = node.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(node.stdout.take().unwrap()).read_line(&mut line).unwrap();
    node.kill().unwrap();
    node.wait().unwrap();
    assert!(line.contains("sluice serves at"), "{line}");
}

#[test]
fn an_organisation_has_a_schema_of_its_own_on_every_node() {
    let world = world();
    let nodes = [0, 1].map(|_| Server::start(&world, "127.0.0.1:0"));
    world.printed(&["organisations", "add", "acme"]);
    assert_eq!(world.printed(&["organisations", "list"]), "default\nacme\n");
    let token = world.path().join(".sluice/organisations/acme/admin.token");
    let token = std::fs::read_to_string(token).unwrap();
    for node in &nodes {
        let began = Instant::now();
        let list = ["runs", "list"];
        while !node.output_with(&world, token.trim(), &list).status.success() {
            assert!(began.elapsed() < PATIENCE, "a node does not serve it");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    for command in [&["apply", "-f", "setup.yaml"][..], &["workflows", "start", "flow"]] {
        let output = nodes[0].output_with(&world, token.trim(), command);
        assert!(output.status.success(), "{}", crate::world::shown(&output));
    }
    let there = nodes[1].output_with(&world, token.trim(), &["runs", "list"]);
    assert!(String::from_utf8_lossy(&there.stdout).contains("flow"));
    assert!(!nodes[1].printed(&world, &["runs", "list"]).contains("flow"));
}
