//! Everything a provider can do, in every dialect: each ends in the right class, in time, at
//! the right cost.

use crate::formats::{call, complaint, text};
use crate::listener::{PROVIDERS, RecordingCall, adapter, answer, cost, person, request, unplaced};
use crate::server::{Play, Server, Then};
use CallErrorCode::{ProviderError, RateLimit, Timeout};
use serde_json::{Value, json};
use sluice_core::port::adapter::{Answer, CallErrorCode, Health, Request};
use std::time::{Duration, Instant};

/// Cost of a turn with 100 input and 20 output tokens.
const TURN: &str = "0.03";

fn streams(parts: Vec<String>) -> Play {
    Play::Stream { parts, then: Then::Ends }
}

/// Plays a script; returns the answer, the duration and the requests.
async fn play(
    provider: &str,
    plays: Vec<Play>,
    asked: &Request,
) -> (Answer, Duration, Vec<String>) {
    let server = Server::new(plays).await;
    let begun = Instant::now();
    let done =
        answer(adapter(provider, &server.url).as_ref(), asked, &RecordingCall::default()).await;
    (done, begun.elapsed(), server.heard())
}

#[tokio::test]
async fn text_comes_in_pieces_and_costs_what_it_took() {
    for provider in PROVIDERS {
        let server = Server::new([streams(text(provider, &["Good", " morning", ", Ada."]))]).await;
        let listener = RecordingCall::default();
        let done = answer(adapter(provider, &server.url).as_ref(), &request("hi"), &listener).await;
        assert_eq!((done.error.as_ref(), done.text.as_deref()), (None, Some("Good morning, Ada.")));
        assert!(listener.parts().len() >= 2, "{provider}: {:?}", listener.parts());
        assert_eq!(listener.parts().concat(), "Good morning, Ada.");
        assert_eq!(cost(&done).as_deref(), Some(TURN), "{provider}");
    }
}

#[tokio::test]
async fn a_tool_is_called_between_two_turns_on_one_connection() {
    for provider in PROVIDERS {
        let first = streams(call(provider, "box_read", &json!({"key": "apples"})));
        let asked = Request { tools: vec!["box.*".to_owned()], ..request("how many?") };
        let plays = vec![first, streams(text(provider, &["There are 42."]))];
        let server = Server::new(plays).await;
        let adapter = adapter(provider, &server.url);
        let done = answer(adapter.as_ref(), &asked, &RecordingCall::default()).await;
        let heard = server.heard();
        assert_eq!((done.error.as_ref(), done.text.as_deref()), (None, Some("There are 42.")));
        assert!(heard[1].contains("42 apples"), "{provider}: {}", heard[1]);
        assert_eq!(cost(&done).as_deref(), Some("0.06"), "{provider}");
        assert_eq!(server.connections(), 1, "{provider}");
    }
}

#[tokio::test]
async fn a_schema_is_enforced() {
    for provider in PROVIDERS {
        let ada = json!({"name": "Ada", "age": 36});
        let parts = match provider {
            "anthropic" => call(provider, "answer", &ada),
            _ => text(provider, &[&ada.to_string()]),
        };
        let (done, _, _) = play(provider, vec![streams(parts)], &person()).await;
        assert_eq!(done.outputs.clone().map(Value::Object), Some(ada), "{provider}: {done:?}");
        assert_eq!(cost(&done).as_deref(), Some(TURN), "{provider}");
    }
}

/// A way to fail: the script, the error class and message, and the cost, `None` if it is
/// unknown.
struct FailureCase {
    play: Play,
    code: CallErrorCode,
    says: &'static str,
    waits: Option<u64>,
    cost: Option<&'static str>,
}

fn tricks(provider: &str) -> Vec<FailureCase> {
    let fails = |status, headers| Play::Answer { status, headers, body: complaint(provider) };
    let trick = |play, code, says, cost| FailureCase { play, code, says, waits: None, cost };
    let begun = |then| {
        let parts = text(provider, &["Good", " morning"]);
        // All events except the final one.
        let most = if provider == "google" { 1 } else { parts.len() - 3 };
        Play::Stream { parts: parts[..most].to_vec(), then }
    };
    let huge = text(provider, &["x".repeat(1 << 20).as_str(); 5]);
    let html = Play::Answer {
        status: "200 OK",
        headers: "content-type: text/html\r\n",
        body: "<html>sign in</html>".to_owned(),
    };
    vec![
        FailureCase {
            waits: Some(7_000),
            ..trick(
                fails("429 Too Many Requests", "retry-after: 7\r\n"),
                RateLimit,
                "the provider answered 429: try later",
                Some("0.00"),
            )
        },
        trick(
            fails("500 Internal Server Error", ""),
            ProviderError,
            "the provider answered 500: try later",
            Some("0.00"),
        ),
        trick(Play::Silence, Timeout, "no answer after 400 ms", None),
        trick(begun(Then::Hangs), Timeout, "no answer after 400 ms", None),
        trick(begun(Then::Cuts), ProviderError, "the provider closed the connection early", None),
        trick(
            begun(Then::Ends),
            ProviderError,
            "the provider's stream ended in the middle of an answer",
            None,
        ),
        trick(
            streams(vec!["data: {\"choices\": [}\n\n".to_owned()]),
            ProviderError,
            "the provider's stream has an event that is not valid JSON",
            None,
        ),
        trick(
            streams(huge),
            ProviderError,
            "the provider's answer exceeds 4194304 bytes of text",
            None,
        ),
        trick(
            html,
            ProviderError,
            "the provider answered with `text/html` instead of a stream of events",
            None,
        ),
    ]
}

