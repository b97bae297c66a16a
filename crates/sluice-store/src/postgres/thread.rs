//! The thread that speaks with the database, and the way to it.

use super::address::Address;
use super::desk::Desk;
use super::migrate::{OpenError, Unfinished, migrate};
use super::session::Session;
use super::writer::Turns;
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

/// Something to be done on the thread.
type Task = Box<dyn FnOnce(Rc<Desk>) -> LocalBoxFuture<'static, ()> + Send>;

/// The thread. Ends when its writer has nothing more to come.
pub(super) struct Thread {
    tasks: mpsc::UnboundedSender<Task>,
    places: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

/// A name that no other store of this moment has.
pub(super) fn name() -> String {
    static STORES: AtomicU64 = AtomicU64::new(0);
    let store = STORES.fetch_add(1, Ordering::Relaxed);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}.{store}.{}", std::process::id(), since.as_nanos())
}

impl Thread {
    /// Starts it, and waits until the database is up to date.
    pub(super) fn start(
        address: Arc<Address>,
        turns: Turns,
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
                let desk = Rc::new(Desk::new(Arc::clone(&address), Arc::clone(&shared)));
                tokio::task::spawn_local(notice::exchange(address, shared));
                tokio::task::spawn_local(perform(queue, Rc::clone(&desk)));
                turns.serve(desk).await;
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
        let places = Arc::new(Semaphore::new(READS_WAITING_MAX));
        Ok(Thread { tasks, places, thread: Some(thread) })
    }

    /// Hands something over, and waits for its answer. What is handed over is done,
    /// whether or not the answer is awaited.
    pub(super) async fn hand<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(Rc<Desk>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let stopped = || StoreError::Unavailable("the store has stopped".to_owned());
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| stopped())?;
        let (answer, answered) = oneshot::channel();
        let task: Task = Box::new(move |desk| {
            Box::pin(async move {
                let _place = place;
                // A caller that has gone wants no answer.
                let _ = answer.send(work(desk).await);
            })
        });
        self.tasks.send(task).map_err(|_| stopped())?;
        let gone = |_| StoreError::Unknown("the store stopped before it answered".to_owned());
        answered.await.map_err(gone)?
    }
}

async fn prepare(
    address: &Address,
    unfinished: Unfinished,
    shared: &Shared,
) -> Result<(), OpenError> {
    let session = Session::connect(address, None).await?;
    migrate(&session, address.schema(), unfinished).await?;
    shared.keys.found(adopt::find(&session).await?);
    Ok(())
}

async fn perform(mut queue: mpsc::UnboundedReceiver<Task>, desk: Rc<Desk>) {
    while let Some(task) = queue.recv().await {
        tokio::task::spawn_local(task(Rc::clone(&desk)));
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic has been reported where it happened.
            let _ = thread.join();
        }
    }
}
