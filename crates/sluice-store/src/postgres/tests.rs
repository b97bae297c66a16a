mod authentic;
mod crowd;
mod fail;
mod figures;
mod idle;
mod inspect;
mod load;
mod lost;
mod many;
mod shared;
mod tls;

use super::*;
use crate::authentic::Keyed as _;
use crate::memory::MemoryStore;
use crate::sqlite::SqliteStore;
use proptest::prelude::*;
use sluice_core::evidence::mac::Doubts;
use sluice_testing::conformance::{self, Bench, SetClock, wait};
use sluice_testing::postgres::Server;
use std::sync::OnceLock;

/// The server of this test binary. It ends with the process.
pub(crate) fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&["fsync=on"]).unwrap_or_else(|why| panic!("{why}")))
}

fn open(url: &str) -> PostgresStore {
    PostgresStore::open(url, Arc::new(SetClock::default())).unwrap()
}

fn append(store: &PostgresStore, append: Append) -> Appended {
    wait(store.append(Arc::new(append))).unwrap()
}

fn bench() -> Bench {
    let clock = Arc::new(SetClock::default());
    let store = PostgresStore::open(&server().schema(), clock.clone()).unwrap();
    Bench { store: Arc::new(store), clock }
}

/// The same with a key.
fn keyed_bench() -> Bench {
    let clock = Arc::new(SetClock::default());
    let store = PostgresStore::open(&server().schema(), clock.clone()).unwrap();
    wait(store.adopt(conformance::authentic::key(), Doubts::default())).unwrap();
    Bench { store: Arc::new(store), clock }
}

#[test]
fn postgres_is_a_store() {
    conformance::check(bench);
}

#[test]
fn postgres_with_a_key_is_a_store() {
    conformance::check(keyed_bench);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_scripts_leave_the_same_on_all_three_stores(
        commands in prop::collection::vec(any::<u64>(), 1..120)
    ) {
        let clock = Arc::new(SetClock::default());
        let memory = Bench { store: Arc::new(MemoryStore::new(clock.clone())), clock };
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(SetClock::default());
        let sqlite = SqliteStore::open(dir.path(), clock.clone()).unwrap();
        let sqlite = Bench { store: Arc::new(sqlite), clock };
        let expected = conformance::script::transcript(&memory, &commands);
        prop_assert_eq!(&conformance::script::transcript(&sqlite, &commands), &expected);
        prop_assert_eq!(&conformance::script::transcript(&keyed_bench(), &commands), &expected);
    }
}
