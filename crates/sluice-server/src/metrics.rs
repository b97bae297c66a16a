//! Metrics of the server, in the Prometheus text format.
//!
//! Engines report through `Observer`, the API reports requests, and gauges are read when the
//! metrics are rendered. All values start at zero when the process starts.
//!
//! INVARIANT: label values are fixed words (statuses, gates, routes) or names of a bounded
//! number of rows, never names of workflows, steps or people, nor free text.

mod histogram;
mod text;

use crate::app::App;
use crate::limits::METRIC_BUDGETS_MAX;
use crate::organisation::Organisation;
use histogram::Histogram;
use sluice_core::journal::event::{Event, Record, StepEvent};
use sluice_core::port::ledger::Counter;
use sluice_core::status::StepStatus;
use sluice_engine::observe::{Observer, Turned};
use sluice_govern::account;
use sluice_govern::registry::{Budget, Kind};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use text::{Exposition, MetricType};

/// Counters and histograms of one process. Every engine has it as an observer.
#[derive(Debug, Default)]
pub struct Metrics {
    runs_started: AtomicU64,
    runs_ended: Family<&'static str>,
    steps_settled: Family<&'static str>,
    /// Number of decisions that passed every gate.
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

/// A counter with one value per label.
#[derive(Debug)]
struct Family<K>(Mutex<BTreeMap<K, u64>>);

impl<K> Default for Family<K> {
    fn default() -> Family<K> {
        Family(Mutex::default())
    }
}

impl<K: Ord + Clone> Family<K> {
    fn add(&self, key: K) {
        *locked(&self.0).entry(key).or_default() += 1;
    }

