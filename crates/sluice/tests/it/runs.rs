//! `sluice runs`, with one process.

use crate::world::{World, plain, shown};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

const DOCUMENT: &str = "
name: three
version: 1
args: {word: {type: string, default: go}}
steps:
  - {id: one, command: 'one ${args.word}', outputs: {x: integer}}
  - {id: two, command: 'two ${x}', depends_on: [one], outputs: {y: integer}}
  - {id: three, command: 'three ${y}', depends_on: [two], outputs: {z: string}}
outputs: {x: '${x}', y: '${y}', z: '${z}'}
";
const MOCK: &str = "
one: {outputs: {x: 1}, cost: 0.001}
two: [{outputs: {y: 2}}, {outputs: {y: 22}}]
three: {outputs: {z: end}, input_tokens: 3, output_tokens: 4}
";
const BROKEN: &str = "
one: {outputs: {x: 1}}
two: {error: no route, error_code: auth}
three: {outputs: {z: end}}
";

fn world(mock: &str) -> World {
    World::new()
        .file("three.lobsterx.yaml", DOCUMENT)
        .file("mock.yaml", mock)
        .file("good.yaml", MOCK)
}

fn check(world: &World, args: &[&str], expected: &Expect) {
    expected.assert_eq(&world.told(args));
}

/// Runs the document and answers its id.
fn ran(world: &World) -> String {
    world.output(&["run", "three.lobsterx.yaml", "--mock", "mock.yaml"]);
    world.newest()
}

#[test]
fn times_are_local_and_say_so() {
    let world = world(MOCK);
    let run = ran(&world);
    let started = world.state(&run)["started_at"].as_str().unwrap().to_owned();
    assert!(started.ends_with('Z'), "programs read UTC: {started}");
    let seconds = &started[17..19];
    for (zone, ends) in [
        ("UTC", format!(":{seconds}Z")),
        ("Asia/Kolkata", format!(":{seconds}+05:30")),
        ("Nowhere/Here", format!(":{seconds}Z")),
    ] {
        for args in [&["runs", "list"][..], &["runs", "show", &run]] {
            let output = world.command(args).env("TZ", zone).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(text.contains(&ends), "{zone}: {text}");
        }
        let json = world.command(&["runs", "list", "--json"]).env("TZ", zone).output().unwrap();
        assert!(String::from_utf8(json.stdout).unwrap().contains(&started));
    }
}

