//! What the server counts, as Prometheus reads it.
//!
//! Engines are observed, requests are told by the API, and everything else is
//! looked up when somebody asks. Nothing here is kept over a restart.
//!
//! INVARIANT: labels are words of the program (statuses, gates, routes) or names
//! of a bounded number of rows: no name of a workflow, step or person, no text.

mod histogram;
mod text;

use crate::app::App;
use crate::house::House;
use crate::limits::METRIC_BUDGETS_MAX;
use histogram::Histogram;
use sluice_core::journal::event::{Event, NodeEvent, Record};
use sluice_core::port::ledger::Counter;
use sluice_core::run::status::StepStatus;
use sluice_engine::observe::{Observer, Turned};
use sluice_govern::account;
use sluice_govern::registry::{Envelope, Kind};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use text::{Exposition, Shape};

/// Counters and histograms of one process. Given to every engine as its observer.
#[derive(Debug, Default)]
pub struct Metrics {
    runs_started: AtomicU64,
    runs_ended: Family<&'static str>,
    steps_settled: Family<&'static str>,
    /// Decisions that passed every gate.
    passed: AtomicU64,
    gates: Family<(String, String)>,
    events: AtomicU64,
    dispatch: Histogram,
    append: Histogram,
    step: Histogram,
    requests: Family<(&'static str, &'static str, u16)>,
    request: Mutex<BTreeMap<&'static str, Histogram>>,
    refused: Family<&'static str>,
    spans_sent: AtomicU64,
    spans_dropped: AtomicU64,
}

/// A counter for each of a few words.
#[derive(Debug)]
struct Family<K>(Mutex<BTreeMap<K, u64>>);

impl<K> Default for Family<K> {
    fn default() -> Family<K> {
        Family(Mutex::default())
    }
}

impl<K: Ord + Clone> Family<K> {
    fn add(&self, key: K) {
        *held(&self.0).entry(key).or_default() += 1;
    }

