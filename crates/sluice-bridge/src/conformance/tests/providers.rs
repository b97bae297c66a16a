//! A fake provider over a real socket: JSON work at `/work`, a model at `/v1`. Both repeat the
//! message; `slow` never ends, `fail` fails.

use super::super::adapter::Count;
use crate::tools::{Tool, ToolAnswer, ToolServer, ToolServerError};
use crate::wire::RequestIndex;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use sluice_core::port::Later;
use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;

/// A request in flight.
struct OpenRequest(Arc<AtomicUsize>);

impl OpenRequest {
    fn new(count: &Arc<AtomicUsize>) -> OpenRequest {
        count.fetch_add(1, Ordering::SeqCst);
        OpenRequest(Arc::clone(count))
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn count(of: &Arc<AtomicUsize>) -> Count {
    let of = Arc::clone(of);
    Arc::new(move || of.load(Ordering::SeqCst))
}

pub(super) struct Server {
    at: SocketAddr,
    open: Arc<AtomicUsize>,
}

impl Server {
    pub(super) async fn new() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let open = Arc::new(AtomicUsize::new(0));
        let (first, second) = (Arc::clone(&open), Arc::clone(&open));
        let router = Router::new()
            .route("/work", post(move |body: Bytes| work(OpenRequest::new(&first), body)))
            .route(
                "/v1/chat/completions",
                post(move |body: Bytes| chat(OpenRequest::new(&second), body)),
            )
            .route("/v1/models", get(|| async { axum::Json(json!({"data": []})) }))
            .layer(axum::extract::DefaultBodyLimit::max(16 << 20));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Server { at, open }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    /// The number of requests in flight.
    pub(super) fn underway(&self) -> Count {
        count(&self.open)
    }
}

async fn work(open: OpenRequest, body: Bytes) -> Response {
    let _open = open;
    let asked: Value = serde_json::from_slice(&body).unwrap();
    match asked["command"].as_str().unwrap() {
        "slow" => pending().await,
        "fail" => StatusCode::BAD_REQUEST.into_response(),
        text => axum::Json(json!({"status": "completed", "stdout": text})).into_response(),
    }
}

async fn chat(open: OpenRequest, body: Bytes) -> Response {
    let asked: Value = serde_json::from_slice(&body).unwrap();
    let messages = asked["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    if last["content"] == "fail" {
        return (StatusCode::BAD_REQUEST, "{\"error\": {\"message\": \"no\"}}").into_response();
    }
    let mut events = Vec::new();
    let mut choice = |delta: Value, reason: Value| {
        let choice = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
        events.push(format!("data: {choice}\n\n"));
    };
    if asked["tools"].is_array() && last["role"] == "user" {
        let function = json!({"name": "box_read", "arguments": "{}"});
        let call = json!({"index": 0, "id": "c1", "type": "function", "function": function});
        choice(json!({"tool_calls": [call]}), Value::Null);
        choice(json!({}), json!("tool_calls"));
    } else {
        for part in last["content"].as_str().unwrap().split_inclusive(' ') {
            choice(json!({"content": part}), Value::Null);
        }
        choice(json!({}), json!("stop"));
    }
    events.push("data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 3, \"completion_tokens\": 2}}\n\ndata: [DONE]\n\n".to_owned());
    if last["content"] == "slow" {
        events.truncate(1);
    }
    let slow = last["content"] == "slow";
    let body =
        futures_util::stream::unfold((events.into_iter(), open), move |mut state| async move {
            match state.0.next() {
                Some(event) => Some((Ok::<_, Infallible>(Bytes::from(event)), state)),
                None if slow => pending().await,
                None => None,
            }
        });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(body)).into_response()
}

/// A tool server with one tool, which counts its calls.
#[derive(Debug, Default)]
pub(super) struct CountingToolServer {
    called: Arc<AtomicUsize>,
}

impl CountingToolServer {
    pub(super) fn new() -> Arc<CountingToolServer> {
        Arc::default()
    }

    pub(super) fn server(self: &Arc<CountingToolServer>) -> Arc<dyn ToolServer> {
        Arc::clone(self) as Arc<dyn ToolServer>
    }

    pub(super) fn called(&self) -> Count {
        count(&self.called)
    }
}

impl ToolServer for CountingToolServer {
    fn name(&self) -> &str {
        "box"
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolServerError>> {
        let tool = Tool {
            name: "box.read".to_owned(),
            description: "reads".to_owned(),
            input_schema: json!({"type": "object"}),
            read_only: true,
        };
        Box::pin(std::future::ready(Ok([tool].into())))
    }

    fn call<'a>(
        &'a self,
        _: &'a str,
        _: &'a Value,
        _: RequestIndex<'a>,
    ) -> Later<'a, Result<(ToolAnswer, crate::tools::Structured), ToolServerError>> {
        self.called.fetch_add(1, Ordering::SeqCst);
        let answer = ToolAnswer { text: "read".to_owned(), failed: false, ..ToolAnswer::default() };
        Box::pin(std::future::ready(Ok((answer, None))))
    }
}
