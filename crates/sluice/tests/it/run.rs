//! `sluice run`.

use crate::session::examples;
use crate::world::{World, example, plain, shown};
use expect_test::{Expect, expect};
use serde_json::Value;

const CHAIN: &str = "
name: chain
version: 2
args: {topic: {type: string, required: true}, words: {type: integer, default: 5}}
steps:
  - {id: draft, command: 'Draft ${args.topic} in ${args.words} words', outputs: {text: string}}
  - {id: check, command: 'Check ${text}', depends_on: [draft], outputs: {score: integer}}
outputs: {text: '${text}', score: '${check.score}'}
";
const CHAIN_MOCK: &str = "
draft:
  - {error: busy, error_code: provider_error, input_tokens: 3}
  - {outputs: {text: Lamps are fine.}, input_tokens: 10, output_tokens: 5, cost: 0.002}
check: {outputs: {score: '8'}, cost: 0.001}
";

fn chain() -> World {
    let document = CHAIN
        .replace("outputs: {text: string}}", "outputs: {text: string}, on_failure: retry_once}");
    World::new().file("chain.lobsterx.yaml", &document).file("mock.yaml", CHAIN_MOCK)
}

fn check(world: &World, args: &[&str], expected: &Expect) {
    expected.assert_eq(&world.told(args));
}

const RUN: [&str; 4] = ["run", "chain.lobsterx.yaml", "--mock", "mock.yaml"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    RUN.iter().copied().chain(more.iter().copied()).collect()
}

#[test]
fn every_example_runs_to_its_end() {
    let world = World::new();
    for name in examples() {
        let args: &[&str] = match name.as_str() {
            "examples/vendor-review.lobsterx.yaml" => &["--arg", "vendor=Northwind"],
            "examples/credit-check.lobsterx.yaml" => &["--arg", "customer=Fabrikam"],
            _ => &[],
        };
        let args = [args, &["--yes", "--json"]].concat();
        let output = example(&world, &name, &args);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", shown(&output));
        let line = String::from_utf8(output.stdout).unwrap();
        let run: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(run["status"], "completed", "{name}");
        assert_eq!(line.lines().count(), 1, "{name}");
    }
}

