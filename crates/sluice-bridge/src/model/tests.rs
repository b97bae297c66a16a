//! The adapter against a wire that answers from a script.

mod money;
mod stage;
mod tooling;
mod trouble;

use super::*;
use crate::desk::{Desk, answer, error as trouble_of, request};
use crate::secret::keyring::NamedSecret;
use serde_json::json;
use sluice_core::port::adapter::Emission;
use sluice_core::secret::SecretRef;
use stage::{Scene, Stage, anthropic, google, openai, sse};

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
    for (provider, scene) in [
        ("openai", openai::text(&["Hel", "lo"])),
        ("anthropic", anthropic::text(&["Hel", "lo"])),
        ("google", google::text(&["Hel", "lo"])),
    ] {
        let stage = Stage::new([scene.byte_by_byte()]);
        let desk = Desk::default();
        let answer = answer(&stage.adapter(provider), &asks("hi"), &desk).await;
        assert_eq!(answer.error, None, "{provider}");
        assert_eq!(answer.text.as_deref(), Some("Hello"), "{provider}");
        assert_eq!(desk.text(), "Hello", "{provider}");
        assert!(desk.emitted().len() > 1, "{provider}: it came in one piece");
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
async fn what_is_piped_in_and_standing_instructions_are_sent_along() {
    for (provider, scene, user, system) in [
        ("openai", openai::text(&["x"]), "/messages/1/content", "/messages/0/content"),
        ("anthropic", anthropic::text(&["x"]), "/messages/0/content", "/system"),
        (
            "google",
            google::text(&["x"]),
            "/contents/0/parts/0/text",
            "/systemInstruction/parts/0/text",
        ),
    ] {
        let stage = Stage::new([scene]);
        let asked = Request {
            system_prompt: Some("be kind".to_owned()),
            stdin: Some("a,b".to_owned()),
            max_output_tokens: Some(50),
            ..asks("sum up")
        };
        answer(&stage.adapter(provider), &asked, &Desk::default()).await;
        let sent = stage.sent(0);
        assert_eq!(sent.body.pointer(user), Some(&json!("sum up\n\na,b")), "{provider}");
        assert_eq!(sent.body.pointer(system), Some(&json!("be kind")), "{provider}");
    }
}

#[tokio::test]
async fn the_shorter_of_two_bounds_is_sent_in_each_providers_word() {
    for (provider, scene, bound) in [
        ("openai", openai::text(&["x"]), "/max_tokens"),
        ("anthropic", anthropic::text(&["x"]), "/max_tokens"),
        ("google", google::text(&["x"]), "/generationConfig/maxOutputTokens"),
    ] {
        let stage = Stage::new([scene]);
        let mut asked = Request { max_output_tokens: Some(50), ..asks("hi") };
        asked.constraints.max_output_tokens = Some(30);
        answer(&stage.adapter(provider), &asked, &Desk::default()).await;
        assert_eq!(stage.sent(0).body.pointer(bound), Some(&json!(30)), "{provider}");
    }
}

#[tokio::test]
async fn an_object_that_fits_a_schema_becomes_the_outputs() {
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "age": {"type": "integer"},
    }, "required": ["age"]});
    let said = r#"{"name":null,"age":36}"#;
    for (provider, scene, held) in [
        ("openai", openai::text(&[said]), "/response_format/json_schema/strict"),
        ("anthropic", anthropic::call("a1", "answer", said), "/tool_choice/name"),
        ("google", google::text(&[said]), "/generationConfig/responseSchema/type"),
    ] {
        let stage = Stage::new([scene]);
        let desk = Desk::default();
        let answer = answer(&stage.adapter(provider), &structured(&schema), &desk).await;
        assert_eq!(answer.text.as_deref(), Some(said), "{provider}");
        assert_eq!(desk.text(), said, "{provider}");
        assert!(stage.sent(0).body.pointer(held).is_some(), "{provider}: {}", stage.sent(0).body);
        let outputs = Value::Object(answer.outputs.expect(provider));
        // Only where we asked for nulls are they taken out again.
        let expected = if provider == "openai" {
            json!({"age": 36})
        } else {
            json!({"name": null, "age": 36})
        };
        assert_eq!(outputs, expected, "{provider}");
        assert!(desk.asked().is_empty(), "the answer is no tool");
    }
}

#[tokio::test]
async fn an_object_is_found_in_the_prose_of_a_provider_that_ignores_the_schema() {
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}});
    let prose = "Sure!\n```json\n{\"age\": 36}\n```\nAnything else?";
    for (provider, scene) in [
        ("openai", openai::text(&[prose])),
        ("anthropic", anthropic::text(&[prose])),
        ("google", google::text(&[prose])),
    ] {
        for asked in [
            structured(&schema),
            Request { output_strategy: OutputStrategy::Json, ..asks("how old is Ada?") },
        ] {
            let stage = Stage::new([scene.clone()]);
            let answer = answer(&stage.adapter(provider), &asked, &Desk::default()).await;
            let outputs = answer.outputs.map(Value::Object);
            assert_eq!(outputs, Some(json!({"age": 36})), "{provider}");
            assert_eq!(answer.text.as_deref(), Some(prose), "{provider}");
        }
    }
}

