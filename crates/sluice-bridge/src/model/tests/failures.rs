//! Errors and their classes.

use super::scripted_wire::ALL;
use super::*;
use crate::limits::TURN_TEXT_BYTES_MAX;
use crate::outbound::error::{OutboundError, OutboundRefusal};
use crate::secret::keyring::NamedSecret;
use CallErrorCode::{
    Auth, Cancelled, ContentFilter, InvalidRequest, ProviderError, RateLimit, Timeout,
};
use sluice_core::secret::SecretRef;

async fn plays(provider: &str, response: ScriptedResponse) -> Answer {
    let asked = Request { timeout_ms: 5_000, ..asks("hi") };
    answer(&ScriptedWire::new([response]).adapter(provider), &asked, &FakeCall::default()).await
}

const ASKED: &str = "the provider at http://models.test";

#[tokio::test]
async fn events_after_the_end_are_ignored_for_any_chunking() {
    for (provider, response) in
        [("openai", openai::text(&["Hello"])), ("anthropic", anthropic::text(&["Hello"]))]
    {
        let response = response.then("data: rubbish\n\n");
        for response in [response.clone(), response.byte_by_byte()] {
            let wire = ScriptedWire::new([response]);
            let answer = answer(&wire.adapter(provider), &asks("hi"), &FakeCall::default()).await;
            assert_eq!(answer.error, None, "{provider}");
            assert_eq!(answer.text.as_deref(), Some("Hello"), "{provider}");
        }
    }
}

