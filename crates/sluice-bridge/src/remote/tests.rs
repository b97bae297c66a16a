use super::*;
use crate::bridge_server::test_bridge::{FakeEngine, FakeReply, KEY, TestBridge, local};
use crate::directory::{AdapterContext, Connection, Directory};
use crate::fake_call::{FakeCall, answer, error, request};
use crate::outbound::Outbound;
use crate::secret::keyring::Keyring;
use serde_json::{Value, json};
use sluice_core::money::Money;
use sluice_core::port::adapter::{Emission, Gateways as _};
use sluice_core::secret::SecretRef;
use std::collections::BTreeMap;

const DONE: &str = "'*': {text: done, outputs: {a: 1}, input_tokens: 3, cost: 0.0004}";

/// A file with a key, and the row of a gateway at an address.
struct RemoteGateway {
    _file: tempfile::NamedTempFile,
    row: Gateway,
}

impl RemoteGateway {
    fn at(url: &str, capabilities: &[&str]) -> RemoteGateway {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{KEY}\n")).unwrap();
        let key = SecretRef::File(file.path().to_str().unwrap().to_owned());
        let row = Gateway {
            provider: "mock".to_owned(),
            url: Some(url.to_owned()),
            key: Some(key),
            operator_secret: true,
            capabilities: capabilities.iter().map(|one| (*one).to_owned()).collect(),
            ..Gateway::default()
        };
        RemoteGateway { _file: file, row }
    }

    fn adapter(&self, callbacks: Option<Callbacks>) -> RemoteAdapter {
        let wire: Arc<Outbound> = local();
        let patience = RemoteTiming {
            pauses: [5, 10, 15].map(Duration::from_millis).to_vec(),
            grace: Duration::from_secs(5),
        };
        RemoteAdapter::new("far", &self.row, &Keyring::default(), callbacks, wire)
            .unwrap()
            .with_timing(patience)
    }
}

fn callbacks(ear: &FakeEngine) -> Callbacks {
    let key = crate::token::DispatchKey::new([3; 32]);
    Callbacks { url: ear.url("/api/workflow/step-complete"), tool_url: None, parts_url: None, key }
}

#[tokio::test]
async fn a_dispatch_is_handed_over_and_its_result_carries_its_token() {
    let world = TestBridge::new(DONE).await;
    let far = RemoteGateway::at(&format!("http://{}/", world.at), &[]);
    let adapter = far.adapter(Some(world.callbacks()));
    let request = request("ask[1]", "hello");
    assert_eq!(adapter.execute(&request, &FakeCall::default()).await, Execution::Accepted);
    let heard = world.engine.wait_for_requests(1).await.remove(0);
    let of = Dispatched { gateway: "far", run: request.run, step: "ask[1]", dispatch_no: 1 };
    assert!(world.callbacks().key.knows(heard.header("x-dispatch-token"), of));
    let answered = CallbackBody::read(heard.body.to_string().as_bytes()).unwrap().answer();
    assert_eq!(answered.text.as_deref(), Some("done"));
    assert_eq!(answered.usage.cost, Money::from_micro_cents(40_000));
    // Sent again after a crash of the engine, it is recognised.
    assert_eq!(adapter.execute(&request, &FakeCall::default()).await, Execution::Accepted);
    assert_eq!(world.ran(), 1);
}

#[tokio::test]
async fn a_synchronous_result_is_awaited_and_events_are_forwarded() {
    let script = "{a: {chunks: [one, ' ', two], chunk_delay_ms: 5, cost: 0.5}, '*': {text: x}}";
    let world = TestBridge::new(script).await;
    let far = RemoteGateway::at(&format!("http://{}", world.at), &["sync"]);
    let (adapter, call) = (far.adapter(None), FakeCall::default());
    let answered = answer(&adapter, &request("a", "hello"), &call).await;
    assert_eq!(answered.text.as_deref(), Some("one two"));
    assert_eq!(answered.usage.cost, Money::from_micro_cents(50_000_000));
    assert_eq!(call.text(), "one two");
    assert!(world.engine.heard().is_empty());
    assert_eq!(adapter.health().await, Health::Healthy);
    // A dispatch with a long timeout is handed over.
    let long = Request { timeout_ms: 270_001, ..request("b", "hello") };
    let (code, _) = error_of(&adapter, &long).await;
    assert_eq!(code, CallErrorCode::InvalidRequest);
    let adapter = far.adapter(Some(world.callbacks()));
    assert_eq!(adapter.execute(&long, &FakeCall::default()).await, Execution::Accepted);
    world.engine.wait_for_requests(1).await;
}

