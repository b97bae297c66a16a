//! The connection pool of the store's thread, its clock, and retries.
//!
//! Callers need no runtime: they send a task to the thread and wait for its result.
//! Most tasks take a connection of the pool for one statement or one transaction.
//!
//! INVARIANT: a connection returns to the pool only when no transaction is open on it.

use super::address::DatabaseAddress;
use super::column::{get, uint};
use super::fault::Fault;
use super::session::Session;
use super::{Shared, claim};
use crate::limits::{POOL, PURGE_MS, PURGED_MAX, RENEW_MS_MIN, RESPONSE_MS_MAX, RETRIES_MAX};
use sluice_core::port::Clock;
use sluice_core::port::ledger::Rows;
use sluice_core::port::store::StoreError;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, Semaphore};

/// The clock that measures leases and windows.
#[derive(Clone)]
pub enum Time {
    /// A provided clock: for a single process, and for tests.
    Given(Arc<dyn Clock>),
    /// The database's clock, which is the same for every node.
    Database,
}

pub(super) struct ConnectionPool {
    pub(super) shared: Arc<Shared>,
    address: Arc<DatabaseAddress>,
    idle: RefCell<Vec<Session>>,
    permits: Semaphore,
    /// The connection for the lease. No other work may delay it.
    lease: Mutex<Option<Session>>,
    /// Time of the last deletion of expired rows.
    purged_at: Cell<Option<Instant>>,
    /// The registry as last read. The content at an epoch never changes.
    pub(super) registry: RefCell<Option<Rows>>,
}

impl ConnectionPool {
    pub(super) fn new(address: Arc<DatabaseAddress>, shared: Arc<Shared>) -> ConnectionPool {
        let permits = Semaphore::new(POOL);
        let (idle, lease, purged_at, registry) = Default::default();
        ConnectionPool { shared, address, idle, permits, lease, purged_at, registry }
    }

    /// The current time of the configured clock.
    pub(super) async fn now_ms(&self, session: &Session) -> Result<u64, Fault> {
        match &self.shared.time {
            Time::Given(clock) => Ok(clock.now_ms()),
            Time::Database => {
                let rows = session.query(NOW, &[]).await?;
                now(&rows[0])
            }
        }
    }

    /// Runs statements that need no transaction.
    pub(super) async fn read<T>(
        &self,
        work: impl AsyncFnOnce(&Session) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let _permit = self.permits.acquire().await.expect("the semaphore is never closed");
        let session = self.session().await.map_err(Fault::rolled_back)?;
        let result = work(&session).await;
        self.put_back(session, result.as_ref().err());
        result.map_err(Fault::rolled_back)
    }

    /// Runs a single statement that writes. If its result is lost, it may still have
    /// been performed.
    pub(super) async fn write<T>(
        &self,
        work: impl AsyncFn(&Session) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let result = self.write_unnotified(work).await;
        if result.is_ok() {
            self.shared.record_commit(1, 0);
        }
        result
    }

    /// The same, without a notification to other nodes.
    pub(super) async fn write_unnotified<T>(
        &self,
        work: impl AsyncFn(&Session) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let _permit = self.permits.acquire().await.expect("the semaphore is never closed");
        let session = self.session().await.map_err(Fault::rolled_back)?;
        let result = retry(&session, work).await;
        self.put_back(session, result.as_ref().err());
        result.map_err(Fault::not_committed)
    }

    /// Writes a lease, on a connection of its own. Times out early, because the caller
    /// must learn of a failure before the lease expires.
    pub(super) async fn renew(
        &self,
        ttl_ms: u64,
        work: impl AsyncFn(&Session) -> Result<(), Fault>,
    ) -> Result<(), StoreError> {
        let renewing = async {
            let mut lease = self.lease.lock().await;
            let session = match lease.take().filter(|session| !session.is_closed()) {
                Some(session) => session,
                None => self.connect().await.map_err(Fault::rolled_back)?,
            };
            let renewed = retry(&session, work).await;
            if !matches!(renewed, Err(Fault::Disconnected(_))) {
                *lease = Some(session);
            }
            renewed.map_err(Fault::not_committed)
        };
        let patience_ms = (ttl_ms / 3).clamp(RENEW_MS_MIN, RESPONSE_MS_MAX);
        let renewed = tokio::time::timeout(Duration::from_millis(patience_ms), renewing).await;
        renewed.unwrap_or_else(|_| {
            let why = format!("the database did not answer for {patience_ms} ms");
            Err(StoreError::Unknown(why))
        })
    }