#[tokio::test]
async fn a_status_has_a_class_and_a_rejected_turn_costs_nothing() {
    for (provider, _, _) in ALL {
        for (status, code) in [
            (400, InvalidRequest),
            (401, Auth),
            (403, Auth),
            (404, InvalidRequest),
            (413, InvalidRequest),
            (422, InvalidRequest),
            (429, RateLimit),
            (500, ProviderError),
            (503, ProviderError),
            (529, RateLimit),
            (302, ProviderError),
        ] {
            let done = plays(
                provider,
                ScriptedResponse::status(status, r#"{"error":{"message":"it says why."}}"#),
            )
            .await;
            let (told, message) = trouble_of(&done);
            assert_eq!(told, code, "{provider} {status}");
            assert!(
                message.starts_with(&format!("{ASKED} answered {status}: it says why")),
                "{message}"
            );
            assert!(!done.usage.unknown && done.usage.input_tokens == 0, "{provider} {status}");
        }
        for status in [408, 504] {
            let done = plays(provider, ScriptedResponse::status(status, "<html>")).await;
            assert_eq!(trouble_of(&done).0, Timeout);
            assert!(done.usage.unknown, "{provider} {status}: it may have been worked for");
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_is_no_answer_wherever_it_ends() {
    for (provider, text, _) in ALL {
        let whole = text(&["Hello", " there"]);
        let ends = whole.bytes();
        for cut in 0..ends {
            let done = plays(provider, whole.clone().breaks_after(cut)).await;
            match &done.error {
                Some(error) => {
                    let expected = (
                        ProviderError,
                        "the provider at http://models.test closed the connection early",
                    );
                    assert_eq!((error.code, error.message.as_str()), expected, "{provider} {cut}");
                    let counted = done.usage.input_tokens == 100;
                    assert!(done.usage.unknown || counted, "{provider} at {cut}");
                }
                // The complete answer may have arrived before the last bytes.
                None => assert!(cut > ends / 2, "{provider} at {cut}"),
            }
            let done = plays(provider, whole.clone().ends_after(cut)).await;
            match &done.error {
                Some(error) => {
                    let expected = "the provider's stream ended in the middle of an answer";
                    assert_eq!((error.code, error.message.as_str()), (ProviderError, expected));
                }
                None => assert_eq!(done.text.as_deref(), Some("Hello there"), "{provider} {cut}"),
            }
        }
    }
}

#[tokio::test]
async fn a_malformed_or_too_long_stream_is_rejected() {
    for (provider, text, _) in ALL {
        let html = ScriptedResponse::status(200, "<html>").header("content-type", "text/html");
        let done = plays(provider, html).await;
        let expected = "the provider answered with `text/html` instead of a stream of events";
        assert_eq!(trouble_of(&done), (ProviderError, expected));
        let bare = plays(provider, ScriptedResponse::status(200, "{}")).await;
        assert!(trouble_of(&bare).1.contains("with `nothing`"), "{provider}");

        let done = plays(provider, sse(&["{\"choices\": [".to_owned()])).await;
        let expected = "the provider's stream has an event that is not valid JSON";
        assert_eq!(trouble_of(&done), (ProviderError, expected));

        let part = "x".repeat(1024 * 1024);
        let parts = vec![part.as_str(); TURN_TEXT_BYTES_MAX / part.len() + 1];
        let done = plays(provider, text(&parts)).await;
        let expected = "the provider's answer exceeds 4194304 bytes of text";
        assert_eq!(trouble_of(&done), (ProviderError, expected));
        let endless = ScriptedResponse::stream(&format!("data: {}", "x".repeat(9 * 1024 * 1024)));
        let done = plays(provider, endless).await;
        assert_eq!(trouble_of(&done).1, "the provider: its stream has a line over 8388608 bytes");
    }
}

#[tokio::test]
async fn outbound_errors_have_a_class_too() {
    let closed = OutboundRefusal::Scheme("ftp".to_owned());
    for (trouble, code, unknown) in [
        (OutboundError::Unreachable("gone".to_owned()), ProviderError, false),
        (OutboundError::Late, Timeout, true),
        (OutboundError::Broken, ProviderError, true),
        (OutboundError::Refused(closed), InvalidRequest, false),
    ] {
        let done = plays("openai", ScriptedResponse::fails(trouble)).await;
        assert_eq!(trouble_of(&done).0, code);
        assert_eq!(done.usage.unknown, unknown, "{:?}", done.error);
    }
}

#[tokio::test]
async fn a_refusal_is_a_content_filter_and_its_tokens_are_counted() {
    let openai_refusal = sse(&[
        json!({"choices": [{"delta": {"refusal": "I cannot"}}]}).to_string(),
        json!({"choices": [{"delta": {"refusal": " do that."}, "finish_reason": "stop"}]})
            .to_string(),
        json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}).to_string(),
        "[DONE]".to_owned(),
    ]);
    let openai_filter = sse(&[
        json!({"choices": [{"delta": {}, "finish_reason": "content_filter"}], "usage": {"prompt_tokens": 9}}).to_string(),
        "[DONE]".to_owned(),
    ]);
    let anthropic_refusal = sse(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 9}}}).to_string(),
        json!({"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": {"output_tokens": 1}}).to_string(),
        json!({"type": "message_stop"}).to_string(),
    ]);
    let google_prompt = sse(&[json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}).to_string()]);
    let google_stop = sse(&[json!({"candidates": [{"finishReason": "SAFETY"}], "usageMetadata": {"promptTokenCount": 9}}).to_string()]);
    let azure =
        ScriptedResponse::status(400, r#"{"error":{"code":"content_filter","message":"no"}}"#);
    for (provider, response, message) in [
        ("openai", openai_refusal, "the provider did not answer: I cannot do that"),
        ("openai", openai_filter, "the provider did not answer: the content filter stopped it"),
        ("anthropic", anthropic_refusal, "the provider did not answer: the model refused"),
        ("google", google_prompt, "the provider did not answer: the prompt was blocked: SAFETY"),
        ("google", google_stop, "the provider did not answer: the model stopped: SAFETY"),
        ("openai", azure, "the provider at http://models.test answered 400: no"),
    ] {
        let done = plays(provider, response).await;
        assert_eq!(trouble_of(&done), (ContentFilter, message));
        assert!(!done.usage.unknown, "{message}");
        assert!(done.usage.input_tokens == 9 || message.contains("400"), "{message}");
    }
    let odd =
        sse(&[json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}).to_string()]);
    let expected = "the provider aborted: the model stopped: MALFORMED_FUNCTION_CALL";
    assert_eq!(trouble_of(&plays("google", odd).await), (ProviderError, expected));
}

#[tokio::test]
async fn an_error_within_a_stream_has_its_class() {
    let anthropic =
        |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "so it is"}});
    let openai = json!({"error": {"code": 429, "message": "so it is"}});
    let google = json!([{"error": {"code": 503, "status": "UNAVAILABLE", "message": "so it is"}}]);
    for (provider, said, code) in [
        ("anthropic", anthropic("overloaded_error"), RateLimit),
        ("anthropic", anthropic("authentication_error"), Auth),
        ("anthropic", anthropic("invalid_request_error"), InvalidRequest),
        ("anthropic", anthropic("timeout_error"), Timeout),
        ("anthropic", anthropic("api_error"), ProviderError),
        ("openai", openai, RateLimit),
        ("google", google, ProviderError),
    ] {
        let done = plays(provider, sse(&[said.to_string()])).await;
        assert_eq!(trouble_of(&done), (code, "the provider aborted: so it is"), "{said}");
    }
}

