//! A server with two organisations that have data of every kind.

use crate::client::{PATIENCE, TestRequest, TestResponse, Wire, begin};
use crate::contract;
use crate::fixture::{Fixture, rows};
use serde_json::{Value, json};
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_bridge::secret::hosts::Hosts;
use sluice_bridge::secret::keyring::{Declared, Keyring};
use sluice_bridge::token::DispatchKey;
use sluice_core::money::Money;
use sluice_core::port::adapter::{Adapter, Call, Capabilities, Execution, Health, Quote, Request};
use sluice_core::port::store::{Filter, Store};
use sluice_core::port::{Clock as _, Later};
use sluice_core::secret::SecretRef;
use sluice_engine::Engine;
use sluice_engine::agents::Agents;
use sluice_engine::config::{Claims, Config};
use sluice_engine::engine::Ground;
use sluice_engine::trust::PolicySource;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_govern::registry::{Kind, Row, Token};
use sluice_server::api;
use sluice_server::api::router::Router;
use sluice_server::app::{App, Settings};
use sluice_server::auth::identities::{hash, row};
use sluice_server::auth::permission::Role;
use sluice_server::auth::secret;
use sluice_server::organisation::Organisation;
use sluice_server::refused::ServiceResult;
use sluice_server::service::registry::{self, Mode, RowChange};
use sluice_server::service::{RowOrigin, Service};
use sluice_store::sqlite::SqliteStore;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What agents answer, unless a test sets another script.
const SCRIPT: &str = "'*': {text: 'MARK-{name} was said', cost: 0.001}\n";

/// A running server.
pub(crate) struct World {
    pub(crate) app: App,
    pub(crate) address: SocketAddr,
    pub(crate) alfa: Side,
    pub(crate) bravo: Side,
    serving: JoinHandle<()>,
    dir: TempDir,
}

/// One of its organisations.
pub(crate) struct Side {
    pub(crate) name: &'static str,
    pub(crate) organisation: Arc<Organisation>,
    /// A token of each role: its secret and its id.
    pub(crate) tokens: BTreeMap<Role, (String, String)>,
    pub(crate) expired: String,
    pub(crate) revoked: String,
    pub(crate) fixture: Fixture,
}

impl Side {
    pub(crate) fn token(&self, role: Role) -> &str {
        &self.tokens[&role].0
    }

    pub(crate) fn admin(&self) -> &str {
        self.token(Role::Admin)
    }

    pub(crate) fn service(&self) -> &Service {
        self.organisation.service()
    }

    /// A text that only this organisation may see.
    pub(crate) fn mark(&self) -> String {
        format!("MARK-{}", self.name)
    }

    /// All rows, and all runs with their versions.
    pub(crate) async fn everything(&self) -> String {
        let store = &self.service().store;
        let rows = store.registry(None).await.unwrap();
        let mut text = format!("{:?}\n", rows.rows);
        for run in store.list(Filter { limit: 500, ..Filter::default() }).await.unwrap() {
            let loaded = self.service().engine.load(run.run).await.unwrap();
            text += &format!("{} {} {}\n", run.run, run.status, loaded.version);
        }
        text
    }

    /// Creates a token, without any checks.
    pub(crate) async fn grant(&self, token: Token) -> (String, String) {
        grant(self.service(), &self.organisation, token).await
    }
}