#[tokio::test]
async fn parts_are_requested_for_asynchronous_dispatches() {
    for (capabilities, asked) in [(&[][..], true), (&["sync"][..], false)] {
        let (ear, adapter) = scripted(&[(202, json!({}))], capabilities).await;
        let url = ear.url("/parts");
        let back = Callbacks { parts_url: Some(url.clone()), ..callbacks(&ear) };
        let adapter = RemoteAdapter { callbacks: Some(back), ..adapter };
        assert!(adapter.capabilities().streaming);
        adapter.execute(&request("a", "hello"), &FakeCall::default()).await;
        let heard = ear.heard();
        let sent = heard.iter().find(|one| one.path.contains("dispatch")).unwrap();
        assert_eq!(sent.body["parts_url"].as_str(), asked.then_some(url.as_str()));
    }
}

async fn error_of(adapter: &dyn Adapter, request: &Request) -> (CallErrorCode, String) {
    let answered = answer(adapter, request, &FakeCall::default()).await;
    let (code, message) = error(&answered);
    (code, message.to_owned())
}

#[tokio::test]
async fn a_cancelled_dispatch_is_stopped_at_the_bridge() {
    let world = TestBridge::new("'*': {chunks: [begun, x], hang_after: 1}").await;
    let far = RemoteGateway::at(&format!("http://{}", world.at), &["sync"]);
    let (adapter, call) = (far.adapter(Some(world.callbacks())), FakeCall::default());
    let asked = request("a", "hello");
    let cancel = async {
        call.wait_for_text("begun").await;
        call.cancel();
    };
    let (answered, ()) = futures_util::join!(answer(&adapter, &asked, &call), cancel);
    assert_eq!(error(&answered).0, CallErrorCode::Cancelled);
    assert!(!answered.usage.unknown, "the bridge said what it cost");
    // Also a dispatch that was handed over.
    let long = Request { timeout_ms: 300_000, ..request("b", "hello") };
    assert_eq!(adapter.execute(&long, &FakeCall::default()).await, Execution::Accepted);
    adapter.recall(&recall(&long)).await;
    let result = world.engine.wait_for_requests(1).await.remove(0).body;
    assert_eq!((&result["step_id"], &result["error_code"]), (&json!("b"), &json!("cancelled")));
}

/// A fake bridge.
async fn scripted(replies: &[(u16, Value)], capabilities: &[&str]) -> (FakeEngine, RemoteAdapter) {
    let ear = FakeEngine::new().await;
    ear.answers(replies.iter().map(|(status, body)| (*status, Vec::new(), body.clone())));
    let adapter = RemoteGateway::at(&ear.url(""), capabilities);
    let key = adapter.adapter(Some(callbacks(&ear)));
    // The key's file is dropped with the row; these tests do not need it.
    (ear, RemoteAdapter { key: None, ..key })
}

