//! The edges of the real binary: requests that two parsers would read differently, a gateway
//! that sends invalid results, a document that runs data as code.

use crate::server::Server;
use crate::world::{PATIENCE, World};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// Sends bytes over a connection of their own and reads until the server closes it.
fn sent(server: &Server, bytes: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // The server may close while it still has bytes to read.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// A request with these headers.
fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or_default()
}

#[test]
fn a_request_that_two_parsers_read_differently_is_refused() {
    let world = World::new().file("mock.yaml", "'*': {text: Done.}\n");
    let server = Server::start(&world, "127.0.0.1:0");
    let head = format!(
        "POST /api/v1/workflows/validate HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n",
        server.token
    );
    let hidden = format!(
        "GET /api/v1/tokens HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n",
        server.token
    );
    for rest in [
        format!("content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n{hidden}"),
        format!("content-length: 2\r\ncontent-length: 50\r\n\r\n{{}}{hidden}"),
        format!("content-length: 2\n\r\n{{}}{hidden}"),
        format!("x: y\ncontent-length: 2\r\n\r\n{{}}{hidden}"),
    ] {
        let answer = sent(&server, &format!("{head}{rest}"));
        assert_eq!(status(&answer), "400", "{rest:?}: {answer}");
        assert!(!answer.contains("token_id"), "the hidden request was answered: {answer}");
    }
}

#[test]
fn a_gateway_that_sends_invalid_results_neither_fills_the_audit_nor_goes_on() {
    const SENT: usize = 600;
    let world = World::new().file("mock.yaml", "'*': {text: Done.}\n");
    let world = world.file("sluice.toml", "[limits]\ngateway_rate_per_second = 50\n");
    let server = Server::start(&world, "127.0.0.1:0");
    let admin = format!("authorization: Bearer {}\r\n", server.token);
    let put = json!({"provider": "remote", "url": "https://away.example"}).to_string();
    let made = sent(&server, &request("PUT", "/api/v1/gateways/far", &admin, &put));
    assert_eq!(status(&made), "200", "{made}");
    let made = server.json(&world, &["gateways", "token", "far", "--json"]);
    let token = made["token"].as_str().unwrap();
    let headers = format!("x-gateway-token: {token}\r\nx-dispatch-token: forged\r\n");
    let run = format!("run_{:032x}", 7);
    let body = json!({"run_id": run, "step_id": "one", "dispatch_no": 1, "status": "completed"});
    let forged = request("POST", "/api/workflow/step-complete", &headers, &body.to_string());
    let answers: Vec<String> = (0..SENT).map(|_| sent(&server, &forged)).collect();
    let limited = answers.iter().filter(|answer| status(answer) == "429").count();
    assert!(answers.iter().all(|answer| !status(answer).starts_with('2')), "{}", answers[0]);
    assert!(limited > 0, "a gateway has no rate");
    let audit = request("GET", "/api/v1/audit?category=security&limit=500", &admin, "");
    let audit = sent(&server, &audit);
    let entries = audit.matches("callback_refused").count();
    assert!((1..=30).contains(&entries), "{entries} audit entries for {SENT} requests: {audit}");
    // Another client is answered meanwhile.
    assert_eq!(status(&sent(&server, &request("GET", "/api/v1/session", &admin, ""))), "200");
}

#[test]
fn a_document_that_runs_data_as_code_is_warned_of() {
    let code = "name: demo\nargs: {who: {type: string, default: world}}\nsteps:\n  \
                - {id: greet, agent: shell, command: 'sh -c \"echo ${args.who}\"'}\n";
    let data = code.replace("sh -c \"echo ${args.who}\"", "echo ${args.who}");
    let world = World::new().file("code.lobsterx.yaml", code).file("data.lobsterx.yaml", &data);
    let told = world.told(&["validate", "code.lobsterx.yaml"]);
    assert!(told.contains("data_as_code"), "{told}");
    let told = world.told(&["validate", "data.lobsterx.yaml"]);
    assert!(!told.contains("data_as_code"), "{told}");
    let json: Value = world.json(&["validate", "code.lobsterx.yaml", "--json"]);
    assert!(json.to_string().contains("data_as_code"), "{json}");
}
