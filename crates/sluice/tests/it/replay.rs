//! A run that asks a model is recorded, and replayed without it.

use crate::world::{Running, World};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

const KEY: &str = "model-key-hunter2";
const ASK: &str = "
name: ask
steps:
  - {id: greet, agent: scribe, command: Greet Ada.}
outputs: {said: '${greet.stdout}'}
";

/// A model that repeats the key it is shown, in pieces, for as long as the test runs.
fn model() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            std::thread::spawn(move || answer(stream));
        }
    });
    format!("http://{address}/v1")
}

fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut length, mut shown, mut line) = (0, String::new(), String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "authorization" => value.trim().clone_into(&mut shown),
            _ => {}
        }
    }
    reader.by_ref().take(length).read_to_end(&mut Vec::new())?;
    let (one, two) = shown.split_at(shown.len() / 2);
    let piece = |text: &str| {
        let piece = serde_json::json!({"id": "x", "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]});
        format!("data: {piece}\n\n")
    };
    let end = "data: {\"id\":\"x\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
               data: {\"id\":\"x\",\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n\
               data: [DONE]\n\n";
    let body = [piece("Hello, Ada. "), piece(one), piece(two), end.to_owned()].concat();
    let mut stream = stream;
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")?;
    write!(stream, "content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn run(world: &World, more: &[&str], key: Option<&str>) -> (Option<i32>, String, String) {
    let args: Vec<&str> = ["run", "ask.lobsterx.yaml"].iter().chain(more).copied().collect();
    let mut command = world.command(&args);
    command.env_remove("MODEL_KEY").envs(key.map(|key| ("MODEL_KEY", key)));
    let output = Running::spawn(command).output();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_run_that_asks_a_model_is_replayed_without_it_and_without_its_key() {
    let url = model();
    let setup = format!(
        "gateways:\n  models: {{provider: openai, base_url: '{url}', key: 'env:MODEL_KEY', default: true}}\n\
         agents:\n  scribe: {{trust_level: 5, gateway: models, model: m}}\n"
    );
    let world = World::new()
        .file("sluice.toml", "[outbound]\nallow = [\"127.0.0.1\"]\n")
        .file("setup.yaml", &setup)
        .file("ask.lobsterx.yaml", ASK);
    world.printed(&["apply", "-f", "setup.yaml"]);
    let (code, said, told) = run(&world, &["--record", "ask.jsonl"], Some(KEY));
    assert_eq!(code, Some(0), "{said} {told}");
    assert!(said.contains("Hello, Ada. Bearer [redacted]"), "{said}");
    assert!(told.contains("exchanges recorded: 1"), "{told}");
    let kept = std::fs::read_to_string(world.path().join("ask.jsonl")).unwrap();
    assert!(!kept.contains("hunter2"), "{kept}");
    let (code, said, told) = run(&world, &["--replay", "ask.jsonl"], None);
    assert_eq!(code, Some(0), "{said} {told}");
    assert!(said.contains("Hello, Ada. Bearer [redacted]"), "{said}");
    assert!(told.contains("replayed without a difference"), "{told}");
    let world = world.file("ask.lobsterx.yaml", &ASK.replace("Ada", "Bob"));
    let (code, _, told) = run(&world, &["--replay", "ask.jsonl"], None);
    assert_eq!(code, Some(1), "{told}");
    let diverged = "diverged at step `greet`, dispatch 1, request 1 (POST";
    assert!(told.contains(diverged) && told.contains("invalid_request"), "{told}");
    assert!(told.contains("recorded \"Greet Ada.\", now \"Greet Bob.\""), "{told}");
}