#[tokio::test]
async fn a_dispatch_that_may_not_have_arrived_is_sent_again() {
    let replies = [(503, json!({})), (502, json!({})), (500, json!({})), (202, json!({}))];
    let (ear, adapter) = scripted(&replies, &[]).await;
    let request = request("a", "hello");
    assert_eq!(adapter.execute(&request, &FakeCall::default()).await, Execution::Accepted);
    let heard = ear.heard();
    assert_eq!(heard.len(), 4);
    assert!(heard.iter().all(|one| one.path == "/api/v2/dispatch" && one.body == heard[0].body));
    // Repeated three times; then it is unknown whether the dispatch arrived.
    let (ear, adapter) = scripted(&[(503, json!({"title": "full"}))], &[]).await;
    let answered = answer(&adapter, &request, &FakeCall::default()).await;
    let told = format!("the bridge at {} answered 503: full", ear.url("").trim_end_matches('/'));
    assert_eq!(error(&answered), (CallErrorCode::ProviderError, told.as_str()));
    assert_eq!(answered.text.as_deref(), Some(r#"{"title":"full"}"#));
    assert!(answered.usage.unknown);
    assert_eq!(ear.heard().len(), 4);
}

#[tokio::test]
async fn an_unreachable_bridge_costs_nothing() {
    let ear = FakeEngine::new().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let far = RemoteGateway::at(&url, &["*"]);
    let adapter = far.adapter(Some(callbacks(&ear)));
    let answered = answer(&adapter, &request("a", "hello"), &FakeCall::default()).await;
    let (code, told) = error(&answered);
    assert_eq!(code, CallErrorCode::ProviderError);
    let expected = format!("the bridge at {url} cannot be reached: Connection refused");
    assert!(told.starts_with(&expected), "{told}");
    assert!(!answered.usage.unknown);
    assert_eq!(adapter.health().await, Health::Offline);
    adapter.recall(&recall(&request("a", "hello"))).await;
    let far = RemoteGateway::at("http://10.0.0.1", &["*"]);
    let adapter = far.adapter(Some(callbacks(&ear)));
    let (code, message) = error_of(&adapter, &request("a", "hello")).await;
    assert_eq!(code, CallErrorCode::InvalidRequest);
    assert!(message.contains("private address"), "{message}");
}

#[tokio::test]
async fn a_rejection_has_the_right_class_and_repeats_no_key() {
    let cases = [
        (401, CallErrorCode::Auth),
        (403, CallErrorCode::Auth),
        (400, CallErrorCode::InvalidRequest),
        (404, CallErrorCode::InvalidRequest),
        (422, CallErrorCode::InvalidRequest),
        (302, CallErrorCode::ProviderError),
    ];
    let ear = FakeEngine::new().await;
    let far = RemoteGateway::at(&ear.url(""), &[]);
    let adapter = far.adapter(Some(callbacks(&ear)));
    for (status, expected) in cases {
        let title = format!("no {KEY}\n{}", "x".repeat(500));
        ear.answers([(status, Vec::new(), json!({"title": title}))]);
        let (code, message) = error_of(&adapter, &request("a", "hello")).await;
        assert_eq!(code, expected, "{status}");
        assert!(!message.contains(KEY) && message.len() < 300, "{message}");
    }
    assert_eq!(ear.heard().len(), cases.len());
    assert_eq!(ear.heard()[0].header("authorization"), format!("Bearer {KEY}"));
    let reply: FakeReply = (429, vec![("retry-after", "7".to_owned())], json!("slow"));
    ear.answers([reply]);
    let answered = answer(&adapter, &request("a", "hello"), &FakeCall::default()).await;
    let failed = answered.error.unwrap();
    assert_eq!((failed.code, failed.retry_after_ms), (CallErrorCode::RateLimit, Some(7000)));
    let lost = Gateway { key: Some(SecretRef::Env("NO_SUCH_KEY_9".to_owned())), ..far.row.clone() };
    let none = Keyring::default();
    let adapter = RemoteAdapter::new("far", &lost, &none, Some(callbacks(&ear)), local()).unwrap();
    assert_eq!(error_of(&adapter, &request("a", "hello")).await.0, CallErrorCode::Auth);
}

#[tokio::test]
async fn a_malformed_result_is_a_failure_of_unknown_cost() {
    let odd = [
        json!("rubbish"),
        json!({"status": "odd"}),
        json!({"status": "completed", "step_id": "another"}),
        json!({"status": "completed", "dispatch_no": 9}),
    ];
    for body in odd {
        let (_, adapter) = scripted(&[(200, body.clone())], &["sync"]).await;
        let answered = answer(&adapter, &request("a", "hello"), &FakeCall::default()).await;
        assert_eq!(error(&answered).0, CallErrorCode::ProviderError, "{body}");
        assert!(answered.usage.unknown);
        assert_eq!(answered.text, Some(body.to_string()), "what was answered is kept");
    }
    // A bridge that cannot answer synchronously says so, and the result comes by callback.
    let (_, adapter) = scripted(&[(202, json!({}))], &["sync"]).await;
    let left = adapter.execute(&request("a", "hello"), &FakeCall::default()).await;
    assert_eq!(left, Execution::Accepted);
}

fn kit(ear: &FakeEngine) -> AdapterContext {
    AdapterContext {
        wire: local(),
        tool_servers: BTreeMap::new(),
        secrets: Keyring::default(),
        callbacks: Some(callbacks(ear)),
    }
}

async fn over_http(ear: &FakeEngine, kit: AdapterContext) -> Execution {
    let connection = Connection {
        provider: "http".to_owned(),
        base_url: Some(ear.url("/work")),
        ..Connection::default()
    };
    let adapter = kit.adapter("near", &connection).unwrap();
    adapter.execute(&request("a", "hello"), &FakeCall::default()).await
}

#[tokio::test]
async fn work_is_sent_over_http_once_and_answered_now_or_later() {
    let ear = FakeEngine::new().await;
    let done = json!({"status": "completed", "stdout": "done", "cost": 0.01, "outputs": {"a": 1}});
    ear.answers([(200, Vec::new(), done)]);
    let Execution::Done(answered) = over_http(&ear, kit(&ear)).await else { panic!("it is done") };
    assert_eq!(answered.text.as_deref(), Some("done"));
    assert_eq!(answered.usage.cost, Money::from_micro_cents(1_000_000));
    let heard = ear.heard().remove(0);
    assert_eq!((heard.path.as_str(), &heard.body["provider"]), ("/work", &json!("http")));
    assert_eq!(heard.body["command"], "hello");
    let of =
        Dispatched { gateway: "near", run: sluice_core::id::RunId(1), step: "a", dispatch_no: 1 };
    let token = heard.body["dispatch_token"].as_str().unwrap();
    assert!(callbacks(&ear).key.knows(token, of));
    ear.answers_with(&[202]);
    assert_eq!(over_http(&ear, kit(&ear)).await, Execution::Accepted);
    let alone = AdapterContext { callbacks: None, ..kit(&ear) };
    let Execution::Done(answered) = over_http(&ear, alone).await else { panic!("no answer") };
    assert_eq!(error(&answered).0, CallErrorCode::ProviderError);
    assert!(answered.usage.unknown);
    let before = ear.heard().len();
    ear.answers_with(&[500]);
    let Execution::Done(answered) = over_http(&ear, kit(&ear)).await else { panic!("it failed") };
    assert_eq!(error(&answered).0, CallErrorCode::ProviderError);
    assert!(answered.usage.unknown);
    assert_eq!(ear.heard().len(), before + 1);
    let connection = Connection { provider: "http".to_owned(), ..Connection::default() };
    assert!(kit(&ear).adapter("near", &connection).is_none());
}

#[tokio::test]
async fn a_row_with_a_url_is_reached_at_that_url() {
    let world = TestBridge::new(DONE).await;
    let directory =
        Directory::new(AdapterContext { callbacks: Some(world.callbacks()), ..kit(&world.engine) });
    let far = RemoteGateway::at(&format!("http://{}", world.at), &["sync"]);
    let adapter = directory.adapter("far", &far.row).unwrap();
    assert_eq!(adapter.provider(), "bridge");
    let call = FakeCall::default();
    let answered = answer(&*adapter, &request("a", "hello"), &call).await;
    assert_eq!(answered.outputs.unwrap()["a"], 1);
    assert!(!call.emitted().iter().any(|one| matches!(one, Emission::Text(_))));
}

#[tokio::test]
async fn a_key_that_the_operator_did_not_declare_is_not_sent() {
    let ear = FakeEngine::new().await;
    let far = RemoteGateway::at(&ear.url(""), &["sync"]);
    let directory = Directory::new(kit(&ear));
    // As in rows of earlier versions, and as an API client would write one.
    let row = Gateway { operator_secret: false, ..far.row.clone() };
    let model = Gateway {
        provider: "openai".to_owned(),
        url: None,
        base_url: row.url.clone(),
        ..row.clone()
    };
    let http = Gateway { provider: "http".to_owned(), ..model.clone() };
    let unknown = Gateway { key: Some(SecretRef::Named("other".to_owned())), ..model.clone() };
    for row in [row, model, http, unknown] {
        let adapter = directory.adapter("thief", &row).unwrap();
        let request = Request { model: Some("m".to_owned()), ..request("a", "hello") };
        assert_eq!(error_of(&*adapter, &request).await.0, CallErrorCode::Auth, "{row:?}");
    }
    assert!(ear.heard().is_empty());
}
