//! Several processes on one data directory, and processes that die.

use crate::world::{PATIENCE, World, shown};
use expect_test::expect;
use rustix::process::Signal;
use std::time::Instant;

const DOCUMENT: &str = "
name: slow
steps:
  - {id: first, agent: shell, command: 'echo x >> ../../../count; echo done'}
  - {id: second, command: think, depends_on: [first], outputs: {y: integer}}
outputs: {y: '${y}'}
";
const RUN: [&str; 4] = ["run", "slow.lobsterx.yaml", "--mock", "mock.yaml"];

/// A world whose second step never ends by itself.
fn world() -> World {
    World::new()
        .file("slow.lobsterx.yaml", DOCUMENT)
        .file("mock.yaml", "second: {hang: true}")
        .file("quick.yaml", "second: {outputs: {y: 5}}")
}

#[test]
fn an_interrupt_cancels_and_exits_with_3() {
    let world = world();
    let running = world.start(&RUN);
    let run = world.until_step("second", "running");
    running.signal(Signal::INT);
    let told = running.told();
    assert!(told.contains("\ncancelling; interrupt again to end at once\n"), "{told}");
    assert!(told.contains("\ncancelled  second  interrupted at the terminal\n"), "{told}");
    assert!(told.ends_with("exit 3\n"), "{told}");
    assert_eq!(world.state(&run)["status"], "cancelled");
}

#[test]
fn a_second_interrupt_ends_at_once() {
    let document = "name: stubborn\nsteps:\n  - {id: deaf, agent: shell, \
                    command: 'trap \"\" TERM INT; echo $$ > ../../../pid; while :; do sleep 0.1; done'}\n";
    let world = World::new().file("stubborn.lobsterx.yaml", document);
    let running = world.start(&["run", "stubborn.lobsterx.yaml"]);
    let run = world.until_step("deaf", "running");
    let pid = world.until("the command runs", |world| {
        let text = std::fs::read_to_string(world.path().join("pid")).ok()?;
        text.trim().parse::<i32>().ok()
    });
    running.signal(Signal::INT);
    world.until("it is cancelling", |world| {
        (world.state(&run)["status"] == "cancelling").then_some(())
    });
    running.signal(Signal::INT);
    let output = running.output();
    assert_eq!(output.status.code(), Some(130), "{}", shown(&output));
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    world.until("what it started is gone", |_| rustix::process::test_kill_process(pid).err());
}

#[test]
fn a_process_that_is_told_to_end_leaves_its_run_to_the_next() {
    let world = world();
    let running = world.start(&RUN);
    let run = world.until_step("second", "running");
    running.signal(Signal::TERM);
    let told = running.told();
    let again = "leaving; `sluice resume RUN-1 --mock mock.yaml` continues it\n";
    assert!(told.contains(again) && told.ends_with("exit 143\n"), "{told}");
    assert_eq!(world.output(&["resume", &run, "--mock", "quick.yaml"]).status.code(), Some(0));
}

