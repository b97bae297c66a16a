//! What programs read under `--json`: results on standard output, errors as one line
//! of JSON on standard error.

use crate::server::Server;
use crate::world::{World, shown};
use serde_json::{Value, json};
use std::process::Output;

const DOCUMENT: &str =
    "name: bad\nversion: 1\nsteps: [{id: bad, agent: mock, command: fail, on_failure: halt}]\n";
const MOCK: &str = "bad: {error: no route, error_code: auth}\n";

fn world() -> World {
    World::new().file("bad.lobsterx.yaml", DOCUMENT).file("mock.yaml", MOCK)
}

/// The error of a command: the last line of standard error.
fn error(output: &Output) -> Value {
    assert!(output.stdout.is_empty(), "{}", shown(output));
    let text = std::str::from_utf8(&output.stderr).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap_or_else(|_| panic!("{text}"))
}

/// The one line of JSON on standard output.
fn result(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", shown(output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", shown(output)))
}

#[test]
fn a_refusal_is_an_object_with_code_message_and_hint() {
    let world = world();
    world.output(&["run", "bad.lobsterx.yaml", "--mock", "mock.yaml"]);
    let refused = world.output(&["runs", "show", "run_ffff", "--json"]);
    assert_eq!(refused.status.code(), Some(2));
    let error = error(&refused);
    assert_eq!(error["code"], "run_unknown");
    assert_eq!(error["notes"], json!([]));
    assert!(error["message"].is_string() && error["hint"].is_string(), "{error}");
    let prose = world.output(&["runs", "show", "run_ffff"]);
    assert!(shown(&prose).contains("error[run_unknown]"), "{}", shown(&prose));
}

#[test]
fn settings_and_files_that_are_refused_are_objects_too() {
    let world = world().file("sluice.toml", "agnet = \"x\"\n");
    let refused = world.output(&["runs", "list", "--json"]);
    let error = error(&refused);
    assert_eq!((&error["code"], refused.status.code()), (&json!("config_invalid"), Some(2)));
    assert!(error["notes"][0].as_str().unwrap().contains("did you mean `agent`?"), "{error}");
}

#[test]
fn wrong_usage_is_an_object_where_json_is_asked_for() {
    let world = world();
    for (args, message, hint) in [
        (
            vec!["runs", "list", "--json", "--limt", "5"],
            "unexpected argument '--limt'",
            "'--limit'",
        ),
        (vec!["runs", "show", "--json"], "required arguments were not provided", "usage: sluice"),
        (vec!["plan", "a.yaml", "--format", "dot", "--json"], "cannot be used with", "usage: "),
        (vec!["validate", "-", "-", "--json"], "`-` is named twice", "usage: "),
    ] {
        let refused = world.output(&args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        let error = error(&refused);
        assert_eq!(error["code"], "usage_invalid", "{error}");
        assert!(error["message"].as_str().unwrap().contains(message), "{args:?}: {error}");
        assert!(error["hint"].as_str().unwrap().contains(hint), "{args:?}: {error}");
    }
    let help = world.output(&["runs", "list", "--json", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(help.stdout.starts_with(b"List"), "help stays help: {}", shown(&help));
}

#[cfg(target_os = "linux")]
#[test]
fn an_error_without_a_code_of_its_own_has_its_causes() {
    let world = world();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = world.command(&["schema", "lens", "--json"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = error(&output);
    assert_eq!(error["code"], "command_failed");
    assert_eq!(error["notes"], json!(["No space left on device (os error 28)"]));
}

#[test]
fn a_run_that_is_only_noted_down_is_printed_as_json() {
    let world = world();
    world.output(&["run", "bad.lobsterx.yaml", "--mock", "mock.yaml"]);
    let run = world.newest();
    let here = ["--detach", "--yes", "--json"];
    let from = ["runs", "restart", &run, "--from", "bad"];
    let fresh = result(&world.output(&[&from[..], &here].concat()));
    assert_ne!(fresh["run_id"], json!(run));
    assert_eq!(fresh["node_results"][0]["node_id"], "bad");
    let branch =
        result(&world.output(&[&["runs", "branch", &run, "--at", "0"][..], &here].concat()));
    assert_eq!(branch["workflow"], "bad");
    let again = result(&world.output(&[&["runs", "retry", &run][..], &here].concat()));
    assert_eq!((&again["run_id"], &again["is_running"]), (&json!(run), &json!(true)));
}

#[test]
fn a_run_that_a_server_is_left_to_do_is_printed_as_json() {
    let world = world();
    let server = Server::start(&world, "127.0.0.1:0");
    server.printed(&world, &["workflows", "put", "bad.lobsterx.yaml"]);
    let start = ["workflows", "start", "bad", "--detach", "--json"];
    let started = result(&server.output(&world, &start));
    let run = started["run_id"].as_str().unwrap().to_owned();
    assert_eq!(started["node_results"][0]["node_id"], "bad", "{started}");
    let unknown = server.output(&world, &["workflows", "start", "none", "--detach", "--json"]);
    assert_eq!(error(&unknown)["code"], "row_unknown", "{}", shown(&unknown));
    world.until("it has failed", |_| {
        let state = server.json(&world, &["runs", "show", &run, "--json"]);
        (state["status"] == "failed").then_some(())
    });
    let again = result(&server.output(&world, &["runs", "retry", &run, "--detach", "--json"]));
    assert_eq!(again["run_id"], json!(run));
}
