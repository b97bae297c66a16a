//! Official clients of the protocol, and servers for them to ask.

use crate::session::root;
use crate::world::{PATIENCE, World};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};

/// Which client.
#[derive(Debug, Clone, Copy)]
pub(super) enum Era {
    /// A handshake first.
    Legacy,
    /// The protocol of 2026-07-28: each message by itself.
    Modern,
}

/// A client that is connected. Dropping it ends it.
pub(super) struct Client {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    /// What it was told when it connected, or why it was not.
    pub(super) greeting: Value,
}

impl Client {
    fn connect(era: Era, place: &Value) -> Client {
        let tools = root().join("target/tools/mcp-client");
        let there = tools.join("node_modules/@modelcontextprotocol");
        assert!(there.is_dir(), "the clients are not installed: run `make mcp-client`");
        let mut options = place.clone();
        options["client"] = match era {
            Era::Legacy => "legacy".into(),
            Era::Modern => "modern".into(),
        };
        let mut child = Command::new("node")
            .arg(root().join("tools/mcp-client/drive.mjs"))
            .args([tools.to_str().unwrap(), &options.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let answers = lines(output);
        let mut client = Client { child, input, answers, greeting: Value::Null };
        client.greeting = client.answer();
        client
    }

    /// Over HTTP.
    pub(super) fn http(era: Era, server: &Serving, token: &str) -> Client {
        let url = format!("{}/mcp", server.url);
        Client::connect(era, &json!({"http": {"url": url, "token": token}}))
    }

    /// Through a process at standard input and output.
    pub(super) fn stdio(era: Era, world: &World, args: &[&str], env: &Value) -> Client {
        let program = env!("CARGO_BIN_EXE_sluice");
        let args: Vec<&str> = ["mcp"].into_iter().chain(args.iter().copied()).collect();
        let place = json!({"command": program, "args": args, "env": env, "cwd": world.path()});
        Client::connect(era, &json!({"stdio": place}))
    }

    /// The same, which asks a server.
    pub(super) fn through(era: Era, world: &World, server: &Serving, token: &str) -> Client {
        let env = json!({"SLUICE_URL": server.url, "SLUICE_TOKEN": token});
        Client::stdio(era, world, &[], &env)
    }

    fn answer(&self) -> Value {
        let line = self.answers.recv_timeout(PATIENCE).expect("the client answers");
        serde_json::from_str(&line).unwrap()
    }

    /// Asks without waiting.
    pub(super) fn ask(&mut self, asked: &Value) {
        writeln!(self.input, "{asked}").unwrap();
    }

    /// What came of it.
    pub(super) fn told(&self) -> Value {
        self.answer()
    }

    /// The names of the tools it is shown.
    pub(super) fn tools(&mut self) -> Vec<String> {
        self.ask(&json!({"list": true}));
        let list = self.answer();
        let tools = list["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The data of a tool's result, which must not be a refusal.
    pub(super) fn data(&mut self, tool: &str, args: &Value) -> Value {
        self.ask(&json!({"call": tool, "args": args}));
        data(&self.answer())
    }

    /// The refusal of a tool.
    pub(super) fn refusal(&mut self, tool: &str, args: &Value) -> Value {
        self.ask(&json!({"call": tool, "args": args}));
        let answer = self.answer();
        assert_eq!(answer["result"]["isError"], true, "{tool}: {answer}");
        answer["result"]["structuredContent"].clone()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The data of a result, marked as what it is.
pub(super) fn data(answer: &Value) -> Value {
    let whole = &answer["result"]["structuredContent"];
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert_eq!(whole["meta"]["untrusted"], true, "{answer}");
    whole["data"].clone()
}

fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// A server that runs. Dropping it ends it.
pub(super) struct Serving {
    child: Child,
    /// Where it is.
    pub(super) url: String,
}

impl Serving {
    /// Starts one on the world's data directory; `mock.yaml` answers for agents.
    pub(super) fn start(world: &World) -> Serving {
        let args = ["serve", "--listen", "127.0.0.1:0", "--mock", "mock.yaml"];
        let mut command = world.command(&args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let first = lines(child.stdout.take().unwrap()).recv_timeout(PATIENCE);
        let first = first.expect("the server says where it is");
        let url = first.strip_prefix("sluice serves at ").unwrap_or_else(|| panic!("{first}"));
        Serving { url: url.to_owned(), child }
    }

    /// Its host and port.
    pub(super) fn authority(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// Tells it to stop, and waits until it has.
    pub(super) fn stop(mut self) -> std::process::ExitStatus {
        let id = i32::try_from(self.child.id()).unwrap();
        let id = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes a token in a role.
pub(super) fn token(world: &World, role: &str) -> String {
    let made = world.json(&["tokens", "create", role, "--role", role, "--json"]);
    made["token"].as_str().unwrap().to_owned()
}