#[test]
fn runs_are_listed_and_shown() {
    let world = world(MOCK);
    let run = ran(&world);
    check(
        &world,
        &["runs", "list"],
        &expect![[r#"
        stdout:
        RUN  WORKFLOW  STATUS  STARTED  TOOK
        RUN-1  three@1  completed  WHEN  TIME
        exit 0
    "#]],
    );
    check(
        &world,
        &["runs", "list", "--status", "failed"],
        &expect![[r#"
        stderr:
        no runs
        exit 0
    "#]],
    );
    check(
        &world,
        &["runs", "list", "--status", "odd"],
        &expect![[r#"
            stderr:
            error: invalid value 'odd' for '--status <STATUS>': expected one of: queued, running, paused, cancelling, recovered, completed, failed, cancelled, timed_out

            For more information, try '--help'.
            exit 2
        "#]],
    );
    let list = world.json(&["runs", "list", "--json", "--workflow", "three"]);
    let row = &list["data"][0];
    assert_eq!(row["run_id"], run.as_str());
    assert_eq!((&row["status"], &row["version"]), (&"completed".into(), &1.into()));
    assert_eq!((&row["owner"], &row["parent_run_id"]), (&Value::Null, &Value::Null));
    assert_eq!(list["meta"], json!({"next_cursor": null}));
    check(
        &world,
        &["runs", "show", &run],
        &expect![[r#"
        stdout:
        RUN-1  three@1
        completed
          started  WHEN
          ended  WHEN, after TIME
          spent  7 tokens, $0.001

        STEP  STATUS  TIME  ATTEMPTS  TOKENS  COST
        one  completed  TIME  1  $0.001
        two  completed  TIME  1
        three  completed  TIME  1  7

        CHECKPOINT  AT  STEP
        1  WHEN  one  completed
        2  WHEN  two  completed
        3  WHEN  three  completed
        exit 0
    "#]],
    );
    assert_eq!(world.state(&run[..30])["run_id"], run.as_str(), "a beginning is enough");
    assert_eq!(world.state(&run[4..])["run_id"], run.as_str(), "so is the number");
    let second = ran(&world);
    let page = world.json(&["runs", "list", "--json", "--limit", "1"]);
    assert_eq!(page["meta"]["next_cursor"], second.as_str());
    let rest = world.json(&["runs", "list", "--json", "--before", &second]);
    assert_eq!(rest["data"][0]["run_id"], run.as_str());
    check(
        &world,
        &["runs", "show", "run_0"],
        &expect![[r#"
        stderr:
        error[id_ambiguous]: several ids begin with `run_0`
         |
         = note: RUN-1
         = note: RUN-2
         = help: give a longer prefix of the id
        exit 2
    "#]],
    );
    check(
        &world,
        &["runs", "show", "run_ffff"],
        &expect![[r#"
        stderr:
        error[run_unknown]: there is no run `run_ffff`
         |
         = help: `sluice runs list` lists the runs
        exit 2
    "#]],
    );
}

#[test]
fn an_export_holds_everything() {
    let world = world(MOCK);
    let run = ran(&world);
    let all = world.json(&["runs", "export", &run, "--json"]);
    let keys: Vec<&String> = all.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["definition", "events", "decisions", "projection"]);
    assert_eq!(all["definition"]["document"], DOCUMENT);
    assert_eq!(all["definition"]["plan"]["name"], "three");
    assert_eq!(all["projection"], world.state(&run));
    let events = all["events"].as_array().unwrap();
    let decided = |event: &&Value| event["type"] == "governance.decided";
    let decisions: Vec<&Value> = events.iter().filter(decided).collect();
    assert_eq!(decisions.len(), 3);
    assert_eq!(all["decisions"], json!(decisions));
    for (number, event) in (1..).zip(events) {
        assert_eq!(event["eventId"], number);
    }
    assert_eq!(events.last().unwrap()["type"], "run.completed");
}

#[test]
fn a_restart_carries_over_and_says_what_it_repeats() {
    let world = world(MOCK);
    let run = ran(&world);
    let restart = ["runs", "restart", &run, "--mock", "mock.yaml"];
    check(
        &world,
        &restart,
        &expect![[r#"
            stderr:
            error[nothing_failed]: nothing in RUN-1 failed, so no step would be repeated
             |
             = help: name the first step to repeat with `--from STEP`
            exit 2
        "#]],
    );
    check(
        &world,
        &[&restart[..], &["--from", "to"]].concat(),
        &expect![[r#"
        stderr:
        error[unknown_step]: RUN-1 has no step `to`
         |
         = help: did you mean `two`?
        exit 2
    "#]],
    );
    check(
        &world,
        &[&restart[..], &["--from", "two"]].concat(),
        &expect![[r#"
            stderr:
            steps of RUN-1 that will be repeated:
              two  mock  completed
              three  mock  completed
            error[not_confirmed]: repeating these steps was not confirmed
             |
             = help: confirm with `--yes`
            exit 2
        "#]],
    );
    check(
        &world,
        &[&restart[..], &["--from", "two", "--yes"]].concat(),
        &expect![[r#"
            stderr:
            steps of RUN-1 that will be repeated:
              two  mock  completed
              three  mock  completed
            RUN-2 started, a restart of RUN-1
            completed  one  taken over from RUN-1
            completed  two  TIME
            completed  three  TIME, 7 tokens
            stdout:
            completed in TIME, 7 tokens
              x: 1
              y: 2
              z: end
            exit 0
        "#]],
    );
    let by_run = ["run", "three.lobsterx.yaml", "--from-step", "three", "--of", &run];
    let by_run = [&by_run[..], &["--mock", "mock.yaml", "--yes", "--json"]].concat();
    let again = world.json(&by_run);
    assert_eq!(again["outputs"]["z"], "end");
    assert_eq!(again["node_results"][0]["dispatches"], 0, "it was taken over");
    let world = world.file("three.lobsterx.yaml", &DOCUMENT.replace("three ${y}", "3 ${y}"));
    expect![[r#"
        stderr:
        {"code":"document_changed","message":"RUN-1 is a run of another document, or of an older state of it","notes":[],"hint":"`sluice runs restart RUN-1` uses the document it was started with"}
        exit 2
    "#]]
    .assert_eq(&plain(&shown(&world.output(&by_run))));
}

#[test]
fn a_failed_run_is_retried_in_place() {
    let world = world(BROKEN);
    let run = ran(&world);
    check(
        &world,
        &["runs", "show", &run],
        &expect![[r#"
            stdout:
            RUN-1  three@1
            failed
              started  WHEN
              ended  WHEN, after TIME
              error  auth: `two` failed: no route

            STEP  STATUS  TIME  ATTEMPTS  TOKENS  COST
            one  completed  TIME  1
            two  failed  TIME  1  auth: no route
            three  failed  upstream_failure: Blocked by upstream failure

              stopped at  two
              failed  two, three
              completed  one
              writer order  one

            VARIABLE  VALUE
            x  1

            CHECKPOINT  AT  STEP
            1  WHEN  one  completed
            exit 0
        "#]],
    );
    check(
        &world,
        &["runs", "retry", &run],
        &expect![[r#"
            stderr:
            error[unknown_agent]: step `two` needs the agent `mock`, which is not available
             |
             = help: use a script in its place: `--mock FILE`
            exit 2
        "#]],
    );
    check(
        &world,
        &["runs", "retry", &run, "--mock", "good.yaml"],
        &expect![[r#"
        stderr:
        RUN-1 is open again
        run  running (retry)
        again  two
        again  three
        completed  two  TIME
        completed  three  TIME, 7 tokens
        stdout:
        completed in TIME, 7 tokens
          x: 1
          y: 22
          z: end
        exit 0
    "#]],
    );
    check(
        &world,
        &["runs", "retry", &run, "--mock", "good.yaml"],
        &expect![[r#"
        stderr:
        error[run_not_failed]: only a run that failed can be retried; this one is completed
         |
         = help: `sluice runs restart RUN-1 --from STEP` does steps again in a new run
        exit 2
    "#]],
    );
    assert_eq!(world.state(&run)["status"], "completed");
}

#[test]
fn a_failed_run_is_restarted_where_it_failed() {
    let world = world(BROKEN);
    let run = ran(&world);
    let restart = ["runs", "restart", &run, "--mock", "good.yaml", "--yes", "--json"];
    let again = world.json(&restart);
    assert_eq!(again["status"], "completed");
    let dispatches: Vec<&Value> =
        again["node_results"].as_array().unwrap().iter().map(|node| &node["dispatches"]).collect();
    assert_eq!(dispatches, [0, 1, 1]);
}

#[test]
fn a_rewind_goes_back_and_on() {
    let world = world(MOCK);
    let run = ran(&world);
    check(
        &world,
        &["runs", "rewind", &run, "--to", "9", "--mock", "mock.yaml"],
        &expect![[r#"
        stderr:
        error[checkpoint_unknown]: RUN-1 has no checkpoint 9; the last is 3
         |
         = help: `sluice runs show RUN-1` lists them
        exit 2
    "#]],
    );
    check(
        &world,
        &["runs", "rewind", &run, "--to", "3", "--mock", "mock.yaml"],
        &expect![[r#"
        stderr:
        error[nothing_to_rewind]: nothing happened after this checkpoint
         |
         = help: `sluice runs show RUN-1` lists the checkpoints
        exit 2
    "#]],
    );
    check(
        &world,
        &["runs", "rewind", &run, "--to", "1", "--mock", "mock.yaml"],
        &expect![[r#"
        stderr:
        RUN-1 is back at checkpoint 1
        run  running (rewind)
        again  two
        again  three
        completed  two  TIME
        completed  three  TIME, 7 tokens
        stdout:
        completed in TIME, 14 tokens, $0.001
          x: 1
          y: 22
          z: end
        exit 0
    "#]],
    );
    let detached = world.told(&["runs", "rewind", &run, "--to", "0", "--detach"]);
    expect![[r#"
        stdout:
        RUN-1 is back at checkpoint 0; `sluice resume RUN-1` continues it
        exit 0
    "#]]
    .assert_eq(&detached);
    check(
        &world,
        &["runs", "list"],
        &expect![[r#"
        stdout:
        RUN  WORKFLOW  STATUS  STARTED  TOOK
        RUN-1  three@1  running  WHEN
        exit 0
    "#]],
    );
    assert_eq!(world.output(&["resume", &run, "--mock", "mock.yaml"]).status.code(), Some(0));
    assert_eq!(world.state(&run)["node_results"][0]["dispatches"], 2);
}

#[test]
fn a_branch_has_other_arguments_and_outputs() {
    let world = world(MOCK);
    let run = ran(&world);
    let branch = ["runs", "branch", &run, "--at", "1", "--mock", "mock.yaml", "--json"];
    let other = world.json(&[&branch[..], &["--arg", "word=stop", "--set", "one.x=7"]].concat());
    assert_eq!(other["outputs"], json!({"x": 7, "y": 2, "z": "end"}));
    assert_eq!(other["node_results"][1]["prompt"], "two 7");
    check(
        &world,
        &[&branch[..], &["--set", "two.y=1"]].concat(),
        &expect![[r#"
        stderr:
        {"code":"bad_reference","message":"step `two` was not completed at this checkpoint","notes":[],"hint":"choose a later checkpoint, or leave this `--set` out"}
        exit 2
    "#]],
    );
    check(
        &world,
        &[&branch[..], &["--set", "one=1"]].concat(),
        &expect![[r#"
            stderr:
            {"code":"bad_reference","message":"`one` does not name an output","notes":[],"hint":"write it as STEP.OUTPUT=JSON"}
            exit 2
        "#]],
    );
    let detached = ["runs", "branch", &run, "--at", "2", "--detach"];
    check(
        &world,
        &detached,
        &expect![[r#"
            stdout:
            RUN-1 started, a branch of RUN-2; `sluice resume RUN-1` continues it
            exit 0
        "#]],
    );
    let noted = world.newest();
    assert_eq!(world.output(&["resume", &noted, "--mock", "mock.yaml"]).status.code(), Some(0));
}

#[test]
fn what_has_ended_cannot_be_changed() {
    let world = world(MOCK);
    let run = ran(&world);
    check(
        &world,
        &["runs", "cancel", &run],
        &expect![[r#"
        stderr:
        error[run_ended]: the run is completed already
         |
         = help: `sluice runs show RUN-1` says how it ended; `sluice runs restart RUN-1` makes a new one
        exit 2
    "#]],
    );
    check(
        &world,
        &["runs", "unpause", &run],
        &expect![[r#"
        stderr:
        error[run_not_paused]: the run is not paused by an operator
         |
         = help: `sluice runs show RUN-1` says what it waits for
        exit 2
    "#]],
    );
    check(
        &world,
        &["resume", &run],
        &expect![[r#"
        stderr:
        RUN-1 has ended already
        stdout:
        completed in TIME, 7 tokens, $0.001
          x: 1
          y: 2
          z: end
        exit 0
    "#]],
    );
}

#[test]
fn a_failed_run_shows_where_it_stopped() {
    let world = world(BROKEN);
    let run = ran(&world);
    let told = world.told(&["runs", "show", &run]);
    let snapshot = told.split_once("stopped at").map_or(told.as_str(), |(_, rest)| rest);
    let snapshot = snapshot.split_once("CHECKPOINT").map_or(snapshot, |(before, _)| before);
    expect![[r#"
          two
          failed  two, three
          completed  one
          writer order  one

        VARIABLE  VALUE
        x  1

    "#]]
    .assert_eq(snapshot);
    let state = world.json(&["runs", "show", &run, "--json"]);
    let expected = json!({
        "failed_node_id": "two",
        "failed": ["two", "three"],
        "completed": ["one"],
        "skipped": [],
        "cancelled": [],
        "writer_order": ["one"],
        "variables": {"x": 1},
    });
    assert_eq!(state["failure_snapshot"], expected);
}

#[test]
fn a_run_that_has_ended_is_resumed_with_the_exit_code_it_ended_with() {
    let world = world(BROKEN);
    let run = ran(&world);
    let failed = world.output(&["resume", &run, "--mock", "mock.yaml", "--json"]);
    assert_eq!(failed.status.code(), Some(1), "{}", shown(&failed));
    let shown: Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!((&shown["run_id"], &shown["status"]), (&json!(run), &json!("failed")));
    assert_eq!(world.state(&run)["node_results"], shown["node_results"], "nothing was done again");
}
