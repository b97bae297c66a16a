//! Changes of the registry, each followed at once by a start: on one node, and on nodes
//! that share a database, with the change made on one and the run started on another.
//!
//! `CHANGES` says how many there are.

use crate::database;
use crate::server::Server;
use crate::world::World;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// It begins with an approval, so that its first append dispatches nothing.
const PINNED: &str = "name: pinned\nsteps: [{id: ask, approval: required}]\n";
/// It is sent at once, unless a person must approve it.
const SENT: &str = "name: sent\nsteps: [{id: go, agent: shell, command: \"true\"}]\n";
const POSTURES: [&str; 3] = ["approval_required", "bounded_autonomous", "retrieval"];

fn changes() -> usize {
    std::env::var("CHANGES").map_or(60, |text| text.parse().unwrap())
}

/// A node whose only agent without a row is the shell. Its tokens may send as many requests as
/// the test can: a request that must wait for its turn would not follow the change at once.
fn serve(world: &World) -> Server {
    let mut command = world.command(&["serve", "--listen", "127.0.0.1:0", "--shell"]);
    command.env("SLUICE_LIMITS_RATE_PER_SECOND", "1000000");
    command.env("SLUICE_LIMITS_RATE_BURST", "1000000");
    Server::of(world, command)
}

/// Asks a node: the status and what it answers.
fn ask(node: &Server, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut stream = TcpStream::connect(node.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let media = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{media}\
         authorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
        node.token,
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, json) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(json).unwrap_or_default())
}

fn change(node: &Server, method: &str, path: &str, body: &Value) {
    let (status, answer) = ask(node, method, path, body);
    assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
}

fn started((status, answer): (u16, Value)) -> String {
    assert_eq!(status, 202, "{answer}");
    answer["data"]["run_id"].as_str().unwrap().to_owned()
}

/// The events of a run: their types, and the payload of the first.
fn journal(node: &Server, run: &str) -> (Vec<String>, Value, String) {
    let path = format!("/api/v1/runs/{run}/journal?limit=200");
    let (status, answer) = ask(node, "GET", &path, &Value::Null);
    assert_eq!(status, 200, "{answer}");
    let events = answer["data"].as_array().unwrap();
    let kinds = events.iter().map(|event| event["type"].as_str().unwrap().to_owned());
    (kinds.collect(), events[0]["payload"].clone(), answer.to_string())
}

/// One change, then one start on another node. Answers the run, where there must be one.
fn round(number: usize, changed: &Server, other: &Server) -> Option<String> {
    let posture = POSTURES[number / 5 % POSTURES.len()];
    let deploy = |workflow: &str| {
        let body = json!({"workflow": workflow, "posture": posture});
        change(changed, "PUT", &format!("/api/v1/deployments/{workflow}"), &body);
    };
    let start = |workflow: &str| {
        let path = format!("/api/v1/workflows/{workflow}/runs");
        started(ask(other, "POST", &path, &json!({})))
    };
    let agent = format!("fresh-{}", number / 5);
    let named = json!({
        "document": format!("name: inline\nsteps: [{{id: a, agent: {agent}, command: go}}]\n"),
    });
    match number % 5 {
        0 => {
            deploy("pinned");
            let run = start("pinned");
            let (_, begun, _) = journal(other, &run);
            let told = begun["posture"].as_str().unwrap_or("bounded_autonomous");
            assert_eq!(told, posture, "change {number}: {begun}");
            Some(run)
        }
        1 => {
            deploy("sent");
            let run = start("sent");
            let (kinds, ..) = journal(other, &run);
            let asked = kinds.iter().any(|kind| kind == "approval.requested");
            assert_eq!(asked, posture == "approval_required", "change {number}: {kinds:?}");
            Some(run)
        }
        2 => {
            let path = format!("/api/v1/agents/{agent}");
            change(changed, "PUT", &path, &json!({"capabilities": ["text"]}));
            Some(started(ask(other, "POST", "/api/v1/runs", &named)))
        }
        3 => {
            change(changed, "DELETE", &format!("/api/v1/agents/{agent}"), &Value::Null);
            let (status, answer) = ask(other, "POST", "/api/v1/runs", &named);
            assert_eq!(answer["code"], "unknown_agent", "change {number}: {status} {answer}");
            None
        }
        _ => {
            let step = format!("ask_{number}");
            let document = PINNED.replace("ask", &step);
            change(changed, "POST", "/api/v1/workflows", &json!({"document": document}));
            let run = start("pinned");
            let (_, _, text) = journal(other, &run);
            assert!(text.contains(&step), "change {number} started an older version: {text}");
            Some(run)
        }
    }
}

/// All of them, with the change made on each node in turn.
#[expect(clippy::print_stdout, reason = "a test tells people what it saw")]
fn play(nodes: &[Server]) {
    for document in [PINNED, SENT] {
        change(&nodes[0], "POST", "/api/v1/workflows", &json!({"document": document}));
    }
    let (began, mut runs) = (Instant::now(), 0);
    for number in 0..changes() {
        let other = &nodes[(number + 1) % nodes.len()];
        runs += usize::from(round(number, &nodes[number % nodes.len()], other).is_some());
    }
    let (count, took) = (changes(), began.elapsed());
    let nodes = nodes.len();
    println!("{nodes} nodes: {count} changes, {runs} runs, all under the new rows, in {took:.1?}");
}

#[test]
fn a_run_started_at_once_after_a_change_is_decided_under_it() {
    play(&[serve(&World::new())]);
}

#[test]
fn a_run_started_on_another_node_after_a_change_is_decided_under_it() {
    let world = database::world();
    play(&[0, 1, 2].map(|_| serve(&world)));
}

#[test]
fn what_was_applied_can_be_started_by_the_next_command() {
    let setup = "workflows: [flow.lobsterx.yaml]\nagents: {novel: {capabilities: [text]}}\n\
                 deployments: {flow: {workflow: flow, posture: approval_required}}\n";
    let flow = "name: flow\nsteps: [{id: one, agent: novel, command: one}]\n";
    let world = World::new().file("setup.yaml", setup).file("flow.lobsterx.yaml", flow);
    let server = serve(&world);
    server.printed(&world, &["apply", "-f", "setup.yaml"]);
    let told = server.printed(&world, &["workflows", "start", "flow", "--detach"]);
    assert!(told.contains("run_"), "{told}");
}
