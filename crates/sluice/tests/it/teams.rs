//! Teams, instructions and memory at the command line.

use crate::server::Server;
use crate::session::root;
use crate::world::{World, shown};
use expect_test::{Expect, expect};
use serde_json::Value;

const UNASSIGNED: &str = "
name: trace
team:
  members:
    - {id: iris, agent: mock, tool_profile: {allow_tools: [read_logs]}}
    - {id: mia, agent: mock, is_active: false, tool_profile: {allow_tools: [read_traces]}}
steps:
  - {id: follow, command: go, tools: [read_traces]}
  - {id: then, command: go, depends_on: [follow]}
";

fn path(name: &str) -> String {
    root().join("examples/prompts").join(name).to_str().unwrap().to_owned()
}

fn newsletter(world: &World, more: &[&str]) -> (Option<i32>, Value) {
    let (document, mock) = (path("newsletter.lobsterx.yaml"), path("mock.yaml"));
    let args = [&["run", &document, "--mock", &mock, "--json"], more].concat();
    let output = world.output(&args);
    let run =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", shown(&output)));
    (output.status.code(), run)
}

fn layers(run: &Value) -> Vec<(u64, String, String)> {
    let layers = run["node_results"][0]["prompt_layers"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let one = |layer: &Value| {
        (layer["layer"].as_u64().unwrap(), text(&layer["source"]), text(&layer["text"]))
    };
    layers.iter().map(one).collect()
}

#[test]
fn the_example_shows_every_layer_and_remembers_what_was_written() {
    let world = World::new();
    world.printed(&["apply", "-f", &path("setup.yaml")]);
    let (code, run) = newsletter(&world, &[]);
    assert_eq!((code, &run["status"]), (Some(0), &Value::from("completed")));
    let node = &run["node_results"][0];
    assert_eq!((&node["agent"], &node["member"]), (&"scribe".into(), &"wanda".into()));
    assert_eq!(node["prompt"], "Write one paragraph on lamps.");
    let sources: Vec<(u64, String)> =
        layers(&run).into_iter().map(|(number, source, _)| (number, source)).collect();
    let expected = [
        (1, "engine"),
        (2, "no-customers"),
        (3, "brand"),
        (4, "member wanda"),
        (5, "agent scribe"),
        (5, "member wanda"),
        (6, "command"),
        (7, "write"),
        (8, "ada"),
        (9, "voice"),
    ];
    assert_eq!(sources, expected.map(|(number, source)| (number, source.to_owned())));
    let said = "Lamps last longer than you think.";
    let memory = |run: &Value| layers(run).pop().unwrap().2;
    assert!(!memory(&run).contains(said));
    let (_, second) = newsletter(&world, &[]);
    assert!(memory(&second).contains(said), "{}", memory(&second));
    for run in [&run, &second] {
        let id = run["run_id"].as_str().unwrap();
        world.printed(&["runs", "erase", id, "--reason", "asked to"]);
    }
    let (_, third) = newsletter(&world, &[]);
    assert!(!memory(&third).contains(said), "{}", memory(&third));
    assert!(memory(&third).contains("We say lamp"));
}

#[test]
fn a_caller_that_contradicts_the_owner_is_refused_by_name() {
    let world = World::new();
    world.printed(&["apply", "-f", &path("setup.yaml")]);
    let (code, run) = newsletter(&world, &["--arg", "language=de"]);
    assert_eq!(code, Some(1));
    let node = &run["node_results"][0];
    assert_eq!(node["error_code"], "layer_contradiction");
    let message = node["error_message"].as_str().unwrap();
    assert!(message.contains("layer 8 (caller: ada)"), "{message}");
    assert!(message.contains("layer 3 (owner: brand)"), "{message}");
    assert_eq!(node["dispatches"], 0);
}

#[test]
fn a_step_that_no_member_fits_waits_for_an_assignment() {
    let world =
        World::new().file("t.lobsterx.yaml", UNASSIGNED).file("m.yaml", "'*': {text: done}");
    let output = world.output(&["run", "t.lobsterx.yaml", "--mock", "m.yaml", "--json"]);
    assert_eq!(output.status.code(), Some(4), "{}", shown(&output));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("sluice runs assign run_"), "{told}");
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    let node = &run["node_results"][0];
    assert_eq!(
        (&node["status"], &node["waiting_reason"]),
        (&"blocked".into(), &"human_input".into())
    );
    assert_eq!(run["node_results"][1]["status"], "awaiting_dependency");
    let id = world.newest();
    for (step, whom, code) in [
        ("follow", "irs", "member_unknown"),
        ("then", "iris", "step_not_blocked"),
        ("folow", "iris", "unknown_step"),
    ] {
        let refused = world.told(&["runs", "assign", &id, step, whom]);
        assert!(refused.contains(&format!("error[{code}]")), "{refused}");
    }
    world.printed(&["runs", "assign", &id, "follow", "mia"]);
    let output = world.output(&["resume", &id, "--mock", "m.yaml", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(run["node_results"][0]["member"], "mia");
    let exported = world.printed(&["runs", "export", &id, "--json"]);
    assert!(exported.contains("\"assignedMember\":\"mia\""));
}

#[test]
fn a_member_that_may_not_use_a_tool_cannot_be_assigned_around_it() {
    let world =
        World::new().file("t.lobsterx.yaml", UNASSIGNED).file("m.yaml", "'*': {text: done}");
    world.output(&["run", "t.lobsterx.yaml", "--mock", "m.yaml"]);
    let id = world.newest();
    world.printed(&["runs", "assign", &id, "follow", "iris"]);
    let output = world.output(&["resume", &id, "--mock", "m.yaml", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    let node = &run["node_results"][0];
    assert_eq!(
        (&node["error_code"], &node["dispatches"]),
        (&"layer_contradiction".into(), &0.into())
    );
    let exported = world.printed(&["runs", "export", &id, "--json"]);
    assert!(exported.contains("contract.violated"), "{exported}");
}

#[test]
fn rows_of_prompts_are_listed_and_checked() {
    let world = World::new();
    world.printed(&["apply", "-f", &path("setup.yaml")]);
    for (noun, named) in
        [("notes", "house_style"), ("memories", "voice"), ("instructions", "brand")]
    {
        let listed = world.printed(&[noun, "list"]);
        assert!(listed.contains(named), "{listed}");
        world.printed(&[noun, "show", named, "--json"]);
    }
    let refused = world.told(&["notes", "remove", "house_style"]);
    assert!(refused.contains("exit 2"), "a profile names it: {refused}");
    let refused = world.told(&["memories", "set", "voice", "last_outputs.count=99"]);
    assert!(refused.contains("exit 2"), "{refused}");
}

const DESK: &str = "
teams:
  desk:
    members: [{id: iris, agent: mock, role: writer, lane: 1}, {id: ivan, agent: mock, is_active: false}]
    failure_policy: {mode: halt}
workflows: [note.lobsterx.yaml]
";
const NOTE: &str = "
name: note
team: desk
steps: [{id: write, command: Write a note.}]
";

fn desk() -> World {
    let world = World::new()
        .file("setup.yaml", DESK)
        .file("note.lobsterx.yaml", NOTE)
        .file("m.yaml", "'*': {text: done}");
    world.printed(&["apply", "-f", "setup.yaml"]);
    world
}

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(world: &World, args: &[&str], expected: Expect) {
    expected.assert_eq(&world.told(args));
}

#[test]
fn teams_are_listed_shown_set_and_removed() {
    let world = desk();
    check(
        &world,
        &["teams", "list"],
        expect![[r#"
        stdout:
        NAME  MEMBERS  FAILURE  QUEUE
        desk  iris, ivan  mode=halt
        exit 0
    "#]],
    );
    check(
        &world,
        &["teams", "show", "desk"],
        expect![[r#"
            stdout:
            team desk
              members  {id=iris, agent=mock, role=writer, lane=1}, {id=ivan, agent=mock, is_active=false}
              failure_policy  mode=halt
            exit 0
        "#]],
    );
    check(
        &world,
        &["teams", "show", "desk", "--json"],
        expect![[r#"
        stdout:
        {"kind":"team","id":"desk","members":[{"id":"iris","agent":"mock","role":"writer","lane":1},{"id":"ivan","agent":"mock","is_active":false}],"failure_policy":{"mode":"halt"}}
        exit 0
    "#]],
    );
    check(
        &world,
        &["teams", "set", "desk", "failure_policy.mode=isolate"],
        expect![[r#"
        stdout:
        ~ team desk: failure_policy.mode halt -> isolate
        exit 0
    "#]],
    );
    check(
        &world,
        &["teams", "set", "night", "members=[{id: ada}]"],
        expect![[r#"
        stdout:
        + team night
        exit 0
    "#]],
    );
    check(
        &world,
        &["teams", "remove", "night"],
        expect![[r#"
        stdout:
        - team night
        exit 0
    "#]],
    );
    check(
        &world,
        &["teams", "remove", "nigth"],
        expect![[r#"
        stderr:
        error[row_unknown]: there is no team `nigth`
         |
         = help: `sluice teams list` lists them
        exit 2
    "#]],
    );
}

#[test]
fn what_makes_no_team_is_refused() {
    let world = desk();
    check(
        &world,
        &["teams", "set", "night", "queue_policy.order=lane"],
        expect![[r#"
        stderr:
        error[missing_field]: `night` is not a valid team
         |
         = note: `members` is missing
         = help: add the field that the message names
        exit 2
    "#]],
    );
    let twice = ["teams", "set", "night", "members=[{id: a}, {id: a, lanes: 2}]"];
    check(
        &world,
        &twice,
        expect![[r#"
        stderr:
        error[duplicate_name]: `night` is not a valid team
         |
         = note: members[1]: the member `a` is declared twice
         = note: members[1].lanes: unknown field `lanes` (did you mean `lane`?)
         = help: remove or rename one of the two
        exit 2
    "#]],
    );
    check(
        &world,
        &["teams", "set", "bad name", "members=[]"],
        expect![[r#"
        stderr:
        error[bad_name]: `bad name` is not a valid team
         |
         = note: `bad name` is not an id (write `bad_name`)
         = help: rename it, and every reference to it
        exit 2
    "#]],
    );
}

#[test]
fn a_team_that_a_registered_workflow_names_stays() {
    let world = desk();
    check(
        &world,
        &["teams", "remove", "desk"],
        expect![[r#"
        stderr:
        error[row_in_use]: other rows still refer to what would be removed
         |
         = note: workflow `note@1`, team: there is no team `desk`
         = help: change those rows first, or in the same file
        exit 2
    "#]],
    );
    std::fs::write(world.path().join("setup.yaml"), "prices: {}\n").unwrap();
    check(
        &world,
        &["apply", "-f", "setup.yaml", "--prune"],
        expect![[r#"
        stderr:
        error[row_in_use]: other rows still refer to what would be removed
         |
         = note: workflow `note@1`, team: there is no team `desk`
         = help: change those rows first, or in the same file
        exit 2
    "#]],
    );
    world.printed(&["workflows", "remove", "note@1"]);
    check(
        &world,
        &["teams", "remove", "desk"],
        expect![[r#"
        stdout:
        - team desk
        exit 0
    "#]],
    );
    check(
        &world,
        &["workflows", "put", "note.lobsterx.yaml"],
        expect![[r#"
            stderr:
            error[unknown_row]: there is no team `desk`: no teams are loaded
             --> note.lobsterx.yaml:3:7
              |
            3 | team: desk
              |  ^^^^ team
              |
              = help: create it with `sluice teams set`, or pass it with `--registry FILE`
            exit 2
        "#]],
    );
    check(
        &world,
        &["run", "note.lobsterx.yaml", "--mock", "m.yaml"],
        expect![[r#"
            stderr:
            error[unknown_row]: there is no team `desk`: no teams are loaded
             --> note.lobsterx.yaml:3:7
              |
            3 | team: desk
              |  ^^^^ team
              |
              = help: create it with `sluice teams set`, or pass it with `--registry FILE`
            exit 2
        "#]],
    );
}

#[test]
fn a_run_keeps_the_team_it_started_with() {
    let world = desk();
    std::fs::write(world.path().join("m.yaml"), "write: {error: broken}").unwrap();
    let failed = world.output(&["run", "note.lobsterx.yaml", "--mock", "m.yaml", "--json"]);
    assert_eq!(failed.status.code(), Some(1), "{}", shown(&failed));
    let first = world.newest();
    let member = |run: &Value| run["node_results"][0]["member"].clone();
    assert_eq!(member(&world.state(&first)), "iris");
    world.printed(&["teams", "set", "desk", "members=[{id: olga, agent: mock}]"]);
    std::fs::write(world.path().join("m.yaml"), "write: {text: done}").unwrap();
    let again = world.output(&["runs", "retry", &first, "--mock", "m.yaml", "--json"]);
    assert_eq!(again.status.code(), Some(0), "{}", shown(&again));
    assert_eq!(member(&world.state(&first)), "iris");
    let second = world.output(&["workflows", "start", "note", "--mock", "m.yaml", "--json"]);
    assert_eq!(second.status.code(), Some(0), "{}", shown(&second));
    assert_eq!(member(&world.state(&world.newest())), "olga");
}

#[test]
fn a_step_is_assigned_to_an_agent_that_was_just_registered() {
    let world = World::new()
        .file("trace.lobsterx.yaml", UNASSIGNED)
        .file("mock.yaml", "\"*\": {text: done}");
    let server = Server::with(&world, &["--listen", "127.0.0.1:0", "--mock", "mock.yaml"]);
    server.printed(&world, &["gateways", "set", "demo", "provider=mock", "default=true"]);
    server.printed(&world, &["workflows", "put", "trace.lobsterx.yaml"]);
    for number in 0..3 {
        server.output(&world, &["workflows", "start", "trace", "--detach"]);
        let run = world.until("the step waits for a member", |world| {
            let runs = server.printed(world, &["runs", "list", "--json", "--limit", "1"]);
            let runs: Value = serde_json::from_str(&runs).unwrap();
            let run = runs["data"][0]["run_id"].as_str()?.to_owned();
            let shown = server.printed(world, &["runs", "show", &run]);
            shown.contains("no_member_fits").then_some(run)
        });
        let agent = format!("fresh-{number}");
        server.printed(&world, &["agents", "set", &agent, "trust_level=5"]);
        let assigned = server.output(&world, &["runs", "assign", &run, "follow", &agent]);
        assert_eq!(assigned.status.code(), Some(0), "{}", shown(&assigned));
    }
}