#[tokio::test]
async fn an_error_never_repeats_the_key() {
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "sk-very-secret").unwrap();
    for (provider, _, _) in ALL {
        let body = r#"{"error":{"message":"Incorrect API key provided: sk-very-secret"}}"#;
        for response in [ScriptedResponse::status(401, body), sse(&[body.to_owned()])] {
            let wire = ScriptedWire::new([response]);
            let adapter = wire.adapter_with(provider, |connection| {
                connection.key = Some(NamedSecret::of_operator(SecretRef::File(
                    key.path().display().to_string(),
                )));
            });
            let done = answer(&adapter, &asks("hi"), &FakeCall::default()).await;
            let message = trouble_of(&done).1;
            assert!(message.ends_with("Incorrect API key provided: [redacted]"), "{message}");
            assert!(!format!("{done:?}").contains("secret"), "{done:?}");
        }
    }
}

#[tokio::test]
async fn without_a_key_that_can_be_read_or_a_model_nothing_is_sent() {
    let wire = ScriptedWire::new([]);
    let adapter = wire.adapter_with("openai", |connection| {
        connection.key = Some(NamedSecret::of_operator(SecretRef::File("/nowhere/key".to_owned())));
    });
    let done = answer(&adapter, &asks("hi"), &FakeCall::default()).await;
    let (code, message) = trouble_of(&done);
    assert_eq!(code, Auth);
    assert!(message.starts_with("the provider's key: the file `/nowhere/key`"), "{message}");
    assert!(!done.usage.unknown);
    let done = answer(&wire.adapter("openai"), &request("step", "hi"), &FakeCall::default()).await;
    let expected = "the model is missing: set `model` for the agent or the step";
    assert_eq!(trouble_of(&done), (InvalidRequest, expected));
    assert_eq!(wire.times(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_silent_provider_times_out_with_unknown_cost() {
    for (provider, text, _) in ALL {
        let hangs = text(&["Hello"]).ends_after(text(&["Hello"]).bytes() / 2).then_hangs();
        let begun = Instant::now();
        let done = plays(provider, hangs).await;
        assert_eq!(trouble_of(&done), (Timeout, "no answer after 5000 ms"), "{provider}");
        assert_eq!(begun.elapsed(), Duration::from_secs(5), "{provider}");
        assert!(done.usage.unknown, "{provider}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_ends_at_once() {
    for (provider, text, _) in ALL {
        // After its text, before the model has stopped.
        let wire = ScriptedWire::new([text(&["Hello"]).ends_with("Hello").then_hangs()]);
        let (call, asked, adapter) = (FakeCall::default(), asks("hi"), wire.adapter(provider));
        let cancel = async {
            call.wait_for_text("Hello").await;
            call.cancel();
        };
        let (done, ()) = tokio::join!(answer(&adapter, &asked, &call), cancel);
        assert_eq!(trouble_of(&done), (Cancelled, "the call was cancelled"), "{provider}");
        assert!(done.usage.unknown && done.usage.unpriced, "{provider}");
        // The text so far is stored with the step.
        assert_eq!(done.conversation.last().unwrap()["text"], "Hello", "{provider}");
        assert_eq!(done.text, None);
    }
}

#[tokio::test]
async fn a_cancelled_call_with_known_token_counts_reports_them() {
    let (whole, call) = (google::text(&["Hello"]).then_hangs(), FakeCall::default());
    let (wire, asked) = (ScriptedWire::new([whole]), asks("hi"));
    let adapter = wire.adapter("google");
    let cancel = async {
        call.wait_for_text("Hello").await;
        call.cancel();
    };
    let (done, ()) = tokio::join!(answer(&adapter, &asked, &call), cancel);
    assert_eq!(trouble_of(&done).0, Cancelled);
    assert!(!done.usage.unknown && done.usage.input_tokens == 100, "{:?}", done.usage);
}

#[tokio::test]
async fn a_closed_call_stops_the_work() {
    let wire = ScriptedWire::new([openai::text(&["Hello"])]);
    let call = FakeCall::with(crate::fake_call::FakeJournal::Closed);
    let done = answer(&wire.adapter("openai"), &asks("hi"), &call).await;
    assert_eq!(trouble_of(&done), (Cancelled, "the call was abandoned"));
}
