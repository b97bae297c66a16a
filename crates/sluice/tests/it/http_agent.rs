//! `agent: http`: a step is sent to the URL in the first line of its command.

use crate::bridge::request;
use crate::world::{World, shown};
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::process::Output;
use std::sync::mpsc::{Receiver, channel};

const CALL: &str = "
name: call
args: {url: string}
steps:
  - {id: draft, agent: shell, command: printf 'A letter.'}
  - id: review
    agent: http
    stdin: $draft.stdout
    command: |
      ${args.url}
      Review the letter.
    outputs: {score: integer}
outputs: {score: '${score}'}
";

/// A service that reviews at `/review`, answers later at `/later`, and is told nothing
/// else.
fn service() -> (SocketAddr, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let Some((path, body)) = request(&stream) else { continue };
            let result = json!({"status": "completed", "outputs": {"score": 7}, "stdout": "good"});
            let (status, answer) = match path.as_str() {
                "/review" => ("200 OK", result.to_string()),
                "/later" => ("202 Accepted", "{}".to_owned()),
                "/prose" => ("200 OK", "\"fine\"".to_owned()),
                _ => ("404 Not Found", r#"{"error": "no such service"}"#.to_owned()),
            };
            let head = format!("content-length: {}\r\nconnection: close", answer.len());
            let _ = write!(&stream, "HTTP/1.1 {status}\r\n{head}\r\n\r\n{answer}");
            if tell.send(body).is_err() {
                return;
            }
        }
    });
    (at, heard)
}

fn run(world: &World, url: &str, allow: &str) -> Output {
    let url = format!("url={url}");
    let mut command = world.command(&["run", "call.lobsterx.yaml", "--arg", &url, "--json"]);
    command.env("SLUICE_OUTBOUND_ALLOW", allow).output().unwrap()
}

fn state(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", shown(output)))
}

#[test]
fn a_step_is_posted_to_its_url_and_answered_with_its_outputs() {
    let (at, heard) = service();
    let world = World::new().file("call.lobsterx.yaml", CALL);
    let done = run(&world, &format!("http://{at}/review"), "127.0.0.1");
    assert_eq!(done.status.code(), Some(0), "{}", shown(&done));
    assert_eq!(state(&done)["outputs"], json!({"score": 7}));
    let body = heard.recv().unwrap();
    assert_eq!(body["command"], "Review the letter.\n");
    assert_eq!((&body["stdin"], &body["step_id"]), (&json!("A letter."), &json!("review")));
    assert_eq!((&body["agent"], &body["provider"]), (&json!("http"), &json!("http")));
    assert!(body["output_schema"].is_object() && body["idempotency_key"].is_string(), "{body}");
    for kept in ["dispatch_token", "callback_url", "tool_url"] {
        assert_eq!(body[kept], Value::Null, "a stranger is not told {kept}");
    }
}

#[test]
fn an_address_that_the_operator_does_not_allow_is_not_called() {
    let (at, heard) = service();
    let world = World::new().file("call.lobsterx.yaml", CALL);
    let refused = run(&world, &format!("http://{at}/review"), "");
    assert_eq!(refused.status.code(), Some(1), "{}", shown(&refused));
    let step = &state(&refused)["node_results"][1];
    assert_eq!(step["error_code"], "invalid_request", "{step}");
    assert!(step["error_message"].as_str().unwrap().contains("loopback"), "{step}");
    assert!(heard.try_recv().is_err(), "nothing was sent");
}

#[test]
fn what_is_not_a_result_fails_the_step_and_says_why() {
    let (at, _heard) = service();
    let world = World::new().file("call.lobsterx.yaml", CALL);
    for (path, code, why) in [
        ("later", "provider_error", "answered 202"),
        ("prose", "provider_error", "not a valid result"),
        ("gone", "invalid_request", "answered 404: no such service"),
    ] {
        let failed = run(&world, &format!("http://{at}/{path}"), "127.0.0.1");
        assert_eq!(failed.status.code(), Some(1), "{path}: {}", shown(&failed));
        let step = &state(&failed)["node_results"][1];
        assert_eq!(step["error_code"], code, "{path}: {step}");
        assert!(step["error_message"].as_str().unwrap().contains(why), "{path}: {step}");
    }
    let failed = run(&world, "Review this.", "");
    let step = &state(&failed)["node_results"][1];
    assert!(step["error_message"].as_str().unwrap().contains("is not a URL"), "{step}");
}

#[test]
fn a_server_without_a_shell_has_the_agent_too() {
    let (at, _heard) = service();
    let world = World::new().file("call.lobsterx.yaml", CALL);
    let alone = CALL.lines().filter(|line| !line.contains("draft")).collect::<Vec<_>>().join("\n");
    let world = world.file("call.lobsterx.yaml", &alone);
    let mut serve = world.command(&["serve", "--listen", "127.0.0.1:0"]);
    serve.env("SLUICE_OUTBOUND_ALLOW", "127.0.0.1");
    let server = crate::server::Server::of(&world, serve);
    server.printed(&world, &["workflows", "put", "call.lobsterx.yaml"]);
    let url = format!("url=http://{at}/review");
    let done = server.json(&world, &["workflows", "start", "call", "--arg", &url, "--json"]);
    assert_eq!((&done["status"], &done["outputs"]["score"]), (&json!("completed"), &json!(7)));
}
