//! `sluice gateways check`, on a bridge, on the template, and at an unused address.

use crate::bridge::{hears, server};
use crate::session::{Session, binary, root};
use crate::world::{World, shown};
use expect_test::expect;
use serde_json::{Value, json};
use sluice_bridge::conformance::{adapter, gateway};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const KEY: (&str, &str) = ("SLUICE_BRIDGE_KEY", "a-key-of-the-bridge");
const TOKEN: (&str, &str) = ("SLUICE_GATEWAY_TOKEN", "gwt_a-token");

/// Something that works elsewhere. Dropping it kills it.
struct Elsewhere {
    child: Child,
    at: String,
}

impl Elsewhere {
    /// Starts a command that says in its first line where it works.
    fn start(mut command: Command) -> Elsewhere {
        command.envs([KEY, TOKEN]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let at = line.trim_end().split_once("works at ").expect("it says where it works").1;
        Elsewhere { at: at.to_owned(), child }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A free port, so that a gateway can be configured with it beforehand.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn bridge(session: &Session) -> Elsewhere {
    let mut command = binary(session.path());
    command.args(["bridge", "bridge.yaml", "--listen", "127.0.0.1:0"]);
    Elsewhere::start(command)
}

fn session(ours: SocketAddr) -> Session {
    let file = format!(
        "gateway: far\nserver: http://{ours}\ntoken: env:SLUICE_GATEWAY_TOKEN\n\
         key: env:SLUICE_BRIDGE_KEY\nspool: spool\nadapters:\n  mock: {{script: mock.yaml}}\n  shell: {{}}\n"
    );
    let script = "{quick: {echo: true}, slow: {hang: true}}";
    Session::new().file("bridge.yaml", file).file("mock.yaml", script)
}

/// A template that brings its results to us, and where its spool is.
fn template(ours: SocketAddr) -> (Session, Elsewhere) {
    let session = Session::new();
    let elsewhere = python(&session, ours);
    (session, elsewhere)
}

fn python(session: &Session, ours: SocketAddr) -> Elsewhere {
    let mut command = Command::new("python3");
    command.arg("-B").arg(root().join("examples/adapter/gateway.py"));
    command.arg(session.path().join("spool")).env("SLUICE_SERVERS", format!("http://{ours}"));
    Elsewhere::start(command)
}

/// Checks a gateway, which may take a while.
fn check(elsewhere: &Elsewhere, ours: SocketAddr, more: &[&str]) -> String {
    let world = World::new();
    let ours = ours.to_string();
    let mut command = world.command(&["gateways", "check", &elsewhere.at, "--listen", &ours]);
    command.args(["--key", "env:SLUICE_BRIDGE_KEY", "--token", "env:SLUICE_GATEWAY_TOKEN"]);
    let output = command.args(more).envs([KEY, TOKEN]).output().unwrap();
    let told = shown(&output);
    assert!(!told.contains(KEY.1) && !told.contains(TOKEN.1), "{told}");
    told
}

#[test]
fn a_bridge_passes() {
    let ours = free();
    let session = session(ours);
    let bridge = bridge(&session);
    expect![[r#"
        stdout:
        passed   health is answered within five seconds
        passed   a dispatch is answered with 202 and its ids
        passed   the result comes once, with its ids and both tokens
        passed   fields that are not known are passed over
        passed   a constraint that is not known refuses the dispatch
        passed   without the key nothing runs
        passed   rubbish is refused and the gateway lives on
        passed   the same dispatch runs once
        passed   a result that is not taken comes again
        passed   a cancelled dispatch stops and says so
        passed   a dispatch that takes too long is timed_out
        passed   a request that waits is answered with the result
        12 passed, 0 failed, 0 skipped
        exit 0
    "#]]
    .assert_eq(&check(&bridge, ours, &["--provider", "mock", "--sync"]));
    // Real work, by the defaults, for a program.
    let told = check(&bridge, ours, &["--provider", "shell", "--json"]);
    let told = told.strip_prefix("stdout:\n").unwrap().strip_suffix("\nexit 0\n").unwrap();
    let told: Value = serde_json::from_str(told).unwrap();
    assert_eq!(told["ok"], true);
    let cases = told["cases"].as_array().unwrap();
    assert_eq!(cases.iter().filter(|case| case["verdict"] == "passed").count(), 11);
    expect![[r#"{"case":"a request that waits is answered with the result","verdict":"skipped","why":"the gateway does not have the capability `sync`"}"#]].assert_eq(&cases.last().unwrap().to_string());
}

#[test]
fn the_template_in_python_passes() {
    let ours = free();
    let (_session, gateway) = template(ours);
    let more = ["--provider", "echo", "--slow", "wait 60"];
    expect![[r#"
        stdout:
        passed   health is answered within five seconds
        passed   a dispatch is answered with 202 and its ids
        passed   the result comes once, with its ids and both tokens
        passed   fields that are not known are passed over
        passed   a constraint that is not known refuses the dispatch
        passed   without the key nothing runs
        passed   rubbish is refused and the gateway lives on
        passed   the same dispatch runs once
        passed   a result that is not taken comes again
        passed   a cancelled dispatch stops and says so
        passed   a dispatch that takes too long is timed_out
        skipped  a request that waits is answered with the result: the gateway does not have the capability `sync`
        11 passed, 0 failed, 1 skipped
        exit 0
    "#]]
    .assert_eq(&check(&gateway, ours, &more));
}

/// Sends a dispatch, and answers with the status.
fn dispatch(to: &Elsewhere, body: &Value) -> String {
    let mut stream = TcpStream::connect(to.at.strip_prefix("http://").unwrap()).unwrap();
    let body = body.to_string();
    write!(
        stream,
        "POST /api/v2/dispatch HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        KEY.1,
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn what_a_killed_template_was_given_comes_to_an_end_in_its_next_life() {
    let (ours, heard) = server();
    let (session, gateway) = template(ours);
    let body = json!({
        "run_id": "run_018bcfe568007fffbfffffffffffffff", "step_id": "ask[2]", "dispatch_no": 1,
        "provider": "echo", "timeout_ms": 60_000, "command": "wait 60",
        "callback_url": format!("http://{ours}/step-complete"), "dispatch_token": "sld_x",
    });
    assert_eq!(dispatch(&gateway, &body), "202");
    drop(gateway);
    let gateway = python(&session, ours);
    let result = hears(&heard, "/step-complete");
    let said = [&result["step_id"], &result["status"], &result["error_code"]];
    assert_eq!(said, [&json!("ask[2]"), &json!("failed"), &json!("adapter_crash")]);
    // Once it is noted that it was taken, it is delivered on request, and not executed again.
    let again = (0..100).find_map(|_| {
        assert_eq!(dispatch(&gateway, &body), "202");
        heard.recv_timeout(Duration::from_millis(200)).ok()
    });
    assert_eq!(again.expect("it comes in time").1, result);
    // No other address receives anything, whatever a dispatch says.
    for (name, value) in [
        ("callback_url", json!("http://127.0.0.1:1/step-complete")),
        ("callback_url", json!(format!("http://{ours}@example.com/"))),
        ("callback_url", json!("http://[")),
        ("dispatch_token", json!("a\r\nX-More: b")),
        ("governance_constraints", json!(7)),
    ] {
        let mut body = body.clone();
        (body["dispatch_no"], body[name]) = (json!(2), value);
        assert_eq!(dispatch(&gateway, &body), "422", "{body}");
    }
}

#[test]
fn the_guide_says_of_every_case_why_it_matters() {
    let guide = std::fs::read_to_string(root().join("docs/guide/adapters.md")).unwrap();
    let (gateways, adapters) = guide.split_once("## An adapter in Rust").unwrap();
    let missing = |page: &str, names: Vec<&'static str>| -> Vec<&'static str> {
        assert!(names.len() > 10);
        names.into_iter().filter(|name| !page.contains(&format!("| {name} | "))).collect()
    };
    assert_eq!(missing(gateways, gateway::names().collect()), [""; 0]);
    assert_eq!(missing(adapters, adapter::names().collect()), [""; 0]);
}

#[test]
fn what_is_not_so_is_told_and_the_exit_code_says_so() {
    let ours = free();
    let session = session(ours);
    let bridge = bridge(&session);
    // The bridge delivers results to its server only.
    let told = check(&bridge, free(), &["--provider", "mock"]);
    expect![[r#"
        stdout:
        passed   health is answered within five seconds
        FAILED   a dispatch is answered with 202 and its ids: a dispatch got status 422 instead of 202: `callback_url` or `tool_url` does not belong to a server that this bridge works for
        FAILED   the result comes once, with its ids and both tokens: a dispatch got status 422 instead of 202: `callback_url` or `tool_url` does not belong to a server that this bridge works for
        FAILED   fields that are not known are passed over: a dispatch got status 422 instead of 202: `callback_url` or `tool_url` does not belong to a server that this bridge works for
        FAILED   a constraint that is not known refuses the dispatch: a dispatch got status 422 instead of 202: `callback_url` or `tool_url` does not belong to a server that this bridge works for
        FAILED   without the key nothing runs: a dispatch got status 422 instead of 202: `callback_url` or `tool_url` does not belong to a server that this bridge works for
        FAILED   rubbish is refused and the gateway lives on: a dispatch got status 422 instead of 202: `callback_url` or `tool_url` does not belong to a server that this bridge works for
        FAILED   the same dispatch runs once: a dispatch got status 422 instead of 202: `callback_url` or `tool_url` does not belong to a server that this bridge works for
        FAILED   a result that is not taken comes again: a dispatch got status 422 instead of 202: `callback_url` or `tool_url` does not belong to a server that this bridge works for
        FAILED   a cancelled dispatch stops and says so: a dispatch got status 422 instead of 202: `callback_url` or `tool_url` does not belong to a server that this bridge works for
        FAILED   a dispatch that takes too long is timed_out: a dispatch got status 422 instead of 202: `callback_url` or `tool_url` does not belong to a server that this bridge works for
        skipped  a request that waits is answered with the result: the gateway does not have the capability `sync`
        1 passed, 10 failed, 1 skipped
        exit 1
    "#]].assert_eq(&told);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_sent() {
    let session = Session::new().file("key", "k");
    let told: Vec<String> = [
        vec!["ftp://127.0.0.1", "--key", "file:key"],
        vec!["http://127.0.0.1:1", "--key", "env:SLUICE_TEST_UNSET"],
        vec!["http://127.0.0.1:1", "--key", "the-secret-itself"],
        vec!["http://127.0.0.1:1", "--key", "file:key", "--token", "the-secret-itself"],
        vec!["http://127.0.0.1:1", "--key", "file:key", "--listen", "0.0.0.0:0"],
    ]
    .into_iter()
    .map(|args| session.run(&[vec!["gateways", "check", "--provider", "mock"], args].concat()))
    .collect();
    expect![[r#"
        stderr:
        error[config_invalid]: the gateway URL is not valid
         |
         = help: write where the gateway is, such as `http://127.0.0.1:7410`
        exit 2

        stderr:
        error[config_invalid]: `--key`: the variable `SLUICE_TEST_UNSET` is not set
         |
         = help: `secret:NAME` names a secret of sluice.toml, `env:NAME` a variable, `file:PATH` a file with nothing else in it
        exit 2

        stderr:
        error[config_invalid]: `--key`: this is not a reference to a secret: write `secret:NAME`, or `env:NAME` or `file:PATH` as the operator; the secret itself does not belong here
         |
         = help: `secret:NAME` names a secret of sluice.toml, `env:NAME` a variable, `file:PATH` a file with nothing else in it
        exit 2

        stderr:
        error[config_invalid]: `--token`: this is not a reference to a secret: write `secret:NAME`, or `env:NAME` or `file:PATH` as the operator; the secret itself does not belong here
         |
         = help: `secret:NAME` names a secret of sluice.toml, `env:NAME` a variable, `file:PATH` a file with nothing else in it
        exit 2

        stderr:
        error[listen_refused]: 0.0.0.0:0 is not a loopback address, so tokens would be sent unencrypted
         |
         = help: check a gateway on its own machine, or through a tunnel
        exit 2
    "#]]
    .assert_eq(&told.join("\n"));
}
