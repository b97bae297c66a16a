//! Recording and replaying the same requests.

use super::*;
use crate::directory::{AdapterContext, Connection};
use crate::fake_call::{FakeCall, answer, error, request};
use crate::record::Recorder;
use crate::secret::Secret;
use crate::secret::keyring::{Keyring, NamedSecret};
use crate::tools::{Structured, Tool, ToolAnswer};
use reqwest::header::AUTHORIZATION;
use serde_json::{Value, json};
use sluice_core::port::adapter::CallErrorCode;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

const KEY: &str = "replay-key-hunter2";

/// A provider that answers by the URL.
#[derive(Debug)]
struct Provider;

struct Coming(HeaderMap, VecDeque<Result<Vec<u8>, OutboundError>>);

impl Incoming for Coming {
    fn status(&self) -> u16 {
        200
    }

    fn headers(&self) -> &HeaderMap {
        &self.0
    }

    fn chunk(&mut self) -> Later<'_, Result<Option<Vec<u8>>, OutboundError>> {
        Box::pin(std::future::ready(self.1.pop_front().transpose()))
    }
}

impl Wire for Provider {
    fn open<'a>(
        &'a self,
        _: RequestIndex<'a>,
        request: &'a Request,
    ) -> Later<'a, Result<Box<dyn Incoming>, OutboundError>> {
        crate::secret::known::process().note("env:KEY", &Secret::new(KEY)).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("text/plain"));
        headers.insert("set-cookie", HeaderValue::from_static("a=b"));
        headers.insert("x-request-id", HeaderValue::from_static(KEY));
        let parts: Vec<Result<Vec<u8>, OutboundError>> = match request.url.as_str() {
            url if url.contains("unreachable") => {
                return Box::pin(std::future::ready(Err(OutboundError::Unreachable(
                    "gone".to_owned(),
                ))));
            }
            url if url.contains("tells") => {
                let why = format!("refused {KEY}");
                return Box::pin(std::future::ready(Err(OutboundError::Unreachable(why))));
            }
            url if url.contains("break") => vec![Ok(b"a".to_vec()), Err(OutboundError::Broken)],
            url if url.contains("bytes") => vec![Ok(vec![0xff, 0]), Ok(b"text".to_vec())],
            url if url.contains("leak") => {
                let (one, two) = KEY.split_at(7);
                vec![Ok(format!("key {one}").into_bytes()), Ok(two.as_bytes().to_vec())]
            }
            _ => vec![Ok(b"one ".to_vec()), Ok(b"two".to_vec())],
        };
        let coming = Box::new(Coming(headers, parts.into())) as Box<dyn Incoming>;
        Box::pin(std::future::ready(Ok(coming)))
    }
}

fn asks(path: &str, body: &Value) -> Request {
    let url = format!("https://example.com/{path}");
    let body = body.to_string().into_bytes();
    let mut value = HeaderValue::from_static("Bearer replay-key-hunter2");
    value.set_sensitive(true);
    Request::post(&url, body, Duration::from_secs(1), 1000).header(AUTHORIZATION, value)
}

fn place(step: &str) -> RequestIndex<'_> {
    RequestIndex { step, dispatch_no: 1, number: 1 }
}

/// The received chunks, and how the response ended.
async fn read(wire: &dyn Wire, step: &str, request: &Request) -> (Vec<Vec<u8>>, String) {
    let mut incoming = match wire.open(place(step), request).await {
        Ok(incoming) => incoming,
        Err(error) => return (Vec::new(), error.to_string()),
    };
    let mut parts = Vec::new();
    loop {
        match incoming.chunk().await {
            Ok(Some(part)) => parts.push(part),
            Ok(None) => return (parts, "whole".to_owned()),
            Err(error) => return (parts, error.to_string()),
        }
    }
}

fn file(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("calls.jsonl")
}

