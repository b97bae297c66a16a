use super::*;
use crate::metrics::tests::{run, service, stored};
use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Map, Value, json};
use sluice_core::doc::Registry;
use sluice_core::trace::{TraceParent, call_span, step_span};
use sluice_engine::start::Start;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Received requests: a header, and the body.
type Got = Arc<Mutex<Vec<(Option<String>, Value)>>>;

/// A collector that keeps or refuses spans.
struct Collector {
    url: String,
    got: Got,
}

async fn collector(answers: StatusCode) -> Collector {
    let got: Got = Arc::default();
    let keep = Arc::clone(&got);
    let take = post(move |headers: HeaderMap, body: Bytes| async move {
        let key = headers.get("x-key").map(|key| key.to_str().unwrap().to_owned());
        assert_eq!(headers["content-type"], "application/json");
        keep.lock().unwrap().push((key, serde_json::from_slice(&body).unwrap()));
        (answers, "{}")
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = Router::new().route("/v1/traces", take);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Collector { url, got }
}

impl Collector {
    /// The spans, by id, with their attributes as a map.
    fn spans(&self) -> BTreeMap<String, Value> {
        let got = self.got.lock().unwrap();
        let requests = got.iter().flat_map(|(_, request)| {
            request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap()
        });
        let mut found = BTreeMap::new();
        for span in requests {
            let mut span = span.clone();
            let attributes = span["attributes"].as_array().unwrap().iter().map(|one| {
                let value = one["value"].as_object().unwrap().values().next().unwrap();
                (one["key"].as_str().unwrap().to_owned(), value.clone())
            });
            span["attributes"] = Value::Object(attributes.collect());
            let id = span["spanId"].as_str().unwrap().to_owned();
            assert!(found.insert(id, span).is_none(), "a span comes twice");
        }
        found
    }
}

const MOCK: &str = "
ask:
  - {error: no, error_code: rate_limit}
  - {text: SECRET-ANSWER, model: m-1, input_tokens: 7, output_tokens: 5, cost: 0.01}
plain: {text: done, input_tokens: 0, output_tokens: 0}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_one_trace_with_its_steps_calls_and_children() {
    let collector = collector(StatusCode::OK).await;
    let target = ExportTarget::new(&collector.url, "x-key=a%20b", None).unwrap();
    let metrics = Arc::new(Metrics::default());
    let (exporter, _sending) = Exporter::start(target, Arc::clone(&metrics));
    let dir = tempfile::tempdir().unwrap();
    let service = service(dir.path(), MOCK, exporter.clone()).await;
    let child = "name: child\nsteps: [{id: ask, command: SECRET-PROMPT, \
                 retry: {attempts: 2, backoff_ms: 1}}]";
    let parent = "name: parent\nsteps: [{id: plain, command: go}, \
                  {id: sub, workflow_ref: child, depends_on: [plain]}]";
    let child = stored(child, &Registry::default());
    let registry = Registry::default().with_workflow("child", None);
    let mut start = Start::new(stored(parent, &registry), Map::new());
    start.children.insert("child".to_owned(), child.hash);
    start.bring.push(child);
    let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    start.trace = TraceParent::parse(header);
    let id = run(&service, start).await;
    let root = service.engine.load(id).await.unwrap().started.root_span_id.clone();
    // The observer is notified after the event can be read.
    for _ in 0..200 {
        exporter.flush().await;
        if collector.spans().contains_key(&root) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let spans = collector.spans();
    assert!(spans.values().all(|span| span["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736"));
    let at = |id: &str| spans.get(id).unwrap_or_else(|| panic!("{id} in {spans:#?}"));
    let root_span = at(&root);
    assert_eq!(
        (&root_span["name"], &root_span["parentSpanId"]),
        (&json!("sluice.run"), &json!("00f067aa0ba902b7"))
    );
    assert_eq!(root_span["attributes"]["sluice.run.id"], id.to_string());
    // The plain step makes a call that is not a chat.
    let plain = at(&step_span(id, "plain", 1));
    assert_eq!((&plain["name"], &plain["parentSpanId"]), (&json!("sluice.step"), &json!(root)));
    let call = at(&call_span(id, "plain", 1));
    assert_eq!((&call["name"], &call["parentSpanId"]), (&json!("call mock"), &plain["spanId"]));
    // The child's root is below the step that started it.
    let sub = at(&step_span(id, "sub", 1));
    let below = spans.values().find(|span| span["parentSpanId"] == sub["spanId"]).unwrap();
    assert_eq!(below["name"], "sluice.run");
    assert_eq!(below["attributes"]["sluice.run.id"], sub["attributes"]["sluice.child.run.id"]);
    // Each attempt is a step, with its own chat.
    let inner = below["attributes"]["sluice.run.id"].as_str().unwrap();
    let inner = sluice_core::id::RunId::parse(inner).unwrap();
    let (failed, asked) = (at(&step_span(inner, "ask", 1)), at(&step_span(inner, "ask", 2)));
    assert_eq!(failed["status"], json!({"code": 2, "message": "rate_limit"}));
    assert_eq!(
        (&failed["parentSpanId"], &asked["parentSpanId"]),
        (&below["spanId"], &below["spanId"])
    );
    assert_eq!(asked["status"], json!({}));
    let chat = at(&call_span(inner, "ask", 2));
    assert_eq!(
        (&chat["name"], &chat["kind"], &chat["parentSpanId"]),
        (&json!("chat m-1"), &json!(3), &asked["spanId"])
    );
    let expected = json!({
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "mock", "gen_ai.system": "mock",
        "gen_ai.request.model": "m-1", "gen_ai.response.model": "m-1",
        "gen_ai.usage.input_tokens": "7", "gen_ai.usage.output_tokens": "5", "sluice.agent": "mock",
    });
    assert_eq!(chat["attributes"], expected);
    assert_eq!(spans.len(), 9, "{spans:#?}");
    for span in spans.values() {
        let time = |name: &str| span[name].as_str().unwrap().parse::<u128>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
    }
    let got = collector.got.lock().unwrap();
    assert!(got.iter().all(|(key, _)| key.as_deref() == Some("a b")));
    let service_name = &got[0].1["resourceSpans"][0]["resource"]["attributes"][0];
    assert_eq!(service_name, &json!({"key": "service.name", "value": {"stringValue": "sluice"}}));
    let sent = got.iter().map(|(_, request)| request.to_string()).collect::<String>();
    assert!(!sent.contains("SECRET"), "neither prompts nor answers are sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_spans_are_counted_and_delay_no_run() {
    let collector = collector(StatusCode::BAD_REQUEST).await;
    let metrics = Arc::new(Metrics::default());
    let target = ExportTarget::new(&collector.url, "", Some("mine")).unwrap();
    let (exporter, _sending) = Exporter::start(target, Arc::clone(&metrics));
    let dir = tempfile::tempdir().unwrap();
    let service = service(dir.path(), "a: {text: done}", exporter.clone()).await;
    let flow = stored("name: f\nsteps: [{id: a, command: go}]", &Registry::default());
    run(&service, Start::new(flow, Map::new())).await;
    while metrics.spans() != (0, 3) {
        exporter.flush().await;
    }
    let resource = &collector.got.lock().unwrap()[0].1["resourceSpans"][0]["resource"];
    assert_eq!(resource["attributes"][0]["value"]["stringValue"], "mine");
}

#[test]
fn an_invalid_target_is_refused() {
    for endpoint in ["", "localhost:4318", "ftp://x", "http://", "unix:/x"] {
        assert!(
            matches!(ExportTarget::new(endpoint, "", None), Err(BadTarget::Endpoint(_))),
            "{endpoint}"
        );
    }
    for headers in ["x", "a b=c", "a=%zz", "a=%2", "a=%0a"] {
        let target = ExportTarget::new("http://localhost:4318/", headers, None);
        assert!(matches!(target, Err(BadTarget::Headers)), "{headers}");
    }
    let target = ExportTarget::new("https://collect.example/base/", " a=b , c=%64 ", None).unwrap();
    assert_eq!(target.url.as_str(), "https://collect.example/base/v1/traces");
    assert_eq!(
        (&target.headers["a"], &target.headers["c"]),
        (&HeaderValue::from_static("b"), &HeaderValue::from_static("d"))
    );
}
