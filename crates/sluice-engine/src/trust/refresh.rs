//! Keeps the cached governance data up to date.

use super::rules::{Rules, RulesError};
use super::{GovernanceCache, PolicySource, View, lock};
use crate::engine::Inner;
use crate::mailbox::Mail;
use futures_util::future::join_all;
use serde_json::json;
use sluice_core::id::RunId;
use sluice_core::port::adapter::Health as Answered;
use sluice_core::port::authority::{CatalogSource, Patience};
use sluice_core::port::ledger::{Change, Counter, Entry};
use sluice_core::port::store::{Guard, Store, StoreError};
use sluice_core::rows;
use sluice_core::run::state::Run;
use sluice_govern::account::{self, Name};
use sluice_govern::registry::{Gateway, Health, Kind, Phase, Row};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// Interval between health checks of gateways.
const HEALTH_CHECK_MS: u64 = 60_000;
/// Interval while a gateway does not answer, so that an outage is confirmed soon.
const HEALTH_RECHECK_MS: u64 = 5000;
/// Timeout of a health check.
const HEALTH_TIMEOUT_MS: u64 = 5000;

impl GovernanceCache {
    /// Reads rows, policies and counters for the first time.
    pub(crate) async fn open(
        store: &dyn Store,
        source: PolicySource,
        catalog: Option<Arc<dyn CatalogSource>>,
        implied: Gateway,
        patience: Patience,
    ) -> Result<Result<GovernanceCache, RulesError>, StoreError> {
        let rows = store.registry(None).await?;
        let tools = catalog.as_ref().map(|source| source.catalog());
        let rules = match Rules::read(&rows, &source, &implied, tools, None) {
            Ok(rules) => rules,
            Err(error) => return Ok(Err(error)),
        };
        let trust = GovernanceCache {
            rules: Mutex::new(Arc::new(rules)),
            counts: super::CounterCache::default(),
            gateway_health: super::GatewayHealth::default(),
            waiters: super::Waiters::default(),
            remembered: super::RememberedOutputs::default(),
            history: super::HistoryReads::default(),
            source,
            catalog,
            implied,
            recheck: Notify::new(),
            refused: Mutex::default(),
            patience,
        };
        trust.refresh(store, trust.agent_counters(), 0).await?;
        trust.refresh_remembered(store).await?;
        Ok(Ok(trust))
    }

    /// Counters of agents, which belong to no single run.
    fn agent_counters(&self) -> Vec<Counter> {
        let rules = self.rules();
        let mut counters = Vec::new();
        for (name, agent) in &rules.fabric.agents {
            counters.push(Counter::plain(account::busy(name)));
            if let Some(rate) = agent.rate {
                let window_ms = Some(u64::from(rate.window_s) * 1000);
                counters.push(Counter { name: account::rate(name), window_ms });
            }
        }
        counters
    }

    /// Whether the newest rows cannot be used.
    pub(crate) fn is_refused(&self) -> bool {
        let epoch = self.rules().fabric.epoch;
        lock(&self.refused).as_ref().is_some_and(|(refused, _)| *refused > epoch)
    }

    /// Reads counters from the store.
    pub(crate) async fn refresh(
        &self,
        store: &dyn Store,
        counters: Vec<Counter>,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        if counters.is_empty() {
            return Ok(());
        }
        let counts = store.counts(counters.clone()).await?;
        let pairs = counters.iter().zip(counts).map(|(counter, count)| (&*counter.name, count));
        self.counts.learn(pairs, now_ms);
        Ok(())
    }

    /// Reads the counters of a run's own cost caps when it is loaded.
    pub(crate) async fn prepare(
        &self,
        store: &dyn Store,
        run: &Run,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        let accounts = run.own_accounts();
        let counters = accounts.iter().flat_map(|name| {
            let alerted = account::THRESHOLDS.map(|percent| account::alerted(name, percent));
            [account::held(name), account::spent(name), account::over(name)]
                .into_iter()
                .chain(alerted)
        });
        self.refresh(store, counters.map(Counter::plain).collect(), now_ms).await
    }

    /// Corrects a counter from a refused append.
    pub(crate) fn corrected(&self, counter: &str, count: i64, now_ms: u64) {
        self.counts.learn([(counter, count)].into_iter(), now_ms);
    }