#[tokio::test]
async fn responses_and_failures_are_replayed_chunk_by_chunk() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::create(&file(&dir)).unwrap();
    let wire = recorder.wire(Arc::new(Provider));
    let asked =
        ["whole", "break", "bytes", "unreachable"].map(|path| (path, asks(path, &json!({}))));
    let mut first = Vec::new();
    for (path, request) in &asked {
        first.push(read(wire.as_ref(), path, request).await);
    }
    assert_eq!(recorder.finish(), Ok(4));
    let replay = Replay::open(&file(&dir)).unwrap();
    let wire = replay.wire();
    for ((path, request), first) in asked.iter().zip(first) {
        assert_eq!(read(wire.as_ref(), path, request).await, first, "{path}");
    }
    assert_eq!((replay.diverged(), replay.unused()), (Vec::new(), Vec::new()));
    let mode = std::fs::metadata(file(&dir)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn no_secret_is_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::create(&file(&dir)).unwrap();
    let wire = recorder.wire(Arc::new(Provider));
    let body = json!({"prompt": format!("my key is {KEY}"), "dispatch_token": "sld_token"});
    let request = asks("leak?api_key=other-secret&alt=sse", &body);
    read(wire.as_ref(), "a", &request).await;
    read(wire.as_ref(), "c", &asks("tells", &json!({}))).await;
    recorder.tools(Arc::new(Tools)).call("t.x", &json!({"k": KEY}), place("b")).await.unwrap();
    recorder.finish().unwrap();
    let text = std::fs::read_to_string(file(&dir)).unwrap();
    for secret in ["hunter2", "other-secret", "sld_token", "Bearer", "a=b"] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
    assert!(text.contains("alt=sse") && text.contains("key [redacted]"), "{text}");
    let replay = Replay::open(&file(&dir)).unwrap();
    let (parts, end) = read(replay.wire().as_ref(), "a", &request).await;
    assert_eq!((parts.concat(), end.as_str()), (b"key [redacted]".to_vec(), "whole"));
}

