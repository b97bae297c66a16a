//! A station between an engine that keeps what it hears and adapters that do what
//! a test wants, over real sockets.

use super::deliver::Pace;
use super::{Adapters, Settings, Station, StationError};
use crate::desk;
use crate::directory::Callbacks;
use crate::mock::{MockAdapter, Script};
use crate::outbound::allow::AllowList;
use crate::outbound::{Outbound, Redirects, Request as Sent};
use crate::protocol::dispatch::{DispatchBody, Return};
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

/// Something that came to an ear.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Heard {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// What an ear answers: status, headers, body.
pub(crate) type Reply = (u16, Vec<(&'static str, String)>, Value);

/// A server that keeps what it hears, and answers in turn; the last for ever.
#[derive(Debug, Clone)]
pub(crate) struct Ear {
    pub(crate) at: SocketAddr,
    inside: Arc<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    heard: Mutex<Vec<Heard>>,
    replies: Mutex<VecDeque<Reply>>,
    changed: Notify,
}

impl Ear {
    pub(crate) async fn new() -> Ear {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let inside = Arc::new(Inside::default());
        let router = Router::new().fallback(hear).with_state(Arc::clone(&inside));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ear { at, inside }
    }

    pub(crate) fn answers(&self, replies: impl IntoIterator<Item = Reply>) {
        *self.inside.replies.lock().unwrap() = replies.into_iter().collect();
    }

    pub(crate) fn answers_with(&self, statuses: &[u16]) {
        self.answers(statuses.iter().map(|status| (*status, Vec::new(), json!({}))));
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.inside.heard.lock().unwrap().clone()
    }

    /// Completes when so much was heard.
    pub(crate) async fn hears(&self, count: usize) -> Vec<Heard> {
        let wait = async {
            loop {
                let changed = self.inside.changed.notified();
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

async fn hear(
    State(inside): State<Arc<Inside>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, HeaderMap, String) {
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let path = uri.path_and_query().unwrap().to_string();
    let (status, named, body) = {
        inside.heard.lock().unwrap().push(Heard { path, headers, body });
        let mut replies = inside.replies.lock().unwrap();
        let next = if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() };
        next.unwrap_or((200, Vec::new(), json!({"received": true})))
    };
    inside.changed.notify_waiters();
    let mut headers = HeaderMap::new();
    for (name, value) in named {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap());
    }
    (StatusCode::from_u16(status).unwrap(), headers, body.to_string())
}

/// The clock, which a test can put forward.
#[derive(Debug, Default)]
pub(crate) struct Time(AtomicU64);

impl Time {
    pub(crate) fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for Time {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        u64::try_from(since.as_millis()).unwrap() + self.0.load(Ordering::Relaxed)
    }
}

/// An adapter that does what a function says, and counts how often.
pub(crate) struct Does<F> {
    pub(crate) times: Arc<AtomicUsize>,
    pub(crate) what: F,
}

impl<F> Adapter for Does<F>
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

/// Everything there is.
pub(crate) struct World {
    pub(crate) engine: Ear,
    pub(crate) at: SocketAddr,
    pub(crate) station: Station,
    pub(crate) time: Arc<Time>,
    /// How often the mock was asked.
    pub(crate) times: Arc<AtomicUsize>,
    pub(crate) out: Arc<Outbound>,
    pub(crate) settings: Settings,
    pub(crate) dir: Arc<tempfile::TempDir>,
    serving: JoinHandle<()>,
}

pub(crate) fn local() -> Arc<Outbound> {
    Arc::new(Outbound::new(AllowList::parse(["127.0.0.1"]).unwrap()))
}

impl World {
    /// A station whose `mock` follows a script.
    pub(crate) async fn new(script: &str) -> World {
        World::with(script, |_, _| ()).await
    }

    /// The same, with other settings and more adapters.
    pub(crate) async fn with(
        script: &str,
        change: impl FnOnce(&mut Settings, &mut Adapters),
    ) -> World {
        let engine = Ear::new().await;
        let dir = Arc::new(tempfile::tempdir().unwrap());
        let server = Url::parse(&engine.url("/")).unwrap();
        let mut settings =
            Settings::new("far", Secret::new(TOKEN), dir.path().join("spool"), server);
        settings.key = Secret::new(KEY);
        settings.instance_id = "brg_1".to_owned();
        let waits = [10, 20, 30].map(Duration::from_millis).to_vec();
        settings.pace = Pace { waits, ..Pace::default() };
        settings.grace = Duration::from_millis(200);
        settings.drain = Duration::from_millis(500);
        let times = Arc::new(AtomicUsize::new(0));
        let mock = MockAdapter::new(Script::parse(script).unwrap());
        let mut adapters = Adapters::new();
        adapters.insert("mock".to_owned(), Arc::new(Counted { mock, times: Arc::clone(&times) }));
        change(&mut settings, &mut adapters);
        World::open(engine, settings, adapters, times, dir).await
    }

    async fn open(
        engine: Ear,
        settings: Settings,
        adapters: Adapters,
        times: Arc<AtomicUsize>,
        dir: Arc<tempfile::TempDir>,
    ) -> World {
        let time = Arc::new(Time::default());
        let clock = Arc::clone(&time) as Arc<dyn Clock>;
        let station = loop {
            let (adapters, clock) = (adapters.clone(), Arc::clone(&clock));
            match Station::open(settings.clone(), adapters, local(), clock).await {
                Ok(station) => break station,
                // The writer before lets go of the spool when it has written all.
                Err(StationError::Spool(_, error))
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
            let station = station.clone();
            async move { station.serve(listener).await }
        });
        World { engine, at, station, time, times, out: local(), settings, dir, serving }
    }

    /// Stops the station, and starts another on the same spool.
    pub(crate) async fn restart(self, script: &str) -> World {
        let World { engine, station, times, settings, dir, serving, .. } = self;
        station.stop();
        serving.await.unwrap();
        drop(station);
        let mock = MockAdapter::new(Script::parse(script).unwrap());
        let counted: Arc<dyn Adapter> = Arc::new(Counted { mock, times: Arc::clone(&times) });
        let adapters = Adapters::from([("mock".to_owned(), counted)]);
        World::open(engine, settings, adapters, times, dir).await
    }

    pub(crate) fn callbacks(&self) -> Callbacks {
        Callbacks {
            url: self.engine.url("/api/workflow/step-complete"),
            tool_url: Some(self.engine.url("/tool")),
            parts_url: None,
            key: DispatchKey::new([3; 32]),
        }
    }

    /// A dispatch of a step to the mock.
    pub(crate) fn body(&self, step: &str) -> DispatchBody {
        let back = Return {
            callback_url: Some(self.engine.url("/api/workflow/step-complete")),
            dispatch_token: Some("sld_of-this-dispatch".to_owned()),
            tool_url: Some(self.engine.url("/tool")),
            parts_url: None,
        };
        DispatchBody::new(&desk::request(step, "do it"), "mock", back)
    }

    pub(crate) async fn dispatch(&self, body: &DispatchBody) -> (u16, Value) {
        self.post("/api/v2/dispatch", &serde_json::to_value(body).unwrap()).await
    }

    pub(crate) async fn sync(&self, body: &DispatchBody) -> (u16, Value) {
        self.post("/api/v2/dispatch/sync", &serde_json::to_value(body).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask(Method::POST, path, Some(KEY), body.to_string().into_bytes()).await
    }

    pub(crate) async fn ask(
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
        let answer = self.out.send(&request).await.expect("the station answers");
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or(Value::Null))
    }

    pub(crate) fn ran(&self) -> usize {
        self.times.load(Ordering::SeqCst)
    }
}

/// The mock, counted.
struct Counted {
    mock: MockAdapter,
    times: Arc<AtomicUsize>,
}

impl Adapter for Counted {
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
