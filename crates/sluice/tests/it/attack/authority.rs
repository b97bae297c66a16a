//! Rights: tokens, policies, approvals, documents and who may do what with them.

mod documents;
mod four_eyes;
mod lockout;
mod tokens;

use crate::server::Server;
use crate::world::{PATIENCE, World};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

/// A server whose steps can run commands, and the world that it is in.
fn served(world: World) -> (World, Server) {
    let server = Server::with(&world, &["--listen", "127.0.0.1:0", "--shell"]);
    (world, server)
}

/// Asks with headers of its own: the status and the answer.
fn send(server: &Server, headers: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, json) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    // The answer of a tool is an event.
    (status, serde_json::from_str(json).unwrap_or_else(|_| json.into()))
}

/// Asks with a token; again where the token has asked too often.
fn ask(server: &Server, token: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let bearer = format!("authorization: Bearer {token}\r\n");
    loop {
        let (status, answer) = send(server, &bearer, method, path, &body);
        if status != 429 {
            return (status, answer);
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// Asks as the admin, which must succeed.
fn admin(server: &Server, method: &str, path: &str, body: &Value) -> Value {
    let (status, answer) = ask(server, &server.token, method, path, body);
    assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
    answer["data"].clone()
}

/// Makes a token: its secret and its id.
fn token(server: &Server, body: &Value) -> (String, String) {
    let made = admin(server, "POST", "/api/v1/tokens", body);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("token"), text("token_id"))
}

/// A token of a person with roles.
fn person(server: &Server, name: &str, roles: &[&str]) -> String {
    token(server, &json!({"principal": name, "roles": roles})).0
}

fn refused((status, answer): (u16, Value), expected: (u16, &str)) -> String {
    assert_eq!((status, answer["code"].as_str().unwrap_or_default()), expected, "{answer}");
    answer.to_string()
}

/// Registers a document.
fn register(server: &Server, document: &str) {
    admin(server, "POST", "/api/v1/workflows", &json!({"document": document}));
}

/// Puts policies in force: these, and a permit for everything.
fn police(server: &Server, rules: &str) {
    let text = format!("permit (principal, action, resource);\n{rules}");
    admin(server, "PUT", "/api/v1/policies/rules.cedar", &json!({"text": text}));
}

fn started((status, answer): (u16, Value)) -> String {
    assert_eq!(status, 202, "{answer}");
    answer["data"]["run_id"].as_str().unwrap().to_owned()
}

/// Starts a registered workflow.
fn start(server: &Server, token: &str, workflow: &str) -> String {
    started(ask(server, token, "POST", &format!("/api/v1/workflows/{workflow}/runs"), &json!({})))
}

/// Starts a document that is not registered.
fn inline(server: &Server, token: &str, document: &str) -> String {
    started(ask(server, token, "POST", "/api/v1/runs", &json!({"document": document})))
}

/// What the journal says of a run's start.
fn begun(server: &Server, run: &str) -> Value {
    let events = admin(server, "GET", &format!("/api/v1/runs/{run}/journal?limit=1"), &Value::Null);
    events[0]["payload"].clone()
}

fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "it never came to be: {what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Waits until a run has ended: its status.
fn ended(server: &Server, run: &str) -> String {
    until("the run ends", || {
        let shown = admin(server, "GET", &format!("/api/v1/runs/{run}"), &Value::Null);
        let status = shown["status"].as_str()?.to_owned();
        ["completed", "failed", "cancelled"].contains(&status.as_str()).then_some(status)
    })
}

/// Waits until a run asks: the approval.
fn question(server: &Server, run: &str) -> Value {
    until("the run asks", || {
        let open = admin(server, "GET", "/api/v1/approvals", &Value::Null);
        open.as_array()?.iter().find(|one| one["run_id"] == run).cloned()
    })
}

/// Approves with a token.
fn approve(server: &Server, token: &str, approval: &str) -> (u16, Value) {
    let path = format!("/api/v1/approvals/{approval}/resolve");
    ask(server, token, "POST", &path, &json!({"decision": "approve"}))
}