    /// Deletes expired leases and keys, at most every `PURGE_MS`. If one pass does not
    /// delete all of them, the next call continues.
    pub(super) async fn purge_expired(self: Rc<Self>) {
        let pause = Duration::from_millis(PURGE_MS);
        if self.purged_at.get().is_some_and(|purged_at| purged_at.elapsed() < pause) {
            return;
        }
        // Set before the deletion, so that no second one starts meanwhile.
        self.purged_at.set(Some(Instant::now()));
        let now = self.shared.now();
        let purged =
            self.write_unnotified(async |session| claim::purge_expired(session, now).await);
        if purged.await.is_ok_and(|purged| purged >= PURGED_MAX as u64) {
            self.purged_at.set(None);
        }
    }

    /// Claims runs with a single statement. Notifies other nodes only if it claimed
    /// any.
    pub(super) async fn claim<T>(
        &self,
        work: impl AsyncFn(&Session) -> Result<Vec<T>, Fault>,
    ) -> Result<Vec<T>, StoreError> {
        let claimed = self.write_unnotified(work).await;
        if claimed.as_ref().is_ok_and(|claimed| !claimed.is_empty()) {
            self.shared.record_commit(1, 0);
        }
        claimed
    }

    /// Runs a transaction, and retries it after a conflict.
    pub(super) async fn transact<T>(
        &self,
        work: impl AsyncFn(&Session) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let _permit = self.permits.acquire().await.expect("the semaphore is never closed");
        let session = self.session().await.map_err(Fault::rolled_back)?;
        let mut result = transaction(&session, &work).await;
        for _ in 0..RETRIES_MAX {
            if !matches!(result, Err((Fault::Conflict(_), _))) {
                break;
            }
            result = transaction(&session, &work).await;
        }
        self.put_back(session, result.as_ref().err().map(|(fault, _)| fault));
        if result.is_ok() {
            self.shared.record_commit(1, 0);
        }
        result.map_err(|(fault, point)| match point {
            FailurePoint::Before => fault.rolled_back(),
            FailurePoint::Commit => fault.not_committed(),
        })
    }

    /// Opens a connection outside of the pool.
    pub(super) async fn connect(&self) -> Result<Session, Fault> {
        Session::connect(&self.address, None).await
    }

    async fn session(&self) -> Result<Session, Fault> {
        loop {
            let idle = self.idle.borrow_mut().pop();
            match idle {
                Some(session) if session.is_closed() => {}
                Some(session) => return Ok(session),
                None => return self.connect().await,
            }
        }
    }

    fn put_back(&self, session: Session, fault: Option<&Fault>) {
        match fault {
            // If one connection is lost, the idle ones are probably lost too.
            Some(Fault::Disconnected(_)) => self.idle.borrow_mut().clear(),
            _ if session.is_closed() => {}
            _ => self.idle.borrow_mut().push(session),
        }
    }
}

/// The database's clock, in milliseconds since 1970.
pub(super) const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Reads the result of `NOW`.
pub(super) fn now(row: &tokio_postgres::Row) -> Result<u64, Fault> {
    Ok(uint(get(row, 0)?))
}

/// Runs a statement, and retries it after a conflict.
async fn retry<T>(
    session: &Session,
    work: impl AsyncFn(&Session) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let mut result = work(session).await;
    for _ in 0..RETRIES_MAX {
        if !matches!(result, Err(Fault::Conflict(_))) {
            break;
        }
        result = work(session).await;
    }
    result
}

/// The point at which a transaction failed.
enum FailurePoint {
    Before,
    Commit,
}

async fn transaction<T>(
    session: &Session,
    work: &impl AsyncFn(&Session) -> Result<T, Fault>,
) -> Result<T, (Fault, FailurePoint)> {
    let before = |fault| (fault, FailurePoint::Before);
    session.query("BEGIN", &[]).await.map_err(before)?;
    match work(session).await {
        Ok(result) => {
            session.query("COMMIT", &[]).await.map_err(|fault| (fault, FailurePoint::Commit))?;
            Ok(result)
        }
        Err(fault) => {
            // If the rollback fails too, the connection is dropped, which ends the
            // transaction.
            session.query("ROLLBACK", &[]).await.map_err(before)?;
            Err(before(fault))
        }
    }
}
