//! `sluice serve` from its first start to its end.

use crate::server::Server;
use crate::session::root;
use crate::world::{PATIENCE, Running, World, shown};
use rustix::process::Signal;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

const GATED: &str = "name: gated
steps:
  - {id: first, command: Say it.}
  - {id: ask, depends_on: [first], approval: {required: true}}
";

fn world() -> World {
    World::new().file("mock.yaml", "'*': {text: Done.}\n").file("gated.lobsterx.yaml", GATED)
}

/// A free address.
fn free() -> String {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    taken.local_addr().unwrap().to_string()
}

/// A server that answers.
fn serve(world: &World, address: &str) -> Running {
    serve_with(world, address, "mock.yaml")
}

/// A server that answers, with a script.
fn serve_with(world: &World, address: &str, script: &str) -> Running {
    let server = world.start(&["serve", "--listen", address, "--mock", script]);
    world.until("the server answers", |_| {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(())
    });
    server
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The head of a request, unfinished.
fn head(method: &str, path: &str, token: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n")
}

fn ask(address: &str, token: &str, path: &str) -> String {
    let mut stream = connect(address);
    let request = format!("{}connection: close\r\n\r\n", head("GET", path, token));
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn stop(server: Running) -> Output {
    server.signal(Signal::TERM);
    server.output()
}

#[test]
fn policies_that_a_server_is_started_with_are_told_as_such() {
    let world = world()
        .file("rules.cedar", "permit (principal, action, resource);\n")
        .file("sluice.toml", "policies = [\"rules.cedar\"]\n");
    let address = free();
    let server = serve(&world, &address);
    let token = std::fs::read_to_string(world.path().join(".sluice/admin.token")).unwrap();
    let told = ask(&address, token.trim(), "/api/v1/policy-sets");
    assert!(told.contains(r#""origin":"files""#) && told.contains("rules.cedar#1"), "{told}");
    assert!(!told.contains("default.cedar"), "{told}");
    assert_eq!(stop(server).status.code(), Some(0));
}

#[test]
fn the_first_start_makes_a_token_that_only_its_owner_reads() {
    let world = world();
    let file = world.path().join(".sluice/admin.token");
    let address = free();
    let first = stop(serve(&world, &address));
    assert_eq!(first.status.code(), Some(0), "{}", shown(&first));
    let told = String::from_utf8(first.stderr).unwrap();
    assert!(told.contains("the admin token of `default` is in"), "{told}");
    assert!(told.contains("Authorization: Bearer $(cat "), "{told}");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = std::fs::read_to_string(&file).unwrap();
    assert!(!told.contains(token.trim()), "the token is told where others may read it");
    let server = serve(&world, &address);
    assert!(ask(&address, token.trim(), "/api/v1/session").starts_with("HTTP/1.1 200"));
    let second = stop(server);
    let told = String::from_utf8(second.stderr).unwrap();
    assert!(!told.contains("the token of an admin"), "{told}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), token);
}

#[test]
fn a_server_that_is_told_to_stop_ends_what_is_under_way() {
    let world = world();
    let waiting = world.output(&["run", "gated.lobsterx.yaml", "--mock", "mock.yaml"]);
    assert_eq!(waiting.status.code(), Some(4), "{}", shown(&waiting));
    let run = world.newest();
    let address = free();
    let server = serve(&world, &address);
    let token = std::fs::read_to_string(world.path().join(".sluice/admin.token")).unwrap();
    let token = token.trim();
    // A request that is half sent.
    let body =
        r#"{"document": "name: late\nsteps: [{id: a, command: b}]\n", "default_agent": "mock"}"#;
    let mut under_way = connect(&address);
    let sent = format!(
        "{}content-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
        head("POST", "/api/v1/runs", token),
        body.len(),
        &body[..20]
    );
    under_way.write_all(sent.as_bytes()).unwrap();
    // And a stream, whose beginning is read.
    let mut stream = connect(&address);
    let request = head("GET", &format!("/api/v1/runs/{run}/events"), token) + "\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut told = String::new();
    while !told.contains("approval.requested") {
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).unwrap();
        assert!(read > 0, "{told}");
        told += std::str::from_utf8(&bytes[..read]).unwrap();
    }
    server.signal(Signal::TERM);
    stream.read_to_string(&mut told).unwrap();
    assert!(told.contains("\n: the server is stopping; reconnect to resume\n"), "{told}");
    under_way.write_all(&body.as_bytes()[20..]).unwrap();
    let mut answer = String::new();
    under_way.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    let ended = server.output();
    assert_eq!(ended.status.code(), Some(0), "{}", shown(&ended));
    assert!(TcpStream::connect(&address).is_err(), "the port is still open");
    // What was promised is kept, and what waited still does.
    let list = world.json(&["runs", "list", "--json"]);
    let named =
        |name: &str| list["data"].as_array().unwrap().iter().any(|one| one["workflow"] == name);
    assert!(named("inline/late") && named("gated"), "{list}");
    assert_eq!(world.state(&run)["approvals"][0]["status"], "pending");
    let verified = world.output(&["audit", "verify"]);
    assert_eq!(verified.status.code(), Some(0), "{}", shown(&verified));
}

#[test]
fn a_server_that_is_told_to_stop_at_once_ends_in_order() {
    let world = world();
    let address = free();
    let server = world.start(&["serve", "--listen", &address, "--mock", "mock.yaml"]);
    world.until("it listens", |_| TcpStream::connect(&address).ok());
    let ended = stop(server);
    assert_eq!(ended.status.code(), Some(0), "{}", shown(&ended));
}

#[test]
fn a_remote_address_must_be_allowed() {
    let world = world();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let refused = world.output(&["serve", "--listen", address]);
        assert_eq!(refused.status.code(), Some(2), "{}", shown(&refused));
        assert!(shown(&refused).contains("listen_refused"), "{}", shown(&refused));
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = world.output(&["serve", "--listen", &address]);
    assert_eq!(refused.status.code(), Some(2), "{}", shown(&refused));
}

/// A command to the server at `address`, and what it printed.
fn through(world: &World, address: &str, args: &[&str]) -> String {
    let mut command = world.command(args);
    command.env("SLUICE_URL", format!("http://{address}"));
    command.env("SLUICE_TOKEN", "file:.sluice/admin.token");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", shown(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_demo_does_what_make_start_says() {
    let (world, address) = (World::new(), free());
    let demo = root().join("examples/demo");
    let file = |name: &str| demo.join(name).to_str().unwrap().to_owned();
    world.printed(&["apply", "-f", &file("config.yaml")]);
    let server = serve_with(&world, &address, &file("answers.yaml"));
    let listed = through(&world, &address, &["workflows", "list"]);
    assert!(listed.contains("vendor-review") && listed.contains("daily-brief"), "{listed}");
    let vendor = ["workflows", "start", "vendor-review", "--arg", "vendor=Northwind", "--detach"];
    let run = through(&world, &address, &vendor);
    let run = run.split(' ').next().unwrap().to_owned();
    let approval = world.until("a person is asked", |world| {
        let open = through(world, &address, &["approvals", "list", "--json"]);
        let open: serde_json::Value = serde_json::from_str(&open).unwrap();
        open["data"][0]["approval_id"].as_str().map(str::to_owned)
    });
    through(&world, &address, &["approvals", "approve", &approval]);
    world.until("the run ends", |world| {
        let state = through(world, &address, &["runs", "show", &run, "--json"]);
        let state: serde_json::Value = serde_json::from_str(&state).unwrap();
        (state["status"] == "completed").then_some(())
    });
    // The other workflows of the demo need no person.
    for workflow in ["fan-out-join", "daily-brief"] {
        let ended = through(&world, &address, &["workflows", "start", workflow, "--json"]);
        let last = ended.lines().last().unwrap_or_default();
        assert!(last.contains("completed"), "{workflow}: {ended}");
    }
    assert_eq!(stop(server).status.code(), Some(0));
}

#[test]
fn steps_without_an_agent_are_answered_by_the_script_of_the_server() {
    let (world, address) = (world(), free());
    let server = serve(&world, &address);
    through(&world, &address, &["workflows", "put", "gated.lobsterx.yaml"]);
    through(&world, &address, &["workflows", "start", "gated", "--detach"]);
    world.until("a person is asked", |world| {
        let open = through(world, &address, &["approvals", "list"]);
        open.contains("apr_").then_some(())
    });
    assert_eq!(stop(server).status.code(), Some(0));
}

#[test]
fn a_bare_server_says_which_agents_there_are() {
    let flow = |name: &str, agent: &str| {
        format!("name: {name}\nsteps: [{{id: a, {agent}command: Go.}}]\n")
    };
    let world = World::new()
        .file("named.lobsterx.yaml", &flow("named", "agent: gpt, "))
        .file("unnamed.lobsterx.yaml", &flow("unnamed", ""));
    let server = Server::with(&world, &["--listen", "127.0.0.1:0"]);
    let told = |name: &str| {
        server.printed(&world, &["workflows", "put", &format!("{name}.lobsterx.yaml")]);
        server.told(&world, &["workflows", "start", name])
    };
    let named = told("named");
    let expected = "error[unknown_agent]: step `a` names the agent `gpt`, which is not configured; \
                    configured: http\n";
    assert!(named.contains(expected) && named.ends_with("exit 2\n"), "{named}");
    let unnamed = told("unnamed");
    let expected = "error[unknown_agent]: step `a` names no agent; name one in the document, ";
    assert!(unnamed.contains(expected) && unnamed.ends_with("exit 2\n"), "{unnamed}");
}
