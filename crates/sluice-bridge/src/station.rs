//! A bridge: a process of its own that does the work of dispatches for an engine
//! elsewhere, and brings the results back.
//!
//! `door` takes requests, `book` knows which dispatches there are, `work` does one,
//! `line` is the adapter's end of it, `outbox` sends parts of answers to the engine,
//! `spool` remembers it all on a disk, `deliver` brings results to the engine, `events`
//! tells followers what goes on, `connect` takes connections, `registration` tells the
//! engine that it is there.
//!
//! INVARIANT: a dispatch is on the disk before it is answered for, and its result
//! before anybody is told. What was computed is delivered, by whichever life of the
//! process comes to it, until somebody has it or a day has passed.
//!
//! A process group that an adapter started is not journalled here: one that outlives
//! a killed bridge is not found again.

mod book;
mod connect;
mod deliver;
mod door;
mod events;
mod line;
mod outbox;
mod problem;
pub mod registration;
mod spool;
#[cfg(test)]
mod tests;
mod work;
#[cfg(test)]
pub(crate) mod world;

use crate::limits::{
    CANCEL_GRACE_MS, DELIVERIES_MAX, DRAIN_MS, GIVEN_UP_KEPT_MS, HEALTH_KEPT_MS, HEALTH_MS,
    RUNNING_MAX, TIDY_MS, TOMBSTONE_MS,
};
use crate::outbound::Outbound;
use crate::protocol::callback::{CallbackBody, Worked};
use crate::secret::Secret;
use book::Book;
pub use deliver::Pace;
use events::Hub;
use reqwest::Url;
use sluice_core::port::Clock;
use sluice_core::port::adapter::{Adapter, Answer, CallErrorCode, Health, Usage};
use spool::Spool;
use spool::kept::{Kept, State};
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

/// Who does work here, by the name that dispatches call it by.
pub type Adapters = BTreeMap<String, Arc<dyn Adapter>>;

/// How a station is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The gateway that it is.
    pub gateway: String,
    /// This life of it.
    pub instance_id: String,
    /// What an engine must show.
    pub key: Secret,
    /// What the engine is shown.
    pub token: Secret,
    /// Where dispatches and results are remembered.
    pub spool: PathBuf,
    /// Servers that results may be sent to: nobody else is shown the token.
    pub servers: Vec<Url>,
    /// Most dispatches that are worked on at once.
    pub running_max: usize,
    /// When results are sent.
    pub pace: Pace,
    /// How long work that was called off may take to end by itself.
    pub grace: Duration,
    /// How long work may go on when the station stops.
    pub drain: Duration,
}

impl Settings {
    /// The usual bounds.
    pub fn new(gateway: &str, token: Secret, spool: PathBuf, server: Url) -> Settings {
        Settings {
            gateway: gateway.to_owned(),
            instance_id: String::new(),
            key: token.clone(),
            token,
            spool,
            servers: vec![server],
            running_max: RUNNING_MAX,
            pace: Pace::default(),
            grace: Duration::from_millis(CANCEL_GRACE_MS),
            drain: Duration::from_millis(DRAIN_MS),
        }
    }
}

/// A station cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StationError {
    /// The directory cannot be used.
    #[error("the spool `{0}` cannot be used: {1}")]
    Spool(String, std::io::Error),
}

/// A bridge.
#[derive(Debug, Clone)]
pub struct Station(Arc<Inner>);

struct Inner {
    settings: Settings,
    adapters: Adapters,
    outbound: Arc<Outbound>,
    clock: Arc<dyn Clock>,
    spool: Spool,
    book: Book,
    hub: Arc<Hub>,
    /// Room for work, and for deliveries under way.
    running: Arc<Semaphore>,
    deliveries: Semaphore,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Fires when work may go on no longer.
    gone: CancellationToken,
    health: Mutex<Option<(Instant, BTreeMap<String, Health>)>>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Station").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Station {
    /// Opens a station: what an earlier life left is taken up, and its results
    /// are delivered from now on.
    pub async fn open(
        settings: Settings,
        adapters: Adapters,
        outbound: Arc<Outbound>,
        clock: Arc<dyn Clock>,
    ) -> Result<Station, StationError> {
        let name = settings.spool.display().to_string();
        let bad = |error| StationError::Spool(name.clone(), error);
        let (spool, found) = Spool::open(&settings.spool).map_err(bad)?;
        if found.aside > 0 {
            tracing::warn!(files = found.aside, "files in the spool cannot be read; set aside");
        }
        let inner = Arc::new(Inner {
            running: Arc::new(Semaphore::new(settings.running_max)),
            deliveries: Semaphore::new(DELIVERIES_MAX),
            settings,
            adapters,
            outbound,
            clock,
            spool,
            book: Book::default(),
            hub: Arc::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            gone: CancellationToken::new(),
            health: Mutex::default(),
        });
        inner.take_up(found.kept).await.map_err(bad)?;
        inner.tasks.spawn(tidy(Arc::clone(&inner)));
        Ok(Station(inner))
    }

