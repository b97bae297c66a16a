//! One organisation as the server holds it.

use crate::auth::identities::Identities;
use crate::limits::{IDENTITIES_STALE_MS, STARTS_MAX};
use crate::ready::Readiness;
use crate::repeats::Repeats;
use crate::service::Service;
use sluice_bridge::secret::keyring::NamedSecret;
use sluice_bridge::secret::{NoSecret, Secret};
use sluice_bridge::token::DispatchKey;
use sluice_core::evidence::key::PublicKey;
use sluice_core::port::ledger::{Entry, Rows};
use sluice_core::port::store::StoreError;
use sluice_engine::start::Start;
use sluice_govern::registry::Hook;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// An organisation: its name, its service, and copies of what is asked for all
/// the time.
pub struct House {
    name: String,
    service: Service,
    identities: Mutex<Arc<Identities>>,
    looked_at_ms: AtomicU64,
    rows: Mutex<Arc<Rows>>,
    starts: Mutex<(u64, BTreeMap<String, Start>)>,
    keys: Vec<PublicKey>,
    default_agent: Option<String>,
    dispatch_key: Option<DispatchKey>,
    readiness: Readiness,
    /// The epoch of the tokens, for streams that must end with theirs.
    changed: watch::Sender<u64>,
    repeats: Repeats,
    /// Secrets of hooks as they were last read, with where.
    hook_secrets: Mutex<BTreeMap<String, (NamedSecret, Secret)>>,
}

/// Whether a hook's secret may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretReading {
    /// It is read anew: it may have been changed.
    Anew,
    /// As it was last read.
    Kept,
}

impl House {
    /// Opens an organisation.
    pub async fn open(name: &str, service: Service) -> Result<House, StoreError> {
        let rows = service.store.registry(None).await?;
        report(name, &rows);
        let identities = Identities::read(rows.epoch, &rows.rows);
        let changed = watch::Sender::new(rows.epoch);
        Ok(House {
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
            hook_secrets: Mutex::default(),
        })
    }

    /// With the public keys that its seals are believed by.
    #[must_use]
    pub fn with_keys(mut self, keys: Vec<PublicKey>) -> House {
        self.keys = keys;
        self
    }

    /// With somebody who does steps that name nobody, where a start does not say.
    #[must_use]
    pub fn with_default_agent(mut self, agent: Option<String>) -> House {
        self.default_agent = agent;
        self
    }

    /// Who does steps that name nobody, where a start does not say.
    pub fn default_agent(&self) -> Option<&str> {
        self.default_agent.as_deref()
    }

    /// With the key that the tokens of its dispatches are made with.
    #[must_use]
    pub fn with_dispatch_key(mut self, key: DispatchKey) -> House {
        self.dispatch_key = Some(key);
        self
    }

    /// The key that the tokens of its dispatches are made with.
    pub fn dispatch_key(&self) -> Option<&DispatchKey> {
        self.dispatch_key.as_ref()
    }

    /// The public keys that its seals are believed by.
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its store takes work.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// What can be asked of it.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// What requests to a hook are signed with.
    pub fn hook_secret(
        &self,
        name: &str,
        hook: &Hook,
        reading: SecretReading,
    ) -> Result<Option<Secret>, NoSecret> {
        let key = self.service.secrets.of_row(&hook.secret, hook.operator_secret);
        if reading == SecretReading::Kept {
            let kept = held(&self.hook_secrets);
            let same = kept.get(name).filter(|(of, _)| *of == key);
            return Ok(same.map(|(_, secret)| secret.clone()));
        }
        let secret = key.read()?;
        held(&self.hook_secrets).insert(name.to_owned(), (key, secret.clone()));
        Ok(Some(secret))
    }

    /// Its tokens, as far as is known here.
    pub fn identities(&self) -> Arc<Identities> {
        Arc::clone(&held(&self.identities))
    }

    /// Looks whether tokens have changed, unless that was done just now.
    pub async fn refresh(&self, now_ms: u64) {
        let last = self.looked_at_ms.load(Ordering::Acquire);
        if now_ms.abs_diff(last) < IDENTITIES_STALE_MS {
            return;
        }
        self.looked_at_ms.store(now_ms, Ordering::Release);
        self.refresh_now().await;
    }

    /// The same, however short ago it was done.
    pub async fn refresh_now(&self) {
        if let Err(error) = self.rows().await {
            tracing::warn!(%error, organisation = self.name, "tokens cannot be looked up");
        }
    }

    /// The rows as they are, read again only when they have changed.
    pub async fn rows(&self) -> Result<Arc<Rows>, StoreError> {
        let counter = sluice_core::port::ledger::Counter::plain("registry");
        let epoch = self.service.store.counts(vec![counter]).await?;
        let known = Arc::clone(&held(&self.rows));
        if epoch.first().is_some_and(|epoch| u64::try_from(*epoch) == Ok(known.epoch)) {
            return Ok(known);
        }
        let rows = Arc::new(self.service.store.registry(None).await?);
        let mut known = held(&self.rows);
        // Of two reads at once the older may end last: it must not undo the newer.
        if known.epoch < rows.epoch {
            report(&self.name, &rows);
            *held(&self.identities) = Arc::new(Identities::read(rows.epoch, &rows.rows));
            *known = Arc::clone(&rows);
            self.changed.send_replace(rows.epoch);
        }
        Ok(rows)
    }

    /// The rows as they were when they were last read.
    pub fn known_rows(&self) -> Arc<Rows> {
        Arc::clone(&held(&self.rows))
    }

    /// Changes whenever tokens may have changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Writes to the audit that a client was refused. What the same client repeats
    /// is counted, and written later as one entry.
    pub async fn refused(&self, client: &str, entry: Entry) -> Result<(), StoreError> {
        match self.repeats.note(client, entry) {
            Some(entry) => self.service.store.record(self.service.engine.node(), vec![entry]).await,
            None => Ok(()),
        }
    }

    /// Reads tokens again if streams are read with them.
    pub async fn refresh_watched(&self, now_ms: u64) {
        if self.changed.receiver_count() > 0 {
            self.refresh(now_ms).await;
        }
    }

    /// Writes what was refused repeatedly to the audit, where that began before.
    pub async fn write_repeated(&self, began_before_ms: u64) {
        let ended = self.repeats.ended(began_before_ms);
        if ended.is_empty() {
            return;
        }
        if let Err(error) = self.service.store.record(self.service.engine.node(), ended).await {
            tracing::warn!(%error, "repeated refusals could not be written to the audit");
        }
    }

    /// A workflow that was made ready under this epoch, without arguments.
    pub fn ready(&self, epoch: u64, workflow: &str) -> Option<Start> {
        let starts = held(&self.starts);
        if starts.0 != epoch {
            return None;
        }
        starts.1.get(workflow).cloned()
    }

    /// Keeps a workflow ready while the registry stays as it is.
    pub fn keep(&self, epoch: u64, workflow: &str, ready: Start) {
        let mut starts = held(&self.starts);
        if starts.0 != epoch || starts.1.len() >= STARTS_MAX {
            *starts = (epoch, BTreeMap::new());
        }
        starts.1.insert(workflow.to_owned(), ready);
    }
}

/// Names rows that are not authentic. They are not used.
fn report(organisation: &str, rows: &Rows) {
    for (kind, name) in &rows.foreign {
        tracing::error!(organisation, kind, name, "a row is not authentic and is not used");
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().expect("nobody panics while holding it")
}
