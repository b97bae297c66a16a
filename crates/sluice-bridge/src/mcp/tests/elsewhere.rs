//! Against a server over HTTP that is scripted.

use super::*;
use crate::outbound::Request;
use crate::outbound::error::OutboundError;
use crate::secret::keyring::NamedSecret;
use crate::wire::{Incoming, Wire};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::collections::VecDeque;
use std::sync::Mutex as StdMutex;

/// What is answered: a status, a type and parts; nothing ends it where it hangs.
struct Said {
    status: u16,
    kind: &'static str,
    parts: VecDeque<String>,
    session: Option<&'static str>,
    hangs: bool,
}

type Rule = Box<dyn Fn(&Value, &HeaderMap) -> Said + Send + Sync>;

struct Elsewhere {
    rule: Rule,
    heard: StdMutex<Vec<(Value, HeaderMap)>>,
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Elsewhere")
    }
}

struct Coming {
    said: Said,
    headers: HeaderMap,
}

impl Incoming for Coming {
    fn status(&self) -> u16 {
        self.said.status
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn chunk(&mut self) -> Later<'_, Result<Option<Vec<u8>>, OutboundError>> {
        match self.said.parts.pop_front() {
            Some(part) => Box::pin(std::future::ready(Ok(Some(part.into_bytes())))),
            None if self.said.hangs => Box::pin(std::future::pending()),
            None => Box::pin(std::future::ready(Ok(None))),
        }
    }
}

impl Wire for Elsewhere {
    fn open<'a>(
        &'a self,
        _: Place<'a>,
        request: &'a Request,
    ) -> Later<'a, Result<Box<dyn Incoming>, OutboundError>> {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        self.heard.lock().unwrap().push((body.clone(), request.headers.clone()));
        let said = (self.rule)(&body, &request.headers);
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(said.kind));
        let session = said.session.map(HeaderValue::from_static);
        headers.extend(session.map(|value| (HeaderName::from_static("mcp-session-id"), value)));
        let coming = Box::new(Coming { said, headers }) as Box<dyn Incoming>;
        Box::pin(std::future::ready(Ok(coming)))
    }
}

type Answering = fn(&Value) -> Said;

fn json_said(text: String) -> Said {
    let parts = VecDeque::from([text]);
    Said {
        status: 200,
        kind: "application/json; charset=utf-8",
        parts,
        session: None,
        hangs: false,
    }
}

fn status(status: u16) -> Said {
    Said { status, ..json_said(String::new()) }
}

fn stream(parts: &[&str]) -> Said {
    let parts = parts.iter().map(|part| (*part).to_owned()).collect();
    Said { kind: "text/event-stream", parts, ..json_said(String::new()) }
}

fn result(asked: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string()
}

/// Greets; everything else goes by the rule.
fn server(
    rule: impl Fn(&Value, &HeaderMap) -> Said + Send + Sync + 'static,
) -> (McpServer, Arc<Elsewhere>) {
    let rule = move |asked: &Value, headers: &HeaderMap| match asked["method"].as_str() {
        Some("initialize") => {
            let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
            Said { session: Some("s-1"), ..json_said(result(asked, &hello)) }
        }
        Some(method) if method.starts_with("notifications/") => status(202),
        _ => rule(asked, headers),
    };
    let wire = Arc::new(Elsewhere { rule: Box::new(rule), heard: StdMutex::default() });
    let address = Address {
        url: "https://tools.example.com/mcp".to_owned(),
        key: Some(NamedSecret::of_operator("env:CARGO_PKG_DESCRIPTION".parse().unwrap())),
        wire: Arc::clone(&wire) as Arc<dyn Wire>,
    };
    (McpServer::over("t", address), wire)
}

