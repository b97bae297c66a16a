//! The adapter against a scripted wire.

mod budget;
mod failures;
mod scripted_wire;
mod tools;

use super::*;
use crate::fake_call::{FakeCall, answer, error as trouble_of, request};
use crate::secret::keyring::NamedSecret;
use scripted_wire::{ScriptedResponse, ScriptedWire, anthropic, google, openai, sse};
use serde_json::json;
use sluice_core::port::adapter::Emission;
use sluice_core::secret::SecretRef;

/// A request for a model.
fn asks(message: &str) -> Request {
    Request { model: Some("model-1".to_owned()), ..request("step", message) }
}

fn structured(schema: &Value) -> Request {
    let (output_strategy, output_schema) = (OutputStrategy::Structured, Some(schema.clone()));
    Request { output_strategy, output_schema, ..asks("how old is Ada?") }
}

#[tokio::test]
async fn text_is_passed_on_as_it_comes_and_tokens_are_counted() {
    for (provider, response) in [
        ("openai", openai::text(&["Hel", "lo"])),
        ("anthropic", anthropic::text(&["Hel", "lo"])),
        ("google", google::text(&["Hel", "lo"])),
    ] {
        let wire = ScriptedWire::new([response.byte_by_byte()]);
        let call = FakeCall::default();
        let answer = answer(&wire.adapter(provider), &asks("hi"), &call).await;
        assert_eq!(answer.error, None, "{provider}");
        assert_eq!(answer.text.as_deref(), Some("Hello"), "{provider}");
        assert_eq!(call.text(), "Hello", "{provider}");
        assert!(call.emitted().len() > 1, "{provider}: it came in one piece");
        let usage = answer.usage;
        assert_eq!(usage.model.as_deref(), Some("model-1-of-today"), "{provider}");
        let figures = (usage.input_tokens, usage.cached_tokens, usage.output_tokens);
        assert_eq!(figures, (100, 40, 20), "{provider}");
        let thought = if provider == "anthropic" { 0 } else { 5 };
        assert_eq!(usage.thinking_tokens, thought, "{provider}");
        assert!(usage.unpriced && !usage.unknown, "{provider}");
        assert_eq!(
            answer.conversation,
            [json!({"role": "user", "text": "hi"}), json!({"role": "assistant", "text": "Hello"}),]
        );
    }
}

#[tokio::test]
async fn stdin_and_system_prompt_are_sent() {
    for (provider, response, user, system) in [
        ("openai", openai::text(&["x"]), "/messages/1/content", "/messages/0/content"),
        ("anthropic", anthropic::text(&["x"]), "/messages/0/content", "/system"),
        (
            "google",
            google::text(&["x"]),
            "/contents/0/parts/0/text",
            "/systemInstruction/parts/0/text",
        ),
    ] {
        let wire = ScriptedWire::new([response]);
        let asked = Request {
            system_prompt: Some("be kind".to_owned()),
            stdin: Some("a,b".to_owned()),
            max_output_tokens: Some(50),
            ..asks("sum up")
        };
        answer(&wire.adapter(provider), &asked, &FakeCall::default()).await;
        let sent = wire.sent(0);
        assert_eq!(sent.body.pointer(user), Some(&json!("sum up\n\na,b")), "{provider}");
        assert_eq!(sent.body.pointer(system), Some(&json!("be kind")), "{provider}");
    }
}

#[tokio::test]
async fn the_smaller_output_limit_is_sent_to_each_provider() {
    for (provider, response, bound) in [
        ("openai", openai::text(&["x"]), "/max_tokens"),
        ("anthropic", anthropic::text(&["x"]), "/max_tokens"),
        ("google", google::text(&["x"]), "/generationConfig/maxOutputTokens"),
    ] {
        let wire = ScriptedWire::new([response]);
        let mut asked = Request { max_output_tokens: Some(50), ..asks("hi") };
        asked.constraints.max_output_tokens = Some(30);
        answer(&wire.adapter(provider), &asked, &FakeCall::default()).await;
        assert_eq!(wire.sent(0).body.pointer(bound), Some(&json!(30)), "{provider}");
    }
}

