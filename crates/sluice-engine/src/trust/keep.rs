//! How what this process knows is kept up to date.

use super::rules::{Rules, RulesError};
use super::{PolicySource, Trust, View, held};
use crate::engine::Inner;
use crate::mail::Mail;
use futures_util::future::join_all;
use serde_json::json;
use sluice_core::port::adapter::Health as Answered;
use sluice_core::port::authority::Patience;
use sluice_core::port::ledger::{Change, Counter, Entry};
use sluice_core::port::store::{Guard, Store, StoreError};
use sluice_core::rows;
use sluice_core::run::id::RunId;
use sluice_core::run::state::Run;
use sluice_govern::account::{self, Name};
use sluice_govern::registry::{Gateway, Health, Kind, Phase, Row};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::Notify;

/// How often gateways are looked at.
const PULSE_MS: u64 = 60_000;
/// The same while one does not answer: whether it is gone is soon known.
const DOUBT_MS: u64 = 5000;
/// How long a gateway may take to say how it is.
const PULSE_PATIENCE_MS: u64 = 5000;

impl Trust {
    /// Reads everything there is.
    pub(crate) async fn open(
        store: &dyn Store,
        source: PolicySource,
        implied: Gateway,
        patience: Patience,
    ) -> Result<Result<Trust, RulesError>, StoreError> {
        let rows = store.registry(None).await?;
        let rules = match Rules::read(&rows, &source, &implied, None) {
            Ok(rules) => rules,
            Err(error) => return Ok(Err(error)),
        };
        let trust = Trust {
            rules: Mutex::new(Arc::new(rules)),
            counts: super::Counts::default(),
            pulse: super::Pulse::default(),
            waiters: super::Waiters::default(),
            recall: super::Recall::default(),
            source,
            implied,
            doubt: Notify::new(),
            refused: Mutex::default(),
            patience,
        };
        trust.refresh(store, trust.standing_counters(), 0).await?;
        trust.look_back(store).await?;
        Ok(Ok(trust))
    }

    /// Counters that do not belong to one run: of agents and envelopes.
    fn standing_counters(&self) -> Vec<Counter> {
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

    /// Whether the newest rules cannot be used.
    pub(crate) fn is_refused(&self) -> bool {
        let epoch = self.rules().fabric.epoch;
        held(&self.refused).as_ref().is_some_and(|(refused, _)| *refused > epoch)
    }

    /// Asks the store what counters are.
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

    /// Asks for what a run that comes into memory has used of its own caps.
    pub(crate) async fn prepare(
        &self,
        store: &dyn Store,
        run: &Run,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        let accounts = run.own_accounts();
        let counters = accounts.iter().flat_map(|name| {
            let told = account::THRESHOLDS.map(|percent| account::told(name, percent));
            [account::held(name), account::spent(name), account::over(name)].into_iter().chain(told)
        });
        self.refresh(store, counters.map(Counter::plain).collect(), now_ms).await
    }

    /// A counter was not what it was believed to be.
    pub(crate) fn corrected(&self, counter: &str, count: i64, now_ms: u64) {
        self.counts.learn([(counter, count)].into_iter(), now_ms);
    }

    /// An append is durable: its counters are known, and what it gave back is free.
    /// Answers whom to wake.
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

    /// Notes for whom a run waits, if it waits at a gate.
    pub(crate) fn stands_in_line(&self, run: &Run) {
        for (agent, _) in run.gated() {
            self.waiters.add(agent, run.id);
        }
    }

    /// The last changes of a gateway's health.
    pub(crate) fn health(&self, gateway: &str) -> (Health, Vec<(u64, Health)>) {
        (self.pulse.health(gateway), self.pulse.history(gateway))
    }
}

impl Inner {
    /// What a turn sees of governance.
    pub(crate) fn view(&self, now_ms: u64) -> View<'_> {
        self.view_under(self.trust.rules(), now_ms)
    }

