//! A data directory that is removed or swapped under a server.

use super::http::{Answer, ready, start};
use crate::server::Server;
use crate::world::World;

const HELLO: &str = "name: hello\nsteps: [{id: a, command: Say hello.}]\n";

fn world() -> World {
    World::new().file("hello.lobsterx.yaml", HELLO).file("mock.yaml", "'*': {text: Done.}\n")
}

fn server(world: &World) -> Server {
    let args = ["--listen", "127.0.0.1:0", "--mock", "mock.yaml", "--data", ".sluice"];
    let server = Server::with(world, &args);
    server.printed(world, &["workflows", "put", "hello.lobsterx.yaml"]);
    let started = start(server.address(), &server.token, "hello");
    assert!(matches!(started.status, 201 | 202), "{}", started.text);
    assert_eq!(ready(server.address()).status, 200);
    server
}

/// Waits until starts are refused; they are not taken again after that.
fn refuses(world: &World, server: &Server) -> Answer {
    let start = || start(server.address(), &server.token, "hello");
    let refused = world.until("starts are refused", |_| Some(start()).filter(|a| a.status == 503));
    for _ in 0..5 {
        assert_eq!(start().status, 503);
    }
    world.until("it is not ready", |_| {
        Some(ready(server.address())).filter(|answer| answer.status == 503)
    });
    refused
}

#[test]
fn a_server_whose_directory_was_removed_takes_nothing_more() {
    let world = world();
    let server = server(&world);
    // The periodic check has just been made, so only the check of each commit is left.
    assert!(start(server.address(), &server.token, "hello").status < 300);
    std::fs::remove_dir_all(world.path().join(".sluice")).unwrap();
    let first = start(server.address(), &server.token, "hello");
    assert!(first.status >= 500, "a start was acknowledged and is lost: {}", first.text);
    let refused = refuses(&world, &server);
    assert!(refused.text.contains("store_unavailable"), "{}", refused.text);
    assert!(!world.path().join(".sluice/sluice.db").exists(), "it is not made anew");
}

#[test]
fn a_server_whose_directory_was_swapped_takes_nothing_until_it_is_put_back() {
    let world = world();
    let server = server(&world);
    let (dir, aside) = (world.path().join(".sluice"), world.path().join("aside"));
    let other = world.path().join("other");
    world.printed(&["run", "hello.lobsterx.yaml", "--mock", "mock.yaml", "--data", "other"]);
    std::fs::rename(&dir, &aside).unwrap();
    std::fs::rename(&other, &dir).unwrap();
    refuses(&world, &server);
    let runs = || world.json(&["runs", "list", "--json", "--data", ".sluice"]);
    assert_eq!(runs()["data"].as_array().unwrap().len(), 1, "the other directory is untouched");
    std::fs::rename(&dir, &other).unwrap();
    std::fs::rename(&aside, &dir).unwrap();
    world.until("it goes on", |_| {
        (start(server.address(), &server.token, "hello").status < 300).then_some(())
    });
    world.until("it is ready", |_| (ready(server.address()).status == 200).then_some(()));
}

#[test]
fn a_server_that_cannot_hold_its_lock_takes_nothing_more() {
    let world = world();
    let server = server(&world);
    // Whatever stands in its place, no lock file can be made in it.
    let nodes = world.path().join(".sluice/nodes");
    std::fs::remove_dir_all(&nodes).unwrap();
    std::fs::write(&nodes, "").unwrap();
    refuses(&world, &server);
}