#[test]
fn another_process_lists_watches_and_cancels() {
    let world = world();
    let running = world.start(&RUN);
    let run = world.until_step("second", "running");
    let list = world.json(&["runs", "list", "--json", "--status", "running"]);
    assert!(list["data"][0]["owner"].as_str().unwrap().starts_with("node_"));
    expect![[r#"
        stderr:
        error[run_owned]: RUN-1 is being worked on by another process
         |
         = help: follow it with `sluice runs watch RUN-1`
        exit 2
    "#]]
    .assert_eq(&world.told(&["resume", &run, "--mock", "mock.yaml"]));
    let watching = world.start(&["runs", "watch", &run]);
    expect![[r#"
        stderr:
        sent to the process that runs it
        stdout:
        RUN-1 is cancelled
        exit 0
    "#]]
    .assert_eq(&world.told(&["runs", "cancel", &run, "--reason", "enough"]));
    expect![[r#"
        stderr:
        RUN-1 started
        completed  first  TIME
        run  cancelling (enough)
        cancelled  second  enough
        stdout:
        cancelled in TIME
        cancelled: enough
        exit 3
    "#]]
    .assert_eq(&running.told());
    expect![[r#"
        stderr:
        completed  first  TIME
        run  cancelling (enough)
        cancelled  second  enough
        stdout:
        cancelled in TIME
        cancelled: enough
        exit 3
    "#]]
    .assert_eq(&watching.told());
}

#[test]
fn another_process_pauses_and_lets_go_on() {
    let document = "name: gated\nsteps:\n  - {id: gate, agent: shell, \
                    command: 'while [ ! -e ../../../go ]; do sleep 0.02; done'}\n  \
                    - {id: after, command: go on, depends_on: [gate]}\n";
    let world =
        World::new().file("slow.lobsterx.yaml", document).file("mock.yaml", "after: {text: ok}");
    let running = world.start(&RUN);
    let run = world.until_step("gate", "running");
    let paused = world.told(&["runs", "pause", &run]);
    expect![[r#"
        stderr:
        sent to the process that runs it
        stdout:
        RUN-1 is paused; `sluice runs unpause RUN-1` resumes it
        exit 0
    "#]]
    .assert_eq(&paused);
    let world = world.file("go", "");
    world.until_step("gate", "completed");
    let state = world.state(&run);
    assert_eq!((&state["status"], &state["pause_reason"]), (&"paused".into(), &"operator".into()));
    assert_eq!(world.output(&["runs", "unpause", &run]).status.code(), Some(0));
    let told = running.told();
    assert!(told.contains("\npaused; `sluice runs unpause RUN-1` resumes it\n"), "{told}");
    assert!(told.ends_with("exit 0\n"), "{told}");
}

#[test]
fn a_paused_run_is_not_resumed() {
    let world = world();
    let running = world.start(&RUN);
    let run = world.until_step("second", "running");
    running.signal(Signal::KILL);
    running.output();
    expect![[r#"
        stdout:
        RUN-1 is paused; `sluice runs unpause RUN-1` resumes it
        exit 0
    "#]]
    .assert_eq(&world.told(&["runs", "pause", &run]));
    expect![[r#"
        stderr:
        error[run_paused]: RUN-1 is paused by an operator
         |
         = help: `sluice runs unpause RUN-1` first
        exit 2
    "#]]
    .assert_eq(&world.told(&["resume", &run, "--mock", "quick.yaml"]));
    expect![[r#"
        stdout:
        RUN-1 is no longer paused; `sluice resume RUN-1` continues it
        exit 0
    "#]]
    .assert_eq(&world.told(&["runs", "unpause", &run]));
    assert_eq!(world.output(&["resume", &run, "--mock", "quick.yaml"]).status.code(), Some(0));
}

#[test]
fn another_process_answers_a_run_at_work() {
    let document = "name: both\nsteps:\n  - {id: sure, approval: required}\n  \
                    - {id: wait, command: wait}\n  - {id: pay, command: pay, depends_on: [sure]}\n";
    let world = World::new()
        .file("both.lobsterx.yaml", document)
        .file("mock.yaml", "wait: {hang: true}\npay: {text: paid}");
    let running = world.start(&["run", "both.lobsterx.yaml", "--mock", "mock.yaml"]);
    let run = world.until_step("sure", "awaiting_approval");
    let question = world.question();
    expect![[r#"
        stderr:
        sent to the process that runs it
        stdout:
        sure is approved
        exit 0
    "#]]
    .assert_eq(&world.told(&["approvals", "approve", &question, "--as", "bob"]));
    world.until_step("pay", "completed");
    assert_eq!(world.output(&["runs", "cancel", &run]).status.code(), Some(0));
    assert_eq!(running.output().status.code(), Some(3));
}

#[test]
fn a_killed_process_leaves_a_run_that_goes_on_elsewhere() {
    let world = world();
    let running = world.start(&RUN);
    let run = world.until_step("second", "running");
    running.signal(Signal::KILL);
    running.output();
    let began = Instant::now();
    expect![[r#"
        stderr:
        RUN-1 continues
        run  running (taken over)
        completed  second  TIME
        stdout:
        completed in TIME
          y: 5
        exit 0
    "#]]
    .assert_eq(&world.told(&["resume", &run, "--mock", "quick.yaml"]));
    assert!(began.elapsed() < PATIENCE);
    let count = std::fs::read_to_string(world.path().join("count")).unwrap();
    assert_eq!(count, "x\n", "what was finished is not done again");
}
