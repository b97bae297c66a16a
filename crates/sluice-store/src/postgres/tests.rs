use super::*;
use crate::conformance::{self, Bench, SetClock, wait};
use crate::memory::MemoryStore;
use server::Server;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The server of this test binary. It ends with the process.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&["fsync=on"]).unwrap_or_else(|why| panic!("{why}")))
}

fn open(url: &str) -> PostgresStore {
    PostgresStore::open(url, Arc::new(SetClock::default())).unwrap()
}

fn bench() -> Bench {
    let clock = Arc::new(SetClock::default());
    let store = PostgresStore::open(&server().schema(), clock.clone()).unwrap();
    Bench { store: Arc::new(store), clock }
}

#[test]
fn postgres_is_a_store() {
    conformance::check(bench);
}
