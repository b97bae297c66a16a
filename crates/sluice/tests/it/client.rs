//! Commands at a server and on a data directory: the same arguments, the same output.

use crate::server::{Server, same};
use crate::world::{World, plain, shown};
use expect_test::expect;

const ASK: &str = "
name: ask
version: 1
steps:
  - {id: price, agent: mock, command: What does it cost?, outputs: {usd: integer}}
  - id: sure
    approval: {required: true, summary: \"Pay ${price.usd} USD?\\e[31m\"}
    depends_on: [price]
  - {id: pay, agent: mock, command: 'pay ${usd}', depends_on: [sure], outputs: {paid: string}}
outputs: {paid: '${paid}'}
";
const THREE: &str = "
name: three
version: 1
args: {word: {type: string, default: go}}
steps:
  - {id: one, agent: mock, command: 'one ${args.word}', outputs: {x: integer}}
  - {id: two, agent: mock, command: 'two ${x}', depends_on: [one], outputs: {y: integer}}
  - {id: three, agent: mock, command: 'three ${y}', depends_on: [two]}
";
const BREAKS: &str = "
name: breaks
version: 1
steps:
  - {id: bad, agent: mock, command: fail, on_failure: halt}
";
const SLOW: &str = "
name: slow
version: 1
steps:
  - {id: nap, agent: shell, command: 'sleep ${args.s}; echo woke'}
  - {id: tell, agent: mock, command: tell, depends_on: [nap]}
args: {s: {type: string, default: '1'}}
";
const MOCK: &str = "
price: {outputs: {usd: 12}, cost: 0.002, input_tokens: 5, output_tokens: 6}
pay: {outputs: {paid: ok}}
one: {outputs: {x: 1}, cost: 0.001}
two: {outputs: {y: 2}}
three: {text: the end}
tell: {text: told}
bad: {error: no route, error_code: auth}
";
const SETUP: &str = "
workflows: [ask.lobsterx.yaml, three.lobsterx.yaml, breaks.lobsterx.yaml, slow.lobsterx.yaml]
agents:
  scribe: {trust_level: 6, model: general}
gateways:
  house: {provider: mock, environment: dev}
budgets:
  everything: {scope: global, period: monthly, amount_cents: 10000}
prices:
  general: {input_cents_per_mtok: 15, output_cents_per_mtok: 60}
schedules:
  nightly: {workflow: three, cron: '30 2 * * *'}
notes:
  house-rules: {text: Be kind.}
";
const POLICY: &str = "permit (principal, action, resource);\n";

fn world() -> World {
    World::new()
        .file("ask.lobsterx.yaml", ASK)
        .file("three.lobsterx.yaml", THREE)
        .file("breaks.lobsterx.yaml", BREAKS)
        .file("slow.lobsterx.yaml", SLOW)
        .file("mock.yaml", MOCK)
        .file("setup.yaml", SETUP)
        .file("all.cedar", POLICY)
}

/// A server with everything set up, through the server.
fn served() -> (World, Server) {
    let world = world();
    let server = Server::start(&world, "127.0.0.1:0");
    server.printed(&world, &["apply", "-f", "setup.yaml"]);
    (world, server)
}

fn started(world: &World, server: &Server, workflow: &str) -> String {
    let told = server.printed(world, &["workflows", "start", workflow, "--detach"]);
    told.split_whitespace().next().unwrap().to_owned()
}

fn question(world: &World, server: &Server) -> String {
    world.until("a question", |world| {
        let list = server.json(world, &["approvals", "list", "--json"]);
        list["data"][0]["approval_id"].as_str().map(str::to_owned)
    })
}

#[test]
fn what_is_looked_at_is_the_same_here_and_there() {
    let (world, server) = served();
    let done = server.output(&world, &["workflows", "start", "three"]);
    assert_eq!(done.status.code(), Some(0), "{}", shown(&done));
    let run = server.json(&world, &["runs", "list", "--json"])["data"][0]["run_id"].clone();
    let run = run.as_str().unwrap().to_owned();
    let asking = started(&world, &server, "ask");
    let question = question(&world, &server);
    let looks: Vec<Vec<&str>> = vec![
        vec!["runs", "list"],
        vec!["runs", "list", "--status", "completed", "--json"],
        vec!["runs", "list", "--workflow", "none"],
        vec!["runs", "list", "--limit", "1", "--json"],
        vec!["runs", "list", "--before", &asking],
        vec!["runs", "show", &run],
        vec!["runs", "show", &run, "--json"],
        vec!["runs", "show", &asking],
        vec!["runs", "show", &asking[..8], "--json"],
        vec!["runs", "show", "run_ffff"],
        vec!["runs", "show", "odd/../id"],
        vec!["runs", "provenance", &run],
        vec!["runs", "provenance", &run, "--json"],
        vec!["runs", "provenance", &run, "--format", "mermaid", "--step", "two"],
        vec!["runs", "provenance", &run, "--step", "tow"],
        vec!["runs", "export", &run, "--json"],
        vec!["approvals", "list"],
        vec!["approvals", "list", "--json"],
        vec!["approvals", "show", &question],
        vec!["approvals", "show", &question, "--json"],
        vec!["approvals", "show", "apr_ffff"],
        vec!["audit", "verify"],
        vec!["audit", "verify", "--json"],
        vec!["audit", "verify", "--run", &run],
        vec!["audit", "tail", "--category", "governance", "--limit", "5"],
        vec!["audit", "tail", "--json", "--limit", "5"],
        vec!["agents", "list"],
        vec!["agents", "list", "--json"],
        vec!["agents", "show", "scribe"],
        vec!["agents", "show", "scrib"],
        vec!["gateways", "list"],
        vec!["budgets", "list"],
        vec!["budgets", "list", "--json"],
        vec!["prices", "list"],
        vec!["roles", "list"],
        vec!["notes", "show", "house-rules"],
        vec!["policies", "list"],
        vec!["policies", "check"],
        vec!["policies", "diff", "active", "all.cedar", "--decisions"],
        vec!["policies", "test", "--with", "all.cedar", "--json"],
        vec!["workflows", "list"],
        vec!["workflows", "list", "--json"],
        vec!["workflows", "show", "three"],
        vec!["workflows", "show", "threee"],
        vec!["lenses", "list"],
        vec!["schedules", "list", "--json"],
        vec!["schedules", "show", "nightly"],
        vec!["schedules", "slots", "nightly", "--next", "3"],
        vec!["tokens", "list"],
        vec!["tokens", "list", "--json"],
        vec!["cost", "--by", "workflow"],
        vec!["cost", "--json"],
    ];
    let mut differ = Vec::new();
    for look in &looks {
        let here = || shown(&world.output(look));
        let there = || shown(&server.output(&world, look));
        if let Err(difference) = same(here, there) {
            differ.push(format!("{look:?}\n{difference}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n\n"));
}

#[test]
fn a_start_is_followed_to_its_end_and_shown_as_here() {
    let (world, server) = served();
    expect![[r#"
        stderr:
        RUN-1 started
        completed  one  TIME, $0.001
        completed  two  TIME
        completed  three  TIME
        stdout:
        completed in TIME, $0.001
          x: 1
          y: 2
          three: the end
        exit 0
    "#]]
    .assert_eq(&server.told(&world, &["workflows", "start", "three", "--arg", "word=now"]));
    let events = server.printed(&world, &["workflows", "start", "three@1", "--events", "--json"]);
    let lines: Vec<serde_json::Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (state, events) = lines.split_last().unwrap();
    assert_eq!(state["status"], "completed");
    let ids: Vec<u64> = events.iter().map(|event| event["eventId"].as_u64().unwrap()).collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap()["type"], "run.completed");
    let again = server.told(&world, &["runs", "watch", state["run_id"].as_str().unwrap()]);
    assert!(again.contains("completed in TIME"), "{again}");
    let failed = server.output(&world, &["workflows", "start", "breaks"]);
    assert_eq!(failed.status.code(), Some(1), "{}", shown(&failed));
}

#[test]
fn questions_are_answered_through_the_server() {
    let (world, server) = served();
    let run = started(&world, &server, "ask");
    let id = question(&world, &server);
    let text = server.printed(&world, &["approvals", "show", &id]);
    assert!(text.contains("Pay 12 USD?␛[31m") && !text.contains('\u{1b}'), "{text}");
    expect![[r#"
        stderr:
        error[needs_data_directory]: `--as` works on a data directory, not through a server
         |
         = help: leave it out, or name the directory with `--data DIR`
        exit 2
    "#]]
    .assert_eq(&server.told(&world, &["approvals", "approve", &id, "--as", "eve"]));
    let odd = server.told(&world, &["approvals", "retry", &id]);
    assert!(odd.contains("error[wrong_decision]"), "{odd}");
    let told = server.told(&world, &["approvals", "approve", &id, "--comment", "fine"]);
    assert_eq!(told, "stdout:\nsure is approved\nexit 0\n");
    let watched = server.told(&world, &["runs", "watch", &run]);
    assert!(watched.ends_with("  paid: ok\nexit 0\n"), "{watched}");
    let twice = server.told(&world, &["approvals", "approve", &id]);
    assert!(twice.contains("error[approval_resolved]"), "{twice}");
    let state = server.json(&world, &["runs", "show", &run, "--json"]);
    assert_eq!(state["status"], "completed");
}

#[test]
fn the_course_of_a_run_is_changed_through_the_server() {
    let (world, server) = served();
    let failed = started(&world, &server, "breaks");
    world.until("it failed", |world| {
        let state = server.json(world, &["runs", "show", &failed, "--json"]);
        (state["status"] == "failed").then_some(())
    });
    let told = server.told(&world, &["runs", "retry", &failed, "--detach"]);
    assert!(told.contains("RUN-1 is open again; `sluice runs watch RUN-1` follows it"), "{told}");
    world.until("it failed again", |world| {
        let state = server.json(world, &["runs", "show", &failed, "--json"]);
        (state["status"] == "failed").then_some(())
    });
    let told = server.told(&world, &["runs", "restart", &failed]);
    assert!(
        told.contains("error[not_confirmed]") && told.contains("that will be repeated"),
        "{told}"
    );
    let told = server.told(&world, &["runs", "restart", &failed, "--yes"]);
    assert!(told.contains("RUN-2 started, a restart of RUN-1"), "{told}");
    assert!(told.ends_with("exit 1\n"), "{told}");

    server.printed(&world, &["workflows", "start", "three"]);
    let list = server.json(&world, &["runs", "list", "--workflow", "three", "--json"]);
    let done = list["data"][0]["run_id"].as_str().unwrap().to_owned();
    let set = ["runs", "branch", &done, "--at", "1", "--set", "one.x=5", "--arg", "word=else"];
    let told = server.told(&world, &set);
    assert!(told.contains("RUN-1 started, a branch of RUN-2"), "{told}");
    assert!(told.ends_with("exit 0\n"), "{told}");
    let told = server.told(&world, &["runs", "rewind", &done, "--to", "1"]);
    assert!(
        told.contains("RUN-1 is back at checkpoint 1") && told.contains("completed  two"),
        "{told}"
    );
    let told = server.told(&world, &["runs", "rewind", &done, "--to", "99", "--detach"]);
    assert!(told.contains("error[checkpoint_unknown]"), "{told}");

    let slow = server.printed(&world, &["workflows", "start", "slow", "--arg", "s=30", "--detach"]);
    let slow = slow.split_whitespace().next().unwrap();
    let told = server.told(&world, &["runs", "pause", slow]);
    assert!(told.contains("RUN-1 is paused"), "{told}");
    assert!(server.told(&world, &["runs", "unpause", slow]).contains("RUN-1 is resumed"));
    let told = server.told(&world, &["runs", "erase", slow, "--reason", "no"]);
    assert!(told.contains("error[run_not_ended]"), "{told}");
    let told = server.told(&world, &["runs", "cancel", slow, "--reason", "enough"]);
    assert!(told.contains("RUN-1 is "), "{told}");
    world.until("it is cancelled", |world| {
        let state = server.json(world, &["runs", "show", slow, "--json"]);
        (state["status"] == "cancelled").then_some(())
    });
    let told = server.told(&world, &["runs", "erase", slow, "--reason", "the customer asked"]);
    assert!(told.contains("of RUN-1 erased; its hashes and figures stay"), "{told}");
    let told = server.told(&world, &["runs", "elide", slow]);
    assert_eq!(told, "stdout:\nnothing was left to elide\nexit 0\n");
    let told = server.told(&world, &["audit", "verify"]);
    assert!(told.contains(": nothing is wrong"), "{told}");
}

#[test]
fn rows_are_changed_through_the_server() {
    let (world, server) = served();
    let told = |args: &[&str]| server.told(&world, args);
    assert_eq!(told(&["apply", "-f", "setup.yaml"]), "stdout:\nnothing to change\nexit 0\n");
    for (args, line) in [
        (vec!["agents", "set", "scribe", "trust_level=7"], "~ agent scribe: trust_level 6 -> 7"),
        (vec!["agents", "pause", "scribe"], "~ agent scribe: status"),
        (vec!["agents", "promote", "scribe", "poc"], "~ agent scribe: phase"),
        (vec!["agents", "extend", "scribe", "30d"], "~ agent scribe: poc_until_ms"),
        (vec!["gateways", "pause", "house"], "~ gateway house: paused"),
        (vec!["gateways", "pause", "--all"], "switch all"),
        (vec!["gateways", "resume", "--all"], "switch all: held true -> false"),
        (vec!["gateways", "token", "house"], "gwt_"),
        (vec!["gateways", "resume", "house"], "~ gateway house: paused"),
        (vec!["schedules", "disable", "nightly"], "~ schedule nightly: enabled"),
        (vec!["budgets", "reopen", "everything"], "nothing to change"),
        (vec!["notes", "remove", "house-rules"], "- note house-rules"),
        (vec!["policies", "shadow", "all.cedar"], "+ policy"),
        (vec!["policies", "shadow", "off"], "- policy"),
        (vec!["workflows", "put", "three.lobsterx.yaml"], "nothing to change"),
        (vec!["workflows", "remove", "three@1"], "row_in_use"),
        (vec!["schedules", "remove", "nightly"], "- schedule nightly"),
        (vec!["workflows", "remove", "three@1"], "- workflow three@1"),
        (vec!["agents", "set", "scribe", "trust=7"], "unknown_field"),
        (vec!["agents", "remove", "scribbe"], "did you mean `scribe`?"),
    ] {
        let told = told(&args);
        assert!(told.contains(line), "{args:?}: {told}");
    }
    // A token that was given is not lost by a change of something else.
    let row = world.json(&["gateways", "show", "house", "--json"]);
    assert_eq!(row["token_sha256"].as_str().map(str::len), Some(64), "{row}");
    let shown = server.json(&world, &["gateways", "show", "house", "--json"]);
    assert_eq!(shown["token_sha256"], "[redacted]");
}

#[test]
fn a_setup_that_is_refused_is_refused_where_it_is_wrong() {
    let (world, server) = served();
    let world = world.file("bad.yaml", "agents:\n  scribe: {gateway: nowhere}\n");
    let there = shown(&server.output(&world, &["apply", "-f", "bad.yaml"]));
    let here = shown(&world.output(&["apply", "-f", "bad.yaml"]));
    assert_eq!(there, here);
    assert!(there.contains("bad.yaml:2"), "{there}");
    let told = server.told(&world, &["apply", "-f", "setup.yaml", "--prune", "--dry-run"]);
    assert_eq!(told, "stdout:\nnothing to change\nexit 0\n");
}

#[test]
fn tokens_are_made_and_revoked_and_count_for_no_more_than_they_may() {
    let (world, server) = served();
    let made = server.json(&world, &["tokens", "create", "vera", "--role", "viewer", "--json"]);
    let (token, id) = (made["token"].as_str().unwrap(), made["token_id"].as_str().unwrap());
    let as_vera = |args: &[&str]| plain(&shown(&server.output_with(&world, token, args)));
    assert!(as_vera(&["runs", "list"]).ends_with("exit 0\n"));
    let told = as_vera(&["workflows", "start", "three"]);
    assert!(told.contains("error[forbidden]") && told.contains("`sluice doctor`"), "{told}");
    assert!(told.ends_with("exit 2\n"), "{told}");
    let told = as_vera(&["apply", "-f", "setup.yaml", "--prune"]);
    assert!(told.contains("nothing to change") || told.contains("error[forbidden]"), "{told}");
    let told = as_vera(&["doctor"]);
    assert!(told.contains("vera of default may: workflow:read, governance:read"), "{told}");
    assert!(server.told(&world, &["tokens", "revoke", id]).contains(&format!("- token {id}")));
    let told = as_vera(&["runs", "list"]);
    assert!(told.contains("error[unauthenticated]") && told.contains("SLUICE_TOKEN"), "{told}");
    assert!(!told.contains(token), "{told}");
    let none = as_vera(&["doctor"]);
    assert!(none.contains("FAIL") && none.ends_with("exit 1\n"), "{none}");
}

#[test]
fn what_is_about_a_directory_is_not_done_elsewhere_in_silence() {
    let (world, server) = served();
    for args in [
        &["backup", "copy.db"][..],
        &["organisations", "list"],
        &["organisations", "add", "other"],
        &["schedules", "tick"],
    ] {
        let told = server.told(&world, args);
        assert!(told.contains("needs_data_directory"), "{args:?}: {told}");
    }
    assert!(!world.path().join("copy.db").exists());
}

#[test]
fn a_seal_is_fetched_and_holds_the_server_to_its_word() {
    let (world, server) = served();
    let run = started(&world, &server, "three");
    server.told(&world, &["runs", "watch", &run]);
    server.printed(&world, &["audit", "seal", "--out", "seals.txt"]);
    let told = server.told(&world, &["audit", "verify", "--seal", "seals.txt"]);
    assert!(told.contains("nothing is wrong"), "{told}");
    let kept = std::fs::read_to_string(world.path().join("seals.txt")).unwrap();
    assert!(kept.contains("\"number\":"), "{kept}");
    // A seal by another key is not trusted.
    let other = World::new().file("three.lobsterx.yaml", THREE).file("mock.yaml", MOCK);
    other.told(&["run", "three.lobsterx.yaml", "--mock", "mock.yaml"]);
    let theirs = other.printed(&["audit", "seal"]);
    std::fs::write(world.path().join("theirs.txt"), theirs).unwrap();
    let output = server.output(&world, &["audit", "verify", "--seal", "theirs.txt"]);
    assert_ne!(output.status.code(), Some(0), "{}", shown(&output));
}

#[test]
fn an_unreachable_server_is_reported() {
    let world = world();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let free = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let told = world.told(&["runs", "list", "--url", &free]);
    assert!(told.contains("error[server_unreachable]: no server answers at http://"), "{told}");
    assert!(told.contains("`sluice serve`") && told.ends_with("exit 2\n"), "{told}");
    let told = world.told(&["doctor", "--url", &free]);
    assert!(told.contains("server") && told.contains("FAIL"), "{told}");
    let both = world.told(&["runs", "list", "--url", &free, "--data", "d"]);
    assert!(both.contains("error[config_invalid]"), "{both}");
}

#[test]
fn an_answer_of_another_program_is_not_trusted() {
    let world = world();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answers = [
        "HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n<html></html>",
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 500 Oh\r\ncontent-length: 11\r\n\r\n\u{1b}[31mpanic\n",
    ];
    let serving = std::thread::spawn(move || {
        for answer in answers {
            use std::io::{Read as _, Write as _};
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    for _ in answers {
        let told = world.told(&["runs", "list", "--url", &url]);
        assert!(told.contains("error[server_unreachable]"), "{told}");
        assert!(!told.contains('\u{1b}'), "{told}");
    }
    serving.join().unwrap();
}

#[test]
fn a_run_that_is_watched_is_seen_whole_though_the_server_dies_meanwhile() {
    let (world, server) = served();
    let run = server.printed(&world, &["workflows", "start", "slow", "--arg", "s=2", "--detach"]);
    let run = run.split_whitespace().next().unwrap().to_owned();
    let address = server.address().to_owned();
    let seen = world.path().join("seen");
    let mut command = world.command(&["runs", "watch", &run, "--events"]);
    command.env("SLUICE_URL", &server.url).env("SLUICE_TOKEN", &server.token);
    let mut watching = command.stdout(std::fs::File::create(&seen).unwrap()).spawn().unwrap();
    world.until("the first step is seen to begin", |_| {
        let text = std::fs::read_to_string(&seen).unwrap();
        text.contains("node.started").then_some(())
    });
    server.kill();
    let again = Server::start(&world, &address);
    // The run goes on when the dead server's lease has run out.
    let status = watching.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    let text = std::fs::read_to_string(&seen).unwrap();
    let ids: Vec<u64> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|event| event["eventId"].as_u64().unwrap())
        .collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>(), "each once and in order");
    let exported = again.json(&world, &["runs", "export", &run, "--json"]);
    assert_eq!(exported["events"].as_array().unwrap().len(), ids.len());
}
