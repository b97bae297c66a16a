use super::*;
use crate::refused::ServiceResult;
use crate::service::registry::{ChangeOutcome, Mode, RowChange, change};
use crate::service::{RowOrigin, Service};
use crate::signature::is_signed;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Map;
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_bridge::outbound::allow::AllowList;
use sluice_bridge::secret::Secret;
use sluice_bridge::secret::keyring::Keyring;
use sluice_core::doc::{self, Format, Registry};
use sluice_engine::Engine;
use sluice_engine::agents::Agents;
use sluice_engine::config::Config;
use sluice_engine::definition::Stored;
use sluice_engine::engine::Ground;
use sluice_engine::start::Start;
use sluice_engine::trust::PolicySource;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_store::sqlite::SqliteStore;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const SECRET: &str = "a-secret-of-some-length";
const PATIENCE: Duration = Duration::from_secs(20);

/// A receiver of deliveries: answers with a status, and keeps the requests.
struct Receiver {
    address: String,
    status: Arc<AtomicU16>,
    heard: Arc<Mutex<Vec<ReceivedRequest>>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone, PartialEq)]
struct ReceivedRequest {
    headers: HeaderMap,
    body: Vec<u8>,
}

impl ReceivedRequest {
    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().expect("it is text")
    }

    fn event(&self) -> Value {
        let secret = Secret::new(SECRET);
        let (timestamp, signature) =
            (self.header("sluice-timestamp"), self.header("sluice-signature"));
        assert!(is_signed(&secret, timestamp, &self.body, signature), "{signature}");
        assert!(!is_signed(&Secret::new("another"), timestamp, &self.body, signature));
        serde_json::from_slice(&self.body).expect("it is JSON")
    }

    fn id(&self) -> String {
        self.event()["id"].as_str().expect("it has one").to_owned()
    }
}

type ReceiverState = (Arc<AtomicU16>, Arc<Mutex<Vec<ReceivedRequest>>>);

impl Receiver {
    async fn at(address: &str) -> Receiver {
        let listener = TcpListener::bind(address).await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (status, heard) = (Arc::new(AtomicU16::new(200)), Arc::default());
        let ears: ReceiverState = (Arc::clone(&status), Arc::clone(&heard));
        let router = Router::new().fallback(Receiver::hear).with_state(ears);
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Receiver { address, status, heard, task }
    }

    async fn new() -> Receiver {
        Receiver::at("127.0.0.1:0").await
    }

    async fn hear(
        State(ears): State<ReceiverState>,
        headers: HeaderMap,
        body: Bytes,
    ) -> StatusCode {
        ears.1
            .lock()
            .expect("no thread panics while it holds the lock")
            .push(ReceivedRequest { headers, body: body.to_vec() });
        StatusCode::from_u16(ears.0.load(Ordering::SeqCst)).expect("it is a status")
    }

