//! The thread that talks to the database, and its task queue.

use super::address::DatabaseAddress;
use super::migrate::{OpenError, Unfinished, migrate};
use super::pool::ConnectionPool;
use super::session::Session;
use super::writer::WriterTask;
use super::{Shared, adopt, notice};
use crate::limits::READS_WAITING_MAX;
use futures_util::future::LocalBoxFuture;
use sluice_core::port::store::StoreError;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::LocalSet;

/// A task for the thread.
type Task = Box<dyn FnOnce(Rc<ConnectionPool>) -> LocalBoxFuture<'static, ()> + Send>;

/// The thread. It ends when the writer's queue is closed.
pub(super) struct Thread {
    tasks: mpsc::UnboundedSender<Task>,
    permits: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

/// A name that is unique among all running stores.
pub(super) fn name() -> String {
    static STORES: AtomicU64 = AtomicU64::new(0);
    let store = STORES.fetch_add(1, Ordering::Relaxed);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}.{store}.{}", std::process::id(), since.as_nanos())
}

impl Thread {
    /// Starts the thread, and waits until the database is migrated.
    pub(super) fn start(
        address: Arc<DatabaseAddress>,
        turns: WriterTask,
        shared: Arc<Shared>,
        unfinished: Unfinished,
    ) -> Result<Thread, OpenError> {
        let (tasks, queue) = mpsc::unbounded_channel();
        let (ready, opened) = std::sync::mpsc::channel();
        let failed = |error: std::io::Error| OpenError::Failed(error.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let work = move || {
            let local = LocalSet::new();
            local.block_on(&runtime, async {
                if let Err(error) = prepare(&address, unfinished, &shared).await {
                    let _ = ready.send(Err(error));
                    return;
                }
                let _ = ready.send(Ok(()));
                let pool = Rc::new(ConnectionPool::new(Arc::clone(&address), Arc::clone(&shared)));
                tokio::task::spawn_local(notice::exchange(address, shared));
                tokio::task::spawn_local(perform(queue, Rc::clone(&pool)));
                turns.serve(pool).await;
            });
        };
        let thread = std::thread::Builder::new().name("store-postgres".to_owned());
        let thread = thread.spawn(work).map_err(failed)?;
        let stopped = |_| OpenError::Failed("the thread of the store has stopped".to_owned());
        let opened = opened.recv().map_err(stopped).and_then(|opened| opened);
        if let Err(error) = opened {
            let _ = thread.join();
            return Err(error);
        }
        let permits = Arc::new(Semaphore::new(READS_WAITING_MAX));
        Ok(Thread { tasks, permits, thread: Some(thread) })
    }

    /// Runs a task on the thread and waits for its result. A queued task runs even if
    /// the caller stops waiting.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(Rc<ConnectionPool>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let stopped = || StoreError::Unavailable("the store has stopped".to_owned());
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| stopped())?;
        let (answer, answered) = oneshot::channel();
        let task: Task = Box::new(move |pool| {
            Box::pin(async move {
                let _permit = permit;
                // The caller may have dropped the receiver.
                let _ = answer.send(work(pool).await);
            })
        });
        self.tasks.send(task).map_err(|_| stopped())?;
        let gone = |_| StoreError::Unknown("the store stopped before it answered".to_owned());
        answered.await.map_err(gone)?
    }
}

async fn prepare(
    address: &DatabaseAddress,
    unfinished: Unfinished,
    shared: &Shared,
) -> Result<(), OpenError> {
    let session = Session::connect(address, None).await?;
    migrate(&session, address.schema(), unfinished).await?;
    shared.keys.set_found_mark(adopt::find(&session).await?);
    Ok(())
}

async fn perform(mut queue: mpsc::UnboundedReceiver<Task>, pool: Rc<ConnectionPool>) {
    while let Some(task) = queue.recv().await {
        tokio::task::spawn_local(task(Rc::clone(&pool)));
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // The panic has already been reported.
            let _ = thread.join();
        }
    }
}
