//! A provider that repeats the key it received, wherever it can.

use super::*;
use crate::fake_call::{FakeCall, answer, request};
use crate::secret::Secret;
use serde_json::json;
use sluice_core::port::adapter::{CallErrorCode, ToolContent, ToolEnded, Usage};
use std::sync::LazyLock;

const KEY: &str = "sk-hunter2-hunter2";
static KNOWN: LazyLock<KnownSecrets> = LazyLock::new(KnownSecrets::default);

/// An adapter that repeats the key in everything it returns.
struct Leaky;

impl Adapter for Leaky {
    fn provider(&self) -> &'static str {
        "leaky"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn health(&self) -> Later<'_, Health> {
        Box::pin(std::future::ready(Health::Healthy))
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(async move {
            // Read by the adapter itself, after it was wrapped.
            KNOWN.note("env:KEY", &Secret::new(KEY)).unwrap();
            for piece in request.message.split('|') {
                call.emit(Emission::Text(piece.to_owned())).await.unwrap();
            }
            let url = format!("https://example.com/?key={KEY}");
            call.emit(Emission::Media { url, mime: KEY.to_owned() }).await.unwrap();
            call.emit(Emission::Log(format!("sent {KEY}"))).await.unwrap();
            let (id, tool) = (KEY.to_owned(), KEY.to_owned());
            let wanted = ToolUse { id: id.clone(), tool: tool.clone(), input: json!({KEY: KEY}) };
            call.tool(wanted).await.unwrap();
            let structured = json!({KEY: [KEY]});
            let content = Some(ToolContent::new(format!("a {KEY} b"), Some(structured)));
            let ended = ToolEnded { id, tool, failed: false, bytes: 1, duration_ms: 1, content };
            call.emit(Emission::ToolEnded(ended)).await.unwrap();
            Execution::Done(Box::new(everything()))
        })
    }
}

fn everything() -> Answer {
    let object = || json!({"a": [KEY], KEY: {"b": format!("x{KEY}y")}}).as_object().cloned();
    Answer {
        text: Some(KEY.to_owned()),
        outputs: object(),
        kind: Some(KEY.to_owned()),
        artifact_kind: Some(KEY.to_owned()),
        media: Some(json!([KEY])),
        metadata: object(),
        usage: Usage { model: Some(KEY.to_owned()), ..Usage::default() },
        session: Some(KEY.to_owned()),
        conversation: vec![json!({"role": "assistant", "text": KEY})],
        artefacts: vec![json!({"url": KEY})],
        ..Answer::failed(CallErrorCode::Auth, format!("bad key {KEY}"))
    }
}

async fn heard(message: &str) -> (Answer, FakeCall) {
    let adapter = RedactingAdapter::new(Arc::new(Leaky), &KNOWN);
    let call = FakeCall::default();
    let answer = answer(&adapter, &request("a", message), &call).await;
    (answer, call)
}

#[tokio::test]
async fn a_key_is_redacted_everywhere() {
    let (answer, call) = heard(&format!("{KEY}|and {KEY}")).await;
    let all = format!("{answer:?} {:?} {:?}", call.emitted(), call.requested());
    assert!(!all.contains("hunter2"), "{all}");
    let count = format!("{:?}", everything()).matches(KEY).count();
    assert_eq!(format!("{answer:?}").matches("[redacted]").count(), count);
    assert_eq!(call.text(), "[redacted]and [redacted]");
    assert_eq!(call.log(), ["sent [redacted]"]);
}

#[tokio::test]
async fn a_key_in_pieces_is_found_and_nothing_else_is_held_back() {
    let (_, call) = heard("Your key is sk-hun|ter2-|hunter|2, all| right? sk-hunt|s rarely").await;
    assert_eq!(call.text(), "Your key is [redacted], all right? sk-hunts rarely");
    let texts = call.emitted().into_iter().filter_map(|one| match one {
        Emission::Text(text) => Some(text),
        _ => None,
    });
    let expected = ["Your key is ", "[redacted], all", " right? ", "sk-hunts rarely"];
    assert_eq!(texts.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn an_incomplete_key_is_emitted_at_the_end() {
    let (_, call) = heard("it begins with sk-hunter2").await;
    assert_eq!(call.text(), "it begins with sk-hunter2");
}

#[test]
fn redacting_a_batch_keeps_the_number_of_parts() {
    let scrub = Scrub::new([&Secret::new(KEY)]).unwrap();
    let (head, tail) = KEY.split_at(4);
    let parts = vec![
        Emission::Text(format!("a {head}")),
        Emission::Log(format!("sent {KEY}")),
        Emission::Text(tail.to_owned()),
        Emission::Text(format!(" b {head}")),
    ];
    let clean = scrub_parts(&scrub, parts);
    assert_eq!(clean.len(), 4);
    let text: String = clean.iter().fold(String::new(), |text, part| match part {
        Emission::Text(piece) => text + piece,
        _ => text,
    });
    assert_eq!(text, format!("a [redacted] b {head}"));
    assert_eq!(clean[1], Emission::Log("sent [redacted]".to_owned()));
}