#[test]
fn a_run_is_told_line_by_line_and_its_outputs_at_the_end() {
    check(
        &chain(),
        &with(&["--arg", "topic=lamps"]),
        &expect![[r#"
        stderr:
        RUN-1 started
        retrying  draft  attempt 1 failed: busy; again after TIME
        completed  draft  TIME, 2 attempts, 15 tokens, $0.002
        completed  check  TIME, $0.001
        stdout:
        completed in TIME, 18 tokens, $0.003
          text: Lamps are fine.
          score: 8
        exit 0
    "#]],
    );
}

#[test]
fn json_is_the_projection_in_one_line() {
    let world = chain();
    let run = world.json(&with(&["--arg", "topic=lamps", "--json"]));
    let keys: Vec<&String> = run.as_object().unwrap().keys().collect();
    assert_eq!(keys[..5], ["run_id", "workflow", "version", "status", "pause_reason"]);
    assert_eq!(run["outputs"], serde_json::json!({"text": "Lamps are fine.", "score": 8}));
    assert_eq!(run["cost"], serde_json::json!(0.003));
    assert_eq!(run["node_results"][0]["attempts"], 2);
    assert_eq!(run, world.state(run["run_id"].as_str().unwrap()));
}

#[test]
fn events_are_envelopes_in_order_and_the_projection_comes_last() {
    let world = chain();
    let lines = world.printed(&with(&["--arg", "topic=lamps", "--events", "--json"]));
    let mut lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let projection = lines.pop().unwrap();
    assert_eq!(projection["status"], "completed");
    for (number, event) in (1..).zip(&lines) {
        assert_eq!((&event["eventId"], &event["sequence"]), (&number.into(), &number.into()));
        assert_eq!(event["runId"], projection["run_id"]);
    }
    let kinds: Vec<&str> = lines.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("run.started", "run.completed"));

    let watched =
        world.output(&["runs", "watch", projection["run_id"].as_str().unwrap(), "--events"]);
    let watched = String::from_utf8(watched.stdout).unwrap();
    let watched: Vec<Value> =
        watched.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(watched, lines, "a later watch prints the same");
}

#[test]
fn a_failure_exits_with_1_and_says_where_to_look() {
    let world =
        chain().file("mock.yaml", "draft: {error: \"no\\u001b[31m such key\", error_code: auth}");
    check(
        &world,
        &with(&["--arg", "topic=lamps"]),
        &expect![[r#"
        stderr:
        RUN-1 started
        retrying  draft  attempt 1 failed: no␛[31m such key; again after TIME
        failed  draft  auth: no␛[31m such key
        failed  check  upstream_failure: Blocked by upstream failure
        look: sluice runs show RUN-1
        retry: sluice runs retry RUN-1 --mock mock.yaml
        stdout:
        failed in TIME
        auth: `draft` failed: no␛[31m such key
        exit 1
    "#]],
    );
    let output = world.output(&with(&["--arg", "topic=lamps", "--json"]));
    assert_eq!(output.status.code(), Some(1));
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&run["status"], &run["error_code"]), (&"failed".into(), &"auth".into()));
    assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b));
}

#[test]
fn a_run_that_takes_too_long_exits_with_5() {
    let world = World::new()
        .file("slow.lobsterx.yaml", "name: slow\ntimeout: 1s\nsteps: [{id: wait, command: wait}]\n")
        .file("mock.yaml", "wait: {hang: true}");
    check(
        &world,
        &["run", "slow.lobsterx.yaml", "--mock", "mock.yaml"],
        &expect![[r#"
        stderr:
        RUN-1 started
        cancelled  wait  the run took longer than 1s
        stdout:
        timed out in TIME
        timeout: the run took longer than 1s
        exit 5
    "#]],
    );
}

#[test]
fn wrong_arguments_are_all_told() {
    let world = chain();
    let args =
        with(&["--arg", "words=many", "--arg", "topik=lamps", "--args-json", "{\"words\": 3}"]);
    check(
        &world,
        &args,
        &expect![[r#"
        stderr:
        error[invalid_args]: the arguments do not fit
         |
         = note: topic is required
         = note: words is a string, not an integer
         = note: topik is not an argument of this workflow; did you mean `topic`?
         = help: give each with `--arg NAME=VALUE`; the document lists its arguments
        exit 2
    "#]],
    );
    check(
        &world,
        &["runs", "list"],
        &expect![[r#"
        stderr:
        no runs
        exit 0
    "#]],
    );
}

#[test]
fn arguments_come_as_json_too_and_single_ones_win() {
    let world = chain();
    let args =
        with(&["--args-json", r#"{"topic": "lamps", "words": 3}"#, "--arg", "words=4", "--json"]);
    let run = world.json(&args);
    assert_eq!(run["node_results"][0]["prompt"], "Draft lamps in 4 words");
    for bad in [["--args-json", "[1]"], ["--args-json", "{"], ["--arg", "words"], ["--arg", "=1"]] {
        assert_eq!(world.output(&with(&bad)).status.code(), Some(2), "{bad:?}");
    }
}

#[test]
fn an_invalid_document_is_drawn_as_validate_does() {
    let world = World::new().file("bad.lobsterx.yaml", "name: bad\nsteps: [{id: a}]\n");
    check(
        &world,
        &["run", "bad.lobsterx.yaml"],
        &expect![[r#"
        stderr:
        error[missing_command]: step `a` has no command
         --> bad.lobsterx.yaml:2:14
          |
        2 | steps: [{id: a}]
          |  ^ steps[0]
          |
          = help: add `command`, or `approval`, `workflow_ref` or `library_step`
        exit 2
    "#]],
    );
    check(
        &world,
        &["run", "bad.lobsterx.yaml", "--json"],
        &expect![[r#"
        stdout:
        {"file":"bad.lobsterx.yaml","ok":false,"errors":[{"code":"missing_command","message":"step `a` has no command","path":"steps[0]","line":2,"column":14,"hint":"add `command`, or `approval`, `workflow_ref` or `library_step`"}],"warnings":[]}
        exit 2
    "#]],
    );
    check(
        &world,
        &["run", "absent.lobsterx.yaml"],
        &expect![[r#"
        stderr:
        error[document_unreadable]: cannot read `absent.lobsterx.yaml`
         |
         = note: caused by: No such file or directory (os error 2)
         = help: check the path
        exit 2
    "#]],
    );
    assert!(!world.path().join(".sluice").exists());
}

#[test]
fn a_mock_script_with_a_mistake_is_drawn() {
    let world = chain().file("mock.yaml", "draft: {txt: hello}\n");
    check(
        &world,
        &with(&["--arg", "topic=lamps"]),
        &expect![[r#"
        stderr:
        error[unknown_field]: unknown field `txt`
         --> mock.yaml:1:9
          |
        1 | draft: {txt: hello}
          |  ^^^ draft.txt
          |
          = help: did you mean `text`?
        exit 2
    "#]],
    );
}

#[test]
fn a_step_without_an_agent_is_refused_before_anything_starts() {
    let world = chain();
    check(
        &world,
        &["run", "chain.lobsterx.yaml", "--arg", "topic=lamps"],
        &expect![[r#"
        stderr:
        error[unknown_agent]: step `draft` names no agent; name one in the document, set a default with `--agent NAME`, or use scripted answers with `--mock FILE`
         |
         = help: `sluice run --help` shows `--agent`, `--bind` and `--mock`
        exit 2
    "#]],
    );
    let args = ["run", "chain.lobsterx.yaml", "--arg", "topic=lamps", "--agent", "gpt"];
    check(
        &world,
        &args,
        &expect![[r#"
            stderr:
            error[unknown_agent]: step `draft` names the agent `gpt`, which is not configured; configured: http, shell
             |
             = help: `sluice run --help` shows `--agent`, `--bind` and `--mock`
            exit 2
        "#]],
    );
    check(
        &world,
        &with(&["--arg", "topic=lamps", "--bind", "clerk=mock"]),
        &expect![[r#"
        stderr:
        error[unknown_role]: the document declares no role `clerk`
         |
         = help: leave this `--bind` out
        exit 2
    "#]],
    );
    check(
        &world,
        &["runs", "list"],
        &expect![[r#"
        stderr:
        no runs
        exit 0
    "#]],
    );
}

#[test]
fn the_same_key_is_the_same_run() {
    let world = chain();
    let args = with(&["--arg", "topic=lamps", "--idempotency-key", "auto", "--json"]);
    let first = world.json(&args);
    assert_eq!(world.json(&args), first);
    let key = with(&["--arg", "topic=lamps", "--idempotency-key", "monday"]);
    assert_ne!(world.printed(&key), "");
    check(
        &world,
        &with(&["--arg", "topic=desks", "--idempotency-key", "monday"]),
        &expect![[r#"
        stderr:
        error[idempotency_conflict]: the idempotency key belongs to RUN-1, which differs in the argument `topic`
         |
         = help: use another key, or send the same again; a key is in use for a day
        exit 2
    "#]],
    );
    assert_eq!(world.json(&["runs", "list", "--json"])["data"].as_array().unwrap().len(), 2);
}

#[test]
fn a_shell_step_works_in_a_directory_of_its_run() {
    let world = World::new()
        .file(
            "shell.lobsterx.yaml",
            "name: shell\nsteps:\n  - {id: make, agent: shell, command: 'pwd > here; echo made'}\n  \
             - {id: ask, agent: shell, command: 'exit 3', depends_on: [make]}\n\
             outputs: {made: '${$make.stdout}', asked: '${$ask.stdout}'}\n",
        )
        .file("mock.yaml", "ask: {text: from the script}");
    let run = world.json(&["run", "shell.lobsterx.yaml", "--mock", "mock.yaml", "--json"]);
    assert_eq!(run["outputs"], serde_json::json!({"made": "made\n", "asked": "from the script"}));
    let place = world.path().join(".sluice/workspaces").join(run["run_id"].as_str().unwrap());
    let here = std::fs::read_to_string(place.join("here")).unwrap();
    assert_eq!(here.trim_end(), place.canonicalize().unwrap().to_str().unwrap());
    assert_eq!(
        world.output(&["run", "shell.lobsterx.yaml"]).status.code(),
        Some(1),
        "exit 3 fails"
    );
}

#[test]
fn a_sub_workflow_is_found_beside_its_parent() {
    let parent = "name: parent\nsteps:\n  - {id: below, workflow_ref: child, args: {n: 3}}\n\
                  outputs: {got: '${below.outputs.twice}'}\n";
    let child = "name: child\nversion: 4\nargs: {n: integer}\nsteps:\n  \
                 - {id: double, command: 'double ${args.n}', outputs: {twice: integer}}\n";
    let world = World::new()
        .file("parent.lobsterx.yaml", parent)
        .file(
            "old.lobsterx.yaml",
            &child.replace("version: 4", "version: 3").replace("twice", "thrice"),
        )
        .file("new.lobsterx.yaml", child)
        .file("mock.yaml", "double: {outputs: {twice: 6, thrice: 9}}");
    let args = ["run", "parent.lobsterx.yaml", "--mock", "mock.yaml"];
    check(
        &world,
        &args,
        &expect![[r#"
        stderr:
        RUN-1 started
        completed  below  TIME
        stdout:
        completed in TIME
          got: 6
        exit 0
    "#]],
    );
    let child = &world.json(&["runs", "list", "--json", "--workflow", "child"])["data"][0];
    let parent_run = &world.json(&["runs", "list", "--json", "--workflow", "parent"])["data"][0];
    assert_eq!((&child["version"], &child["parent_run_id"]), (&4.into(), &parent_run["run_id"]));

    let world = world.file("parent.lobsterx.yaml", &parent.replace("child,", "child@3,"));
    assert_eq!(world.output(&args).status.code(), Some(0), "an older version has other outputs");
    let world = world.file("parent.lobsterx.yaml", &parent.replace("child,", "chilt,"));
    check(
        &world,
        &args,
        &expect![[r#"
        stderr:
        error[unknown_workflow]: the registry has no workflow `chilt`
         --> parent.lobsterx.yaml:3:31
          |
        3 |  - {id: below, workflow_ref: chilt, args: {n: 3}}
          |  ^^^^^ steps[0].workflow_ref
          |
          = help: did you mean `child`?
        exit 2
    "#]],
    );
    let world = world
        .file("parent.lobsterx.yaml", parent)
        .file("new.lobsterx.yaml", "name: child\nversion: 4\nsteps: [{id: a}]\n");
    check(
        &world,
        &args,
        &expect![[r#"
        stderr:
        error[missing_command]: step `a` has no command
         --> new.lobsterx.yaml:3:14
          |
        3 | steps: [{id: a}]
          |  ^ steps[0]
          |
          = help: add `command`, or `approval`, `workflow_ref` or `library_step`
        exit 2
    "#]],
    );
    assert_eq!(world.json(&["runs", "list", "--json"])["data"].as_array().unwrap().len(), 4);
}

#[test]
fn a_reader_that_goes_away_does_not_stop_the_run() {
    let world = chain();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = world.command(&with(&["--arg", "topic=lamps", "--events"]));
    let output = command.stdout(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", plain(&shown(&output)));
}

#[test]
fn a_data_directory_that_cannot_be_used_is_told() {
    let world = chain().file("file", "").file("notes.txt", "");
    std::fs::create_dir(world.path().join("broken")).unwrap();
    std::fs::write(world.path().join("broken/sluice.db"), "this is no database, but long enough")
        .unwrap();
    let run =
        |data: &str| plain(&shown(&world.output(&with(&["--arg", "topic=x", "--data", data]))));
    expect![[r#"
        stderr:
        error[data_unusable]: file cannot be used as a directory for the store: File exists (os error 17)
         |
         = help: name another directory with `--data DIR`, or correct its permissions
        exit 2
    "#]].assert_eq(&run("file"));
    expect![[r#"
        stderr:
        error[data_unusable]: broken/sluice.db is damaged or not a database of Sluice
         |
         = help: put a backup in its place, or use another directory with `--data DIR`
        exit 2
    "#]]
    .assert_eq(&run("broken"));
    check(
        &world,
        &["runs", "list"],
        &expect![[r#"
        stderr:
        error[data_unusable]: there are no runs in `.sluice`
         |
         = help: name the directory with `--data DIR` or SLUICE_DATA; `sluice run` creates one
        exit 2
    "#]],
    );
}

#[test]
fn a_lens_document_runs_another_one_and_asks_people() {
    let world = World::new();
    let output = example(&world, "examples/lens-people.lens.yaml", &["--yes", "--json"]);
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(run["outputs"]["grade"], "B", "{run}");
    let node = |id: &str| {
        let nodes = run["node_results"].as_array().unwrap();
        nodes.iter().find(|node| node["node_id"] == id).unwrap().clone()
    };
    assert_eq!(node("check_credit")["inputs"]["amount_usd"], 18400);
    assert_eq!(node("check_credit")["outputs"]["limit_usd"], 25000);
    assert_eq!(node("prepayment")["status"], "skipped");
    let prompt = node("answer")["prompt"].as_str().unwrap().to_owned();
    assert!(prompt.contains("\nWe confirm your order.\nRemark of the desk: \n"), "{prompt}");
    assert_eq!(run["outputs"]["approved_by"], node("answer")["outputs"]["by"]);
}

#[test]
fn the_caller_names_the_model_and_how_deep_runs_may_start_runs() {
    let world = World::new()
        .file("a.lens.yaml", "name: a\nlenses: {l: {versions: {1: {template: go}}}}\nnodes: [{id: x, lens_id: l}, {id: y, config: {workflow_ref: b}}]\n")
        .file("b.lobsterx.yaml", "name: b\nsteps: [{id: s, command: go}]\n")
        .file("mock.yaml", "'*': {text: ok}");
    let run = ["run", "a.lens.yaml", "--mock", "mock.yaml", "--json"];
    let more = |more: &[&str]| {
        let output = world.output(&[&run[..], more].concat());
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let fine = more(&["--model", "vendor/small", "--max-depth", "1"]);
    assert_eq!(fine["status"], "completed", "{fine}");
    assert_eq!(fine["node_results"][0]["provider_route"]["model"], "vendor/small");
    let deep = more(&["--max-depth", "0"]);
    assert_eq!(deep["error_code"], "recursion_too_deep", "{deep}");
    let world = world.file("sluice.toml", "[limits]\nrecursion_depth = 0\n");
    let output =
        world.output(&[&run[..], &["--config", "sluice.toml", "--max-depth", "4"]].concat());
    let set: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(set["error_code"], "recursion_too_deep", "{set}");
}