    fn answers(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    fn heard(&self) -> Vec<ReceivedRequest> {
        self.heard.lock().expect("no thread panics while it holds the lock").clone()
    }

    async fn hears(&self, count: usize) -> Vec<ReceivedRequest> {
        happens("a request", || self.heard().len() >= count).await;
        self.heard()
    }

    fn ids(&self) -> BTreeSet<String> {
        self.heard().iter().map(ReceivedRequest::id).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn happens(what: &str, happened: impl Fn() -> bool) {
    let looked = async {
        while !happened() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let looked = tokio::time::timeout(PATIENCE, looked).await;
    looked.unwrap_or_else(|_| panic!("{what} does not happen in time"));
}

/// An organisation on a directory, with or without a delivery task.
struct TestOrganisation {
    organisation: Arc<Organisation>,
    sender: Option<(JoinHandle<()>, CancellationToken)>,
}

fn dir() -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory can be created");
    std::fs::write(dir.path().join("secret"), SECRET).expect("the file can be written");
    dir
}

impl TestOrganisation {
    async fn open(dir: &Path) -> TestOrganisation {
        let store = SqliteStore::open(dir, Arc::new(SystemClock)).expect("the store opens");
        let script = Script::parse("a: {text: done}").expect("the script is one");
        let ground = Ground {
            store: Arc::new(store),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(|| Box::new(SystemEntropy)),
            agents: Agents::new().with("mock", Arc::new(MockAdapter::new(script))),
            policies: PolicySource::default(),
            catalog: None,
            sealer: None,
            moderator: None,
            observer: None,
        };
        let store = Arc::clone(&ground.store);
        let config = Config { sweep_ms: 50, ..Config::default() };
        let engine = Engine::open(ground, config).await.expect("the engine starts");
        let (origin, secrets) = (RowOrigin::Operator, Keyring::default());
        let engine = Arc::new(engine);
        let service = Service { store, engine, workspaces: None, origin, secrets };
        let organisation =
            Organisation::open("acme", service).await.expect("the store can be read");
        TestOrganisation { organisation: Arc::new(organisation), sender: None }
    }

    /// Starts deliveries to any loopback address.
    fn sends(self) -> TestOrganisation {
        self.sends_to(&["127.0.0.0/8"], quick())
    }

    fn sends_to(mut self, allowed: &[&str], pace: RetrySchedule) -> TestOrganisation {
        let allow = AllowList::parse(allowed.iter().copied()).expect("the entries are some");
        let post = Post {
            outbound: Arc::new(Outbound::new(allow)),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(|| Box::new(SystemEntropy)),
            pace,
        };
        let stop = CancellationToken::new();
        let task = tokio::spawn(deliver(Arc::clone(&self.organisation), post, stop.clone()));
        self.sender = Some((task, stop));
        self
    }

    /// Stops without a clean shutdown of the delivery task.
    async fn dies(self) {
        if let Some((task, _)) = self.sender {
            task.abort();
            let _ = task.await;
        }
        self.organisation.service().engine.shutdown().await;
    }

    async fn set(&self, name: &str, receiver: &str, dir: &Path, more: Value) {
        let mut body = json!({
            "url": format!("http://{receiver}/told"), "events": ["run.completed"],
            "secret": format!("file:{}", dir.join("secret").display()),
        });
        for (field, value) in more.as_object().expect("they are fields") {
            body[field] = value.clone();
        }
        let row = Row { kind: Kind::Webhook, name: name.to_owned(), body };
        self.change(RowChange { put: vec![row], remove: Vec::new() }).await;
    }

    async fn remove(&self, name: &str) {
        self.change(RowChange { put: Vec::new(), remove: vec![(Kind::Webhook, name.to_owned())] })
            .await;
    }

    async fn change(&self, asked: RowChange) {
        let edit = |_: &[Row]| -> ServiceResult<RowChange> { Ok(asked.clone()) };
        let outcome = change(self.organisation.service(), "ada", Mode::Write, &edit).await;
        assert!(matches!(outcome, Ok(ChangeOutcome::Done { .. })));
    }

    /// Runs a workflow to its end; returns the CloudEvents id of its last event.
    async fn runs(&self, name: &str) -> String {
        let engine = &self.organisation.service().engine;
        let run = engine.start(workflow(name)).await.expect("it starts").run;
        let mut reader = engine.reader(run, 0).await.expect("it can be read");
        let mut last = 0;
        while let Some(page) = reader.next().await.expect("it can be read") {
            last = page.last().map_or(last, |seen| seen.id());
        }
        format!("{run}:{last}")
    }

    async fn log(&self, name: &str) -> Vec<Delivery> {
        let store = &self.organisation.service().store;
        store.deliveries(name.to_owned(), None, 0).await.expect("the store can be read")
    }

    /// Waits until no delivery is pending.
    async fn settles(&self, name: &str, count: usize) -> Vec<Delivery> {
        let looked = async {
            loop {
                let log = self.log(name).await;
                if log.len() >= count && log.iter().all(|one| one.next_ms.is_none()) {
                    return log;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looked).await.expect("it settles in time")
    }
}

fn quick() -> RetrySchedule {
    RetrySchedule { tries: 4, retry_ms: 20, retry_ms_max: 100, answer_ms: 2_000, slack_ms: 500 }
}

fn workflow(name: &str) -> Start {
    let text = format!("name: {name}\nsteps: [{{id: a, command: go}}]");
    let checked = doc::check(text.as_bytes(), Some(Format::Lobsterx), &Registry::default());
    let plan = checked.plan.expect("the document is right");
    let mut start = Start::new(Stored::new(plan, &text), Map::new());
    start.default_agent = Some("mock".to_owned());
    start
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_reaches_its_receiver_once_and_signed() {
    let (dir, receiver) = (dir(), Receiver::new().await);
    let acme = TestOrganisation::open(dir.path()).await.sends();
    acme.runs("before").await;
    let events = json!({"events": ["run.completed", "node.completed"]});
    acme.set("pager", &receiver.address, dir.path(), events).await;
    let id = acme.runs("flow").await;
    let heard = receiver.hears(2).await;
    let log = acme.settles("pager", 2).await;
    assert_eq!(heard.len(), 2);
    let told: Vec<Value> = heard.iter().map(ReceivedRequest::event).collect();
    let last = told.iter().find(|one| one["id"] == id).expect("the end is told");
    let run = id.split(':').next().expect("it has two parts");
    assert_eq!(last["specversion"], "1.0");
    assert_eq!(last["type"], "dev.sluice.run.completed");
    assert_eq!(last["source"], format!("/organisations/acme/runs/{run}"));
    assert_eq!(last["data"]["type"], "run.completed");
    assert_eq!(last["data"]["workflowId"], "flow");
    let step = told.iter().find(|one| one["type"] == "dev.sluice.node.completed");
    assert_eq!(step.expect("the step is told")["subject"], "a");
    assert_eq!(heard[0].header("content-type"), "application/cloudevents+json");
    let shown: Vec<Value> = log.iter().map(shown).collect();
    assert!(
        shown.iter().all(|one| one["state"] == "delivered" && one["status"] == 200),
        "{shown:?}"
    );
    assert_eq!(shown[0]["run_id"], run);
    let named: BTreeSet<&str> = heard.iter().map(|one| one.header("sluice-delivery")).collect();
    let noted: BTreeSet<&str> =
        shown.iter().filter_map(|one| one["delivery_id"].as_str()).collect();
    assert_eq!(named, noted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_delivery_is_retried_with_the_same_id_and_then_dropped() {
    let (dir, receiver) = (dir(), Receiver::new().await);
    let acme = TestOrganisation::open(dir.path()).await.sends();
    acme.set("pager", &receiver.address, dir.path(), json!({})).await;
    receiver.answers(503);
    acme.runs("flow").await;
    receiver.hears(2).await;
    receiver.answers(204);
    let log = acme.settles("pager", 1).await;
    let heard = receiver.heard();
    assert_eq!((log[0].status, log[0].tries as usize), (Some(204), heard.len()));
    let names: BTreeSet<&str> = heard.iter().map(|one| one.header("sluice-delivery")).collect();
    let bodies: BTreeSet<&[u8]> = heard.iter().map(|one| one.body.as_slice()).collect();
    assert_eq!((names.len(), bodies.len()), (1, 1));
    // A redirect is a failure, and is not followed.
    receiver.answers(302);
    acme.runs("flow").await;
    let log = acme.settles("pager", 2).await;
    assert_eq!((log[0].tries, log[0].status), (quick().tries, Some(302)));
    assert_eq!(log[0].error.as_deref(), Some("answered 302"));
    assert_eq!(shown(&log[0])["state"], "failed");
    // Later deliveries are not delayed by it.
    receiver.answers(200);
    acme.runs("flow").await;
    assert_eq!(acme.settles("pager", 3).await[0].status, Some(200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unresponsive_receiver_delays_no_other_webhook() {
    let (dir, receiver) = (dir(), Receiver::new().await);
    // Accepts connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = silent.local_addr().expect("it is bound").to_string();
    let patient = RetrySchedule { answer_ms: 60_000, slack_ms: 60_000, ..quick() };
    let acme = TestOrganisation::open(dir.path()).await.sends_to(&["127.0.0.0/8"], patient);
    acme.set("dead", &address, dir.path(), json!({"events": ["*"]})).await;
    acme.set("live", &receiver.address, dir.path(), json!({})).await;
    let mut ids = BTreeSet::new();
    for _ in 0..5 {
        ids.insert(acme.runs("flow").await);
    }
    receiver.hears(5).await;
    assert_eq!(receiver.ids(), ids);
    assert!(acme.log("dead").await.iter().all(|one| one.tries == 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_loses_no_delivery_and_stores_none_twice() {
    let dir = dir();
    let receiver = Receiver::new().await;
    let address = receiver.address.clone();
    let stubborn = || RetrySchedule { tries: 10_000, ..quick() };
    let acme = TestOrganisation::open(dir.path()).await.sends_to(&["127.0.0.0/8"], stubborn());
    acme.set("pager", &address, dir.path(), json!({})).await;
    let mut ids = BTreeSet::from([acme.runs("flow").await]);
    receiver.hears(1).await;
    // The receiver is unreachable; deliveries wait for it.
    receiver.task.abort();
    drop(receiver);
    ids.insert(acme.runs("flow").await);
    let store = Arc::clone(&acme.organisation.service().store);
    happens_in(&store, |at| at.waiting == 1).await;
    acme.dies().await;
    drop(store);
    // A process without a delivery task.
    let acme = TestOrganisation::open(dir.path()).await;
    ids.insert(acme.runs("flow").await);
    acme.dies().await;
    let receiver = Receiver::at(&address).await;
    let acme = TestOrganisation::open(dir.path()).await.sends_to(&["127.0.0.0/8"], stubborn());
    ids.insert(acme.runs("flow").await);
    let log = acme.settles("pager", 4).await;
    let noted: BTreeSet<String> =
        log.iter().map(|one| format!("{}:{}", one.run, one.event)).collect();
    assert_eq!((&noted, log.len()), (&ids, 4));
    // The first was delivered by the first process; each of the rest exactly once.
    assert_eq!((receiver.ids().len(), receiver.heard().len()), (3, 3));
}

async fn happens_in(
    store: &Arc<dyn sluice_core::port::store::Store>,
    wanted: impl Fn(&sluice_core::port::deliveries::Delivering) -> bool,
) {
    let looked = async {
        while !wanted(&store.delivering("pager".to_owned()).await.expect("the store can be read")) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looked).await.expect("it happens in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_send_each_event_of_a_webhook_once() {
    let (dir, receiver) = (dir(), Receiver::new().await);
    // The timeouts are so long that a slow machine does not cause a retry.
    let pace = || RetrySchedule { slack_ms: 60_000, ..quick() };
    let one = TestOrganisation::open(dir.path()).await.sends_to(&["127.0.0.0/8"], pace());
    let two = TestOrganisation::open(dir.path()).await.sends_to(&["127.0.0.0/8"], pace());
    one.set("pager", &receiver.address, dir.path(), json!({})).await;
    let mut ids = BTreeSet::new();
    for _ in 0..10 {
        ids.insert(one.runs("flow").await);
        ids.insert(two.runs("flow").await);
    }
    one.settles("pager", 20).await;
    assert_eq!((receiver.ids(), receiver.heard().len()), (ids, 20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disabled_webhook_never_receives_events_of_that_time() {
    let (dir, receiver) = (dir(), Receiver::new().await);
    let acme = TestOrganisation::open(dir.path()).await.sends();
    let set = |more: Value| acme.set("pager", &receiver.address, dir.path(), more);
    set(json!({"enabled": false})).await;
    acme.runs("flow").await;
    set(json!({"enabled": true, "workflows": []})).await;
    let id = acme.runs("flow").await;
    receiver.hears(1).await;
    acme.settles("pager", 1).await;
    assert_eq!(receiver.ids(), BTreeSet::from([id]));
    // The deliveries of a removed webhook are deleted; a new one of the same name starts anew.
    acme.remove("pager").await;
    assert!(acme.log("pager").await.is_empty());
    acme.runs("flow").await;
    set(json!({"url": format!("http://{}/anew", receiver.address)})).await;
    let id = acme.runs("flow").await;
    receiver.hears(2).await;
    let log = acme.settles("pager", 1).await;
    assert_eq!((log.len(), receiver.heard().len()), (1, 2));
    assert!(receiver.ids().contains(&id));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forbidden_address_is_neither_called_nor_retried() {
    let (dir, receiver) = (dir(), Receiver::new().await);
    let acme = TestOrganisation::open(dir.path()).await.sends_to(&[], quick());
    acme.set("inside", &receiver.address, dir.path(), json!({})).await;
    acme.set("metadata", "169.254.169.254", dir.path(), json!({})).await;
    acme.runs("flow").await;
    for (name, why) in [("inside", "loopback"), ("metadata", "cloud metadata")] {
        let log = acme.settles(name, 1).await;
        let error = log[0].error.clone().expect("it was refused");
        assert!(error.contains(why) && log[0].tries == 1, "{error}");
    }
    assert!(receiver.heard().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_secret_nothing_is_sent_and_the_error_is_recorded() {
    let (dir, receiver) = (dir(), Receiver::new().await);
    let acme = TestOrganisation::open(dir.path()).await.sends();
    let missing = json!({"secret": "file:/nowhere/at/all"});
    acme.set("pager", &receiver.address, dir.path(), missing).await;
    acme.runs("flow").await;
    let log = acme.settles("pager", 1).await;
    assert!(
        log[0]
            .error
            .as_deref()
            .is_some_and(|error| error.contains("the signing secret cannot be read")),
        "{log:?}"
    );
    assert!(receiver.heard().is_empty());
}
