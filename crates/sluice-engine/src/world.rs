//! The system clock, system randomness and the threads of a process.

use sluice_core::id::Entropy;
use sluice_core::port::Clock;
use std::io;
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::runtime::{Builder, Runtime};

/// A runtime for an engine: one worker thread less than there are cores, because the writer
/// of the store needs a core too. With a worker for every core the threads interrupt each
/// other, which costs a sixth of the throughput on two cores.
pub fn runtime() -> io::Result<Runtime> {
    let cores = available_parallelism().map_or(1, usize::from);
    let workers = cores.saturating_sub(1).max(1);
    Builder::new_multi_thread().worker_threads(workers).enable_all().build()
}

/// Reads the system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Random bits of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn bits(&mut self) -> u64 {
        rand::random()
    }
}
