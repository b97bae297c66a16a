//! Steps that wait at a gate, told while they do.

use crate::server::Server;
use crate::world::{World, plain, shown};
use expect_test::expect;

const ONE: &str = "name: one\nversion: 1\nsteps: [{id: a, agent: mock, command: go}]\n";

/// A world whose only gateway is paused.
fn world() -> World {
    let world = World::new().file("one.lobsterx.yaml", ONE).file("mock.yaml", "a: {text: done}");
    world.printed(&["gateways", "set", "house", "provider=mock", "default=true"]);
    world.printed(&["gateways", "pause", "house"]);
    world
}

/// Waits until the step is at its gate, a second time too.
fn at_gate(world: &World) -> String {
    world.until("the step waits at the gate", |world| {
        let run = world.json(&["runs", "list", "--json"])["data"][0]["run_id"].as_str()?.to_owned();
        let all = world.json(&["runs", "export", &run, "--json"]);
        let events = all["events"].as_array()?;
        let waits = events.iter().filter(|event| event["type"] == "node.waiting").count();
        (waits > 1).then_some(run)
    })
}

#[test]
fn a_run_says_what_its_step_waits_for_once_and_goes_on() {
    let world = world();
    let running = world.start(&["run", "one.lobsterx.yaml", "--mock", "mock.yaml"]);
    let run = at_gate(&world);
    let watching = world.start(&["runs", "watch", &run]);
    world.printed(&["gateways", "resume", "house"]);
    expect![[r#"
        stderr:
        RUN-1 started
        waiting  a  gateway_unreachable: resume gateway house
        completed  a  TIME
        stdout:
        completed in TIME
          a: done
        exit 0
    "#]]
    .assert_eq(&running.told());
    expect![[r#"
        stderr:
        waiting  a  gateway_unreachable: resume gateway house
        completed  a  TIME
        stdout:
        completed in TIME
          a: done
        exit 0
    "#]]
    .assert_eq(&watching.told());
}

#[test]
fn a_watch_through_a_server_prints_it_too() {
    let world = world();
    world.printed(&["workflows", "put", "one.lobsterx.yaml"]);
    let server = Server::start(&world, "127.0.0.1:0");
    let detached = ["workflows", "start", "one", "--detach"];
    assert_eq!(server.output(&world, &detached).status.code(), Some(0));
    let run = at_gate(&world);
    server.printed(&world, &["gateways", "resume", "house"]);
    let watched = server.output(&world, &["runs", "watch", &run]);
    expect![[r#"
        stderr:
        waiting  a  gateway_unreachable: resume gateway house
        completed  a  TIME
        stdout:
        completed in TIME
          a: done
        exit 0
    "#]]
    .assert_eq(&plain(&shown(&watched)));
}
