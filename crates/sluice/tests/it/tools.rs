//! Servers of tools, recordings and replays.

use crate::server::Server;
use crate::world::World;
use serde_json::Value;

const SERVER: &str = r#"
echo "$$" >> starts
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case $line in
    *'"initialize"'*) say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}' ;;
    *'"tools/list"'*) say "$(cat tools.json)" ;;
    *'"tools/call"'*)
      word=${line#*'"word":"'}; word=${word%%'"'*}
      say '{"content":[{"type":"text","text":"'"$word, $KEPT"'"}],"structuredContent":{"said":"'"$word"'"}}' ;;
  esac
done
"#;
const SAY_TOOL: &str =
    r#"{"name":"say","description":"Says a word","inputSchema":{"type":"object"}}"#;
const SETTINGS: &str = r#"
[tool_servers.bird]
command = ["sh", "server.sh"]
env = ["KEPT"]
origin = ["birds"]

[tool_servers.bird.tools."s*"]
labels = ["speaks"]
sends_to = "internal"
arguments = {word = "text"}

[tool_servers.far]
url = "http://127.0.0.1:9/mcp"
key = "env:FAR_KEY"
"#;
const SETUP: &str = "
gateways:
  toolbox: {provider: mcp, tool_servers: [bird], default: true}
agents:
  clerk: {trust_level: 5, gateway: toolbox}
";
const SAY: &str = r#"
name: say
steps:
  - id: hello
    agent: clerk
    tools: [bird.say]
    command: '{"word": "hello"}'
  - id: again
    agent: clerk
    tools: [bird.say]
    depends_on: [hello]
    command: '{"word": "${hello.outputs.said} again"}'
"#;

fn listing(tools: &[&str]) -> String {
    format!(r#"{{"tools":[{}]}}"#, tools.join(","))
}

fn world() -> World {
    let world = World::new()
        .file("server.sh", SERVER)
        .file("tools.json", &listing(&[SAY_TOOL]))
        .file("sluice.toml", SETTINGS)
        .file("setup.yaml", SETUP)
        .file("say.lobsterx.yaml", SAY);
    world.printed(&["apply", "-f", "setup.yaml"]);
    world
}

/// Runs with something that the server is handed by name.
fn run(world: &World, more: &[&str]) -> (Option<i32>, String, Value) {
    let args: Vec<&str> =
        ["run", "say.lobsterx.yaml", "--json"].iter().chain(more).copied().collect();
    let mut command = world.command(&args);
    command.env("KEPT", "a-kept-secret");
    let output = crate::world::Running::spawn(command).output();
    let told = String::from_utf8(output.stderr).unwrap();
    let state = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), told, state)
}

fn step<'a>(state: &'a Value, id: &str) -> &'a Value {
    let all = state["node_results"].as_array().unwrap();
    all.iter().find(|one| one["node_id"] == id).unwrap()
}

#[test]
fn steps_call_tools_of_a_server_that_the_operator_names() {
    let world = world();
    let (code, told, state) = run(&world, &[]);
    assert_eq!(code, Some(0), "{told} {state:#}");
    assert_eq!(step(&state, "again")["stdout"], "hello again, [redacted]", "{state:#}");
    assert_eq!(step(&state, "again")["outputs"]["said"], "hello again");
    let starts = std::fs::read_to_string(world.path().join("starts")).unwrap();
    assert_eq!(starts.lines().count(), 1);
    let group = starts.trim();
    world.until("the server is gone", |_| {
        (!std::path::Path::new(&format!("/proc/{group}")).exists()).then_some(())
    });
}

#[test]
fn a_rule_about_tools_keeps_a_step_from_calling_one() {
    let world = world().file(
        "no.cedar",
        "@id(\"all\") permit (principal, action, resource);\n\
         @id(\"quiet\") forbid (principal, action == Action::\"use_tool\", resource);\n",
    );
    let (code, told, state) = run(&world, &["--policies", "no.cedar"]);
    assert_eq!(code, Some(1), "{told}");
    let failed = step(&state, "hello").to_string();
    assert!(failed.contains("`bird.say` may not be called"), "{failed}");
    assert!(!world.path().join("starts").exists());
}