fn said(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn methods(wire: &Elsewhere) -> Vec<String> {
    let heard = wire.heard.lock().unwrap();
    heard.iter().map(|(asked, _)| asked["method"].as_str().unwrap_or("reply").to_owned()).collect()
}

#[tokio::test]
async fn an_answer_comes_as_json_with_who_we_are_said() {
    let (server, wire) = server(|asked, _| json_said(result(asked, &said("hello"))));
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
    assert!(shown.is_sensitive() && shown.to_str().unwrap().starts_with("Bearer Who does"));
}

#[tokio::test]
async fn an_answer_comes_among_other_events() {
    let (server, wire) = server(|asked, _| {
        let answer = format!("data: {}\n\n", result(asked, &said("streamed")));
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
async fn a_forgotten_session_is_begun_anew_once() {
    let calls = StdMutex::new(0);
    let (server, wire) = server(move |asked, _| {
        let mut calls = calls.lock().unwrap();
        *calls += 1;
        if *calls == 1 { status(404) } else { json_said(result(asked, &said("again"))) }
    });
    assert_eq!(called(&server, "t.x").await.unwrap(), "again");
    let greetings = methods(&wire).iter().filter(|method| *method == "initialize").count();
    assert_eq!(greetings, 2);
    let (server, _) = self::server(|_, _| status(404));
    let told = called(&server, "t.x").await.unwrap_err();
    assert_eq!(told, "the server of tools `t` has forgotten the session");
}

#[tokio::test]
async fn what_is_no_answer_is_told_as_what_it_is() {
    let cases: [(Answering, &str); 7] = [
        (|_| status(401), "refused: the key was not accepted"),
        (|_| status(500), "answered 500"),
        (
            |_| Said { kind: "text/html", ..status(200) },
            "answered with `text/html`, which is not spoken here",
        ),
        (|_| json_said("{".to_owned()), "ended without an answer"),
        (|_| stream(&["data: {}\n\n"]), "ended without an answer"),
        (|asked| json_said(result(asked, &json!({}))), "answered with no result of a tool"),
        (
            |asked| {
                json_said(json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": 1, "message": "no"}}).to_string())
            },
            "refused: no (1)",
        ),
    ];
    for (rule, told) in cases {
        let (server, _) = server(move |asked, _| rule(asked));
        let heard = called(&server, "t.x").await.unwrap_err();
        assert_eq!(heard, format!("the server of tools `t` {told}"));
    }
}

#[tokio::test]
async fn an_event_without_end_is_refused() {
    let long = "x".repeat(5 * 1024 * 1024);
    let (server, _) = server(move |_, _| stream(&["data: ", &long, &long]));
    let told = called(&server, "t.x").await.unwrap_err();
    assert!(told.ends_with("sent too long an event"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_is_taken_back() {
    let (server, wire) = server(|_, _| Said { hangs: true, ..stream(&["data: "]) });
    let gone = tokio::time::timeout(Duration::from_secs(1), called(&server, "t.x")).await;
    assert!(gone.is_err());
    tokio::task::yield_now().await;
    let heard = wire.heard.lock().unwrap().last().unwrap().0.clone();
    assert_eq!(heard["method"], "notifications/cancelled");
    assert_eq!(heard["params"]["requestId"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_by_itself_in_the_end() {
    let (server, wire) = server(|_, _| Said { hangs: true, ..stream(&["data: "]) });
    let told = called(&server, "t.x").await.unwrap_err();
    assert_eq!(told, "the server of tools `t` did not answer within 600000 ms");
    tokio::task::yield_now().await;
    assert_eq!(methods(&wire).last().unwrap(), "notifications/cancelled");
}

#[tokio::test]
async fn a_server_without_end_of_tools_is_refused() {
    let (many, _) = server(|asked, _| {
        let tools: Vec<Value> = (0..600).map(|n| json!({"name": format!("t{n}")})).collect();
        json_said(result(asked, &json!({"tools": tools, "nextCursor": "more"})))
    });
    let told = many.tools().await.unwrap_err().to_string();
    assert_eq!(told, "the server of tools `t` has more than 1000 tools");
    let (pages, wire) =
        server(|asked, _| json_said(result(asked, &json!({"tools": [], "nextCursor": "more"}))));
    let told = pages.tools().await.unwrap_err().to_string();
    assert_eq!(told, "the server of tools `t` has more than 100 pages of tools");
    assert_eq!(wire.heard.lock().unwrap().len(), 102);
}

#[tokio::test]
async fn a_tool_that_repeats_the_key_is_not_repeated() {
    let (server, _) = server(|asked, headers| {
        let shown = headers.get("authorization").unwrap().to_str().unwrap();
        let mut said = said(shown);
        said["structuredContent"] = json!({ shown: [shown] });
        json_said(result(asked, &said))
    });
    let (answer, structured) = server.call_whole("t.x", &json!({}), PLACE).await.unwrap();
    assert_eq!(answer.text, "Bearer [redacted]");
    let clean = json!({"Bearer [redacted]": ["Bearer [redacted]"]});
    assert_eq!(structured.map(Value::Object), Some(clean));
}

#[tokio::test]
async fn a_description_that_repeats_the_key_is_not_repeated() {
    let (server, _) = server(|asked, headers| {
        let shown = headers.get("authorization").unwrap().to_str().unwrap();
        let schema = json!({"type": "object", "description": shown});
        let tool = json!({"name": "x", "description": shown, "inputSchema": schema});
        json_said(result(asked, &json!({"tools": [tool]})))
    });
    let tools = server.tools().await.unwrap();
    assert_eq!(tools[0].description, "Bearer [redacted]");
    assert_eq!(tools[0].input_schema["description"], "Bearer [redacted]");
}