#[tokio::test]
async fn an_object_that_fits_a_schema_becomes_the_outputs() {
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "age": {"type": "integer"},
    }, "required": ["age"]});
    let said = r#"{"name":null,"age":36}"#;
    for (provider, response, held) in [
        ("openai", openai::text(&[said]), "/response_format/json_schema/strict"),
        ("anthropic", anthropic::call("a1", "answer", said), "/tool_choice/name"),
        ("google", google::text(&[said]), "/generationConfig/responseSchema/type"),
    ] {
        let wire = ScriptedWire::new([response]);
        let call = FakeCall::default();
        let answer = answer(&wire.adapter(provider), &structured(&schema), &call).await;
        assert_eq!(answer.text.as_deref(), Some(said), "{provider}");
        assert_eq!(call.text(), said, "{provider}");
        assert!(wire.sent(0).body.pointer(held).is_some(), "{provider}: {}", wire.sent(0).body);
        let outputs = Value::Object(answer.outputs.expect(provider));
        // Nulls are removed only where the schema was made nullable.
        let expected = if provider == "openai" {
            json!({"age": 36})
        } else {
            json!({"name": null, "age": 36})
        };
        assert_eq!(outputs, expected, "{provider}");
        assert!(call.requested().is_empty(), "the answer is no tool");
    }
}

#[tokio::test]
async fn an_object_is_found_in_the_prose_of_a_provider_that_ignores_the_schema() {
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}});
    let prose = "Sure!\n```json\n{\"age\": 36}\n```\nAnything else?";
    for (provider, response) in [
        ("openai", openai::text(&[prose])),
        ("anthropic", anthropic::text(&[prose])),
        ("google", google::text(&[prose])),
    ] {
        for asked in [
            structured(&schema),
            Request { output_strategy: OutputStrategy::Json, ..asks("how old is Ada?") },
        ] {
            let wire = ScriptedWire::new([response.clone()]);
            let answer = answer(&wire.adapter(provider), &asked, &FakeCall::default()).await;
            let outputs = answer.outputs.map(Value::Object);
            assert_eq!(outputs, Some(json!({"age": 36})), "{provider}");
            assert_eq!(answer.text.as_deref(), Some(prose), "{provider}");
        }
    }
}

#[tokio::test]
async fn a_request_for_any_object_is_also_in_the_prompt() {
    // OpenAI rejects its JSON mode unless the prompt mentions JSON.
    let asked = Request { output_strategy: OutputStrategy::Json, ..asks("x") };
    for (provider, response) in [
        ("openai", openai::text(&["{}"])),
        ("anthropic", anthropic::text(&["{}"])),
        ("google", google::text(&["{}"])),
    ] {
        let wire = ScriptedWire::new([response]);
        answer(&wire.adapter(provider), &asked, &FakeCall::default()).await;
        let body = wire.sent(0).body.to_string();
        assert!(body.contains("Answer with one JSON object"), "{provider}: {body}");
    }
}

#[tokio::test]
async fn keys_are_sent_in_each_providers_header_and_not_logged() {
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "sk-very-secret\n").unwrap();
    for (provider, response, header, value) in [
        ("openai", openai::text(&["x"]), "authorization", "Bearer sk-very-secret"),
        ("anthropic", anthropic::text(&["x"]), "x-api-key", "sk-very-secret"),
        ("google", google::text(&["x"]), "x-goog-api-key", "sk-very-secret"),
    ] {
        let wire = ScriptedWire::new([response]);
        let adapter = wire.adapter_with(provider, |connection| {
            connection.key =
                Some(NamedSecret::of_operator(SecretRef::File(key.path().display().to_string())));
        });
        answer(&adapter, &asks("hi"), &FakeCall::default()).await;
        let sent = wire.sent(0);
        assert_eq!(sent.headers.get(header).unwrap(), value);
        assert!(sent.headers.get(header).unwrap().is_sensitive(), "{provider}");
        assert!(!sent.url.contains("secret") && !sent.body.to_string().contains("secret"));
    }
    let wire = ScriptedWire::new([openai::text(&["x"])]);
    let done = answer(&wire.adapter("openai"), &asks("hi"), &FakeCall::default()).await;
    assert_eq!(done.error, None, "no key is needed everywhere");
    assert!(wire.sent(0).headers.get("authorization").is_none());
}

#[tokio::test]
async fn a_base_url_replaces_the_default() {
    let turn = |provider: &str, base: Option<&str>| {
        let wire = ScriptedWire::new([]);
        let base = base.map(str::to_owned);
        let adapter = wire.adapter_with(provider, |connection| connection.base_url = base);
        format!("{}{}", adapter.base(), adapter.dialect.turn_path(adapter.base(), "models/a b/c"))
    };
    let at = "http://localhost:1/";
    assert_eq!(turn("openai", None), "https://api.openai.com/v1/chat/completions");
    assert_eq!(
        turn("openai", Some("http://localhost:1/v1/")),
        "http://localhost:1/v1/chat/completions"
    );
    assert_eq!(turn("anthropic", None), "https://api.anthropic.com/v1/messages");
    assert_eq!(turn("anthropic", Some(at)), "http://localhost:1/v1/messages");
    assert_eq!(turn("anthropic", Some("http://localhost:1/v1")), "http://localhost:1/v1/messages");
    let path = "/v1beta/models/a%20b%2Fc:streamGenerateContent?alt=sse";
    let home = "https://generativelanguage.googleapis.com";
    assert_eq!(turn("google", None), format!("{home}{path}"));
    assert_eq!(
        turn("google", Some("http://localhost:1/v1beta")),
        format!("http://localhost:1{path}")
    );
}

