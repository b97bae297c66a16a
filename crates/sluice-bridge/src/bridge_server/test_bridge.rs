//! A bridge for tests, with a fake engine and scripted adapters, over real sockets.

use super::deliver::DeliverySchedule;
use super::{Adapters, BridgeOpenError, BridgeServer, Settings};
use crate::directory::Callbacks;
use crate::fake_call;
use crate::mock::{MockAdapter, Script};
use crate::outbound::allow::AllowList;
use crate::outbound::{Outbound, Redirects, Request as Sent};
use crate::protocol::dispatch::{DispatchBody, ReturnAddress};
use crate::secret::Secret;
use crate::token::DispatchKey;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::{Value, json};
use sluice_core::port::adapter::{Adapter, Answer, Call, Capabilities, Execution, Health, Request};
use sluice_core::port::{Clock, Later};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub(crate) const KEY: &str = "key-of-the-bridge";
pub(crate) const TOKEN: &str = "gwt_of-the-gateway";

/// A request that the fake engine received.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Response of the fake engine: status, headers, body.
pub(crate) type FakeReply = (u16, Vec<(&'static str, String)>, Value);

/// A fake engine: records requests and answers with the queued replies; the last one repeats.
#[derive(Debug, Clone)]
pub(crate) struct FakeEngine {
    pub(crate) at: SocketAddr,
    state: Arc<FakeEngineState>,
}

#[derive(Debug, Default)]
struct FakeEngineState {
    heard: Mutex<Vec<ReceivedRequest>>,
    replies: Mutex<VecDeque<FakeReply>>,
    changed: Notify,
}

impl FakeEngine {
    pub(crate) async fn new() -> FakeEngine {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let state = Arc::new(FakeEngineState::default());
        let router = Router::new().fallback(receive).with_state(Arc::clone(&state));
        tokio::spawn(async move { axum::serve(listener, router).await });
        FakeEngine { at, state }
    }

    pub(crate) fn answers(&self, replies: impl IntoIterator<Item = FakeReply>) {
        *self.state.replies.lock().unwrap() = replies.into_iter().collect();
    }

    pub(crate) fn answers_with(&self, statuses: &[u16]) {
        self.answers(statuses.iter().map(|status| (*status, Vec::new(), json!({}))));
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    pub(crate) fn heard(&self) -> Vec<ReceivedRequest> {
        self.state.heard.lock().unwrap().clone()
    }

    /// Completes when `count` requests were received.
    pub(crate) async fn wait_for_requests(&self, count: usize) -> Vec<ReceivedRequest> {
        let wait = async {
            loop {
                let changed = self.state.changed.notified();
                let heard = self.heard();
                if heard.len() >= count {
                    return heard;
                }
                changed.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), wait).await.expect("something comes in time")
    }
}

async fn receive(
    State(state): State<Arc<FakeEngineState>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, HeaderMap, String) {
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let path = uri.path_and_query().unwrap().to_string();
    let (status, named, body) = {
        state.heard.lock().unwrap().push(ReceivedRequest { path, headers, body });
        let mut replies = state.replies.lock().unwrap();
        let next = if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() };
        next.unwrap_or((200, Vec::new(), json!({"received": true})))
    };
    state.changed.notify_waiters();
    let mut headers = HeaderMap::new();
    for (name, value) in named {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap());
    }
    (StatusCode::from_u16(status).unwrap(), headers, body.to_string())
}

/// A clock that a test can advance.
#[derive(Debug, Default)]
pub(crate) struct TestClock(AtomicU64);

impl TestClock {
    pub(crate) fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        u64::try_from(since.as_millis()).unwrap() + self.0.load(Ordering::Relaxed)
    }
}

/// An adapter that calls a function, and counts its calls.
pub(crate) struct FunctionAdapter<F> {
    pub(crate) times: Arc<AtomicUsize>,
    pub(crate) what: F,
}

impl<F> Adapter for FunctionAdapter<F>
where
    F: for<'a> Fn(&'a Request, &'a dyn Call) -> Later<'a, Answer> + Send + Sync,
{
    fn provider(&self) -> &'static str {
        "does"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn health(&self) -> Later<'_, Health> {
        Box::pin(std::future::ready(Health::Healthy))
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        self.times.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Execution::Done(Box::new((self.what)(request, call).await)) })
    }
}

/// A bridge with its fake engine.
pub(crate) struct TestBridge {
    pub(crate) engine: FakeEngine,
    pub(crate) at: SocketAddr,
    pub(crate) bridge: BridgeServer,
    pub(crate) time: Arc<TestClock>,
    /// Number of dispatches to the mock adapter.
    pub(crate) times: Arc<AtomicUsize>,
    pub(crate) out: Arc<Outbound>,
    pub(crate) settings: Settings,
    pub(crate) dir: Arc<tempfile::TempDir>,
    serving: JoinHandle<()>,
}

pub(crate) fn local() -> Arc<Outbound> {
    Arc::new(Outbound::new(AllowList::parse(["127.0.0.1"]).unwrap()))
}

impl TestBridge {
    /// A bridge with the script of its `mock` adapter.
    pub(crate) async fn new(script: &str) -> TestBridge {
        TestBridge::with(script, |_, _| ()).await
    }

