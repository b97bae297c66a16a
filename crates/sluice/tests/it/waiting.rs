//! Steps that wait at a gate, told while they do.

use crate::server::Server;
use crate::world::{World, plain, shown};
use expect_test::expect;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Stdio};

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

const PARENT: &str = "name: parent\nversion: 1\nsteps: [{id: kid, workflow_ref: one}]\n";
const WAITS: &str = "waiting    kid  gateway_unreachable: resume gateway house (step `a` of run_";

/// A process that writes everything it prints to a file.
struct Logged {
    child: Child,
    log: PathBuf,
}

impl Logged {
    fn start(world: &World, log: &str, args: &[&str]) -> Logged {
        let log = world.path().join(log);
        let file = File::create(&log).unwrap();
        let mut command = world.command(args);
        let command = command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        Logged { child: command.spawn().unwrap(), log }
    }

    fn printed(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// What it printed until it ended.
    fn finished(mut self) -> String {
        assert!(self.child.wait().unwrap().success(), "{}", self.printed());
        self.printed()
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_wait_inside_a_child_run_is_told_by_the_parent() {
    let world = world().file("parent.lobsterx.yaml", PARENT);
    let args = ["run", "parent.lobsterx.yaml", "--mock", "mock.yaml"];
    let running = Logged::start(&world, "running", &args);
    world.until("the parent says what its child waits for", |_| {
        running.printed().contains(WAITS).then_some(())
    });
    let parent = running.printed().split(' ').next().unwrap().to_owned();
    let watching = Logged::start(&world, "watching", &["runs", "watch", &parent]);
    world.until("a watcher says so too", |_| watching.printed().contains(WAITS).then_some(()));
    let shown = world.told(&["runs", "show", &parent]);
    assert!(shown.contains("gateway_unreachable: resume gateway house (step `a` of"), "{shown}");
    world.printed(&["gateways", "resume", "house"]);
    for printed in [running.finished(), watching.finished()] {
        assert_eq!(printed.matches(WAITS).count(), 1, "{printed}");
        assert!(printed.contains("completed  kid"), "{printed}");
    }
}
