//! What goes wrong, and what it is called.

use super::stage::ALL;
use super::*;
use crate::limits::TURN_TEXT_BYTES_MAX;
use crate::outbound::error::{OutboundError, Refusal};
use crate::secret::keyring::NamedSecret;
use CallErrorCode::{
    Auth, Cancelled, ContentFilter, InvalidRequest, ProviderError, RateLimit, Timeout,
};
use sluice_core::secret::SecretRef;

async fn plays(provider: &str, scene: Scene) -> Answer {
    let asked = Request { timeout_ms: 5_000, ..asks("hi") };
    answer(&Stage::new([scene]).adapter(provider), &asked, &Desk::default()).await
}

/// Who fails, and where.
const ASKED: &str = "the provider at http://models.test";

#[tokio::test]
async fn what_comes_after_the_end_is_not_read_however_the_stream_is_cut() {
    for (provider, scene) in
        [("openai", openai::text(&["Hello"])), ("anthropic", anthropic::text(&["Hello"]))]
    {
        let scene = scene.then("data: rubbish\n\n");
        for scene in [scene.clone(), scene.byte_by_byte()] {
            let stage = Stage::new([scene]);
            let answer = answer(&stage.adapter(provider), &asks("hi"), &Desk::default()).await;
            assert_eq!(answer.error, None, "{provider}");
            assert_eq!(answer.text.as_deref(), Some("Hello"), "{provider}");
        }
    }
}

#[tokio::test]
async fn a_status_has_a_class_and_what_was_turned_away_cost_nothing() {
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
            let done =
                plays(provider, Scene::status(status, r#"{"error":{"message":"it says why."}}"#))
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
            let done = plays(provider, Scene::status(status, "<html>")).await;
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
                    let expected = (ProviderError, "the provider at http://models.test broke off");
                    assert_eq!((error.code, error.message.as_str()), expected, "{provider} {cut}");
                    let counted = done.usage.input_tokens == 100;
                    assert!(done.usage.unknown || counted, "{provider} at {cut}");
                }
                // All that counts may have been said before the last bytes.
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
async fn what_is_no_stream_no_json_or_too_long_is_refused() {
    for (provider, text, _) in ALL {
        let html = Scene::status(200, "<html>").header("content-type", "text/html");
        let done = plays(provider, html).await;
        let expected = "the provider answered with `text/html` instead of a stream of events";
        assert_eq!(trouble_of(&done), (ProviderError, expected));
        let bare = plays(provider, Scene::status(200, "{}")).await;
        assert!(trouble_of(&bare).1.contains("with `nothing`"), "{provider}");

        let done = plays(provider, sse(&["{\"choices\": [".to_owned()])).await;
        let expected = "the provider's stream holds an event that is no JSON";
        assert_eq!(trouble_of(&done), (ProviderError, expected));

        let part = "x".repeat(1024 * 1024);
        let parts = vec![part.as_str(); TURN_TEXT_BYTES_MAX / part.len() + 1];
        let done = plays(provider, text(&parts)).await;
        let expected = "the provider answers with over 4194304 bytes of text";
        assert_eq!(trouble_of(&done), (ProviderError, expected));
        let endless = Scene::stream(&format!("data: {}", "x".repeat(9 * 1024 * 1024)));
        let done = plays(provider, endless).await;
        assert_eq!(trouble_of(&done).1, "the provider: its stream has a line over 8388608 bytes");
    }
}

#[tokio::test]
async fn what_the_way_out_says_has_a_class_too() {
    let closed = Refusal::Scheme("ftp".to_owned());
    for (trouble, code, unknown) in [
        (OutboundError::Unreachable("gone".to_owned()), ProviderError, false),
        (OutboundError::Late, Timeout, true),
        (OutboundError::Broken, ProviderError, true),
        (OutboundError::Refused(closed), InvalidRequest, false),
    ] {
        let done = plays("openai", Scene::fails(trouble)).await;
        assert_eq!(trouble_of(&done).0, code);
        assert_eq!(done.usage.unknown, unknown, "{:?}", done.error);
    }
}

#[tokio::test]
async fn a_refusal_is_a_content_filter_and_what_it_took_is_counted() {
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
    let azure = Scene::status(400, r#"{"error":{"code":"content_filter","message":"no"}}"#);
    for (provider, scene, message) in [
        ("openai", openai_refusal, "the provider did not answer: I cannot do that"),
        ("openai", openai_filter, "the provider did not answer: its content filter stopped it"),
        ("anthropic", anthropic_refusal, "the provider did not answer: it refused"),
        ("google", google_prompt, "the provider did not answer: it blocked the prompt: SAFETY"),
        ("google", google_stop, "the provider did not answer: it stopped: SAFETY"),
        ("openai", azure, "the provider at http://models.test answered 400: no"),
    ] {
        let done = plays(provider, scene).await;
        assert_eq!(trouble_of(&done), (ContentFilter, message));
        assert!(!done.usage.unknown, "{message}");
        assert!(done.usage.input_tokens == 9 || message.contains("400"), "{message}");
    }
    let odd =
        sse(&[json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}).to_string()]);
    let expected = "the provider broke off: it stopped: MALFORMED_FUNCTION_CALL";
    assert_eq!(trouble_of(&plays("google", odd).await), (ProviderError, expected));
}

#[tokio::test]
async fn a_complaint_within_a_stream_has_its_class() {
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
        assert_eq!(trouble_of(&done), (code, "the provider broke off: so it is"), "{said}");
    }
}

