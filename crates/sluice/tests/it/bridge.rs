//! `sluice bridge` as a process: it says where it works, answers, stops when told,
//! and after a kill brings what it was given to an end.

use crate::session::{Session, binary};
use expect_test::expect;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
const RUN: &str = "run_018bcfe568007fffbfffffffffffffff";

/// A request as it came: its path and its body.
pub(crate) type Heard = (String, Value);

/// One request of a connection.
pub(crate) fn request(stream: &TcpStream) -> Option<Heard> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(said) = line.to_lowercase().strip_prefix("content-length:") {
            length = said.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    Some((path, serde_json::from_slice(&body).unwrap_or_default()))
}

/// A server that takes everything, and what it hears.
pub(crate) fn server() -> (SocketAddr, Receiver<Heard>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let heard = request(&stream);
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            let _ = (&stream).write_all(answer.as_bytes());
            if heard.is_some_and(|heard| tell.send(heard).is_err()) {
                return;
            }
        }
    });
    (at, heard)
}

/// The next request whose path ends so.
pub(crate) fn hears(heard: &Receiver<Heard>, path: &str) -> Value {
    loop {
        let (at, body) = heard.recv_timeout(PATIENCE).expect("it comes in time");
        if at.ends_with(path) {
            return body;
        }
    }
}

struct Bridge {
    child: Child,
    at: String,
}

impl Bridge {
    fn start(session: &Session) -> Bridge {
        let mut child = binary(session.path())
            .args(["bridge", "bridge.yaml", "--listen", "127.0.0.1:0"])
            .env("GATEWAY_TOKEN", "gwt_a-token")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let at = line.trim_end().strip_prefix("sluice bridge `far` works at http://");
        Bridge { at: at.expect("it says where it works").to_owned(), child }
    }

    /// Asks, and answers with status and body.
    fn ask(&self, path: &str, body: &Value) -> (String, Value) {
        let mut stream = TcpStream::connect(&self.at).unwrap();
        let body = body.to_string();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer gwt_a-token\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().to_owned();
        let json = answer.find('{').zip(answer.rfind('}'));
        let json = json.map(|(from, to)| serde_json::from_str(&answer[from..=to]).unwrap());
        (status, json.unwrap_or_default())
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn session(server: SocketAddr) -> Session {
    let file = format!(
        "gateway: far\nserver: http://{server}\ntoken: env:GATEWAY_TOKEN\nspool: spool\n\
         adapters:\n  mock: {{script: mock.yaml}}\n  shell: {{}}\n"
    );
    let script = "{slow: {hang: true}, '*': {echo: true, cost: 0.5}}";
    Session::new().file("bridge.yaml", file).file("mock.yaml", script)
}

fn dispatch(server: SocketAddr, step: &str, provider: &str, command: &str) -> Value {
    json!({
        "run_id": RUN, "step_id": step, "dispatch_no": 1, "provider": provider,
        "timeout_ms": 60_000, "command": command, "dispatch_token": "sld_x",
        "callback_url": format!("http://{server}/api/workflow/step-complete"),
    })
}

#[test]
fn a_bridge_works_for_its_server_and_leaves_when_it_is_told_to() {
    let (server, heard) = server();
    let session = session(server);
    let mut bridge = Bridge::start(&session);
    assert_eq!(hears(&heard, "/api/v1/gateways/far/heartbeat")["status"], "healthy");
    let (status, result) =
        bridge.ask("/api/v2/dispatch/sync", &dispatch(server, "a", "mock", "hello"));
    assert_eq!((status.as_str(), &result["stdout"]), ("200", &json!("hello")));
    let shell = dispatch(server, "b", "shell", "echo out of a shell");
    assert_eq!(bridge.ask("/api/v2/dispatch", &shell).0, "202");
    assert_eq!(hears(&heard, "/step-complete")["stdout"], "out of a shell\n");
    let pid = rustix::process::Pid::from_child(&bridge.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(hears(&heard, "/heartbeat")["status"], "offline");
    assert_eq!(bridge.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_second_signal_ends_a_bridge_whose_work_does_not_end() {
    let (server, heard) = server();
    let session = session(server);
    let mut bridge = Bridge::start(&session);
    let slow = dispatch(server, "slow", "mock", "");
    assert_eq!(bridge.ask("/api/v2/dispatch", &slow).0, "202");
    let pid = rustix::process::Pid::from_child(&bridge.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    while hears(&heard, "/heartbeat")["status"] != "offline" {}
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(bridge.child.wait().unwrap().code(), Some(130));
}

#[test]
fn what_a_killed_bridge_was_given_comes_to_an_end_in_its_next_life() {
    let (server, heard) = server();
    let session = session(server);
    let bridge = Bridge::start(&session);
    let slow = dispatch(server, "slow", "mock", "");
    assert_eq!(bridge.ask("/api/v2/dispatch", &slow).0, "202");
    bridge.kill();
    let bridge = Bridge::start(&session);
    let result = hears(&heard, "/step-complete");
    let said = [&result["step_id"], &result["status"], &result["error_code"], &result["cost"]];
    assert_eq!(said, [&json!("slow"), &json!("failed"), &json!("adapter_crash"), &Value::Null]);
    let (status, again) = bridge.ask("/api/v2/dispatch/sync", &slow);
    assert_eq!((status.as_str(), &again["error_code"]), ("200", &json!("adapter_crash")));
}

#[test]
fn a_file_that_makes_no_sense_is_told_and_nothing_begins() {
    let (server, _) = server();
    let rest = "server: http://127.0.0.1:1\nspool: s\n";
    let unset = format!("gateway: far\n{rest}token: env:NOT_SET_HERE\nadapters: {{shell: {{}}}}\n");
    let unknown = format!("gateway: far\n{rest}token: env:PATH\nadapters: {{odd: {{}}}}\n");
    let good = format!("gateway: far\n{rest}token: env:PATH\nadapters: {{shell: {{}}}}\n");
    let session = session(server)
        .file("odd.yaml", "gateway: far\nodd: 1\n")
        .file("torn.yaml", "gateway: [far\n")
        .file("unset.yaml", unset)
        .file("unknown.yaml", unknown)
        .file("good.yaml", good);
    let told: Vec<String> = ["odd", "unset", "unknown"]
        .map(|name| session.run(&["bridge", &format!("{name}.yaml"), "--listen", "127.0.0.1:0"]))
        .into();
    expect![[r#"
        stderr:
        error[config_invalid]: `odd.yaml`: unknown field `odd`, expected one of `gateway`, `server`, `token`, `key`, `spool`, `adapters`, `servers`, `allow`, `running_max`
         |
         = help: the guide's page on the bridge has an example of the file
        exit 2

        stderr:
        error[config_invalid]: `token`: the variable `NOT_SET_HERE` is not set
         |
         = help: `secret:NAME` names a secret of sluice.toml, `env:NAME` a variable, `file:PATH` a file with nothing else in it
        exit 2

        stderr:
        error[config_invalid]: `adapters`: the adapter `odd` names the provider `odd`, which is not known
         |
         = help: the guide's page on the bridge has an example of the file
        exit 2
    "#]].assert_eq(&told.join("\n"));
    for name in ["torn.yaml", "missing.yaml"] {
        assert!(session.run(&["bridge", name]).ends_with("exit 2\n"), "{name}");
    }
    let far = session.run(&["bridge", "good.yaml", "--listen", "0.0.0.0:0"]);
    assert!(far.contains("listen_refused") && far.ends_with("exit 2\n"), "{far}");
}
