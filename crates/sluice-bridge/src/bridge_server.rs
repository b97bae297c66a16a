//! The bridge process: it executes dispatches for an engine on another machine and sends the
//! results back.
//!
//! `routes` serves the HTTP API, `dispatch_table` holds the known dispatches, `work` executes
//! one dispatch, `dispatch_call` implements the adapter's `Call`, `outbox` sends parts of
//! answers to the engine, `spool` persists dispatches and results, `deliver` sends results to
//! the engine, `events` streams events to subscribers, `accept` accepts connections,
//! `registration` sends heartbeats to the engine.
//!
//! INVARIANT: a dispatch is durable before the bridge acknowledges it, and its result is
//! durable before the bridge reports it. A computed result is delivered, after a restart if
//! necessary, until the engine accepts it or a day has passed.
//!
//! The spool does not record process groups. A process group that outlives a killed bridge is
//! therefore not found again.

mod accept;
mod deliver;
mod dispatch_call;
mod dispatch_table;
mod events;
mod outbox;
mod problem;
pub mod registration;
mod routes;
mod spool;
#[cfg(test)]
pub(crate) mod test_bridge;
#[cfg(test)]
mod tests;
mod work;

use crate::limits::{
    CANCEL_GRACE_MS, DELIVERIES_MAX, DRAIN_MS, GIVEN_UP_KEPT_MS, HEALTH_KEPT_MS, HEALTH_MS,
    RUNNING_MAX, TIDY_MS, TOMBSTONE_MS,
};
use crate::outbound::Outbound;
use crate::protocol::callback::{CallbackBody, ExecutedDispatch};
use crate::secret::Secret;
pub use deliver::DeliverySchedule;
use dispatch_table::DispatchTable;
use events::EventHub;
use reqwest::Url;
use sluice_core::port::Clock;
use sluice_core::port::adapter::{Adapter, Answer, CallErrorCode, Health, Usage};
use spool::Spool;
use spool::record::{SpoolRecord, SpoolState};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Adapters of this bridge, by the name that a dispatch uses as `provider`.
pub type Adapters = BTreeMap<String, Arc<dyn Adapter>>;

/// Configuration of a bridge.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Name of the gateway that the bridge serves.
    pub gateway: String,
    /// Id of this process; see [`registration::instance_id`].
    pub instance_id: String,
    /// Key that an engine must send to the bridge.
    pub key: Secret,
    /// Token that the bridge sends to the engine.
    pub token: Secret,
    /// Directory of the spool: dispatches and results that are not finished.
    pub spool: PathBuf,
    /// Servers that may receive results. The bridge sends its token to no other server.
    pub servers: Vec<Url>,
    /// Limit of dispatches that run at the same time.
    pub running_max: usize,
    /// Retry schedule of result deliveries.
    pub pace: DeliverySchedule,
    /// Time that cancelled work has to end by itself.
    pub grace: Duration,
    /// Time that running work has to finish when the bridge stops.
    pub drain: Duration,
}

impl Settings {
    /// Settings with the default limits. The key equals the token.
    pub fn new(gateway: &str, token: Secret, spool: PathBuf, server: Url) -> Settings {
        Settings {
            gateway: gateway.to_owned(),
            instance_id: String::new(),
            key: token.clone(),
            token,
            spool,
            servers: vec![server],
            running_max: RUNNING_MAX,
            pace: DeliverySchedule::default(),
            grace: Duration::from_millis(CANCEL_GRACE_MS),
            drain: Duration::from_millis(DRAIN_MS),
        }
    }
}

/// Opening a bridge failed.
#[derive(Debug, thiserror::Error)]
pub enum BridgeOpenError {
    /// The spool directory cannot be opened, read or written.
    #[error("the spool `{0}` cannot be used: {1}")]
    Spool(String, std::io::Error),
}

/// A running bridge. Clones share it.
#[derive(Debug, Clone)]
pub struct BridgeServer(Arc<Inner>);