#[tokio::test]
async fn a_secret_in_a_name_is_not_in_the_file_and_the_exchange_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::create(&file(&dir)).unwrap();
    let wire = recorder.wire(Arc::new(Provider));
    let (step, tool) = (format!("ask {KEY}"), format!("t.{KEY}"));
    let mut request = asks("whole", &json!({}));
    request.method = KEY.parse().unwrap();
    request.headers.insert(HeaderName::try_from(KEY).unwrap(), HeaderValue::from_static("on"));
    let first = read(wire.as_ref(), &step, &request).await;
    let tools = recorder.tools(Arc::new(Tools));
    tools.call(&tool, &json!({}), place(&step)).await.unwrap_err();
    assert_eq!(recorder.finish(), Ok(2));
    let text = std::fs::read_to_string(file(&dir)).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let replay = Replay::open(&file(&dir)).unwrap();
    assert_eq!(read(replay.wire().as_ref(), &step, &request).await, first);
    let failed = replay.tools("t").call(&tool, &json!({}), place(&step)).await.unwrap_err();
    assert_eq!(failed.0, "no such thing");
    assert_eq!((replay.diverged(), replay.unused()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn a_different_request_fails_with_a_precise_reason() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::create(&file(&dir)).unwrap();
    let wire = recorder.wire(Arc::new(Provider));
    read(wire.as_ref(), "a", &asks("x", &json!({"model": "m", "n": [1, 2]}))).await;
    read(wire.as_ref(), "left", &asks("x", &json!({}))).await;
    let replay = Replay::open(&file(&dir)).unwrap();
    let wire = replay.wire();
    let (_, told) = read(wire.as_ref(), "a", &asks("x", &json!({"model": "m", "n": [1, 3]}))).await;
    let at = "step `a`, dispatch 1, request 1 (POST https://example.com/x)";
    let what = format!("{at}: /n/1: recorded 2, now 3");
    assert_eq!(told, format!("diverges from the recording at {what}"));
    let (_, told) = read(wire.as_ref(), "a", &asks("x", &json!({}))).await;
    assert!(told.ends_with("it is not in the recording"), "{told}");
    let (_, told) = read(wire.as_ref(), "new", &asks("y", &json!({}))).await;
    assert!(told.contains("step `new`") && told.ends_with("it is not in the recording"), "{told}");
    assert_eq!(replay.diverged().len(), 3);
    assert_eq!(replay.diverged()[0], what);
    let left = "step `left`, dispatch 1, request 1 (POST https://example.com/x)";
    assert_eq!(replay.unused(), [left]);
    for n in 0..100 {
        read(wire.as_ref(), &format!("s{n}"), &asks("y", &json!({}))).await;
    }
    let told = replay.diverged();
    assert_eq!((told.len(), told[20].as_str()), (21, "and 83 more"));
}

#[tokio::test]
async fn of_two_exchanges_with_one_index_the_matching_one_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::create(&file(&dir)).unwrap();
    let wire = recorder.wire(Arc::new(Provider));
    read(wire.as_ref(), "a", &asks("bytes", &json!(1))).await;
    read(wire.as_ref(), "a", &asks("whole", &json!(2))).await;
    let replay = Replay::open(&file(&dir)).unwrap();
    let wire = replay.wire();
    assert_eq!(read(wire.as_ref(), "a", &asks("whole", &json!(2))).await.0.len(), 2);
    assert_eq!(read(wire.as_ref(), "a", &asks("bytes", &json!(1))).await.0[0], [0xff, 0]);
    assert_eq!((replay.diverged(), replay.unused()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn tool_calls_and_requests_are_numbered_separately() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::create(&file(&dir)).unwrap();
    let wire = recorder.wire(Arc::new(Provider));
    read(wire.as_ref(), "a", &asks("x", &json!(1))).await;
    recorder.tools(Arc::new(Tools)).call("t.x", &json!({}), place("a")).await.unwrap();
    let replay = Replay::open(&file(&dir)).unwrap();
    let other = replay.tools("t").call("t.x", &json!({"b": 1}), place("a")).await.unwrap_err();
    assert!(other.is_divergence() && other.0.contains("/b: recorded nothing, now 1"), "{other}");
    assert_eq!(read(replay.wire().as_ref(), "a", &asks("x", &json!(1))).await.1, "whole");
}

#[tokio::test]
async fn requests_outside_of_dispatches_are_neither_recorded_nor_compared() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::create(&file(&dir)).unwrap();
    let (live, how) = (recorder.wire(Arc::new(Provider)), asks("health", &json!({})));
    assert_eq!(
        live.open(RequestIndex::OUTSIDE_DISPATCH, &how).await.map(|answer| answer.status()).ok(),
        Some(200)
    );
    assert_eq!((recorder.finish(), live.is_live()), (Ok(0), true));
    let replay = Replay::open(&file(&dir)).unwrap();
    let wire = replay.wire();
    assert_eq!(
        wire.open(RequestIndex::OUTSIDE_DISPATCH, &how).await.map(|answer| answer.status()).ok(),
        Some(200)
    );
    assert_eq!((replay.diverged(), wire.is_live()), (Vec::new(), false));
}

#[test]
fn a_malformed_recording_is_rejected() {
    let read = |text: &str| Replay::read(text.as_bytes()).map(|_| ()).unwrap_err();
    assert_eq!(read(""), NoRecording::NotOne);
    assert_eq!(read("{}\n"), NoRecording::NotOne);
    assert_eq!(read("{\"sluice_recording\":2}\n"), NoRecording::Version(2));
    assert_eq!(read("{\"sluice_recording\":1}\n\n{}\n"), NoRecording::BadLine(3));
    let bad = json!({"step": "a", "dispatch_no": 1, "number": 1,
        "asked": {"method": "POST", "url": "x", "body": {"json": 1}},
        "outcome": {"answered": {"status": 200, "chunks": [{"base64": "?"}], "end": "whole"}}});
    assert_eq!(read(&format!("{{\"sluice_recording\":1}}\n{bad}")), NoRecording::BadLine(2));
    assert!(Replay::read(b"{\"sluice_recording\":1}\n").is_ok());
    let missing = Replay::open(Path::new("/nowhere/at/all")).unwrap_err();
    assert_eq!(missing, NoRecording::Unreadable(io::ErrorKind::NotFound));
    let unwritable = Recorder::create(Path::new("/nowhere/at/all")).unwrap_err();
    assert!(unwritable.to_string().starts_with("the recording cannot be written"));
}

#[derive(Debug)]
struct Tools;

impl ToolServer for Tools {
    fn name(&self) -> &str {
        "t"
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolServerError>> {
        let tool = Tool {
            name: "t.x".to_owned(),
            description: String::new(),
            input_schema: json!({}),
            read_only: true,
        };
        Box::pin(std::future::ready(Ok(Arc::from([tool]))))
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        _: RequestIndex<'a>,
    ) -> Later<'a, Result<(ToolAnswer, Structured), ToolServerError>> {
        let structured = json!({"got": input}).as_object().cloned();
        let answer = match tool {
            "t.x" => Ok(ToolAnswer {
                text: format!("got {input}"),
                failed: false,
                ..ToolAnswer::default()
            }),
            _ => Err(ToolServerError("no such thing".to_owned())),
        };
        Box::pin(std::future::ready(answer.map(|answer| (answer, structured))))
    }
}

fn kit(wire: Arc<dyn Wire>, server: Arc<dyn ToolServer>) -> AdapterContext {
    let tool_servers = BTreeMap::from([(server.name().to_owned(), server)]);
    AdapterContext { wire, tool_servers, secrets: Keyring::default(), callbacks: None }
}

/// A gateway of tools with a key that does not exist.
fn gateway() -> Connection {
    Connection {
        provider: "mcp".to_owned(),
        key: Some(NamedSecret::of_operator("env:SURELY_NOBODY_SET_THIS".parse().unwrap())),
        tool_servers: vec!["t".to_owned(), "unknown".to_owned()],
        ..Connection::default()
    }
}

#[tokio::test]
async fn a_step_that_calls_a_tool_is_replayed_without_its_server() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::create(&file(&dir)).unwrap();
    let live = kit(Arc::new(Provider), recorder.tools(Arc::new(Tools)));
    let live_adapter = live.adapter("g", &gateway()).unwrap();
    let step = |tool: &str, message: &str| sluice_core::port::adapter::Request {
        tools: vec![tool.to_owned()],
        ..request("a", message)
    };
    let (good, bad) = (step("t.x", r#"{"a": 1}"#), step("t.y", "{}"));
    let bad = sluice_core::port::adapter::Request { dispatch_no: 2, ..bad };
    let first = answer(live_adapter.as_ref(), &good, &FakeCall::default()).await;
    assert_eq!(first.text.as_deref(), Some(r#"got {"a":1}"#));
    let failed = answer(live_adapter.as_ref(), &bad, &FakeCall::default()).await;
    live.tool_servers["t"].tools().await.unwrap();
    recorder.finish().unwrap();

    let replay = Replay::open(&file(&dir)).unwrap();
    let kit = kit(replay.wire(), replay.tools("t"));
    let adapter = kit.adapter("g", &gateway()).unwrap();
    assert_eq!(answer(adapter.as_ref(), &good, &FakeCall::default()).await, first);
    assert_eq!(answer(adapter.as_ref(), &bad, &FakeCall::default()).await, failed);
    assert_eq!(kit.tool_servers["t"].tools().await.unwrap()[0].name, "t.x");
    assert_eq!((replay.diverged(), replay.unused()), (Vec::new(), Vec::new()));
    let other = answer(adapter.as_ref(), &step("t.x", r#"{"a": 2}"#), &FakeCall::default()).await;
    assert_eq!(error(&other).0, CallErrorCode::InvalidRequest);
    assert_eq!(replay.diverged().len(), 1);
    assert!(replay.tools("u").tools().await.is_err());
}
