//! A server in memory, called without a network: one organisation with a workflow, waiting
//! runs, a gateway and an inbound webhook.

use crate::{block_on, set_secrets};
use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_bridge::secret::hosts::Hosts;
use sluice_bridge::secret::keyring::{Declared, Keyring};
use sluice_bridge::token::{DispatchKey, Dispatched};
use sluice_core::id::RunId;
use sluice_core::port::Later;
use sluice_core::port::adapter::{Adapter, Call, Capabilities, Execution, Health};
use sluice_core::port::store::Store;
use sluice_core::secret::SecretRef;
use sluice_engine::Engine;
use sluice_engine::agents::Agents;
use sluice_engine::config::{Claims, Config};
use sluice_engine::engine::Ground;
use sluice_engine::trust::PolicySource;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_govern::registry::{Row, Token};
use sluice_server::api::router::Router;
use sluice_server::app::{App, Settings};
use sluice_server::auth::identities::{hash, row};
use sluice_server::auth::secret;
use sluice_server::organisation::Organisation;
use sluice_server::refused::ServiceResult;
use sluice_server::service::registry::{self, Mode, RowChange};
use sluice_server::service::{RowOrigin, Service};
use sluice_server::{api, mcp};
use sluice_store::memory::MemoryStore;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// Requests after which the server is replaced, so that what inputs store stays bounded.
const REQUESTS_MAX: usize = 400;
/// Time limit of a response.
const PATIENCE: Duration = Duration::from_secs(4);
/// The gateway that sends callbacks.
pub const GATEWAY: &str = "near";
/// The inbound webhook.
pub const HOOK: &str = "door";

const FLOW: &str = "name: flow\nversion: 1\nargs: {who: {type: string, required: false}}\n\
                    steps: [{id: say, agent: mock, command: 'Say ${args.who}.'}]\n";
const WAITS: &str = "name: waits\nsteps: [{id: ask, approval: required}]\n";
const AWAY: &str = "name: far\nsteps: [{id: one, agent: away, command: go, tools: [mail.send]}]\n";

/// A response of the server.
#[derive(Debug)]
pub struct ServerResponse {
    /// HTTP status.
    pub status: u16,
    /// Response body.
    pub body: String,
}

impl ServerResponse {
    /// The body as JSON; null if it is something else.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The error code of a rejected request.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// The server with its fixtures.
pub struct Server {
    router: Router,
    organisation: Arc<Organisation>,
    /// A token with all permissions.
    pub admin: String,
    /// The token of the gateway.
    pub gateway_token: String,
    /// A run that waits for an approval.
    pub waiting: String,
    /// The approval it waits for.
    pub approval: String,
}

/// Runs a test against this thread's server.
pub fn with<T>(tried: impl FnOnce(&Server) -> T) -> T {
    thread_local! {
        static SERVER: RefCell<Option<(Server, usize)>> = const { RefCell::new(None) };
    }
    set_secrets();
    SERVER.with_borrow_mut(|held| {
        if held.as_ref().is_some_and(|(_, used)| *used >= REQUESTS_MAX)
            && let Some((old, _)) = held.take()
        {
            block_on(old.stop());
        }
        let (server, used) = held.get_or_insert_with(|| (block_on(Server::new()), 0));
        *used += 1;
        tried(server)
    })
}

impl Server {
    async fn new() -> Server {
        let settings = Settings {
            rate_per_second: 1_000_000,
            rate_burst: 1_000_000,
            strangers_per_minute: 1_000_000,
            gateway_rate_per_second: 1_000_000,
            ..Settings::default()
        };
        let app = App::new(settings, Arc::new(SystemClock), Arc::new(|| Box::new(SystemEntropy)));
        let (service, organisation) = organisation(&app).await;
        let admin = grant(&service, &organisation).await;
        let mut routes = api::routes();
        routes.push(mcp::http::route());
        let router = Router::new(app, routes);
        let mut server = Server {
            router,
            organisation,
            admin,
            gateway_token: String::new(),
            waiting: String::new(),
            approval: String::new(),
        };
        server.furnish().await;
        server
    }

    async fn stop(self) {
        self.organisation.service().engine.shutdown().await;
    }

    /// Creates everything that paths refer to.
    async fn furnish(&mut self) {
        self.done("POST", "/api/v1/workflows", &json!({"document": FLOW})).await;
        let gateway = json!({"provider": "away", "url": "https://away.example"});
        self.done("PUT", &format!("/api/v1/gateways/{GATEWAY}"), &gateway).await;
        self.done("PUT", "/api/v1/agents/away", &json!({"gateway": GATEWAY})).await;
        let path = format!("/api/v1/gateways/{GATEWAY}/token");
        let made = self.done("POST", &path, &json!({})).await;
        self.gateway_token = made["token"].as_str().unwrap_or_default().to_owned();
        let hook = json!({"workflow": "flow", "secret": "secret:hook", "args": {"who": "who"}});
        self.done("PUT", &format!("/api/v1/hooks/{HOOK}"), &hook).await;
        self.waiting = self.start(WAITS).await;
        let ready =
            |state: &Value| state["approvals"][0]["approval_id"].as_str().map(str::to_owned);
        self.approval = self.until(&self.waiting, ready).await;
    }