    /// A bridge with other settings and more adapters.
    pub(crate) async fn with(
        script: &str,
        change: impl FnOnce(&mut Settings, &mut Adapters),
    ) -> TestBridge {
        let engine = FakeEngine::new().await;
        let dir = Arc::new(tempfile::tempdir().unwrap());
        let server = Url::parse(&engine.url("/")).unwrap();
        let mut settings =
            Settings::new("far", Secret::new(TOKEN), dir.path().join("spool"), server);
        settings.key = Secret::new(KEY);
        settings.instance_id = "brg_1".to_owned();
        let waits = [10, 20, 30].map(Duration::from_millis).to_vec();
        settings.pace = DeliverySchedule { waits, ..DeliverySchedule::default() };
        settings.grace = Duration::from_millis(200);
        settings.drain = Duration::from_millis(500);
        let times = Arc::new(AtomicUsize::new(0));
        let mock = MockAdapter::new(Script::parse(script).unwrap());
        let mut adapters = Adapters::new();
        adapters
            .insert("mock".to_owned(), Arc::new(CountingMock { mock, times: Arc::clone(&times) }));
        change(&mut settings, &mut adapters);
        TestBridge::open(engine, settings, adapters, times, dir).await
    }

    async fn open(
        engine: FakeEngine,
        settings: Settings,
        adapters: Adapters,
        times: Arc<AtomicUsize>,
        dir: Arc<tempfile::TempDir>,
    ) -> TestBridge {
        let time = Arc::new(TestClock::default());
        let clock = Arc::clone(&time) as Arc<dyn Clock>;
        let bridge = loop {
            let (adapters, clock) = (adapters.clone(), Arc::clone(&clock));
            match BridgeServer::open(settings.clone(), adapters, local(), clock).await {
                Ok(bridge) => break bridge,
                // The previous writer releases the spool when it has finished
                // writing.
                Err(BridgeOpenError::Spool(_, error))
                    if error.kind() == std::io::ErrorKind::ResourceBusy =>
                {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Err(error) => panic!("{error}"),
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let serving = tokio::spawn({
            let bridge = bridge.clone();
            async move { bridge.serve(listener).await }
        });
        TestBridge { engine, at, bridge, time, times, out: local(), settings, dir, serving }
    }

    /// Stops the bridge, and starts another one on the same spool.
    pub(crate) async fn restart(self, script: &str) -> TestBridge {
        let TestBridge { engine, bridge, times, settings, dir, serving, .. } = self;
        bridge.stop();
        serving.await.unwrap();
        drop(bridge);
        let mock = MockAdapter::new(Script::parse(script).unwrap());
        let counted: Arc<dyn Adapter> = Arc::new(CountingMock { mock, times: Arc::clone(&times) });
        let adapters = Adapters::from([("mock".to_owned(), counted)]);
        TestBridge::open(engine, settings, adapters, times, dir).await
    }

    pub(crate) fn callbacks(&self) -> Callbacks {
        Callbacks {
            url: self.engine.url("/api/workflow/step-complete"),
            tool_url: Some(self.engine.url("/tool")),
            parts_url: None,
            key: DispatchKey::new([3; 32]),
        }
    }

    pub(crate) fn body(&self, step: &str) -> DispatchBody {
        let back = ReturnAddress {
            callback_url: Some(self.engine.url("/api/workflow/step-complete")),
            dispatch_token: Some("sld_of-this-dispatch".to_owned()),
            tool_url: Some(self.engine.url("/tool")),
            parts_url: None,
        };
        DispatchBody::new(&fake_call::request(step, "do it"), "mock", back)
    }

    pub(crate) async fn dispatch(&self, body: &DispatchBody) -> (u16, Value) {
        self.post("/api/v2/dispatch", &serde_json::to_value(body).unwrap()).await
    }

    pub(crate) async fn sync(&self, body: &DispatchBody) -> (u16, Value) {
        self.post("/api/v2/dispatch/sync", &serde_json::to_value(body).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.request(Method::POST, path, Some(KEY), body.to_string().into_bytes()).await
    }

    pub(crate) async fn request(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Vec<u8>,
    ) -> (u16, Value) {
        let url = format!("http://{}{path}", self.at);
        let patience = Duration::from_secs(10);
        let mut request = Sent::post(&url, body, patience, 32 << 20);
        (request.method, request.redirects) = (method, Redirects::Keep);
        if let Some(key) = key {
            let value = HeaderValue::from_str(&format!("Bearer {key}")).unwrap();
            request = request.header(AUTHORIZATION, value);
        }
        let answer = self.out.send(&request).await.expect("the bridge answers");
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or(Value::Null))
    }

    pub(crate) fn ran(&self) -> usize {
        self.times.load(Ordering::SeqCst)
    }
}

/// The mock adapter with a counter.
struct CountingMock {
    mock: MockAdapter,
    times: Arc<AtomicUsize>,
}

impl Adapter for CountingMock {
    fn provider(&self) -> &'static str {
        "mock"
    }

    fn capabilities(&self) -> Capabilities {
        self.mock.capabilities()
    }

    fn health(&self) -> Later<'_, Health> {
        self.mock.health()
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        self.times.fetch_add(1, Ordering::SeqCst);
        self.mock.execute(request, call)
    }
}
