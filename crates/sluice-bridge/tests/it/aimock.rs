//! A third-party server with the formats of three providers on one port.

use crate::listener::{PROVIDERS, RecordingCall, adapter, answer, cost, person, request, unplaced};
use serde_json::{Value, json};
use sluice_core::port::adapter::{CallErrorCode, Request};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The server process, killed when dropped.
struct Aimock {
    child: Child,
    url: String,
}

impl Aimock {
    fn start() -> Aimock {
        let tools = root().join("target/tools/aimock");
        let there = tools.join("node_modules/@copilotkit/aimock");
        assert!(there.is_dir(), "the server is not installed: run `make aimock`");
        let place = root().join("tools/aimock");
        let mut child = Command::new("node")
            .args([place.join("serve.mjs"), tools, place.join("fixtures.json")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node is installed");
        let output = child.stdout.take().expect("it is piped");
        let mut url = String::new();
        BufReader::new(output).read_line(&mut url).expect("it says where it is");
        Aimock { child, url: url.trim().to_owned() }
    }
}

impl Drop for Aimock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[tokio::test]
async fn text_streams_in_every_format() {
    let server = Aimock::start();
    for provider in PROVIDERS {
        let listener = RecordingCall::default();
        let done =
            answer(adapter(provider, &server.url).as_ref(), &request("greet"), &listener).await;
        assert_eq!((done.error.as_ref(), done.text.as_deref()), (None, Some("Good morning, Ada.")));
        assert_eq!(listener.parts().concat(), "Good morning, Ada.", "{provider}");
        let usage = &done.usage;
        assert_eq!((usage.input_tokens, usage.output_tokens), (11, 7), "{provider}");
        assert_eq!(cost(&done).as_deref(), Some("0.0081"), "{provider}");
    }
}

#[tokio::test]
async fn tools_are_called_in_every_format() {
    let server = Aimock::start();
    for provider in PROVIDERS {
        let asked = Request { tools: vec!["box.read".to_owned()], ..request("count") };
        let done =
            answer(adapter(provider, &server.url).as_ref(), &asked, &RecordingCall::default())
                .await;
        assert_eq!(
            (done.error.as_ref(), done.text.as_deref()),
            (None, Some("There are 42 apples."))
        );
        let usage = &done.usage;
        assert_eq!((usage.input_tokens, usage.output_tokens), (50, 11), "{provider}");
    }
}

#[tokio::test]
async fn objects_are_returned_in_every_format() {
    let server = Aimock::start();
    for provider in PROVIDERS {
        let done =
            answer(adapter(provider, &server.url).as_ref(), &person(), &RecordingCall::default())
                .await;
        assert_eq!(done.error, None, "{provider}");
        let outputs = done.outputs.map(Value::Object);
        assert_eq!(outputs, Some(json!({"name": "Ada", "age": 36})), "{provider}");
    }
}

#[tokio::test]
async fn a_limit_has_its_class_in_every_format() {
    let server = Aimock::start();
    for provider in PROVIDERS {
        let adapter = adapter(provider, &server.url);
        let done = answer(adapter.as_ref(), &request("too often"), &RecordingCall::default()).await;
        let error = done.error.as_ref().expect("it is too often");
        assert_eq!(
            (error.code, unplaced(&error.message).as_str()),
            (CallErrorCode::RateLimit, "the provider answered 429: slow down")
        );
        assert_eq!(error.retry_after_ms, Some(1_000), "{provider}");
        assert_eq!(cost(&done).as_deref(), Some("0.00"), "{provider}");
    }
}
