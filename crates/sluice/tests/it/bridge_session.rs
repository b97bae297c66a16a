//! Sessions over a real bridge: an agent whose row says so continues the conversation that its
//! gateway keeps.

use crate::bridge::{Heard, request};
use crate::server::Server;
use crate::world::{World, shown};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

const FLOW: &str = "
name: talk
version: 1
steps:
  - {id: first, agent: reader, command: hello}
  - {id: second, agent: reader, depends_on: [first], command: and then}
  - {id: other, agent: stranger, depends_on: [second], command: who is there}
";

/// A service that begins a conversation for each request that continues none.
fn service() -> (SocketAddr, Receiver<Heard>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let Some((path, body)) = request(&stream) else { continue };
            let begun = format!("conversation of {}", body["step_id"].as_str().unwrap_or_default());
            let session = body["session_id"].as_str().unwrap_or(&begun);
            let answer = json!({"status": "completed", "stdout": "ok", "session_id": session});
            let answer = answer.to_string();
            let head = format!("content-length: {}\r\nconnection: close", answer.len());
            let _ = write!(&stream, "HTTP/1.1 200 OK\r\n{head}\r\n\r\n{answer}");
            if sender.send((path, body)).is_err() {
                return;
            }
        }
    });
    (at, heard)
}

/// A bridge process that ends with the test.
struct Bridge(Child);

impl Bridge {
    fn start(world: &World, port: u16) -> Bridge {
        let listen = format!("127.0.0.1:{port}");
        let mut command = world.command(&["bridge", "bridge.yaml", "--listen", &listen]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("works at"), "{line}");
        Bridge(child)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_agent_continues_its_session_at_a_bridge_if_its_row_says_so() {
    let (worker, heard) = service();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let world = World::new();
    let token = world.path().join("token");
    let setup = format!(
        "gateways:\n  far: {{provider: work, url: 'http://127.0.0.1:{port}', key: 'file:{}'}}\n\
         agents:\n  reader: {{gateway: far, session: continue}}\n  stranger: {{gateway: far}}\n\
         workflows: [talk.lobsterx.yaml]\n",
        token.display()
    );
    let world = world
        .file("talk.lobsterx.yaml", FLOW)
        .file("mock.yaml", "{}")
        .file("setup.yaml", &setup)
        .file("sluice.toml", "[outbound]\nallow = ['127.0.0.1']\n");
    world.printed(&["apply", "-f", "setup.yaml"]);
    let made = world.json(&["gateways", "token", "far", "--json"]);
    std::fs::write(&token, made["token"].as_str().unwrap()).unwrap();
    let server = Server::start(&world, "127.0.0.1:0");
    let world = world.file(
        "bridge.yaml",
        &format!(
            "gateway: far\nserver: {}\ntoken: 'file:token'\nspool: spool\n\
             adapters:\n  work: {{provider: http, base_url: 'http://{worker}/'}}\n",
            server.url
        ),
    );
    let _bridge = Bridge::start(&world, port);
    let done = server.output(&world, &["workflows", "start", "talk"]);
    assert_eq!(done.status.code(), Some(0), "{}", shown(&done));
    let sent: Vec<(Value, Value)> = heard
        .try_iter()
        .map(|(_, mut body)| (body["step_id"].take(), body["session_id"].take()))
        .collect();
    let expected = [
        (json!("first"), Value::Null),
        (json!("second"), json!("conversation of first")),
        (json!("other"), Value::Null),
    ];
    assert_eq!(sent, expected);
}