    fn all(&self) -> Vec<(K, u64)> {
        locked(&self.0).iter().map(|(key, count)| (key.clone(), *count)).collect()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
                Event::Step(_, StepEvent::Started(_)) => dispatches = true,
                Event::Step(_, StepEvent::GovernanceDecided(record)) => self.decided(record),
                Event::Step(at, event) => {
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

/// The final status of a step that an event sets.
fn settled(event: &StepEvent) -> Option<StepStatus> {
    match event {
        StepEvent::Completed(_) => Some(StepStatus::Completed),
        StepEvent::Failed(_) => Some(StepStatus::Failed),
        StepEvent::TimedOut(_) => Some(StepStatus::TimedOut),
        StepEvent::Cancelled { .. } => Some(StepStatus::Cancelled),
        StepEvent::Skipped(_) => Some(StepStatus::Skipped),
        StepEvent::Blocked { .. } => Some(StepStatus::Blocked),
        _ => None,
    }
}

impl Metrics {
    /// Counts a decision. A decision that passed every gate does not list the gates.
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

    /// Counts a request, by the path of its route.
    pub fn answered(&self, method: &'static str, path: &'static str, status: u16, took: Duration) {
        self.requests.add((path, method, status));
        locked(&self.request).entry(path).or_default().observe(took);
    }

    /// Counts a refusal for exceeding a rate or capacity limit.
    pub fn refused(&self, what: &'static str) {
        self.refused.add(what);
    }

    /// Counts spans that the collector accepted.
    pub(crate) fn spans_sent(&self, count: usize) {
        self.spans_sent.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Counts spans that were lost: the queue was full, or the collector did not accept them.
    pub(crate) fn spans_dropped(&self, count: usize) {
        self.spans_dropped.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// The numbers of sent and lost spans.
    pub fn spans(&self) -> (u64, u64) {
        (self.spans_sent.load(Ordering::Relaxed), self.spans_dropped.load(Ordering::Relaxed))
    }

    /// All metrics in the Prometheus text format, including those of these organisations.
    pub async fn render(&self, app: &App, organisations: &[Arc<Organisation>]) -> String {
        let mut out = Exposition::default();
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        out.head("sluice_build_info", MetricType::Gauge, "Version of the server");
        out.line("sluice_build_info", &version, 1.0);
        self.work(&mut out);
        self.network(app, &mut out);
        stores(organisations, &mut out);
        budgets(organisations, app.now_ms(), &mut out).await;
        out.finish()
    }

    fn work(&self, out: &mut Exposition) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        out.counter(
            "sluice_runs_started_total",
            "Runs started by this process",
            count(&self.runs_started),
        );
        out.counter(
            "sluice_events_total",
            "Events journalled by this process",
            count(&self.events),
        );
        out.head("sluice_runs_ended_total", MetricType::Counter, "Runs that ended in this process");
        for (status, ended) in self.runs_ended.all() {
            out.count("sluice_runs_ended_total", &[("status", status)], ended);
        }
        out.head(
            "sluice_steps_settled_total",
            MetricType::Counter,
            "Steps that ended in this process",
        );
        for (status, settled) in self.steps_settled.all() {
            out.count("sluice_steps_settled_total", &[("status", status)], settled);
        }
        out.head("sluice_gate_outcomes_total", MetricType::Counter, "Outcomes of the gates");
        let mut gates: BTreeMap<(String, String), u64> = self.gates.all().into_iter().collect();
        for gate in sluice_govern::decision::gates() {
            *gates.entry((gate.to_owned(), "pass".to_owned())).or_default() += count(&self.passed);
        }
        for ((gate, outcome), count) in gates {
            let labels = [("gate", gate.as_str()), ("outcome", outcome.as_str())];
            out.count("sluice_gate_outcomes_total", &labels, count);
        }
        let about = "Time from the start of a turn until its dispatches are durable";
        out.histogram("sluice_dispatch_seconds", about, &[(&[], &self.dispatch)]);
        let about = "Time to make a turn durable";
        out.histogram("sluice_append_seconds", about, &[(&[], &self.append)]);
        let about = "Time from the start of a step to its end";
        out.histogram("sluice_step_seconds", about, &[(&[], &self.step)]);
        let about = "Spans that the collector accepted";
        out.counter("sluice_otel_spans_sent_total", about, count(&self.spans_sent));
        let about = "Spans that were lost";
        out.counter("sluice_otel_spans_dropped_total", about, count(&self.spans_dropped));
    }

    fn network(&self, app: &App, out: &mut Exposition) {
        let capacity = app.capacity();
        for (name, about, used) in [
            ("sluice_http_streams", "Open event streams", capacity.streams.used()),
            ("sluice_http_in_flight", "Requests in progress", capacity.requests.used()),
            ("sluice_mcp_calls", "MCP calls in progress", capacity.mcp_calls.used()),
            (
                "sluice_http_body_bytes",
                "Bytes of request bodies being read",
                capacity.body_bytes.used(),
            ),
        ] {
            out.head(name, MetricType::Gauge, about);
            out.count(name, &[], used as u64);
        }
        let (strangers, signed_in) = app.connections().count();
        let name = "sluice_http_connections";
        out.head(name, MetricType::Gauge, "Open connections");
        for (client, count) in [("stranger", strangers), ("signed_in", signed_in)] {
            out.count(name, &[("client", client)], count as u64);
        }
        let about = "Idle connections that were closed for new ones";
        out.counter("sluice_http_displaced_total", about, app.connections().displaced());
        let name = "sluice_http_refused_total";
        out.head(
            name,
            MetricType::Counter,
            "Requests refused for exceeding a rate or capacity limit",
        );
        for (what, refused) in self.refused.all() {
            out.count(name, &[("what", what)], refused);
        }
        let name = "sluice_http_requests_total";
        out.head(name, MetricType::Counter, "Requests answered");
        for ((path, method, status), answered) in self.requests.all() {
            let status = status.to_string();
            let labels = [("route", path), ("method", method), ("status", status.as_str())];
            out.count(name, &labels, answered);
        }
        let request = locked(&self.request);
        let labels: Vec<_> = request.keys().map(|path| [("route", *path)]).collect();
        let all: Vec<(&[(&str, &str)], &Histogram)> =
            labels.iter().map(|labels| &labels[..]).zip(request.values()).collect();
        out.histogram("sluice_http_request_seconds", "Time to answer a request", &all);
    }
}

/// Gauges of engines and stores.
fn stores(organisations: &[Arc<Organisation>], out: &mut Exposition) {
    let gauges: Vec<_> =
        organisations.iter().map(|one| (one.name(), one.service().engine.gauges())).collect();
    let mut each = |name: &str, about: &str, of: fn(&sluice_engine::observe::Gauges) -> usize| {
        out.head(name, MetricType::Gauge, about);
        for (organisation, gauges) in &gauges {
            out.count(name, &[("organisation", organisation)], of(gauges) as u64);
        }
    };
    each("sluice_residents", "Loaded runs", |gauges| gauges.residents);
    each("sluice_room", "Further runs that can be loaded", |gauges| gauges.room);
    each("sluice_mail_waiting", "Messages in the mailboxes of runs", |gauges| gauges.mail);
    each("sluice_feed_readers", "Readers that follow all runs", |gauges| gauges.feed_readers);
    each("sluice_poisoned_runs", "Runs whose journal cannot be read", |gauges| gauges.poisoned);
    let stores: Vec<_> =
        organisations.iter().map(|one| (one.name(), one.service().store.gauges())).collect();
    let name = "sluice_store_writes_waiting";
    out.head(name, MetricType::Gauge, "Writes that wait for the next transaction");
    for (organisation, gauges) in &stores {
        out.count(name, &[("organisation", organisation)], gauges.writes_waiting as u64);
    }
    let name = "sluice_store_appends_total";
    out.head(name, MetricType::Counter, "Appends that are durable");
    for (organisation, gauges) in &stores {
        out.count(name, &[("organisation", organisation)], gauges.appends);
    }
    let name = "sluice_store_commit_writes";
    out.head(name, MetricType::Histogram, "Writes that share a transaction");
    for (organisation, gauges) in &stores {
        out.sizes(name, &[("organisation", organisation)], &gauges.batches, gauges.writes);
    }
}

/// The use and the cap of each budget. Only the first budgets of an organisation are
/// reported if there are very many.
async fn budgets(organisations: &[Arc<Organisation>], now_ms: u64, out: &mut Exposition) {
    let mut found = Vec::new();
    for organisation in organisations {
        let Ok(rows) = organisation.rows().await else { continue };
        let budgets = rows.rows.iter().filter(|row| row.kind == Kind::Budget);
        for row in budgets.take(METRIC_BUDGETS_MAX) {
            let Ok(budget) = serde_json::from_value::<Budget>(row.body.clone()) else {
                continue;
            };
            let of = account::of_budget(&row.name, budget.period, now_ms);
            let counters = vec![Counter::plain(account::held(&of))];
            let Ok(counts) = organisation.service().store.counts(counters).await else { continue };
            let held = counts.first().copied().unwrap_or_default().max(0).unsigned_abs();
            let cap = budget.amount_cents.micro_cents();
            found.push((organisation.name().to_owned(), row.name.clone(), held, cap));
        }
    }
    let usd = |micro_cents: u64| micro_cents as f64 / 1e8;
    for (name, about, of) in [
        ("sluice_budget_used_usd", "Amount spent and reserved in the current period", 0),
        ("sluice_budget_cap_usd", "Cap of the budget", 1),
    ] {
        out.head(name, MetricType::Gauge, about);
        for (organisation, budget, used, cap) in &found {
            let labels = [("organisation", organisation.as_str()), ("budget", budget.as_str())];
            out.line(name, &labels, usd(if of == 0 { *used } else { *cap }));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