    fn all(&self) -> Vec<(K, u64)> {
        held(&self.0).iter().map(|(key, count)| (key.clone(), *count)).collect()
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observer for Metrics {
    fn turned(&self, turned: &Turned<'_>) {
        self.append.observe(turned.append);
        self.events.fetch_add(turned.events.len() as u64, Ordering::Relaxed);
        let mut dispatches = false;
        for event in turned.events {
            match event {
                Event::RunStarted(_) => _ = self.runs_started.fetch_add(1, Ordering::Relaxed),
                Event::RunCompleted { .. } => self.runs_ended.add("completed"),
                Event::RunFailed { .. } => self.runs_ended.add("failed"),
                Event::RunCancelled { .. } => self.runs_ended.add("cancelled"),
                Event::RunTimedOut { .. } => self.runs_ended.add("timed_out"),
                Event::Node(_, NodeEvent::Started(_)) => dispatches = true,
                Event::Node(_, NodeEvent::GovernanceDecided(record)) => self.decided(record),
                Event::Node(at, event) => {
                    let Some(status) = settled(event) else { continue };
                    self.steps_settled.add(status.as_str());
                    let began = turned.run.get(*at).and_then(|state| state.started_at_ms);
                    if let Some(began_ms) = began {
                        let took_ms = turned.at_ms.saturating_sub(began_ms);
                        self.step.observe(Duration::from_millis(took_ms));
                    }
                }
                Event::RunStatusChanged { .. } | Event::RunRecovered | Event::BudgetAlert(_) => {}
            }
        }
        if dispatches {
            self.dispatch.observe(turned.took);
        }
    }
}

/// The end of a step that an event says.
fn settled(event: &NodeEvent) -> Option<StepStatus> {
    match event {
        NodeEvent::Completed(_) => Some(StepStatus::Completed),
        NodeEvent::Failed(_) => Some(StepStatus::Failed),
        NodeEvent::TimedOut(_) => Some(StepStatus::TimedOut),
        NodeEvent::Cancelled { .. } => Some(StepStatus::Cancelled),
        NodeEvent::Skipped(_) => Some(StepStatus::Skipped),
        NodeEvent::Blocked { .. } => Some(StepStatus::Blocked),
        _ => None,
    }
}

impl Metrics {
    /// What the gates said. Where all of them passed they are not named.
    fn decided(&self, record: &Record) {
        if !record.text().contains("\"gates\":[") {
            self.passed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let record = record.value();
        for gate in record["gates"].as_array().into_iter().flatten() {
            let word = |name: &str| gate[name].as_str().unwrap_or("unknown").to_owned();
            self.gates.add((word("gate"), word("outcome")));
        }
    }

    /// A request was answered, by the route's path as it is written.
    pub fn answered(&self, method: &'static str, path: &'static str, status: u16, took: Duration) {
        self.requests.add((path, method, status));
        held(&self.request).entry(path).or_default().observe(took);
    }

    /// A client was refused for asking too often or too much at once.
    pub fn refused(&self, what: &'static str) {
        self.refused.add(what);
    }

    /// Spans were taken by whoever collects them.
    pub fn spans_sent(&self, count: usize) {
        self.spans_sent.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Spans were lost: there was no room, or nobody took them.
    pub fn spans_dropped(&self, count: usize) {
        self.spans_dropped.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Spans that were sent, and lost.
    pub fn spans(&self) -> (u64, u64) {
        (self.spans_sent.load(Ordering::Relaxed), self.spans_dropped.load(Ordering::Relaxed))
    }

    /// Everything, as Prometheus reads it, with the organisations that whoever
    /// asks may know of.
    pub async fn render(&self, app: &App, houses: &[Arc<House>]) -> String {
        let mut out = Exposition::default();
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        out.head("sluice_build_info", Shape::Gauge, "What this is");
        out.line("sluice_build_info", &version, 1.0);
        self.work(&mut out);
        self.network(app, &mut out);
        stores(houses, &mut out);
        budgets(houses, app.now_ms(), &mut out).await;
        out.finish()
    }

    fn work(&self, out: &mut Exposition) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        out.counter("sluice_runs_started_total", "Runs started here", count(&self.runs_started));
        out.counter("sluice_events_total", "Events journalled here", count(&self.events));
        out.head("sluice_runs_ended_total", Shape::Counter, "Runs that ended here");
        for (status, ended) in self.runs_ended.all() {
            out.count("sluice_runs_ended_total", &[("status", status)], ended);
        }
        out.head("sluice_steps_settled_total", Shape::Counter, "Steps that were settled here");
        for (status, settled) in self.steps_settled.all() {
            out.count("sluice_steps_settled_total", &[("status", status)], settled);
        }
        out.head("sluice_gate_outcomes_total", Shape::Counter, "What the gates said");
        let mut gates: BTreeMap<(String, String), u64> = self.gates.all().into_iter().collect();
        for gate in sluice_govern::decision::gates() {
            *gates.entry((gate.to_owned(), "pass".to_owned())).or_default() += count(&self.passed);
        }
        for ((gate, outcome), said) in gates {
            let labels = [("gate", gate.as_str()), ("outcome", outcome.as_str())];
            out.count("sluice_gate_outcomes_total", &labels, said);
        }
        let about = "From the beginning of a turn to its dispatches being durable";
        out.histogram("sluice_dispatch_seconds", about, &[(&[], &self.dispatch)]);
        let about = "Writing a turn, until it is durable";
        out.histogram("sluice_append_seconds", about, &[(&[], &self.append)]);
        let about = "From the start of a step to its end";
        out.histogram("sluice_step_seconds", about, &[(&[], &self.step)]);
        let about = "Spans that a collector took";
        out.counter("sluice_otel_spans_sent_total", about, count(&self.spans_sent));
        let about = "Spans that were lost";
        out.counter("sluice_otel_spans_dropped_total", about, count(&self.spans_dropped));
    }

    fn network(&self, app: &App, out: &mut Exposition) {
        let room = app.room();
        for (name, about, used) in [
            ("sluice_http_streams", "Live streams that are open", room.streams.used()),
            ("sluice_http_in_flight", "Requests that are worked on", room.requests.used()),
            ("sluice_mcp_calls", "Calls of agents that are worked on", room.mcp_calls.used()),
            ("sluice_http_body_bytes", "Bytes of bodies being read", room.body_bytes.used()),
        ] {
            out.head(name, Shape::Gauge, about);
            out.count(name, &[], used as u64);
        }
        let (strangers, signed_in) = app.connections().count();
        let name = "sluice_http_connections";
        out.head(name, Shape::Gauge, "Connections that are open");
        for (client, count) in [("stranger", strangers), ("signed_in", signed_in)] {
            out.count(name, &[("client", client)], count as u64);
        }
        let about = "Idle connections that made room for new ones";
        out.counter("sluice_http_displaced_total", about, app.connections().displaced());
        let name = "sluice_http_refused_total";
        out.head(name, Shape::Counter, "Clients that asked too often or too much at once");
        for (what, refused) in self.refused.all() {
            out.count(name, &[("what", what)], refused);
        }
        let name = "sluice_http_requests_total";
        out.head(name, Shape::Counter, "Requests that were answered");
        for ((path, method, status), answered) in self.requests.all() {
            let status = status.to_string();
            let labels = [("route", path), ("method", method), ("status", status.as_str())];
            out.count(name, &labels, answered);
        }
        let request = held(&self.request);
        let labels: Vec<_> = request.keys().map(|path| [("route", *path)]).collect();
        let all: Vec<(&[(&str, &str)], &Histogram)> =
            labels.iter().map(|labels| &labels[..]).zip(request.values()).collect();
        out.histogram("sluice_http_request_seconds", "Answering a request", &all);
    }
}

type Houses = [Arc<House>];

/// What engines and stores have in hand.
fn stores(houses: &Houses, out: &mut Exposition) {
    let gauges: Vec<_> =
        houses.iter().map(|one| (one.name(), one.service().engine.gauges())).collect();
    let mut each = |name: &str, about: &str, of: fn(&sluice_engine::observe::Gauges) -> usize| {
        out.head(name, Shape::Gauge, about);
        for (house, gauges) in &gauges {
            out.count(name, &[("organisation", house)], of(gauges) as u64);
        }
    };
    each("sluice_residents", "Runs in memory", |gauges| gauges.residents);
    each("sluice_room", "Runs there is still room for", |gauges| gauges.room);
    each("sluice_mail_waiting", "Mail that waits for runs", |gauges| gauges.mail);
    each("sluice_feed_readers", "Readers that follow all runs", |gauges| gauges.feed_readers);
    each("sluice_poisoned_runs", "Runs that cannot be read", |gauges| gauges.poisoned);
    let stores: Vec<_> =
        houses.iter().map(|one| (one.name(), one.service().store.gauges())).collect();
    let name = "sluice_store_writes_waiting";
    out.head(name, Shape::Gauge, "Writes that wait for the next transaction");
    for (house, gauges) in &stores {
        out.count(name, &[("organisation", house)], gauges.writes_waiting as u64);
    }
    let name = "sluice_store_appends_total";
    out.head(name, Shape::Counter, "Appends that are durable");
    for (house, gauges) in &stores {
        out.count(name, &[("organisation", house)], gauges.appends);
    }
    let name = "sluice_store_commit_writes";
    out.head(name, Shape::Histogram, "Writes that share a transaction");
    for (house, gauges) in &stores {
        out.sizes(name, &[("organisation", house)], &gauges.batches, gauges.writes);
    }
}

/// What is held of each budget, and what it allows. Only the first of very many
/// are told of.
async fn budgets(houses: &Houses, now_ms: u64, out: &mut Exposition) {
    let mut found = Vec::new();
    for house in houses {
        let Ok(rows) = house.rows().await else { continue };
        let envelopes = rows.rows.iter().filter(|row| row.kind == Kind::Envelope);
        for row in envelopes.take(METRIC_BUDGETS_MAX) {
            let Ok(envelope) = serde_json::from_value::<Envelope>(row.body.clone()) else {
                continue;
            };
            let of = account::of_envelope(&row.name, envelope.period, now_ms);
            let counters = vec![Counter::plain(account::held(&of))];
            let Ok(counts) = house.service().store.counts(counters).await else { continue };
            let held = counts.first().copied().unwrap_or_default().max(0).unsigned_abs();
            let cap = envelope.amount_cents.micro_cents();
            found.push((house.name().to_owned(), row.name.clone(), held, cap));
        }
    }
    let usd = |micro_cents: u64| micro_cents as f64 / 1e8;
    for (name, about, of) in [
        ("sluice_budget_used_usd", "What is spent and reserved in this period", 0),
        ("sluice_budget_cap_usd", "What a budget allows", 1),
    ] {
        out.head(name, Shape::Gauge, about);
        for (house, budget, used, cap) in &found {
            let labels = [("organisation", house.as_str()), ("budget", budget.as_str())];
            out.line(name, &labels, usd(if of == 0 { *used } else { *cap }));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
