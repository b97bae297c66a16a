//! Tests against a scripted server over HTTP.

use super::*;
use crate::outbound::Request;
use crate::outbound::error::OutboundError;
use crate::secret::keyring::NamedSecret;
use crate::wire::{Incoming, Wire};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::collections::VecDeque;
use std::sync::Mutex as StdMutex;

/// A scripted response: status, type and parts; a hanging one does not end.
struct ScriptedResponse {
    status: u16,
    kind: &'static str,
    parts: VecDeque<String>,
    session: Option<&'static str>,
    hangs: bool,
}

type Rule = Box<dyn Fn(&Value, &HeaderMap) -> ScriptedResponse + Send + Sync>;

struct ScriptedWire {
    rule: Rule,
    heard: StdMutex<Vec<(Value, HeaderMap)>>,
}

impl fmt::Debug for ScriptedWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Elsewhere")
    }
}

struct ScriptedBody {
    text_result: ScriptedResponse,
    headers: HeaderMap,
}

impl Incoming for ScriptedBody {
    fn status(&self) -> u16 {
        self.text_result.status
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn chunk(&mut self) -> Later<'_, Result<Option<Vec<u8>>, OutboundError>> {
        match self.text_result.parts.pop_front() {
            Some(part) => Box::pin(std::future::ready(Ok(Some(part.into_bytes())))),
            None if self.text_result.hangs => Box::pin(std::future::pending()),
            None => Box::pin(std::future::ready(Ok(None))),
        }
    }
}

impl Wire for ScriptedWire {
    fn open<'a>(
        &'a self,
        _: RequestIndex<'a>,
        request: &'a Request,
    ) -> Later<'a, Result<Box<dyn Incoming>, OutboundError>> {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        self.heard.lock().unwrap().push((body.clone(), request.headers.clone()));
        let text_result = (self.rule)(&body, &request.headers);
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(text_result.kind));
        let session = text_result.session.map(HeaderValue::from_static);
        headers.extend(session.map(|value| (HeaderName::from_static("mcp-session-id"), value)));
        let coming = Box::new(ScriptedBody { text_result, headers }) as Box<dyn Incoming>;
        Box::pin(std::future::ready(Ok(coming)))
    }
}

type ResponseFn = fn(&Value) -> ScriptedResponse;

fn json_response(text: String) -> ScriptedResponse {
    let parts = VecDeque::from([text]);
    ScriptedResponse {
        status: 200,
        kind: "application/json; charset=utf-8",
        parts,
        session: None,
        hangs: false,
    }
}

fn status(status: u16) -> ScriptedResponse {
    ScriptedResponse { status, ..json_response(String::new()) }
}

fn stream(parts: &[&str]) -> ScriptedResponse {
    let parts = parts.iter().map(|part| (*part).to_owned()).collect();
    ScriptedResponse { kind: "text/event-stream", parts, ..json_response(String::new()) }
}

fn result(asked: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string()
}

/// Answers `initialize`; other requests follow the rule.
fn server(
    rule: impl Fn(&Value, &HeaderMap) -> ScriptedResponse + Send + Sync + 'static,
) -> (McpServer, Arc<ScriptedWire>) {
    let rule = move |asked: &Value, headers: &HeaderMap| match asked["method"].as_str() {
        Some("initialize") => {
            let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
            ScriptedResponse { session: Some("s-1"), ..json_response(result(asked, &hello)) }
        }
        Some(method) if method.starts_with("notifications/") => status(202),
        _ => rule(asked, headers),
    };
    let wire = Arc::new(ScriptedWire { rule: Box::new(rule), heard: StdMutex::default() });
    let address = McpEndpoint {
        url: "https://tools.example.com/mcp".to_owned(),
        key: Some(NamedSecret::of_operator("env:CARGO_PKG_DESCRIPTION".parse().unwrap())),
        wire: Arc::clone(&wire) as Arc<dyn Wire>,
    };
    (McpServer::with_endpoint("t", address), wire)
}

fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn methods(wire: &ScriptedWire) -> Vec<String> {
    let heard = wire.heard.lock().unwrap();
    heard.iter().map(|(asked, _)| asked["method"].as_str().unwrap_or("reply").to_owned()).collect()
}