#[test]
fn a_run_is_recorded_and_replayed_without_its_tools() {
    let world = world();
    let (code, told, first) = run(&world, &["--record", "say.jsonl"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("exchanges recorded: 2"), "{told}");
    let kept = std::fs::read_to_string(world.path().join("say.jsonl")).unwrap();
    assert!(!kept.contains("a-kept-secret"), "{kept}");
    std::fs::remove_file(world.path().join("server.sh")).unwrap();
    let (code, told, second) = run(&world, &["--replay", "say.jsonl"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("replayed without a difference"), "{told}");
    assert_eq!(step(&first, "again")["outputs"], step(&second, "again")["outputs"]);
    // Something else is asked for: the run stops there, and the rest is left.
    let world = world.file("say.lobsterx.yaml", &SAY.replace("\"hello\"", "\"hallo\""));
    let (code, told, _) = run(&world, &["--replay", "say.jsonl"]);
    assert_eq!(code, Some(1), "{told}");
    let diverged = "diverged at step `hello`, dispatch 1, request 1 (TOOL tool:bird.say): \
                    /word: recorded \"hello\", now \"hallo\"";
    assert!(told.contains(diverged), "{told}");
    let left = "never requested: step `again`, dispatch 1, request 1 (TOOL tool:bird.say)";
    assert!(told.contains(left), "{told}");
}

#[test]
fn what_was_recorded_and_is_not_asked_for_is_a_difference() {
    let world = world();
    run(&world, &["--record", "say.jsonl"]);
    let shorter = SAY.split("  - id: again").next().unwrap();
    let world = world.file("say.lobsterx.yaml", shorter);
    let (code, told, state) = run(&world, &["--replay", "say.jsonl"]);
    assert_eq!((code, &state["status"]), (Some(1), &Value::from("completed")), "{told}");
    assert!(told.contains("never requested: step `again`"), "{told}");
}

#[test]
fn what_is_no_recording_is_refused_before_anything_begins() {
    let world = world();
    let (code, told, _) = run(&world, &["--replay", "setup.yaml"]);
    assert_eq!(code, Some(2), "{told}");
    let error: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(error["code"], "recording_unusable");
    assert!(told.contains("`setup.yaml`: the file is not a recording"), "{told}");
    let (code, told, _) = run(&world, &["--record", "/nowhere/at/all"]);
    assert_eq!(code, Some(2), "{told}");
    let both = world.told(&["run", "say.lobsterx.yaml", "--record", "a", "--replay", "b"]);
    assert!(both.contains("cannot be used with"), "{both}");
    assert!(world.json(&["runs", "list", "--json"])["data"].as_array().unwrap().is_empty());
}

#[test]
fn servers_of_tools_are_shown_among_the_settings() {
    let world = world();
    let told = world.told(&["config", "show"]);
    let bird = "tool_servers.bird  sh server.sh (sees KEPT), 1 tool declared  sluice.toml";
    assert!(told.contains(bird), "{told}");
    let far = "tool_servers.far  http://127.0.0.1:9/mcp (key env:FAR_KEY)  sluice.toml";
    assert!(told.contains(far), "{told}");
    let all = world.json(&["config", "show", "--json"]);
    let all = all["data"].as_array().unwrap();
    let bird = all.iter().find(|one| one["name"] == "tool_servers.bird").unwrap();
    let declared = serde_json::json!({
        "labels": ["speaks"], "sends_to": "internal", "arguments": {"word": "text"},
    });
    let expected = serde_json::json!({
        "command": ["sh", "server.sh"], "env": ["KEPT"], "origin": ["birds"],
        "tools": {"s*": declared},
    });
    assert_eq!(bird["value"], expected);
}

#[test]
fn a_step_of_one_call_needs_an_accepted_definition() {
    let world = world();
    assert_eq!(run(&world, &[]).0, Some(0));
    let failure = |world: &World| {
        let (code, told, state) = run(world, &[]);
        assert_eq!(code, Some(1), "{told}");
        let failed = step(&state, "hello");
        format!("{} {}", failed["error_code"], failed["error_message"]).replace('"', "")
    };
    // Another description, found by the listing before the call, then known to the engine.
    let changed = SAY_TOOL.replace("a word", "a word twice");
    let world = world.file("tools.json", &listing(&[&changed]));
    for _ in 0..2 {
        let told = failure(&world);
        let why = "tool_definition_changed `bird.say` may not be called: tool_definition_changed: \
                   `bird.say` has a new definition";
        assert!(told.starts_with(why), "{told}");
    }
    let shown = world.printed(&["tools", "show", "bird.say"]);
    assert!(shown.starts_with("bird.say  changed: not usable before it is accepted\n"), "{shown}");
    assert!(shown.contains("- Says a word\n+ Says a word twice\n"), "{shown}");
    world.printed(&["tools", "accept", "bird.say"]);
    assert_eq!(run(&world, &[]).0, Some(0));
    // A tool that appears later.
    let sing = SAY_TOOL.replace("\"say\"", "\"sing\"");
    let flow = SAY.replace("bird.say", "bird.sing");
    let world =
        world.file("tools.json", &listing(&[&changed, &sing])).file("say.lobsterx.yaml", &flow);
    let told = failure(&world);
    assert!(told.starts_with("tool_not_accepted `bird.sing` may not be called"), "{told}");
    let told = world.told(&["doctor"]);
    assert!(told.contains("`bird.sing` is new on a known server and cannot be used"), "{told}");
    let list = world.json(&["tools", "list", "--json"]);
    let sing = &list["data"][1];
    assert_eq!((&sing["tool"], &sing["state"]), (&"bird.sing".into(), &"new".into()));
    assert_eq!(sing["accepted"], Value::Null);
    assert_eq!(
        world.printed(&["tools", "accept", "bird.*"]),
        "bird.sing is accepted as it is now\n"
    );
    assert_eq!(run(&world, &[]).0, Some(0));
}

#[test]
fn tools_are_shown_with_what_is_declared() {
    let world = world();
    run(&world, &[]);
    let list = world.printed(&["tools", "list"]);
    assert_eq!(
        list,
        "TOOL      STATE     READ-ONLY  SENDS TO  LABELS\n\
         bird.say  accepted  no         internal  speaks\n"
    );
    let shown = world.printed(&["tools", "show", "bird.say"]);
    for line in ["  sends to   internal\n", "  arguments  word = text\n", "  origin     birds\n"] {
        assert!(shown.contains(line), "{shown}");
    }
    let shown = world.json(&["tools", "show", "bird.say", "--json"]);
    assert_eq!(shown["accepted"]["description"], "Says a word");
    assert_eq!(shown["arguments"], serde_json::json!({"word": "text"}));
    let told = world.told(&["tools", "show", "bird.sing"]);
    assert!(told.contains("no tool `bird.sing` is known"), "{told}");
    let declared = SETTINGS.replace("\"s*\"", "shout");
    let told = world.file("sluice.toml", &declared).told(&["doctor"]);
    assert!(told.contains("`bird` lists no tool `shout`, which sluice.toml declares"), "{told}");
}

#[test]
fn a_server_shows_the_tools_of_its_machine() {
    let world = world().file("mock.yaml", "'*': {text: ok}\n");
    run(&world, &[]);
    let server = Server::start(&world, "127.0.0.1:0");
    for args in [
        &["tools", "list"] as &[&str],
        &["tools", "list", "--json"],
        &["tools", "show", "bird.say"],
        &["tools", "show", "bird.say", "--json"],
        &["tools", "show", "bird.none"],
    ] {
        assert_eq!(server.told(&world, args), world.told(args), "{args:?}");
    }
    let told = server.told(&world, &["tools", "accept", "bird.say"]);
    assert!(told.contains("needs_data_directory"), "{told}");
    // Another process sees a new definition: the server shows it at once.
    let changed = SAY_TOOL.replace("a word", "a word twice");
    let world = world.file("tools.json", &listing(&[&changed]));
    run(&world, &[]);
    world.until("the server shows it", |world| {
        let shown = server.printed(world, &["tools", "list"]);
        shown.contains("bird.say  changed").then_some(())
    });
}
