//! Checks that need much processor time: documents, policies, evidence.
//!
//! They run on threads of their own that Linux schedules as idle work: the threads that answer
//! other requests stay free and take the processor from a check at once. With a low priority
//! alone they would wait until its time slice ends, some milliseconds. A client may use a
//! quarter of these threads, an organisation three quarters; further checks are queued.

use crate::capacity::Holder;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

/// Minimum number of concurrent checks, on the smallest machine.
const AT_ONCE: usize = 4;

/// The checks that run and wait.
#[derive(Debug)]
pub struct Checks {
    at_once: usize,
    all: Arc<Semaphore>,
    by: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Default for Checks {
    fn default() -> Checks {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Checks::new(cores.max(AT_ONCE))
    }
}

impl Checks {
    /// At most `at_once` concurrent checks.
    pub fn new(at_once: usize) -> Checks {
        Checks { at_once, all: Arc::new(Semaphore::new(at_once)), by: Mutex::default() }
    }

    /// Runs a check on a thread of its own when the client has a free slot.
    pub async fn run<T: Send + 'static>(
        &self,
        holder: &Holder,
        check: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let turn = self.turn(holder).await;
        let runtime = Handle::current();
        let gone = CancellationToken::new();
        let _leaves = gone.clone().drop_guard();
        let (sender, done) = oneshot::channel();
        let work = move || {
            // Where the system refuses it, the check competes with the other threads.
            let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
            let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
            let check = gone.run_until_cancelled_owned(check);
            let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(check)));
            // Released when the check has ended, even if the client has disconnected.
            drop(turn);
            let _ = sender.send(ended);
        };
        let thread = std::thread::Builder::new().name("check".to_owned()).spawn(work);
        match (thread, done.await) {
            (Ok(_), Ok(Ok(Some(done)))) => done,
            (Ok(_), Ok(Err(panic))) => resume_unwind(panic),
            (Err(error), _) => panic!("the system has no thread for a check: {error}"),
            // The process is stopping.
            (Ok(_), Ok(Ok(None)) | Err(_)) => std::future::pending().await,
        }
    }

    /// Drops the semaphores of clients that have no check.
    pub fn tidy(&self) {
        self.lock().retain(|_, turns| Arc::strong_count(turns) > 1);
    }

    async fn turn(&self, holder: &Holder) -> Vec<OwnedSemaphorePermit> {
        let mut turn = Vec::with_capacity(3);
        if let Some((organisation, name)) = holder.owner() {
            let own = format!("{organisation} {name}");
            turn.push(acquire(self.semaphore(own, self.at_once / 4)).await);
            turn.push(acquire(self.semaphore(organisation.to_owned(), self.at_once * 3 / 4)).await);
        }
        turn.push(acquire(Arc::clone(&self.all)).await);
        turn
    }

    fn semaphore(&self, key: String, turns: usize) -> Arc<Semaphore> {
        let made = || Arc::new(Semaphore::new(turns.max(1)));
        Arc::clone(self.lock().entry(key).or_insert_with(made))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Semaphore>>> {
        self.by.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn acquire(turns: Arc<Semaphore>) -> OwnedSemaphorePermit {
    turns.acquire_owned().await.expect("the semaphores are never closed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use thread_priority::thread_schedule_policy;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn one_client_has_a_quarter_of_the_threads_and_the_others_stay_free() {
        let checks = Arc::new(Checks::new(4));
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let hostile: Vec<_> = (0..8)
            .map(|_| {
                let (checks, now, most) =
                    (Arc::clone(&checks), Arc::clone(&now), Arc::clone(&most));
                tokio::spawn(async move {
                    let check = async move {
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(20));
                        now.fetch_sub(1, Ordering::SeqCst);
                    };
                    checks.run(&Holder::token("acme", "hostile"), check).await;
                })
            })
            .collect();
        let (other, began) = (Holder::token("acme", "other"), std::time::Instant::now());
        assert_eq!(checks.run(&other, async { 7 }).await, 7);
        assert!(began.elapsed() < Duration::from_millis(150), "it waited for the hostile client");
        for one in hostile {
            one.await.unwrap();
        }
        assert_eq!(most.load(Ordering::SeqCst), 1);
        checks.tidy();
        assert!(checks.lock().is_empty());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_check_is_idle_work_and_other_threads_are_not() {
        let policy = || thread_schedule_policy().unwrap();
        let (checks, holder) = (Checks::new(4), Holder::token("acme", "a"));
        let of_check = checks.run(&holder, async move { policy() }).await;
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        assert_eq!(of_check, idle);
        assert_ne!(policy(), idle);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_check_that_panics_releases_its_permits() {
        let checks = Arc::new(Checks::new(1));
        let holder = Holder::token("acme", "a");
        let panics = tokio::spawn({
            let (checks, holder) = (Arc::clone(&checks), holder.clone());
            async move { checks.run(&holder, async { panic!("on purpose") }).await }
        });
        assert!(panics.await.unwrap_err().is_panic());
        checks.run(&holder, async {}).await;
    }
}