#[tokio::test]
async fn an_answer_comes_as_json_and_requests_carry_the_session() {
    let (server, wire) = server(|asked, _| json_response(result(asked, &text_result("hello"))));
    assert_eq!(called(&server, "t.x").await.unwrap(), "hello");
    let heard = wire.heard.lock().unwrap();
    let (first, last) = (&heard[0].1, &heard[2].1);
    let text = |headers: &HeaderMap, name: &str| {
        headers.get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(text(first, "mcp-session-id"), None);
    assert_eq!(text(first, "mcp-protocol-version"), None);
    assert_eq!(text(last, "mcp-session-id").as_deref(), Some("s-1"));
    assert_eq!(text(last, "mcp-protocol-version").as_deref(), Some("2025-06-18"));
    let both = "application/json, text/event-stream";
    assert_eq!(text(last, "accept").as_deref(), Some(both));
    let shown = last.get("authorization").unwrap();
    assert!(shown.is_sensitive() && shown.to_str().unwrap().starts_with("Bearer Adapters for"));
}

#[tokio::test]
async fn an_answer_comes_among_other_events() {
    let (server, wire) = server(|asked, _| {
        let answer = format!("data: {}\n\n", result(asked, &text_result("streamed")));
        let (one, two) = answer.split_at(20);
        stream(&[
            "id: 1\ndata:\n\n: hi\n\n",
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n",
            "data: {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n\n",
            "data: {\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}\n\n",
            one,
            two,
        ])
    });
    assert_eq!(called(&server, "t.x").await.unwrap(), "streamed");
    let expected = ["initialize", "notifications/initialized", "tools/call", "reply"];
    assert_eq!(methods(&wire), expected);
    assert_eq!(wire.heard.lock().unwrap()[3].0, json!({"jsonrpc": "2.0", "id": 5, "result": {}}));
}

#[tokio::test]
async fn a_lost_session_is_renewed_once() {
    let calls = StdMutex::new(0);
    let (server, wire) = server(move |asked, _| {
        let mut calls = calls.lock().unwrap();
        *calls += 1;
        if *calls == 1 { status(404) } else { json_response(result(asked, &text_result("again"))) }
    });
    assert_eq!(called(&server, "t.x").await.unwrap(), "again");
    let greetings = methods(&wire).iter().filter(|method| *method == "initialize").count();
    assert_eq!(greetings, 2);
    let (server, _) = self::server(|_, _| status(404));
    let message = called(&server, "t.x").await.unwrap_err();
    assert_eq!(message, "the tool server `t` has lost the session");
}

#[tokio::test]
async fn malformed_responses_have_specific_errors() {
    let cases: [(ResponseFn, &str); 7] = [
        (|_| status(401), "refused: the key was not accepted"),
        (|_| status(500), "answered 500"),
        (
            |_| ScriptedResponse { kind: "text/html", ..status(200) },
            "answered with content type `text/html`, expected `application/json` or `text/event-stream`",
        ),
        (|_| json_response("{".to_owned()), "ended without an answer"),
        (|_| stream(&["data: {}\n\n"]), "ended without an answer"),
        (
            |asked| json_response(result(asked, &json!({}))),
            "answered with something that is not a tool result",
        ),
        (
            |asked| {
                json_response(json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": 1, "message": "no"}}).to_string())
            },
            "refused: no (1)",
        ),
    ];
    for (rule, message) in cases {
        let (server, _) = server(move |asked, _| rule(asked));
        let heard = called(&server, "t.x").await.unwrap_err();
        assert_eq!(heard, format!("the tool server `t` {message}"));
    }
}

#[tokio::test]
async fn an_event_without_end_is_refused() {
    let long = "x".repeat(5 * 1024 * 1024);
    let (server, _) = server(move |_, _| stream(&["data: ", &long, &long]));
    let message = called(&server, "t.x").await.unwrap_err();
    assert!(message.ends_with("sent too long an event"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_call_is_cancelled() {
    let (server, wire) = server(|_, _| ScriptedResponse { hangs: true, ..stream(&["data: "]) });
    let gone = tokio::time::timeout(Duration::from_secs(1), called(&server, "t.x")).await;
    assert!(gone.is_err());
    tokio::task::yield_now().await;
    let heard = wire.heard.lock().unwrap().last().unwrap().0.clone();
    assert_eq!(heard["method"], "notifications/cancelled");
    assert_eq!(heard["params"]["requestId"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_times_out() {
    let (server, wire) = server(|_, _| ScriptedResponse { hangs: true, ..stream(&["data: "]) });
    let message = called(&server, "t.x").await.unwrap_err();
    assert_eq!(message, "the tool server `t` did not answer within 600000 ms");
    tokio::task::yield_now().await;
    assert_eq!(methods(&wire).last().unwrap(), "notifications/cancelled");
}

#[tokio::test]
async fn an_endless_tool_list_is_rejected() {
    let (many, _) = server(|asked, _| {
        let tools: Vec<Value> = (0..600).map(|n| json!({"name": format!("t{n}")})).collect();
        json_response(result(asked, &json!({"tools": tools, "nextCursor": "more"})))
    });
    let message = many.tools().await.unwrap_err().to_string();
    assert_eq!(message, "the tool server `t` has more than 1000 tools");
    let (pages, wire) = server(|asked, _| {
        json_response(result(asked, &json!({"tools": [], "nextCursor": "more"})))
    });
    let message = pages.tools().await.unwrap_err().to_string();
    assert_eq!(message, "the tool server `t` has more than 100 pages of tools");
    assert_eq!(wire.heard.lock().unwrap().len(), 102);
}

#[tokio::test]
async fn a_key_in_a_tool_answer_is_redacted() {
    let (server, _) = server(|asked, headers| {
        let shown = headers.get("authorization").unwrap().to_str().unwrap();
        let mut text_result = text_result(shown);
        text_result["structuredContent"] = json!({ shown: [shown] });
        json_response(result(asked, &text_result))
    });
    let (answer, structured) = server.call("t.x", &json!({}), PLACE).await.unwrap();
    assert_eq!(answer.text, "Bearer [redacted]");
    let clean = json!({"Bearer [redacted]": ["Bearer [redacted]"]});
    assert_eq!(structured.map(Value::Object), Some(clean));
}

#[tokio::test]
async fn a_key_in_a_description_is_redacted() {
    let (server, _) = server(|asked, headers| {
        let shown = headers.get("authorization").unwrap().to_str().unwrap();
        let schema = json!({"type": "object", "description": shown});
        let tool = json!({"name": "x", "description": shown, "inputSchema": schema});
        json_response(result(asked, &json!({"tools": [tool]})))
    });
    let tools = server.tools().await.unwrap();
    assert_eq!(tools[0].description, "Bearer [redacted]");
    assert_eq!(tools[0].input_schema["description"], "Bearer [redacted]");
}