struct Inner {
    settings: Settings,
    adapters: Adapters,
    outbound: Arc<Outbound>,
    clock: Arc<dyn Clock>,
    spool: Spool,
    dispatches: DispatchTable,
    hub: Arc<EventHub>,
    /// Permits for running work; `deliveries` has those for deliveries in flight.
    running: Arc<Semaphore>,
    deliveries: Semaphore,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Fires when the drain time is over: remaining work is dropped.
    gone: CancellationToken,
    health: Mutex<Option<(Instant, BTreeMap<String, Health>)>>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BridgeServer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl BridgeServer {
    /// Opens the bridge: recovers what the previous process left in the spool and starts to
    /// deliver its results.
    pub async fn open(
        settings: Settings,
        adapters: Adapters,
        outbound: Arc<Outbound>,
        clock: Arc<dyn Clock>,
    ) -> Result<BridgeServer, BridgeOpenError> {
        let name = settings.spool.display().to_string();
        let bad = |error| BridgeOpenError::Spool(name.clone(), error);
        let (spool, found) = Spool::open(&settings.spool).map_err(bad)?;
        if found.aside > 0 {
            tracing::warn!(files = found.aside, "moved unreadable files of the spool aside");
        }
        let inner = Arc::new(Inner {
            running: Arc::new(Semaphore::new(settings.running_max)),
            deliveries: Semaphore::new(DELIVERIES_MAX),
            settings,
            adapters,
            outbound,
            clock,
            spool,
            dispatches: DispatchTable::default(),
            hub: Arc::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            gone: CancellationToken::new(),
            health: Mutex::default(),
        });
        inner.recover(found.records).await.map_err(bad)?;
        inner.tasks.spawn(expire_records(Arc::clone(&inner)));
        Ok(BridgeServer(inner))
    }

    /// Serves requests until [`stop`](Self::stop); then running work has the drain time to
    /// finish.
    pub async fn serve(&self, listener: TcpListener) {
        let connections = accept::serve(Arc::clone(&self.0), listener).await;
        self.0.tasks.close();
        let all = async {
            self.0.tasks.wait().await;
            connections.wait().await;
        };
        if tokio::time::timeout(self.0.settings.drain, all).await.is_err() {
            tracing::warn!(
                left = self.0.tasks.len(),
                "some work did not finish within the drain time"
            );
            // The next process reports it as crashed.
            self.0.gone.cancel();
            self.0.tasks.wait().await;
        }
    }

    /// Stops accepting work.
    pub fn stop(&self) {
        self.0.stop.cancel();
    }

    /// Health of all adapters together.
    pub async fn health(&self) -> Health {
        overall_health(&self.0.health().await)
    }
}

impl Inner {
    /// Recovers what the previous process left in the spool. Work that was running died
    /// with that process: its cost is unknown.
    async fn recover(
        self: &Arc<Self>,
        found: Vec<(crate::protocol::DispatchHash, SpoolRecord)>,
    ) -> std::io::Result<()> {
        let crashed = found.iter().filter(|(_, record)| record.state == SpoolState::Accepted);
        let crashed = crashed.map(|(key, record)| async move {
            let now_ms = self.clock.now_ms();
            let record = record.clone().finished(crash_result(record, now_ms), Vec::new(), now_ms);
            self.spool.write(*key, &record).await
        });
        let crashed: Vec<_> = crashed.collect();
        for written in futures_util::future::join_all(crashed).await {
            written?;
        }
        for (key, mut record) in found {
            if record.state == SpoolState::Accepted {
                (record.state, record.at_ms) = (SpoolState::Finished, self.clock.now_ms());
            }
            self.dispatches.record(key, record.state, record.at_ms);
            if record.state == SpoolState::Finished {
                self.tasks.spawn(deliver::deliver(Arc::clone(self), record));
            }
        }
        Ok(())
    }

    /// Health of each adapter, cached for `HEALTH_KEPT_MS`.
    async fn health(&self) -> BTreeMap<String, Health> {
        let held = || self.health.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Duration::from_millis(HEALTH_KEPT_MS);
        if let Some((at, health)) = &*held()
            && at.elapsed() < fresh
        {
            return health.clone();
        }
        let asked = self.adapters.iter().map(|(name, adapter)| async move {
            let patience = Duration::from_millis(HEALTH_MS);
            let health = tokio::time::timeout(patience, adapter.health()).await;
            (name.clone(), health.unwrap_or(Health::Offline))
        });
        let health: BTreeMap<_, _> =
            futures_util::future::join_all(asked).await.into_iter().collect();
        *held() = Some((Instant::now(), health.clone()));
        health
    }
}

/// Healthy or offline if all adapters are; otherwise degraded.
fn overall_health(adapters: &BTreeMap<String, Health>) -> Health {
    let is = |health| adapters.values().all(|one| *one == health);
    match () {
        () if is(Health::Healthy) => Health::Healthy,
        () if is(Health::Offline) => Health::Offline,
        () => Health::Degraded,
    }
}

/// Result of work that died with its process.
fn crash_result(record: &SpoolRecord, now_ms: u64) -> CallbackBody {
    let worked = ExecutedDispatch {
        run: record.run(),
        step: &record.step,
        dispatch_no: record.dispatch_no,
        from_ms: record.begun_ms,
        to_ms: now_ms,
    };
    let message = "the bridge stopped while it worked on this dispatch";
    let answer = Answer::failed(CallErrorCode::AdapterCrash, message);
    CallbackBody::new(worked, Answer { usage: Usage::unknown(), ..answer })
}

/// Removes expired records from the spool until the bridge stops.
async fn expire_records(inner: Arc<Inner>) {
    loop {
        tokio::select! {
            () = inner.stop.cancelled() => return,
            () = tokio::time::sleep(Duration::from_millis(TIDY_MS)) => {}
        }
        inner.remove_expired().await;
    }
}

impl Inner {
    async fn remove_expired(&self) {
        let now_ms = self.clock.now_ms();
        let old = |state, at_ms: u64| match state {
            SpoolState::Delivered => now_ms.saturating_sub(at_ms) > TOMBSTONE_MS,
            SpoolState::GivenUp => now_ms.saturating_sub(at_ms) > GIVEN_UP_KEPT_MS,
            SpoolState::Accepted | SpoolState::Finished => false,
        };
        for key in self.dispatches.expired(old) {
            // Stays in the table until the file is gone, so that a resent dispatch
            // does not start in between.
            if let Err(error) = self.spool.remove(key).await {
                tracing::warn!(%error, "cannot remove an expired file from the spool");
                return;
            }
            self.dispatches.remove(key);
        }
    }
}