#[tokio::test]
async fn whoever_wants_any_object_says_so_in_words_too() {
    // OpenAI refuses its JSON mode unless the word stands somewhere.
    let asked = Request { output_strategy: OutputStrategy::Json, ..asks("x") };
    for (provider, scene) in [
        ("openai", openai::text(&["{}"])),
        ("anthropic", anthropic::text(&["{}"])),
        ("google", google::text(&["{}"])),
    ] {
        let stage = Stage::new([scene]);
        answer(&stage.adapter(provider), &asked, &Desk::default()).await;
        let body = stage.sent(0).body.to_string();
        assert!(body.contains("Answer with one JSON object"), "{provider}: {body}");
    }
}

#[tokio::test]
async fn keys_go_where_each_provider_looks_for_them_and_are_not_shown() {
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "sk-very-secret\n").unwrap();
    for (provider, scene, header, value) in [
        ("openai", openai::text(&["x"]), "authorization", "Bearer sk-very-secret"),
        ("anthropic", anthropic::text(&["x"]), "x-api-key", "sk-very-secret"),
        ("google", google::text(&["x"]), "x-goog-api-key", "sk-very-secret"),
    ] {
        let stage = Stage::new([scene]);
        let adapter = stage.adapter_with(provider, |connection| {
            connection.key =
                Some(NamedSecret::of_operator(SecretRef::File(key.path().display().to_string())));
        });
        answer(&adapter, &asks("hi"), &Desk::default()).await;
        let sent = stage.sent(0);
        assert_eq!(sent.headers.get(header).unwrap(), value);
        assert!(sent.headers.get(header).unwrap().is_sensitive(), "{provider}");
        assert!(!sent.url.contains("secret") && !sent.body.to_string().contains("secret"));
    }
    let stage = Stage::new([openai::text(&["x"])]);
    let done = answer(&stage.adapter("openai"), &asks("hi"), &Desk::default()).await;
    assert_eq!(done.error, None, "no key is needed everywhere");
    assert!(stage.sent(0).headers.get("authorization").is_none());
}

#[tokio::test]
async fn a_base_url_takes_the_place_of_the_known_one() {
    let turn = |provider: &str, base: Option<&str>| {
        let stage = Stage::new([]);
        let base = base.map(str::to_owned);
        let adapter = stage.adapter_with(provider, |connection| connection.base_url = base);
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
    for (provider, scene) in [
        ("google", sse(&[part.to_string()])),
        ("openai", sse(&[image.to_string(), "[DONE]".to_owned()])),
    ] {
        let stage = Stage::new([scene]);
        let desk = Desk::default();
        let answer = answer(&stage.adapter(provider), &asks("draw"), &desk).await;
        assert_eq!(answer.text.as_deref(), Some("a cat"));
        assert_eq!(answer.artefacts, [json!({"mime": "image/png", "bytes": 2, "data": "aGk="})]);
        let (url, mime) = ("data:image/png;base64,aGk=".to_owned(), "image/png".to_owned());
        assert_eq!(answer.media, Some(json!({"url": url, "mime": mime})), "{provider}");
        let media = Emission::Media { url, mime };
        assert_eq!(desk.emitted(), [Emission::Text("a cat".to_owned()), media], "{provider}");
    }
}

#[tokio::test]
async fn a_sound_alone_is_an_answer_without_text() {
    let part = |data: &str| {
        json!({"candidates": [{"content": {"parts": [
            {"inlineData": {"mimeType": "audio/wav", "data": data}},
        ]}, "finishReason": "STOP"}]})
    };
    let stage = Stage::new([sse(&[part("aGk=").to_string(), part("aG8=").to_string()])]);
    let answer = answer(&stage.adapter("google"), &asks("sing"), &Desk::default()).await;
    let media =
        |data: &str| json!({"url": format!("data:audio/wav;base64,{data}"), "mime": "audio/wav"});
    assert_eq!(answer.media, Some(json!([media("aGk="), media("aG8=")])));
    assert_eq!((answer.error, answer.text), (None, None));
}

#[tokio::test]
async fn health_is_whether_anybody_answers() {
    for (scene, health) in [
        (Scene::status(200, "{}"), Health::Healthy),
        (Scene::status(404, ""), Health::Healthy),
        (Scene::status(401, ""), Health::Degraded),
        (Scene::status(503, ""), Health::Degraded),
        (Scene::unreachable(), Health::Offline),
    ] {
        for provider in ["openai", "anthropic", "google"] {
            let stage = Stage::new([scene.clone()]);
            assert_eq!(stage.adapter(provider).health().await, health);
            assert!(stage.sent(0).url.ends_with("/models"), "{}", stage.sent(0).url);
        }
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_says_so_in_the_log() {
    let scene = sse(&[
        json!({"choices": [{"delta": {"content": "and then"}, "finish_reason": "length"}]})
            .to_string(),
        "[DONE]".to_owned(),
    ]);
    let (stage, desk) = (Stage::new([scene]), Desk::default());
    let asked = Request { max_output_tokens: Some(2), ..asks("tell") };
    let done = answer(&stage.adapter("openai"), &asked, &desk).await;
    assert_eq!(done.text.as_deref(), Some("and then"));
    assert_eq!(desk.log(), ["the answer was cut at 2 tokens"]);
    // A provider that says no figures leaves the cost unknown.
    assert!(done.usage.unknown);
}

#[test]
fn a_directory_makes_adapters_for_providers_of_models_alone() {
    let stage = Stage::new([]);
    for (provider, made) in
        [("openai", true), ("anthropic", true), ("google", true), ("fax", false)]
    {
        let connection = Connection { provider: provider.to_owned(), ..Connection::default() };
        let adapter = stage.kit().adapter("g", &connection);
        assert_eq!(adapter.map(|adapter| adapter.provider()), made.then_some(provider));
    }
}
