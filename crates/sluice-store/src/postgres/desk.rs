//! What works on the store's own thread: connections, time, and short tasks.
//!
//! Callers need no runtime: they hand a task over and wait for its answer. Most
//! tasks take a connection of the pool for themselves, and are one statement or
//! one transaction.
//!
//! INVARIANT: a connection goes back into the pool only when nothing of a
//! transaction is left open on it.

use super::address::Address;
use super::column::{get, uint};
use super::fault::Fault;
use super::session::Session;
use super::{Shared, claim};
use crate::limits::{AGAIN_MAX, ANSWER_MS_MAX, FORGET_MS, FORGOTTEN_MAX, POOL, RENEW_MS_MIN};
use sluice_core::port::Clock;
use sluice_core::port::ledger::Rows;
use sluice_core::port::store::StoreError;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, Semaphore};

/// By whose clock leases and windows are measured.
#[derive(Clone)]
pub enum Time {
    /// One that is given: for a single process, and for tests.
    Given(Arc<dyn Clock>),
    /// The database's, which is the same for every node.
    Database,
}

/// The thread's own things.
pub(super) struct Desk {
    pub(super) shared: Arc<Shared>,
    address: Arc<Address>,
    idle: RefCell<Vec<Session>>,
    places: Semaphore,
    /// The connection for the lease. Nothing else may keep it waiting.
    lease: Mutex<Option<Session>>,
    /// When something was last forgotten.
    forgot_at: Cell<Option<Instant>>,
    /// The registry as it was last read. What it was at an epoch never changes.
    pub(super) registry: RefCell<Option<Rows>>,
}

impl Desk {
    pub(super) fn new(address: Arc<Address>, shared: Arc<Shared>) -> Desk {
        let places = Semaphore::new(POOL);
        let (idle, lease, forgot_at, registry) = Default::default();
        Desk { shared, address, idle, places, lease, forgot_at, registry }
    }

    /// What time it is, by the clock that counts.
    pub(super) async fn now_ms(&self, session: &Session) -> Result<u64, Fault> {
        match &self.shared.time {
            Time::Given(clock) => Ok(clock.now_ms()),
            Time::Database => {
                let rows = session.query(NOW, &[]).await?;
                now(&rows[0])
            }
        }
    }

    /// Statements that need no transaction around them.
    pub(super) async fn ask<T>(
        &self,
        work: impl AsyncFnOnce(&Session) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let _place = self.places.acquire().await.expect("the semaphore is never closed");
        let session = self.session().await.map_err(Fault::rolled_back)?;
        let answer = work(&session).await;
        self.put_back(session, answer.as_ref().err());
        answer.map_err(Fault::rolled_back)
    }

    /// A statement that writes by itself: it may have been performed although its
    /// answer never came.
    pub(super) async fn write<T>(
        &self,
        work: impl AsyncFn(&Session) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let answer = self.write_quietly(work).await;
        if answer.is_ok() {
            self.shared.counted(1, 0);
        }
        answer
    }

    /// The same, without telling others of it.
    pub(super) async fn write_quietly<T>(
        &self,
        work: impl AsyncFn(&Session) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let _place = self.places.acquire().await.expect("the semaphore is never closed");
        let session = self.session().await.map_err(Fault::rolled_back)?;
        let answer = again(&session, work).await;
        self.put_back(session, answer.as_ref().err());
        answer.map_err(Fault::not_committed)
    }

