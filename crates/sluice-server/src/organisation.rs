//! One organisation as the server holds it: its service and caches of its rows.

use crate::auth::identities::Identities;
use crate::limits::{IDENTITIES_STALE_MS, STARTS_MAX};
use crate::ready::Readiness;
use crate::repeats::Repeats;
use crate::service::Service;
use sluice_bridge::secret::keyring::NamedSecret;
use sluice_bridge::secret::{NoSecret, Secret};
use sluice_bridge::token::DispatchKey;
use sluice_core::evidence::key::PublicKey;
use sluice_core::port::ledger::{Entry, ROLLED_BACK, Rows};
use sluice_core::port::store::StoreError;
use sluice_engine::start::Start;
use sluice_govern::registry::Hook;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// An organisation: its name, its service, and caches of what requests need most.
pub struct Organisation {
    name: String,
    service: Service,
    identities: Mutex<Arc<Identities>>,
    /// When the rows were last checked for changes.
    looked_at_ms: AtomicU64,
    rows: Mutex<Arc<Rows>>,
    starts: Mutex<PreparedStarts>,
    keys: Vec<PublicKey>,
    default_agent: Option<String>,
    dispatch_key: Option<DispatchKey>,
    readiness: Readiness,
    /// The epoch of the tokens. A stream that waits on it ends when its token ends.
    changed: watch::Sender<u64>,
    repeats: Repeats,
    /// Secrets of inbound webhooks as they were last read, with their references.
    webhook_secrets: Mutex<BTreeMap<String, (NamedSecret, Secret)>>,
}

/// Workflows that were prepared under one epoch of the registry, by reference.
#[derive(Default)]
struct PreparedStarts {
    epoch: u64,
    by_reference: BTreeMap<String, Start>,
}

/// How the secret of an inbound webhook is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretReading {
    /// From its source: it may have changed.
    Fresh,
    /// From the cache, without access to files or variables.
    Cached,
}

impl Organisation {
    /// Reads the organisation's rows and tokens from its store.
    pub async fn open(name: &str, service: Service) -> Result<Organisation, StoreError> {
        let rows = service.store.registry(None).await?;
        report(name, &rows);
        let identities = Identities::read(rows.epoch, &rows.rows);
        let changed = watch::Sender::new(rows.epoch);
        Ok(Organisation {
            name: name.to_owned(),
            service,
            identities: Mutex::new(Arc::new(identities)),
            looked_at_ms: AtomicU64::new(0),
            starts: Mutex::default(),
            rows: Mutex::new(Arc::new(rows)),
            keys: Vec::new(),
            default_agent: None,
            dispatch_key: None,
            readiness: Readiness::default(),
            changed,
            repeats: Repeats::default(),
            webhook_secrets: Mutex::default(),
        })
    }

    /// Sets the public keys that verify the seals of this organisation.
    #[must_use]
    pub fn with_keys(mut self, keys: Vec<PublicKey>) -> Organisation {
        self.keys = keys;
        self
    }

    /// Sets the agent of steps that name none, used when a start request names none either.
    #[must_use]
    pub fn with_default_agent(mut self, agent: Option<String>) -> Organisation {
        self.default_agent = agent;
        self
    }

    /// The agent of steps that name none, used when a start request names none either.
    pub fn default_agent(&self) -> Option<&str> {
        self.default_agent.as_deref()
    }

    /// Sets the key that signs the tokens of dispatches.
    #[must_use]
    pub fn with_dispatch_key(mut self, key: DispatchKey) -> Organisation {
        self.dispatch_key = Some(key);
        self
    }

    /// The key that signs the tokens of dispatches.
    pub fn dispatch_key(&self) -> Option<&DispatchKey> {
        self.dispatch_key.as_ref()
    }

    /// The public keys that verify the seals of this organisation.
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// The name that operators gave the organisation.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The result of the last readiness probe of its store.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// The operations on this organisation's runs and rows.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// The secret that signs requests to an inbound webhook. Cached, it is `None` if the
    /// row names another secret by now.
    pub(crate) fn webhook_secret(
        &self,
        name: &str,
        hook: &Hook,
        reading: SecretReading,
    ) -> Result<Option<Secret>, NoSecret> {
        let key = self.service.secrets.of_row(&hook.secret, hook.operator_secret);
        if reading == SecretReading::Cached {
            let cached = locked(&self.webhook_secrets);
            let same = cached.get(name).filter(|(of, _)| *of == key);
            return Ok(same.map(|(_, secret)| secret.clone()));
        }
        let secret = key.read()?;
        locked(&self.webhook_secrets).insert(name.to_owned(), (key, secret.clone()));
        Ok(Some(secret))
    }