#[tokio::test]
async fn files_are_kept_as_artefacts_and_handed_on_as_media() {
    let part = json!({"candidates": [{"content": {"parts": [
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}}, {"text": "a cat"},
    ]}, "finishReason": "STOP"}]});
    let image = json!({"choices": [{"delta": {"content": "a cat", "images": [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    ]}, "finish_reason": "stop"}]});
    for (provider, response) in [
        ("google", sse(&[part.to_string()])),
        ("openai", sse(&[image.to_string(), "[DONE]".to_owned()])),
    ] {
        let wire = ScriptedWire::new([response]);
        let call = FakeCall::default();
        let answer = answer(&wire.adapter(provider), &asks("draw"), &call).await;
        assert_eq!(answer.text.as_deref(), Some("a cat"));
        assert_eq!(answer.artefacts, [json!({"mime": "image/png", "bytes": 2, "data": "aGk="})]);
        let (url, mime) = ("data:image/png;base64,aGk=".to_owned(), "image/png".to_owned());
        assert_eq!(answer.media, Some(json!({"url": url, "mime": mime})), "{provider}");
        let media = Emission::Media { url, mime };
        assert_eq!(call.emitted(), [Emission::Text("a cat".to_owned()), media], "{provider}");
    }
}

#[tokio::test]
async fn a_sound_alone_is_an_answer_without_text() {
    let part = |data: &str| {
        json!({"candidates": [{"content": {"parts": [
            {"inlineData": {"mimeType": "audio/wav", "data": data}},
        ]}, "finishReason": "STOP"}]})
    };
    let wire = ScriptedWire::new([sse(&[part("aGk=").to_string(), part("aG8=").to_string()])]);
    let answer = answer(&wire.adapter("google"), &asks("sing"), &FakeCall::default()).await;
    let media =
        |data: &str| json!({"url": format!("data:audio/wav;base64,{data}"), "mime": "audio/wav"});
    assert_eq!(answer.media, Some(json!([media("aGk="), media("aG8=")])));
    assert_eq!((answer.error, answer.text), (None, None));
}

#[tokio::test]
async fn health_reflects_the_providers_response() {
    for (response, health) in [
        (ScriptedResponse::status(200, "{}"), Health::Healthy),
        (ScriptedResponse::status(404, ""), Health::Healthy),
        (ScriptedResponse::status(401, ""), Health::Degraded),
        (ScriptedResponse::status(503, ""), Health::Degraded),
        (ScriptedResponse::unreachable(), Health::Offline),
    ] {
        for provider in ["openai", "anthropic", "google"] {
            let wire = ScriptedWire::new([response.clone()]);
            assert_eq!(wire.adapter(provider).health().await, health);
            assert!(wire.sent(0).url.ends_with("/models"), "{}", wire.sent(0).url);
        }
    }
}

#[tokio::test]
async fn a_truncated_answer_is_logged() {
    let response = sse(&[
        json!({"choices": [{"delta": {"content": "and then"}, "finish_reason": "length"}]})
            .to_string(),
        "[DONE]".to_owned(),
    ]);
    let (wire, call) = (ScriptedWire::new([response]), FakeCall::default());
    let asked = Request { max_output_tokens: Some(2), ..asks("tell") };
    let done = answer(&wire.adapter("openai"), &asked, &call).await;
    assert_eq!(done.text.as_deref(), Some("and then"));
    assert_eq!(call.log(), ["the answer was truncated at 2 tokens"]);
    // A provider that reports no token counts leaves the cost unknown.
    assert!(done.usage.unknown);
}

#[test]
fn a_directory_creates_adapters_for_known_providers() {
    let wire = ScriptedWire::new([]);
    for (provider, made) in
        [("openai", true), ("anthropic", true), ("google", true), ("fax", false)]
    {
        let connection = Connection { provider: provider.to_owned(), ..Connection::default() };
        let adapter = wire.kit().adapter("g", &connection);
        assert_eq!(adapter.map(|adapter| adapter.provider()), made.then_some(provider));
    }
}