#[tokio::test]
async fn an_error_never_repeats_the_key() {
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "sk-very-secret").unwrap();
    for (provider, _, _) in ALL {
        let body = r#"{"error":{"message":"Incorrect API key provided: sk-very-secret"}}"#;
        for scene in [Scene::status(401, body), sse(&[body.to_owned()])] {
            let stage = Stage::new([scene]);
            let adapter = stage.adapter_with(provider, |connection| {
                connection.key = Some(NamedSecret::of_operator(SecretRef::File(
                    key.path().display().to_string(),
                )));
            });
            let done = answer(&adapter, &asks("hi"), &Desk::default()).await;
            let message = trouble_of(&done).1;
            assert!(message.ends_with("Incorrect API key provided: [redacted]"), "{message}");
            assert!(!format!("{done:?}").contains("secret"), "{done:?}");
        }
    }
}

#[tokio::test]
async fn without_a_key_that_can_be_read_or_a_model_nothing_is_sent() {
    let stage = Stage::new([]);
    let adapter = stage.adapter_with("openai", |connection| {
        connection.key = Some(NamedSecret::of_operator(SecretRef::File("/nowhere/key".to_owned())));
    });
    let done = answer(&adapter, &asks("hi"), &Desk::default()).await;
    let (code, message) = trouble_of(&done);
    assert_eq!(code, Auth);
    assert!(message.starts_with("the provider's key: the file `/nowhere/key`"), "{message}");
    assert!(!done.usage.unknown);
    let done = answer(&stage.adapter("openai"), &request("step", "hi"), &Desk::default()).await;
    let expected = "no model is named: set `model` for the agent or the step";
    assert_eq!(trouble_of(&done), (InvalidRequest, expected));
    assert_eq!(stage.times(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_is_given_up_in_time_and_what_it_costs_is_unknown() {
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
async fn a_call_that_is_no_longer_wanted_ends_at_once() {
    for (provider, text, _) in ALL {
        // Before the model has stopped, after its text.
        let stage = Stage::new([text(&["Hello"]).ends_with("Hello").then_hangs()]);
        let (desk, asked, adapter) = (Desk::default(), asks("hi"), stage.adapter(provider));
        let cancel = async {
            desk.hears("Hello").await;
            desk.cancel();
        };
        let (done, ()) = tokio::join!(answer(&adapter, &asked, &desk), cancel);
        assert_eq!(trouble_of(&done), (Cancelled, "the call was cancelled"), "{provider}");
        assert!(done.usage.unknown && done.usage.unpriced, "{provider}");
        // What was said so far is kept for whoever looks.
        assert_eq!(done.conversation.last().unwrap()["text"], "Hello", "{provider}");
        assert_eq!(done.text, None);
    }
}

#[tokio::test]
async fn a_cancelled_call_whose_figures_are_known_says_them() {
    let (whole, desk) = (google::text(&["Hello"]).then_hangs(), Desk::default());
    let (stage, asked) = (Stage::new([whole]), asks("hi"));
    let adapter = stage.adapter("google");
    let cancel = async {
        desk.hears("Hello").await;
        desk.cancel();
    };
    let (done, ()) = tokio::join!(answer(&adapter, &asked, &desk), cancel);
    assert_eq!(trouble_of(&done).0, Cancelled);
    assert!(!done.usage.unknown && done.usage.input_tokens == 100, "{:?}", done.usage);
}

#[tokio::test]
async fn an_engine_that_is_gone_stops_the_work() {
    let stage = Stage::new([openai::text(&["Hello"])]);
    let desk = Desk::with(crate::desk::Journal::Closed);
    let done = answer(&stage.adapter("openai"), &asks("hi"), &desk).await;
    assert_eq!(trouble_of(&done), (Cancelled, "the call was abandoned"));
}