#[tokio::test]
async fn every_failure_has_its_class_in_time_and_at_its_cost() {
    for provider in PROVIDERS {
        for trick in tricks(provider) {
            let hangs = trick.code == Timeout;
            let asked = Request { timeout_ms: if hangs { 400 } else { 10_000 }, ..request("hi") };
            let (done, took, heard) = play(provider, vec![trick.play], &asked).await;
            let error = done.error.as_ref().expect(trick.says);
            // The call's and the response's time limits lead to the same error.
            let told = unplaced(&error.message);
            let late = hangs && told == "the provider did not answer in time";
            assert!(late || told == trick.says, "{provider}: {}", error.message);
            assert_eq!(
                (error.code, error.retry_after_ms),
                (trick.code, trick.waits),
                "{provider}: {}",
                trick.says
            );
            assert_eq!(cost(&done).as_deref(), trick.cost, "{provider}: {}", trick.says);
            assert!(took < Duration::from_millis(asked.timeout_ms + 1_000), "{provider}: {took:?}");
            assert!(!hangs || took >= Duration::from_millis(390), "{provider}: {took:?}");
            assert_eq!(heard.len(), 1, "{provider}: nothing is tried again here");
        }
    }
}

#[tokio::test]
async fn an_unreachable_provider_is_a_provider_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for provider in PROVIDERS {
        let adapter = adapter(provider, &url);
        let done = answer(adapter.as_ref(), &request("hi"), &RecordingCall::default()).await;
        let error = done.error.as_ref().expect("the provider is unreachable");
        assert_eq!(error.code, ProviderError);
        let expected = format!("the provider at {url} cannot be reached: Connection refused");
        assert!(error.message.starts_with(&expected), "{}", error.message);
        assert_eq!(cost(&done).as_deref(), Some("0.00"));
        assert_eq!(adapter.health().await, Health::Offline);
    }
}

#[tokio::test]
async fn a_cancelled_stream_is_closed_within_a_tenth_of_a_second() {
    for provider in PROVIDERS {
        let parts = text(provider, &["Good", " morning"]);
        let most = parts.iter().position(|part| part.contains("Good")).unwrap() + 1;
        let hangs = Play::Stream { parts: parts[..most].to_vec(), then: Then::Hangs };
        let mut server = Server::new([hangs]).await;
        let (listener, asked) = (RecordingCall::default(), request("hi"));
        let adapter = adapter(provider, &server.url);
        let cancel = async {
            listener.hears("Good").await;
            listener.cancel();
            Instant::now()
        };
        let (done, cancelled) = tokio::join!(answer(adapter.as_ref(), &asked, &listener), cancel);
        assert_eq!(done.error.map(|error| error.code), Some(CallErrorCode::Cancelled));
        assert!(done.usage.unknown, "{provider}: it said no figures");
        let left = server.left().await.duration_since(cancelled);
        assert!(left < Duration::from_millis(100), "{provider}: {left:?}");
    }
}

#[tokio::test]
async fn a_cancelled_call_without_a_response_is_closed_too() {
    for provider in PROVIDERS {
        let mut server = Server::new([Play::Silence]).await;
        let (listener, asked) = (RecordingCall::default(), request("hi"));
        let adapter = adapter(provider, &server.url);
        let cancel = async {
            while server.heard().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            listener.cancel();
            Instant::now()
        };
        let (done, cancelled) = tokio::join!(answer(adapter.as_ref(), &asked, &listener), cancel);
        assert_eq!(done.error.map(|error| error.code), Some(CallErrorCode::Cancelled));
        let left = server.left().await.duration_since(cancelled);
        assert!(left < Duration::from_millis(100), "{provider}: {left:?}");
    }
}

#[tokio::test]
async fn a_list_of_models_is_health_enough() {
    for (status, health) in [
        ("200 OK", Health::Healthy),
        ("401 Unauthorized", Health::Degraded),
        ("503 Busy", Health::Degraded),
    ] {
        for provider in PROVIDERS {
            let says = Play::Answer { status, headers: "", body: "{}".to_owned() };
            let server = Server::new([says]).await;
            assert_eq!(adapter(provider, &server.url).health().await, health, "{provider}");
            assert!(server.heard()[0].starts_with("GET /v1"), "{}", server.heard()[0]);
        }
    }
}
