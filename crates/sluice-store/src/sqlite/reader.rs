//! Reader threads, each with its own connection.

use super::Shared;
use super::connect::OpenError;
use super::fault::Fault;
use super::read_only::ReadSource;
use crate::limits::{READERS, READS_WAITING_MAX};
use rusqlite::Connection;
use sluice_core::port::store::StoreError;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::{Semaphore, oneshot};

/// The connection of a reader thread, with the state shared by all threads.
pub(super) struct ReadConnection {
    pub(super) connection: Connection,
    pub(super) shared: Arc<Shared>,
}

type Job = Box<dyn FnOnce(&ReadConnection) + Send>;

/// The reader threads and their queue.
pub(super) struct Readers {
    /// `None` once the store is being dropped.
    jobs: Option<Sender<Job>>,
    permits: Semaphore,
    threads: Vec<JoinHandle<()>>,
    // Dropped after the threads have ended, because a private copy is removed then.
    source: Arc<ReadSource>,
}

impl Readers {
    pub(super) fn start(source: ReadSource, shared: &Arc<Shared>) -> Result<Readers, OpenError> {
        let (jobs, queue) = channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::new();
        for _ in 0..READERS {
            let reader =
                ReadConnection { connection: source.connect()?, shared: Arc::clone(shared) };
            let queue = Arc::clone(&queue);
            let thread = std::thread::Builder::new().name("store-reader".to_owned());
            let thread = thread.spawn(move || serve(&reader, &queue));
            threads.push(thread.map_err(OpenError::NoThread)?);
        }
        let (permits, source) = (Semaphore::new(READS_WAITING_MAX), Arc::new(source));
        Ok(Readers { jobs: Some(jobs), permits, threads, source })
    }

    /// Runs a query on one of the threads.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReadConnection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let stopped = || StoreError::Unavailable("the store has stopped".to_owned());
        let _permit = self.permits.acquire().await.map_err(|_| stopped())?;
        let (answer, answered) = oneshot::channel();
        let source = Arc::clone(&self.source);
        let job = Box::new(move |reader: &ReadConnection| {
            let result = read(reader).and_then(|read| source.check().map(|()| read));
            let result = result.map_err(|fault| fault.rolled_back());
            // The caller may have dropped the receiver.
            let _ = answer.send(result);
        });
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(job).map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // The panic has already been reported.
            let _ = thread.join();
        }
    }
}

fn serve(reader: &ReadConnection, queue: &Mutex<Receiver<Job>>) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => job(reader),
            Err(_) => return,
        }
    }
}