    /// Serves until it is stopped; then what is under way may finish for a while.
    pub async fn serve(&self, listener: TcpListener) {
        let connections = connect::serve(Arc::clone(&self.0), listener).await;
        self.0.tasks.close();
        let all = async {
            self.0.tasks.wait().await;
            connections.wait().await;
        };
        if tokio::time::timeout(self.0.settings.drain, all).await.is_err() {
            tracing::warn!(left = self.0.tasks.len(), "some work did not end in time");
            // The next life says what became of it.
            self.0.gone.cancel();
            self.0.tasks.wait().await;
        }
    }

    /// Stops taking work.
    pub fn stop(&self) {
        self.0.stop.cancel();
    }

    /// Whether work can be done: all of it, some of it, none of it.
    pub async fn health(&self) -> Health {
        overall(&self.0.health().await)
    }
}

impl Inner {
    /// Takes up what an earlier life left. Work that was under way died with it:
    /// nobody knows what it cost.
    async fn take_up(
        self: &Arc<Self>,
        found: Vec<(crate::protocol::Key, Kept)>,
    ) -> std::io::Result<()> {
        let crashed = found.iter().filter(|(_, kept)| kept.state == State::Accepted);
        let crashed = crashed.map(|(key, kept)| async move {
            let now_ms = self.clock.now_ms();
            let kept = kept.clone().finished(crash(kept, now_ms), Vec::new(), now_ms);
            self.spool.write(*key, &kept).await
        });
        let crashed: Vec<_> = crashed.collect();
        for written in futures_util::future::join_all(crashed).await {
            written?;
        }
        for (key, mut kept) in found {
            if kept.state == State::Accepted {
                (kept.state, kept.at_ms) = (State::Finished, self.clock.now_ms());
            }
            self.book.keep(key, kept.state, kept.at_ms);
            if kept.state == State::Finished {
                self.tasks.spawn(deliver::deliver(Arc::clone(self), kept));
            }
        }
        Ok(())
    }

    /// How each adapter is. Asked anew when the last answers are old.
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

/// One word for all of them.
fn overall(adapters: &BTreeMap<String, Health>) -> Health {
    let is = |health| adapters.values().all(|one| *one == health);
    match () {
        () if is(Health::Healthy) => Health::Healthy,
        () if is(Health::Offline) => Health::Offline,
        () => Health::Degraded,
    }
}

/// The result of work that died with its process.
fn crash(kept: &Kept, now_ms: u64) -> CallbackBody {
    let worked = Worked {
        run: kept.run(),
        step: &kept.step,
        dispatch_no: kept.dispatch_no,
        from_ms: kept.begun_ms,
        to_ms: now_ms,
    };
    let message = "the bridge was stopped while it worked on this";
    let answer = Answer::failed(CallErrorCode::AdapterCrash, message);
    CallbackBody::new(worked, Answer { usage: Usage::unknown(), ..answer })
}

/// Forgets what need not be remembered any more, until the station stops.
async fn tidy(inner: Arc<Inner>) {
    loop {
        tokio::select! {
            () = inner.stop.cancelled() => return,
            () = tokio::time::sleep(Duration::from_millis(TIDY_MS)) => {}
        }
        inner.forget_old().await;
    }
}

impl Inner {
    async fn forget_old(&self) {
        let now_ms = self.clock.now_ms();
        let old = |state, at_ms: u64| match state {
            State::Delivered => now_ms.saturating_sub(at_ms) > TOMBSTONE_MS,
            State::GivenUp => now_ms.saturating_sub(at_ms) > GIVEN_UP_KEPT_MS,
            State::Accepted | State::Finished => false,
        };
        for key in self.book.stale(old) {
            // Known until it is gone: nobody begins it again in between.
            if let Err(error) = self.spool.remove(key).await {
                tracing::warn!(%error, "an old file of the spool cannot be removed");
                return;
            }
            self.book.forget(key);
        }
    }
}
