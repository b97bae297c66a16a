//! `sluice runs provenance`, and runs that recover by themselves.

use crate::world::{World, plain};
use expect_test::{Expect, expect};

const PARENT: &str = "
name: parent
steps:
  - {id: fetch, command: get, outputs: {n: integer}}
  - {id: call, workflow_ref: child, args: {n: '${fetch.n}'}, outputs: {total: integer}}
  - {id: tell, command: 'it is ${call.outputs.total}'}
";
const CHILD: &str = "
name: child
args: {n: {type: integer}}
outputs: {total: '${count.sum}'}
steps: [{id: count, command: 'count ${args.n}', outputs: {sum: integer}}]
";

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(world: &World, args: &[&str], expected: Expect) {
    expected.assert_eq(&plain(&world.told(args)));
}

fn world() -> World {
    let world =
        World::new().file("parent.lobsterx.yaml", PARENT).file("child.lobsterx.yaml", CHILD).file(
            "mock.yaml",
            "fetch: {outputs: {n: 3}}\ncount: {outputs: {sum: 6}}\n'*': {text: ok}\n",
        );
    world.printed(&["run", "parent.lobsterx.yaml", "--mock", "mock.yaml"]);
    world
}

/// The run of a workflow.
fn run_of(world: &World, workflow: &str) -> String {
    let listed = world.json(&["runs", "list", "--workflow", workflow, "--json"]);
    listed["data"][0]["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn values_are_shown_with_their_way_from_run_to_run() {
    let world = world();
    let (parent, child) = (run_of(&world, "parent"), run_of(&world, "child"));
    let provenance = ["runs", "provenance", &parent];
    check(
        &world,
        &[&provenance[..], &["--step", "tell", "--direction", "up"]].concat(),
        expect![[r#"
            stdout:
            FROM  OUTPUT  TO  INPUT  HOW
            call  outputs.total  tell  command
            RUN-1/count  sum  call  outputs.total
            call  args.n  RUN-1/count  command
            fetch  n  call  args.n
            exit 0
        "#]],
    );
    check(
        &world,
        &["runs", "provenance", &child, "--direction", "down"],
        expect![[r#"
        stdout:
        FROM  OUTPUT  TO  INPUT  HOW
        count  sum  RUN-1/call  outputs.total
        RUN-1/call  outputs.total  RUN-1/tell  command
        exit 0
    "#]],
    );
    check(
        &world,
        &[&provenance[..], &["--format", "mermaid"]].concat(),
        expect![[r#"
        stdout:
        flowchart LR
          subgraph r0["RUN-1 #40;this run#41;"]
            n0["call"]
            n1["fetch"]
            n2["tell"]
          end
          subgraph r1["RUN-2"]
            n3["count"]
          end
          n1 -->|"n to args.n"| n0
          n3 -->|"sum to outputs.total"| n0
          n0 -->|"outputs.total to command"| n2
          n0 -->|"args.n to command"| n3
        exit 0
    "#]],
    );
    check(
        &world,
        &[&provenance[..], &["--step", "fetsh"]].concat(),
        expect![[r#"
        stderr:
        error[unknown_step]: RUN-1 has no step `fetsh`
         |
         = help: did you mean `fetch`?
        exit 2
    "#]],
    );
    let told =
        world.json(&[&provenance[..], &["--step", "fetch", "--hops", "0", "--json"]].concat());
    assert_eq!(
        (told["cut"].as_bool(), told["rows"].as_array().map(Vec::len)),
        (Some(true), Some(3))
    );
    assert_eq!(told["rows"][0]["source"]["node_id"], "fetch");
    let counts = |run: &str| world.state(run)["provenance"].to_string();
    assert_eq!(counts(&parent), r#"{"upstream":3,"downstream":3}"#);
    assert_eq!(counts(&child), r#"{"upstream":1,"downstream":1}"#);
}

#[test]
fn a_run_that_recovers_by_itself_is_waited_for() {
    let flow = "name: fragile\nrecovery: {max: 1, after: 200ms}\nsteps: [{id: a, command: go}]\n";
    let world = World::new()
        .file("fragile.lobsterx.yaml", flow)
        .file("mock.yaml", "a: [{error: broken}, {text: ok}]\n")
        .file("never.yaml", "a: {error: broken}\n");
    let run = |mock: &str| {
        let args = ["run", "fragile.lobsterx.yaml", "--mock", mock, "--json", "--events"];
        let output = world.output(&args);
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let types = lines.iter().filter_map(|line| line["type"].as_str().map(str::to_owned));
        (output.status.code(), types.collect::<Vec<_>>(), lines.last().unwrap()["status"].clone())
    };
    let (code, types, status) = run("mock.yaml");
    assert_eq!((code, &status), (Some(0), &"completed".into()));
    let run_events: Vec<&str> =
        types.iter().map(String::as_str).filter(|one| one.starts_with("run.")).collect();
    let expected =
        ["run.started", "run.failed", "run.status.changed", "run.recovered", "run.completed"];
    assert_eq!(run_events, expected);
    let (code, types, status) = run("never.yaml");
    assert_eq!((code, &status), (Some(1), &"failed".into()));
    assert_eq!(types.iter().filter(|one| *one == "run.failed").count(), 2);
}