/// A token with some roles, without a secret yet.
pub(crate) fn token(principal: &str, roles: &[&str]) -> Token {
    Token {
        principal: principal.to_owned(),
        sha256: String::new(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        scopes: None,
        groups: Vec::new(),
        parent: None,
        session: false,
        created_at_ms: SystemClock.now_ms(),
        expires_at_ms: None,
    }
}

async fn grant(service: &Service, organisation: &Organisation, token: Token) -> (String, String) {
    let mut entropy = SystemEntropy;
    let (secret, id) = (secret::make(&mut entropy), secret::id(&mut entropy));
    let token = row(&id, &Token { sha256: hash(&secret), ..token });
    let edit = |_: &[Row]| -> ServiceResult<RowChange> {
        Ok(RowChange { put: vec![token.clone()], remove: vec![] })
    };
    registry::change(service, "test", Mode::Write, &edit).await.unwrap();
    organisation.refresh_now().await;
    (secret, id)
}

/// Settings under which rate limits refuse nothing.
pub(crate) fn settings() -> Settings {
    Settings {
        rate_per_second: 1_000_000,
        rate_burst: 1_000_000,
        strangers_per_minute: 1_000_000,
        ..Settings::default()
    }
}

impl World {
    pub(crate) async fn new() -> World {
        World::with(settings(), SCRIPT).await
    }

    /// A server with these settings, whose agents follow a script.
    pub(crate) async fn with(settings: Settings, script: &str) -> World {
        let dir = TempDir::new().unwrap();
        let app = App::new(settings, Arc::new(SystemClock), Arc::new(|| Box::new(SystemEntropy)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new(app.clone(), api::routes());
        let serving = tokio::spawn(sluice_server::serve::serve(app.clone(), router, listener));
        let bare = |name| side(&app, name, script, dir.path().join(name));
        let (alfa, bravo) = (bare("alfa").await, bare("bravo").await);
        let mut world = World { app, address, alfa, bravo, serving, dir };
        world.alfa.fixture = world.populate(&world.alfa).await;
        world.bravo.fixture = world.populate(&world.bravo).await;
        world
    }

    /// The directory of a side's store.
    pub(crate) fn directory(&self, side: &Side) -> PathBuf {
        self.dir.path().join(side.name)
    }

    /// Sends a request, and checks the response against the description.
    pub(crate) async fn send(&self, request: &TestRequest) -> TestResponse {
        let response = self.begin(request).await.response().await;
        contract::check(request, &response);
        response
    }

    /// Sends a request, and reads only the head of the response.
    pub(crate) async fn begin(&self, request: &TestRequest) -> Wire {
        begin(self.address, request).await
    }

    /// Sends a request, and expects this status.
    pub(crate) async fn done(&self, status: u16, request: &TestRequest) -> Value {
        let response = self.send(request).await;
        assert_eq!(
            response.status,
            status,
            "{} {}: {}",
            request.method,
            request.target,
            response.text()
        );
        response.json()["data"].clone()
    }

    /// Waits until a run has a status.
    pub(crate) async fn until(&self, side: &Side, run: &str, status: &str) {
        let began = tokio::time::Instant::now();
        loop {
            let request = TestRequest::get(&format!("/api/v1/runs/{run}")).bearer(side.admin());
            let shown = self.done(200, &request).await;
            if shown["status"] == status {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{run} does not become {status}: {shown}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Starts a document, and returns the id of its run.
    pub(crate) async fn start(&self, side: &Side, document: &str) -> String {
        let body = json!({"document": document, "default_agent": "mock"});
        let request = TestRequest::post("/api/v1/runs", &body).bearer(side.admin());
        self.done(202, &request).await["run_id"].as_str().unwrap().to_owned()
    }

    /// Creates data of every kind in an organisation.
    async fn populate(&self, side: &Side) -> Fixture {
        let (name, mark) = (side.name, side.mark());
        let document = format!(
            "name: {name}-flow\nversion: 1\ndescription: {mark}\nargs: {{who: {{type: string}}}}\n\
             steps:\n  - {{id: {name}_hello, agent: mock, command: 'Say {mark}.'}}\n"
        );
        let put = TestRequest::post("/api/v1/workflows", &json!({"document": document}));
        self.done(201, &put.bearer(side.admin())).await;
        let start = json!({"args": {"who": mark}, "default_agent": "mock"});
        let path = format!("/api/v1/workflows/{name}-flow/runs");
        let started = self.done(202, &TestRequest::post(&path, &start).bearer(side.admin())).await;
        let ended = started["run_id"].as_str().unwrap().to_owned();
        self.until(side, &ended, "completed").await;
        let waiting = format!(
            "name: {name}-ask\nsteps:\n  - {{id: {name}_first, command: 'Say {mark}.'}}\n  \
             - {{id: {name}_gate, depends_on: [{name}_first], approval: {{required: true, \
             approvers: [approver, admin], summary: 'May {mark} go on?'}}}}\n"
        );
        let waiting = self.start(side, &waiting).await;
        let approval = self.open_approval(side, &waiting).await;
        let key = self.dir.path().join(format!("{name}.key"));
        std::fs::write(&key, format!("SECRET-{name}\n")).unwrap();
        let spare = side.grant(token("spare", &["viewer"])).await.1;
        let fixture = Fixture { name, ended, waiting, approval, spare };
        for (kind, path, body) in rows(name, &mark) {
            let request = TestRequest::new("PUT", &path).json(&body).bearer(side.admin());
            let response = self.send(&request).await;
            assert_eq!(response.status, 200, "{kind:?}: {}", response.text());
        }
        fixture
    }

    /// Waits until a run requests an approval, and returns its id.
    pub(crate) async fn open_approval(&self, side: &Side, run: &str) -> String {
        let began = tokio::time::Instant::now();
        loop {
            let request =
                TestRequest::get(&format!("/api/v1/runs/{run}/state")).bearer(side.admin());
            let state = self.done(200, &request).await;
            let mut open = state["approvals"].as_array().unwrap().iter();
            if let Some(one) = open.rfind(|one| one["status"] == "pending") {
                return one["approval_id"].as_str().unwrap().to_owned();
            }
            assert!(began.elapsed() < PATIENCE, "{run} does not ask: {state}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Stops the server, and waits until it is drained.
    pub(crate) async fn stop(self) {
        self.app.stop().cancel();
        tokio::time::timeout(PATIENCE, self.serving).await.expect("it ends").unwrap();
        for side in [self.alfa, self.bravo] {
            side.service().engine.shutdown().await;
        }
    }
}

/// The key that signs the dispatch tokens of an organisation.
pub(crate) fn dispatch_key(name: &str) -> DispatchKey {
    DispatchKey::new([name.as_bytes()[0]; 32])
}

/// A remote adapter that accepts every step and never sends a result.
struct RemoteAdapter;

impl Adapter for RemoteAdapter {
    fn provider(&self) -> &'static str {
        "away"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn health(&self) -> Later<'_, Health> {
        Box::pin(std::future::ready(Health::Healthy))
    }

    fn quote(&self, _: &str) -> Quote {
        Quote::AtMost(Money::from_micro_cents(100_000_000))
    }

    fn execute<'a>(&'a self, _: &'a Request, _: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(std::future::ready(Execution::Accepted))
    }
}

/// The secrets of an organisation: one for its webhooks, and one that only the other
/// organisation may name.
fn secrets(organisation: &str, dir: &Path) -> Keyring {
    let declared = |name: &str, organisation: &str| Declared {
        name: name.to_owned(),
        from: SecretRef::File(dir.with_extension("key").display().to_string()),
        organisations: vec![organisation.to_owned()],
        hosts: Hosts::parse(["example.invalid"]).unwrap(),
    };
    let declared = [declared("hook", organisation), declared("others", "another")];
    Keyring::new(organisation, declared, vec![dir.to_owned()])
}

/// An organisation with tokens and no other data.
async fn side(app: &App, name: &'static str, script: &str, dir: PathBuf) -> Side {
    let store: Arc<dyn Store> =
        Arc::new(SqliteStore::open(&dir, Arc::new(SystemClock)).expect("a new store opens"));
    let script = Script::parse(&script.replace("{name}", name)).expect("the script is right");
    let mock = Arc::new(MockAdapter::new(script));
    let ground = Ground {
        store: Arc::clone(&store),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(|| Box::new(SystemEntropy)),
        agents: Agents::new()
            .with("mock", Arc::clone(&mock) as _)
            .with("away", Arc::new(RemoteAdapter))
            .with_fallback(mock),
        policies: PolicySource::default(),
        catalog: None,
        sealer: None,
        moderator: None,
        observer: None,
    };
    let config = Config { claims: Claims::All, ..Config::default() };
    let engine = Arc::new(Engine::open(ground, config).await.unwrap());
    // The first organisation belongs to the operator.
    let called = if name == "alfa" { "default" } else { name };
    let secrets = secrets(called, &dir);
    let origin = RowOrigin::Server;
    let service = Service { store, engine, workspaces: None, origin, secrets };
    let organisation = Organisation::open(called, service.clone()).await.unwrap();
    let organisation = app.add(organisation.with_dispatch_key(dispatch_key(name)));
    let mut tokens = BTreeMap::new();
    for role in Role::ALL {
        let principal = format!("{name}-{}", role.as_str());
        let made = grant(&service, &organisation, token(&principal, &[role.as_str()])).await;
        tokens.insert(role, made);
    }
    let past = Some(SystemClock.now_ms() - 1);
    let expired = Token { expires_at_ms: past, ..token("late", &["admin"]) };
    let expired = grant(&service, &organisation, expired).await.0;
    let (revoked, id) = grant(&service, &organisation, token("gone", &["admin"])).await;
    let edit = |_: &[Row]| -> ServiceResult<RowChange> {
        Ok(RowChange { put: vec![], remove: vec![(Kind::Token, id.clone())] })
    };
    registry::change(&service, "test", Mode::Write, &edit).await.unwrap();
    organisation.refresh_now().await;
    Side { name, organisation, tokens, expired, revoked, fixture: Fixture::default() }
}