    /// Its tokens, as this process last read them.
    pub fn identities(&self) -> Arc<Identities> {
        Arc::clone(&locked(&self.identities))
    }

    /// Checks whether tokens have changed, at most once in `IDENTITIES_STALE_MS`.
    pub async fn refresh(&self, now_ms: u64) {
        let last = self.looked_at_ms.load(Ordering::Acquire);
        if now_ms.abs_diff(last) < IDENTITIES_STALE_MS {
            return;
        }
        self.looked_at_ms.store(now_ms, Ordering::Release);
        self.refresh_now().await;
    }

    /// Checks whether tokens have changed, however recent the last check is.
    pub async fn refresh_now(&self) {
        if let Err(error) = self.rows().await {
            tracing::warn!(%error, organisation = self.name, "tokens cannot be read");
        }
    }

    /// The current rows. They are read from the store only when their epoch has changed.
    pub async fn rows(&self) -> Result<Arc<Rows>, StoreError> {
        let counter = sluice_core::port::ledger::Counter::plain("registry");
        let epoch = self.service.store.counts(vec![counter]).await?;
        let known = Arc::clone(&locked(&self.rows));
        if epoch.first().is_some_and(|epoch| u64::try_from(*epoch) == Ok(known.epoch)) {
            return Ok(known);
        }
        let rows = Arc::new(self.service.store.registry(None).await?);
        let mut known = locked(&self.rows);
        // Of two concurrent reads the older may end last: it must not undo the newer.
        if known.epoch < rows.epoch {
            report(&self.name, &rows);
            *locked(&self.identities) = Arc::new(Identities::read(rows.epoch, &rows.rows));
            *known = Arc::clone(&rows);
            self.changed.send_replace(rows.epoch);
        }
        Ok(rows)
    }

    /// The rows as this process last read them.
    pub(crate) fn known_rows(&self) -> Arc<Rows> {
        Arc::clone(&locked(&self.rows))
    }

    /// A receiver that is notified whenever tokens may have changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Writes a refusal of a client to the audit. Repeated refusals of the same client are
    /// counted and written later, as one entry.
    pub(crate) async fn record_refusal(
        &self,
        client: &str,
        entry: Entry,
    ) -> Result<(), StoreError> {
        match self.repeats.note(client, entry) {
            Some(entry) => self.service.store.record(self.service.engine.node(), vec![entry]).await,
            None => Ok(()),
        }
    }

    /// Checks for changed tokens if any stream depends on one.
    pub(crate) async fn refresh_watched(&self, now_ms: u64) {
        if self.changed.receiver_count() > 0 {
            self.refresh(now_ms).await;
        }
    }

    /// Writes the repeated refusals of intervals that began before this time to the audit.
    pub(crate) async fn write_repeated(&self, began_before_ms: u64) {
        let ended = self.repeats.ended(began_before_ms);
        if ended.is_empty() {
            return;
        }
        if let Err(error) = self.service.store.record(self.service.engine.node(), ended).await {
            tracing::warn!(%error, "repeated refusals could not be written to the audit");
        }
    }

    /// A workflow that was prepared under this epoch, without arguments.
    pub(crate) fn prepared_start(&self, epoch: u64, reference: &str) -> Option<Start> {
        let starts = locked(&self.starts);
        if starts.epoch != epoch {
            return None;
        }
        starts.by_reference.get(reference).cloned()
    }

    /// Caches a prepared workflow until the registry changes.
    pub(crate) fn cache_start(&self, epoch: u64, reference: &str, start: Start) {
        let mut starts = locked(&self.starts);
        if starts.epoch != epoch || starts.by_reference.len() >= STARTS_MAX {
            *starts = PreparedStarts { epoch, by_reference: BTreeMap::new() };
        }
        starts.by_reference.insert(reference.to_owned(), start);
    }
}

/// Logs rows that are not authentic. They are not used.
fn report(organisation: &str, rows: &Rows) {
    if rows.is_rolled_back {
        tracing::error!(organisation, "{ROLLED_BACK}; none is used");
        return;
    }
    for (kind, name) in &rows.foreign {
        tracing::error!(organisation, kind, name, "a row is not authentic and is not used");
    }
}

fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().expect("no thread panics while it holds the lock")
}