    /// Starts a document.
    async fn start(&self, document: &str) -> String {
        let body = json!({"document": document});
        let started = self.done("POST", "/api/v1/runs", &body).await;
        started["run_id"].as_str().expect("a run was started").to_owned()
    }

    /// A new run with a step that was dispatched to the gateway.
    pub fn dispatched_run(&self) -> String {
        block_on(async {
            let run = self.start(AWAY).await;
            let sent = |state: &Value| {
                let waits = &state["node_results"][0]["waiting_reason"];
                (waits == "external_callback").then_some(())
            };
            self.until(&run, sent).await;
            run
        })
    }

    async fn until<T>(&self, run: &str, ready: impl Fn(&Value) -> Option<T>) -> T {
        for _ in 0..1000 {
            let path = format!("/api/v1/runs/{run}/state");
            let state = self.done("GET", &path, &Value::Null).await;
            if let Some(found) = ready(&state) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("{run} does not come to where it should");
    }

    async fn done(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer =
            self.send_async(method, path, &[], body).await.expect("it is answered in time");
        assert!(answer.status < 300, "{method} {path}: {answer:?}");
        answer.json()["data"].clone()
    }

    /// Sends a request as the admin, with additional headers; `None` on timeout.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &[u8])],
        body: &[u8],
    ) -> Option<ServerResponse> {
        block_on(self.send_async(method, path, headers, body.to_vec()))
    }

    async fn send_async(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &[u8])],
        body: Vec<u8>,
    ) -> Option<ServerResponse> {
        let method = Method::from_bytes(method.as_bytes()).ok()?;
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {}", self.admin));
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).ok()?;
        let answered = async {
            let response = self.router.clone().answer(request).await;
            let status = response.status().as_u16();
            let body = axum::body::to_bytes(response.into_body(), 16 * 1024 * 1024).await;
            ServerResponse {
                status,
                body: String::from_utf8_lossy(&body.unwrap_or_default()).into_owned(),
            }
        };
        tokio::time::timeout(PATIENCE, answered).await.ok()
    }
}

/// The key that creates dispatch tokens.
fn dispatch_key() -> DispatchKey {
    DispatchKey::new([7; 32])
}

/// The token of a dispatch to the gateway.
pub fn dispatch_token(run: RunId, step: &str, dispatch_no: u32) -> String {
    dispatch_key().token(Dispatched { gateway: GATEWAY, run, step, dispatch_no })
}

/// The secret that rows may name: that of the inbound webhook.
fn secrets() -> Keyring {
    let hook = Declared {
        name: "hook".to_owned(),
        from: SecretRef::Env("FUZZ_HOOK".to_owned()),
        organisations: vec!["default".to_owned()],
        hosts: Hosts::parse(["example.invalid"]).expect("a host"),
    };
    Keyring::new("default", [hook], Vec::new())
}

async fn organisation(app: &App) -> (Service, Arc<Organisation>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    let script = Script::parse("'*': {text: said}\n").expect("the script is right");
    let mock = Arc::new(MockAdapter::new(script));
    let ground = Ground {
        store: Arc::clone(&store),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(|| Box::new(SystemEntropy)),
        agents: Agents::new()
            .with("mock", Arc::clone(&mock) as _)
            .with("away", Arc::new(SilentAgent))
            .with_fallback(mock),
        policies: PolicySource::default(),
        catalog: None,
        sealer: None,
        moderator: None,
        observer: None,
    };
    let config = Config { claims: Claims::All, ..Config::default() };
    let engine = Arc::new(Engine::open(ground, config).await.expect("an empty store opens"));
    let origin = RowOrigin::Server;
    let service = Service { store, engine, workspaces: None, origin, secrets: secrets() };
    let organisation =
        Organisation::open("default", service.clone()).await.expect("an empty store is read");
    let organisation = app.add(organisation.with_dispatch_key(dispatch_key()));
    (service, organisation)
}

/// Creates a token with all permissions.
async fn grant(service: &Service, organisation: &Organisation) -> String {
    let mut entropy = SystemEntropy;
    let (secret, id) = (secret::make(&mut entropy), secret::id(&mut entropy));
    let token = Token {
        principal: "admin".to_owned(),
        sha256: hash(&secret),
        roles: vec!["admin".to_owned()],
        scopes: None,
        groups: Vec::new(),
        parent: None,
        session: false,
        created_at_ms: 0,
        expires_at_ms: None,
    };
    let token = row(&id, &token);
    let wish = |_: &[Row]| -> ServiceResult<RowChange> {
        Ok(RowChange { put: vec![token.clone()], remove: vec![] })
    };
    registry::change(service, "fuzz", Mode::Write, &wish).await.expect("a token can be stored");
    organisation.refresh_now().await;
    secret
}

/// A remote agent that accepts every step and never answers.
struct SilentAgent;

impl Adapter for SilentAgent {
    fn provider(&self) -> &'static str {
        "away"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn health(&self) -> Later<'_, Health> {
        Box::pin(std::future::ready(Health::Healthy))
    }

    fn execute<'a>(
        &'a self,
        _: &'a sluice_core::port::adapter::Request,
        _: &'a dyn Call,
    ) -> Later<'a, Execution> {
        Box::pin(std::future::ready(Execution::Accepted))
    }
}
