use super::*;
use crate::app::Settings;
use crate::service::{RowOrigin, Service};
use serde_json::Map;
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_bridge::secret::keyring::Keyring;
use sluice_core::doc::{self, Format, Registry};
use sluice_core::id::RunId;
use sluice_core::port::store::{NodeId, Store};
use sluice_engine::Engine;
use sluice_engine::agents::Agents;
use sluice_engine::config::Config;
use sluice_engine::definition::Stored;
use sluice_engine::engine::Ground;
use sluice_engine::start::Start;
use sluice_engine::trust::PolicySource;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_govern::registry::Row;
use sluice_store::sqlite::SqliteStore;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A service with an observed engine, on a store of its own.
pub(crate) async fn service(dir: &Path, mock: &str, observer: Arc<dyn Observer>) -> Service {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(dir, Arc::new(SystemClock)).unwrap());
    let mock = MockAdapter::new(Script::parse(mock).unwrap());
    let ground = Ground {
        store: Arc::clone(&store),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(|| Box::new(SystemEntropy)),
        agents: Agents::new().with("mock", Arc::new(mock)),
        policies: PolicySource::default(),
        catalog: None,
        sealer: None,
        moderator: None,
        observer: Some(observer),
    };
    let engine = Arc::new(Engine::open(ground, Config::default()).await.unwrap());
    let (origin, secrets) = (RowOrigin::Operator, Keyring::default());
    Service { store, engine, workspaces: None, origin, secrets }
}

pub(crate) fn stored(document: &str, registry: &Registry) -> Stored {
    let checked = doc::check(document.as_bytes(), Some(Format::Lobsterx), registry);
    Stored::new(checked.plan.expect("it is valid"), document)
}

pub(crate) async fn run(service: &Service, start: Start) -> RunId {
    let mut start = start;
    start.default_agent = Some("mock".to_owned());
    let run = service.engine.start(start).await.unwrap().run;
    let mut reader = service.engine.reader(run, 0).await.unwrap();
    while reader.next().await.unwrap().is_some() {}
    run
}

/// Parses the text format, and refuses what Prometheus would refuse: a sample without a
/// type, a duplicate metric or sample, an invalid name or number, decreasing buckets.
fn parsed(text: &str) -> BTreeMap<String, f64> {
    let (mut types, mut found) = (BTreeMap::new(), BTreeMap::new());
    let (mut family, mut closed) = (String::new(), BTreeSet::new());
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (what, name) = (words.next().unwrap(), words.next().unwrap());
            if what == "HELP" {
                assert!(closed.insert(name.to_owned()), "{name} comes twice");
                family = name.to_owned();
            } else {
                let shape = words.next().unwrap();
                assert!(what == "TYPE" && ["counter", "gauge", "histogram"].contains(&shape));
                assert_eq!(name, family);
                types.insert(name.to_owned(), shape.to_owned());
            }
            continue;
        }
        let (series, number) = line.rsplit_once(' ').unwrap();
        let number: f64 = number.parse().unwrap();
        let name = series.split('{').next().unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        let base = match types[&family].as_str() {
            "histogram" => ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| name.strip_suffix(end))
                .expect("a part of a histogram"),
            "counter" => {
                assert!(name.ends_with("_total"), "{name}");
                name
            }
            _ => name,
        };
        assert_eq!(base, family, "{line}");
        assert!(found.insert(series.to_owned(), number).is_none(), "{series} comes twice");
    }
    let buckets: Vec<_> = found.iter().filter(|(name, _)| name.contains("_bucket{")).collect();
    for (name, count) in buckets {
        let whole = name.replace("_bucket{", "_count{");
        let (head, _) = whole.rsplit_once("le=\"").unwrap();
        let head = head.trim_end_matches([',', '{']);
        let whole = if head.contains('{') { format!("{head}}}") } else { head.to_owned() };
        assert!(*count <= found[&whole], "{name}");
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_metrics_are_rendered_in_the_prometheus_format() {
    let dir = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::default());
    let mock = "a: {text: done, cost: 0.05}\nb: {error: no}";
    let service = service(dir.path(), mock, metrics.clone()).await;
    let body = serde_json::json!({"scope": "global", "period": "total", "amount_cents": 1000});
    let row = Row { kind: Kind::Budget, name: "all \"of\" it".to_owned(), body };
    let change = sluice_core::port::ledger::Change {
        expect: None,
        put: vec![row],
        remove: Vec::new(),
        node: NodeId(1),
        entries: Vec::new(),
    };
    service.store.change(change).await.unwrap();
    let app =
        App::new(Settings::default(), Arc::new(SystemClock), Arc::new(|| Box::new(SystemEntropy)));
    app.add(Organisation::open("org", service.clone()).await.unwrap());
    let flow = "name: secret-name\nsteps: [{id: a, command: go, max_cost_cents: 10}, \
                {id: b, command: go, max_cost_cents: 10, depends_on: [a]}]";
    for _ in 0..3 {
        run(&service, Start::new(stored(flow, &Registry::default()), Map::new())).await;
    }
    metrics.answered("GET", "/api/v1/runs/{id}", 200, Duration::from_millis(3));
    metrics.answered("GET", "/api/v1/runs/{id}", 404, Duration::from_millis(3));
    // The observer is notified after the event can be read.
    while metrics.runs_ended.all() != [("failed", 3)] {
        tokio::task::yield_now().await;
    }
    let text = metrics.render(&app, &app.organisations()).await;
    let found = parsed(&text);
    let of = |name: &str| found.get(name).copied().unwrap_or_else(|| panic!("{name}\n{text}"));
    assert_eq!(of("sluice_runs_started_total"), 3.0);
    assert_eq!(of("sluice_runs_ended_total{status=\"failed\"}"), 3.0);
    assert_eq!(of("sluice_steps_settled_total{status=\"completed\"}"), 3.0);
    assert_eq!(of("sluice_steps_settled_total{status=\"failed\"}"), 3.0);
    for gate in sluice_govern::decision::gates() {
        let name = format!("sluice_gate_outcomes_total{{gate=\"{gate}\",outcome=\"pass\"}}");
        assert_eq!(of(&name), 6.0, "{gate}");
    }
    assert_eq!(of("sluice_step_seconds_count"), 6.0);
    assert!(of("sluice_append_seconds_count") >= 9.0 && of("sluice_append_seconds_sum") > 0.0);
    assert!(of("sluice_dispatch_seconds_count") >= 6.0);
    let writes = of("sluice_store_commit_writes_sum{organisation=\"org\"}");
    assert!(writes >= of("sluice_store_appends_total{organisation=\"org\"}"));
    let budget = "{organisation=\"org\",budget=\"all \\\"of\\\" it\"}";
    assert_eq!(of(&format!("sluice_budget_cap_usd{budget}")), 10.0);
    assert_eq!(of(&format!("sluice_budget_used_usd{budget}")), 0.15);
    let requests = "sluice_http_requests_total{route=\"/api/v1/runs/{id}\",method=\"GET\"";
    assert_eq!(of(&format!("{requests},status=\"404\"}}")), 1.0);
    assert_eq!(of("sluice_http_request_seconds_count{route=\"/api/v1/runs/{id}\"}"), 2.0);
    assert!(!text.contains("secret-name"), "no name of a workflow is a label");
}