    /// Writes a lease, on a connection of its own. One that is not written soon is
    /// of no use: the caller must hear of it before the lease has run out.
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
            let renewed = again(&session, work).await;
            if !matches!(renewed, Err(Fault::Gone(_))) {
                *lease = Some(session);
            }
            renewed.map_err(Fault::not_committed)
        };
        let patience_ms = (ttl_ms / 3).clamp(RENEW_MS_MIN, ANSWER_MS_MAX);
        let renewed = tokio::time::timeout(Duration::from_millis(patience_ms), renewing).await;
        renewed.unwrap_or_else(|_| {
            let why = format!("the database did not answer for {patience_ms} ms");
            Err(StoreError::Unknown(why))
        })
    }

    /// Forgets what is over, once in a while. Where there is more of it than is
    /// forgotten at once, the next call goes on.
    pub(super) async fn forget(self: Rc<Self>) {
        let pause = Duration::from_millis(FORGET_MS);
        if self.forgot_at.get().is_some_and(|forgot_at| forgot_at.elapsed() < pause) {
            return;
        }
        // Before it is done, so that no other begins meanwhile.
        self.forgot_at.set(Some(Instant::now()));
        let now = self.shared.now();
        let forgotten = self.write_quietly(async |session| claim::forget(session, now).await);
        if forgotten.await.is_ok_and(|forgotten| forgotten >= FORGOTTEN_MAX as u64) {
            self.forgot_at.set(None);
        }
    }

    /// Takes runs: a statement that writes by itself, and is told only where it did.
    pub(super) async fn claim<T>(
        &self,
        work: impl AsyncFn(&Session) -> Result<Vec<T>, Fault>,
    ) -> Result<Vec<T>, StoreError> {
        let claimed = self.write_quietly(work).await;
        if claimed.as_ref().is_ok_and(|claimed| !claimed.is_empty()) {
            self.shared.counted(1, 0);
        }
        claimed
    }

    /// One transaction. Performed again where another one was in the way.
    pub(super) async fn transact<T>(
        &self,
        work: impl AsyncFn(&Session) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let _place = self.places.acquire().await.expect("the semaphore is never closed");
        let session = self.session().await.map_err(Fault::rolled_back)?;
        let mut answer = transaction(&session, &work).await;
        for _ in 0..AGAIN_MAX {
            if !matches!(answer, Err((Fault::Again(_), _))) {
                break;
            }
            answer = transaction(&session, &work).await;
        }
        self.put_back(session, answer.as_ref().err().map(|(fault, _)| fault));
        if answer.is_ok() {
            self.shared.counted(1, 0);
        }
        answer.map_err(|(fault, when)| match when {
            When::Before => fault.rolled_back(),
            When::Commit => fault.not_committed(),
        })
    }

    /// A connection of one's own.
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
            // What one has lost the others mostly have lost too.
            Some(Fault::Gone(_)) => self.idle.borrow_mut().clear(),
            _ if session.is_closed() => {}
            _ => self.idle.borrow_mut().push(session),
        }
    }
}

/// The database's clock, in milliseconds since 1970.
pub(super) const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Reads what `NOW` answers.
pub(super) fn now(row: &tokio_postgres::Row) -> Result<u64, Fault> {
    Ok(uint(get(row, 0)?))
}

/// Performs a statement, and again where another transaction was in the way.
async fn again<T>(
    session: &Session,
    work: impl AsyncFn(&Session) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let mut answer = work(session).await;
    for _ in 0..AGAIN_MAX {
        if !matches!(answer, Err(Fault::Again(_))) {
            break;
        }
        answer = work(session).await;
    }
    answer
}

/// When a transaction failed.
enum When {
    Before,
    Commit,
}

async fn transaction<T>(
    session: &Session,
    work: &impl AsyncFn(&Session) -> Result<T, Fault>,
) -> Result<T, (Fault, When)> {
    let before = |fault| (fault, When::Before);
    session.query("BEGIN", &[]).await.map_err(before)?;
    match work(session).await {
        Ok(answer) => {
            session.query("COMMIT", &[]).await.map_err(|fault| (fault, When::Commit))?;
            Ok(answer)
        }
        Err(fault) => {
            // One that cannot be left is left with its connection.
            session.query("ROLLBACK", &[]).await.map_err(before)?;
            Err(before(fault))
        }
    }
}