    /// The same under rules that were read before.
    pub(crate) fn view_under(&self, rules: Arc<Rules>, now_ms: u64) -> View<'_> {
        let view = View::new(rules, &self.trust, &self.agents, now_ms);
        #[cfg(feature = "sabotage")]
        let view = view.unasked(self.config.sabotage.unasked);
        view
    }

    /// Reads the rows again if they have changed. Rules that cannot be read
    /// leave those before in force for what they were decided under: every
    /// dispatch is refused by its guard until they can.
    pub(crate) async fn refresh_rules(self: &Arc<Self>) -> Result<(), StoreError> {
        let before = self.trust.rules();
        let rows = self.store.registry(None).await?;
        if rows.epoch == before.fabric.epoch {
            return Ok(());
        }
        let known = held(&self.trust.refused).clone().filter(|(epoch, _)| *epoch == rows.epoch);
        let read = match known {
            Some((_, error)) => Err(error),
            None => Rules::read(&rows, &self.trust.source, &self.trust.implied, Some(&before)),
        };
        match read {
            Ok(rules) => {
                self.trust.replace_rules(rules);
                self.look_at_changed(&before);
                let now_ms = self.clock.now_ms();
                let counters = self.trust.standing_counters();
                self.trust.refresh(&*self.store, counters, now_ms).await?;
                self.trust.look_back(&*self.store).await?;
                self.wake(self.trust.waiters.take_all());
            }
            Err(error) => {
                tracing::error!(%error, "the new rules are refused; nothing is dispatched");
                self.troubled(&error.to_string());
                *held(&self.trust.refused) = Some((rows.epoch, error.clone()));
                return Err(StoreError::Unavailable(error.to_string()));
            }
        }
        Ok(())
    }

    /// Reads the rows again if the store has newer ones than `rules`; whether it had.
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
            match self.resident(run) {
                Some(sender) => {
                    // A full mailbox leads to a turn anyway.
                    let _ = sender.try_send(Mail::Look);
                }
                None if self.is_ours_to_wake(run) => {
                    let engine = Arc::clone(self);
                    self.spawn(async move { engine.mail(run, Mail::Look).await });
                }
                None => {}
            }
        }
    }

    /// Looks whether what runs wait for at gates in other processes is free now.
    pub(crate) async fn look_at_gates(self: &Arc<Self>) -> Result<(), StoreError> {
        self.has_newer_rules(&self.trust.rules()).await?;
        self.end_trials().await;
        self.trust.look_back(&*self.store).await?;
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

    /// Looks at every gateway, again and again.
    pub(crate) async fn take_pulses(self: Arc<Self>) {
        loop {
            self.take_pulse().await;
            let pause_ms = if self.trust.pulse.is_doubtful() { DOUBT_MS } else { PULSE_MS };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = self.trust.doubt.notified() => {}
                () = tokio::time::sleep(Duration::from_millis(pause_ms)) => {}
            }
        }
    }

    async fn take_pulse(self: &Arc<Self>) {
        let names = self.trust.rules().fabric.gateways.keys().cloned().collect();
        self.look_at(names).await;
    }

    /// Looks at gateways, all at once: one that is gone holds up no other.
    async fn look_at(self: &Arc<Self>, names: Vec<String>) {
        let answers = join_all(names.iter().map(|name| self.pulse_of(name))).await;
        let mut changed = Vec::new();
        for (name, answer) in names.iter().zip(answers) {
            let now_ms = self.clock.now_ms();
            let found = match answer {
                Some(found) => found,
                None => match self.trust.pulse.heard(name, now_ms) {
                    Some(heard) => Some(heard),
                    None => {
                        // Others may be able to speak to it: nothing happened to it.
                        self.trust.pulse.note(name, Some(Health::Offline), now_ms);
                        continue;
                    }
                },
            };
            changed.extend(self.note_health(name, found, now_ms));
        }
        self.tell_of_health(changed).await;
    }

    /// Lets all gateways be looked at if some are new, or others than they were.
    fn look_at_changed(self: &Arc<Self>, before: &Rules) {
        let rules = self.trust.rules();
        let gateways = rules.fabric.gateways.iter();
        let changed = gateways.filter(|(name, row)| before.fabric.gateways.get(*name) != Some(row));
        let changed: Vec<String> = changed.map(|(name, _)| name.clone()).collect();
        if changed.is_empty() {
            return;
        }
        self.trust.pulse.forget(&changed);
        self.trust.doubt.notify_one();
    }

    /// A gateway said how it is.
    pub(crate) async fn heard(self: &Arc<Self>, name: &str, health: Health) {
        let now_ms = self.clock.now_ms();
        self.trust.pulse.hear(name, health, now_ms);
        // One that can be asked is asked: what it says of itself comes second.
        let found = self.pulse_of(name).await.unwrap_or(Some(health));
        let changed = self.note_health(name, found, now_ms);
        self.tell_of_health(changed.into_iter().collect()).await;
    }

    /// Notes how a gateway is; an entry for the audit if that is news.
    fn note_health(&self, name: &str, found: Option<Health>, now_ms: u64) -> Option<Entry> {
        let (before, after) = self.trust.pulse.note(name, found, now_ms)?;
        let misses = self.trust.pulse.misses(name);
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

    async fn tell_of_health(self: &Arc<Self>, changed: Vec<Entry>) {
        if changed.is_empty() {
            return;
        }
        if let Err(error) = self.store.record(self.node, changed).await {
            tracing::warn!(%error, "a change of health could not be recorded");
        }
        self.wake(self.trust.waiters.take_all());
    }

    /// How a gateway is, if it answers; none if nobody here can speak to it.
    async fn pulse_of(&self, name: &str) -> Option<Option<Health>> {
        let rules = self.trust.rules();
        let row = rules.fabric.gateways.get(name);
        let provider = row.map(|row| row.provider.as_str()).unwrap_or_default();
        // What is in this process and speaks to nothing is as well as the process.
        if provider.is_empty() && row.is_none_or(|row| row.url.is_none()) {
            return Some(Some(Health::Healthy));
        }
        let adapter = self.agents.at(provider, row.map(|row| (name, row)))?;
        let patience = Duration::from_millis(PULSE_PATIENCE_MS);
        Some(match tokio::time::timeout(patience, adapter.health()).await {
            Ok(Answered::Healthy) => Some(Health::Healthy),
            Ok(Answered::Degraded) => Some(Health::Degraded),
            Ok(Answered::Offline) | Err(_) => None,
        })
    }

    /// Writes down that a trial is over whose time has run out: one at a time,
    /// since each change brings us back here. The gates know by themselves; this
    /// is for those who look at the rows.
    async fn end_trials(&self) {
        let rules = self.trust.rules();
        let now_ms = self.clock.now_ms();
        let mut over = rules.fabric.agents.iter().filter(|(_, agent)| {
            agent.phase == Phase::Poc && agent.phase_at(now_ms) == Phase::Sunset
        });
        let Some((name, agent)) = over.next() else { return };
        // Of what is stored: that is what the audit chains.
        let there = match self.store.registry(None).await {
            Ok(there) => there,
            Err(error) => {
                tracing::warn!(%error, agent = name, "the end of a trial could not be recorded");
                return;
            }
        };
        let before = rows::find(&there.rows, Kind::Agent, name).map(|row| rows::digest(&row.body));
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
        // Another process may have been first; what is left is found next time.
        if let Err(error) = self.store.change(change).await {
            tracing::warn!(%error, agent = name, "the end of a trial could not be recorded");
        }
    }
}
