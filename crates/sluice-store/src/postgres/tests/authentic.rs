//! Stores with a key: rows of another process, and stores from before the key.

use super::*;
use crate::authentic::{Keyed, Mark};
use sluice_testing::conformance::authentic::{Exposed, check_authentic, key};
use sluice_testing::conformance::rolled_back::check_rolled_back;
use sluice_testing::conformance::{first, hashed, message, run};

fn sql(store: &PostgresStore, sql: &str) {
    let text = sql.to_owned();
    wait(store.read(async move |session| session.script(&text).await)).unwrap();
}

/// An empty store, and access to its database.
pub(super) fn exposed() -> Exposed {
    let clock = Arc::new(SetClock::default());
    let url = server().schema();
    let store = Arc::new(PostgresStore::open(&url, clock.clone()).unwrap());
    wait(store.adopt(key(), Doubts::default())).unwrap();
    let other = open(&url);
    let opened = Arc::clone(&store);
    let adopt = Arc::new(move || wait(opened.adopt(key(), Doubts::default())).unwrap());
    Exposed { store, clock, sql: Arc::new(move |text| sql(&other, text)), adopt }
}

#[test]
fn what_another_hand_wrote_is_not_used() {
    check_authentic(exposed);
}

#[test]
fn a_registry_that_another_hand_rolled_back_is_not_used() {
    check_rolled_back(exposed);
}

#[test]
fn a_store_from_before_keys_is_adopted() {
    let url = server().schema();
    let store = open(&url);
    append(&store, hashed(first(run(1))));
    append(&store, hashed(first(run(2))));
    wait(store.post(message(run(1), "a"))).unwrap();
    drop(store);
    let store = open(&url);
    assert_eq!(store.marked(&key()), Mark::Missing);
    let doubts = Doubts { runs: [run(2)].into(), ..Doubts::default() };
    wait(store.adopt(key(), doubts)).unwrap();
    assert!(wait(store.load(run(1))).unwrap().is_some());
    assert!(matches!(wait(store.load(run(2))), Err(StoreError::Corrupt(_))));
    assert!(wait(store.messages(Mailboxes::Run(run(1)))).unwrap()[0].is_authentic);
    // Another node finds the mark.
    assert_eq!(open(&url).marked(&key()), Mark::Own);
}