    /// Updates the counters of a durable append. Returns runs to wake, because the append
    /// freed what they wait for.
    pub(crate) fn learn(&self, guards: &[Guard], counts: &[i64], now_ms: u64) -> Vec<RunId> {
        self.counts.learn_guards(guards, counts, now_ms);
        let mut woken = Vec::new();
        for guard in guards.iter().filter(|guard| guard.delta < 0) {
            if let Some(agent) = guard.counter.name().busy_agent() {
                let many = usize::try_from(guard.delta.unsigned_abs()).unwrap_or(usize::MAX);
                woken.extend(self.waiters.take(agent, many));
            }
        }
        woken
    }

    /// Registers a run that waits at a gate for an agent.
    pub(crate) fn register_waiter(&self, run: &Run) {
        for (agent, _) in run.gated() {
            self.waiters.add(agent, run.id);
        }
    }

    /// Health of a gateway, and its last changes.
    pub(crate) fn health(&self, gateway: &str) -> (Health, Vec<(u64, Health)>) {
        (self.gateway_health.health(gateway), self.gateway_health.history(gateway))
    }
}

impl Inner {
    /// Governance data for one turn.
    pub(crate) fn view(&self, now_ms: u64) -> View<'_> {
        self.view_under(self.trust.rules(), now_ms)
    }

    /// Governance data for one turn under rules that were read before.
    pub(crate) fn view_under(&self, rules: Arc<Rules>, now_ms: u64) -> View<'_> {
        View::new(rules, &self.trust, &self.agents, now_ms)
    }

    /// Reads the rows again if they have changed. If the new rows cannot be used, the old
    /// rules stay in memory, but every dispatch is refused by its guard on the epoch.
    pub(crate) async fn refresh_rules(self: &Arc<Self>) -> Result<(), StoreError> {
        let before = self.trust.rules();
        let rows = self.store.registry(None).await?;
        if rows.epoch == before.fabric.epoch {
            return Ok(());
        }
        let known = lock(&self.trust.refused).clone().filter(|(epoch, _)| *epoch == rows.epoch);
        let read = match known {
            Some((_, error)) => Err(error),
            None => {
                let (trust, catalog) = (&self.trust, self.trust.catalog());
                Rules::read(&rows, &trust.source, &trust.implied, catalog, Some(&before))
            }
        };
        match read {
            Ok(rules) => {
                self.trust.replace_rules(rules);
                self.recheck_changed_gateways(&before);
                let now_ms = self.clock.now_ms();
                let counters = self.trust.agent_counters();
                self.trust.refresh(&*self.store, counters, now_ms).await?;
                self.trust.refresh_remembered(&*self.store).await?;
                self.wake(self.trust.waiters.take_all());
            }
            Err(error) => {
                tracing::error!(%error, "the new rules cannot be used; nothing is dispatched");
                self.report_trouble(&error.to_string());
                *lock(&self.trust.refused) = Some((rows.epoch, error.clone()));
                return Err(StoreError::Unavailable(error.to_string()));
            }
        }
        Ok(())
    }

    /// Reads the rows again if the store has newer ones than `rules`; returns whether it had.
    pub(crate) async fn has_newer_rules(
        self: &Arc<Self>,
        rules: &Rules,
    ) -> Result<bool, StoreError> {
        let epoch = self.store.counts(vec![Counter::plain(account::REGISTRY)]).await?;
        let known = i64::try_from(rules.fabric.epoch).unwrap_or(i64::MAX);
        if epoch.first().is_none_or(|epoch| *epoch == known) {
            return Ok(false);
        }
        self.refresh_rules().await?;
        Ok(self.trust.rules().fabric.epoch != rules.fabric.epoch)
    }

    /// Wakes runs that wait at a gate.
    pub(crate) fn wake(self: &Arc<Self>, runs: Vec<RunId>) {
        for run in runs {
            match self.mailbox(run) {
                Some(sender) => {
                    // A full mailbox leads to a turn anyway.
                    let _ = sender.try_send(Mail::CheckGates);
                }
                None if self.may_wake(run) => {
                    let engine = Arc::clone(self);
                    self.spawn(async move { engine.send_mail(run, Mail::CheckGates).await });
                }
                None => {}
            }
        }
    }

    /// Wakes runs at gates if other nodes have freed what they wait for.
    pub(crate) async fn check_gates(self: &Arc<Self>) -> Result<(), StoreError> {
        self.has_newer_rules(&self.trust.rules()).await?;
        self.end_trials().await;
        self.trust.refresh_remembered(&*self.store).await?;
        let agents = self.trust.waiters.agents();
        if agents.is_empty() {
            return Ok(());
        }
        let now_ms = self.clock.now_ms();
        let counters = agents.iter().map(|agent| Counter::plain(account::busy(agent)));
        self.trust.refresh(&*self.store, counters.collect(), now_ms).await?;
        let rules = self.trust.rules();
        for agent in &agents {
            let max = rules.fabric.agents.get(agent).and_then(|row| row.max_concurrent_steps);
            let running = self.trust.counts.get(Name::busy(agent));
            let free = max.map_or(1, |max| i64::from(max).saturating_sub(running));
            let many = usize::try_from(free).unwrap_or(0);
            self.wake(self.trust.waiters.take(agent, many));
        }
        Ok(())
    }

    /// Checks the health of all gateways periodically until the engine stops.
    pub(crate) async fn watch_gateways(self: Arc<Self>) {
        loop {
            self.check_all_gateways().await;
            let pause_ms = if self.trust.gateway_health.is_doubtful() {
                HEALTH_RECHECK_MS
            } else {
                HEALTH_CHECK_MS
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = self.trust.recheck.notified() => {}
                () = tokio::time::sleep(Duration::from_millis(pause_ms)) => {}
            }
        }
    }

    async fn check_all_gateways(self: &Arc<Self>) {
        let names = self.trust.rules().fabric.gateways.keys().cloned().collect();
        self.check_gateways(names).await;
    }

    /// Checks a gateway whose row is so new that no check has reached it yet. Nothing is known
    /// of its health before.
    pub(crate) async fn check_new_gateway(self: &Arc<Self>, name: &str) -> Result<(), StoreError> {
        self.has_newer_rules(&self.trust.rules()).await?;
        let is_registered = self.trust.rules().fabric.gateways.contains_key(name);
        if is_registered && !self.trust.gateway_health.is_checked(name) {
            self.check_gateways(vec![name.to_owned()]).await;
        }
        Ok(())
    }

    /// Checks gateways concurrently, so that an unreachable one does not delay the rest.
    async fn check_gateways(self: &Arc<Self>, names: Vec<String>) {
        let answers = join_all(names.iter().map(|name| self.probe_gateway(name))).await;
        let mut changed = Vec::new();
        for (name, answer) in names.iter().zip(answers) {
            let now_ms = self.clock.now_ms();
            let found = match answer {
                Some(found) => found,
                None => match self.trust.gateway_health.reported(name, now_ms) {
                    Some(heard) => Some(heard),
                    None => {
                        // Other nodes may reach it: this is not a change of its health.
                        self.trust.gateway_health.record(name, Some(Health::Offline), now_ms);
                        continue;
                    }
                },
            };
            changed.extend(self.record_health(name, found, now_ms));
        }
        self.audit_health_changes(changed).await;
    }

    /// Triggers health checks if gateways were added or changed.
    fn recheck_changed_gateways(self: &Arc<Self>, before: &Rules) {
        let rules = self.trust.rules();
        let gateways = rules.fabric.gateways.iter();
        let changed = gateways.filter(|(name, row)| before.fabric.gateways.get(*name) != Some(row));
        let changed: Vec<String> = changed.map(|(name, _)| name.clone()).collect();
        if changed.is_empty() {
            return;
        }
        self.trust.gateway_health.forget(&changed);
        self.trust.recheck.notify_one();
    }

    pub(crate) async fn gateway_reported(self: &Arc<Self>, name: &str, health: Health) {
        let now_ms = self.clock.now_ms();
        self.trust.gateway_health.report(name, health, now_ms);
        // A probe takes precedence over the report.
        let found = self.probe_gateway(name).await.unwrap_or(Some(health));
        let changed = self.record_health(name, found, now_ms);
        self.audit_health_changes(changed.into_iter().collect()).await;
    }

    /// Records the health of a gateway; returns an audit entry if it changed.
    fn record_health(&self, name: &str, found: Option<Health>, now_ms: u64) -> Option<Entry> {
        let (before, after) = self.trust.gateway_health.record(name, found, now_ms)?;
        let misses = self.trust.gateway_health.misses(name);
        tracing::warn!(gateway = name, ?before, ?after, "a gateway's health changed");
        Some(Entry {
            at_ms: now_ms,
            category: "lifecycle",
            what: "gateway_health_changed".to_owned(),
            actor: self.node.to_string(),
            resource_type: "gateway".to_owned(),
            resource_id: name.to_owned(),
            event: None,
            detail: json!({"before": before, "after": after, "misses": misses}),
        })
    }

    async fn audit_health_changes(self: &Arc<Self>, changed: Vec<Entry>) {
        if changed.is_empty() {
            return;
        }
        if let Err(error) = self.store.record(self.node, changed).await {
            tracing::warn!(%error, "a change of health could not be recorded");
        }
        self.wake(self.trust.waiters.take_all());
    }

    /// Probes a gateway: the inner `None` means no answer, the outer `None` that this node
    /// has no adapter for it.
    async fn probe_gateway(&self, name: &str) -> Option<Option<Health>> {
        let rules = self.trust.rules();
        let row = rules.fabric.gateways.get(name);
        let provider = row.map(|row| row.provider.as_str()).unwrap_or_default();
        // A local gateway without a URL is as healthy as this process.
        if provider.is_empty() && row.is_none_or(|row| row.url.is_none()) {
            return Some(Some(Health::Healthy));
        }
        let adapter = self.agents.at(provider, row.map(|row| (name, row)))?;
        let patience = Duration::from_millis(HEALTH_TIMEOUT_MS);
        Some(match tokio::time::timeout(patience, adapter.health()).await {
            Ok(Answered::Healthy) => Some(Health::Healthy),
            Ok(Answered::Degraded) => Some(Health::Degraded),
            Ok(Answered::Offline) | Err(_) => None,
        })
    }

    /// Records that an agent's trial has expired, one agent at a time, since each change
    /// leads to another refresh. The gates check the expiry themselves; the row is for
    /// readers of the registry.
    async fn end_trials(&self) {
        let rules = self.trust.rules();
        let now_ms = self.clock.now_ms();
        let mut over = rules.fabric.agents.iter().filter(|(_, agent)| {
            agent.phase == Phase::Poc && agent.phase_at(now_ms) == Phase::Sunset
        });
        let Some((name, agent)) = over.next() else { return };
        // The audit entry needs the digest of the stored row.
        let stored = match self.store.registry(None).await {
            Ok(stored) => stored,
            Err(error) => {
                tracing::warn!(%error, agent = name, "the end of a trial could not be recorded");
                return;
            }
        };
        let before = rows::find(&stored.rows, Kind::Agent, name).map(|row| rows::digest(&row.body));
        let mut after = agent.clone();
        after.phase = Phase::Sunset;
        after.phase_since_ms = Some(now_ms);
        let body = serde_json::to_value(&after).unwrap_or_default();
        let entry = Entry {
            at_ms: now_ms,
            category: "lifecycle",
            what: "agent_trial_ended".to_owned(),
            actor: self.node.to_string(),
            resource_type: "agent".to_owned(),
            resource_id: name.clone(),
            event: None,
            detail: json!({
                "phase_since_ms": agent.phase_since_ms,
                rows::BEFORE_DIGEST: before,
                rows::AFTER_DIGEST: rows::digest(&body),
            }),
        };
        let change = Change {
            expect: Some(rules.fabric.epoch),
            put: vec![Row { kind: Kind::Agent, name: name.clone(), body }],
            remove: Vec::new(),
            node: self.node,
            entries: vec![entry],
        };
        // Another node may have recorded it first; the next sweep tries the rest.
        if let Err(error) = self.store.change(change).await {
            tracing::warn!(%error, agent = name, "the end of a trial could not be recorded");
        }
    }
}
