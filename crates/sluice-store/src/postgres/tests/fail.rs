//! A primary that is lost, a network that fails, and hosts that stay silent.

use super::load::under_load;
use super::*;
use sluice_testing::conformance::{DONE, first, node, plain, run};
use sluice_testing::postgres::Proxy;
use std::time::Instant;

/// A store with a shorter response timeout.
fn impatient(url: &str, patience: Duration) -> PostgresStore {
    let mut address = DatabaseAddress::read(url, None).unwrap();
    address.patience = patience;
    PostgresStore::open_at(address, Time::Given(Arc::new(SetClock::default()))).unwrap()
}

#[test]
fn a_replica_takes_over_and_nothing_that_was_answered_is_lost() {
    let mut primary = Server::start_listening(&["fsync=on"]).unwrap();
    let replica = primary.replica().unwrap();
    let store = open(&Server::url_at(&[primary.port(), replica.port()]));
    let figures = under_load(&store, 8, || {
        std::thread::sleep(Duration::from_millis(700));
        primary.kill();
        std::thread::sleep(Duration::from_millis(200));
        replica.promote().unwrap();
    });
    eprintln!("{figures:?}");
    assert!(figures.done > 100, "{figures:?}");
    assert!(figures.not + figures.unknown > 0, "the failure had no effect: {figures:?}");
    assert_eq!(replica.psql("SELECT pg_is_in_recovery()"), "f");
    // The promoted server can have a replica too.
    let next = replica.replica().unwrap();
    assert_eq!(append(&store, first(run(100))), DONE);
    assert_eq!(next.psql("SELECT count(*) > 100 FROM frame"), "t");
}

#[test]
fn connections_that_are_cut_at_any_moment_lose_and_double_nothing() {
    let server = Server::start_listening(&["fsync=on"]).unwrap();
    let proxy = Proxy::start(server.port()).unwrap();
    let store = open(&Server::url_at(&[proxy.port()]));
    let mut cuts = 0;
    let figures = under_load(&store, 8, || {
        let mut bits = 42u64;
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(4) {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            std::thread::sleep(Duration::from_millis((bits >> 33) % 60));
            cuts += proxy.cut();
        }
    });
    eprintln!("{figures:?} {cuts} connections cut");
    assert!(figures.done > 100 && cuts > 20, "{figures:?} {cuts}");
    assert!(figures.unknown > 0, "some were cut while they were committed: {figures:?}");
}

#[test]
fn a_network_that_stalls_is_an_error_and_then_forgotten() {
    let server = Server::start_listening(&["fsync=on"]).unwrap();
    let proxy = Proxy::start(server.port()).unwrap();
    let store = impatient(&Server::url_at(&[proxy.port()]), Duration::from_millis(1_500));
    let figures = under_load(&store, 4, || {
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(300));
            proxy.stall();
            std::thread::sleep(Duration::from_millis(2_500));
            proxy.go_on();
        }
    });
    eprintln!("{figures:?}");
    assert!(figures.unknown + figures.not > 0, "{figures:?}");
    assert!(figures.gap < Duration::from_secs(15), "{figures:?}");
    proxy.stall();
    let began = Instant::now();
    assert!(matches!(wait(store.load(run(1))), Err(StoreError::Unavailable(_))));
    let lost = wait(store.append(Arc::new(plain(run(1), 1)))).unwrap_err();
    assert!(matches!(lost, StoreError::Unavailable(_)), "nothing was to be committed: {lost}");
    assert!(began.elapsed() < Duration::from_secs(14), "{:?}", began.elapsed());
    proxy.go_on();
    assert!(wait(store.load(run(1))).unwrap().is_some());
}

#[test]
fn a_host_that_is_silent_does_not_hide_the_next() {
    let server = Server::start_listening(&["fsync=on"]).unwrap();
    let (silent, proxy) =
        (Proxy::start(server.port()).unwrap(), Proxy::start(server.port()).unwrap());
    silent.stall();
    let url = Server::url_at(&[silent.port(), proxy.port()]) + "&connect_timeout=3";
    let store = open(&url);
    assert_eq!(append(&store, first(run(1))), DONE);
    let began = Instant::now();
    proxy.cut();
    let loaded = (0..100).find_map(|_| wait(store.load(run(1))).ok());
    assert!(loaded.is_some());
    assert!(began.elapsed() < Duration::from_millis(2_900), "the one that served last comes first");
}

#[test]
fn a_lease_is_renewed_however_busy_the_store_is() {
    let server = Server::start_listening(&["fsync=on"]).unwrap();
    let store = open(&server.url());
    // A read keeps its connection while it waits for a lock.
    wait(store.renew(node(1), 1_000)).unwrap();
    std::thread::scope(|threads| {
        let lock = "BEGIN; LOCK TABLE run; SELECT pg_sleep(3); COMMIT";
        threads.spawn(|| server.psql(lock));
        let held = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock'";
        while server.psql(held) == "0" {}
        for _ in 0..12 {
            threads.spawn(|| wait(store.list(Filter::default())).unwrap());
        }
        std::thread::sleep(Duration::from_millis(100));
        let began = Instant::now();
        wait(store.renew(node(1), 1_000)).unwrap();
        assert!(began.elapsed() < Duration::from_millis(1_000), "{:?}", began.elapsed());
    });
}

#[test]
fn a_renewal_that_is_not_answered_fails_before_its_lease_ends() {
    let server = Server::start_listening(&["fsync=on"]).unwrap();
    let proxy = Proxy::start(server.port()).unwrap();
    let store = open(&Server::url_at(&[proxy.port()]));
    wait(store.renew(node(1), 2_000)).unwrap();
    proxy.stall();
    let began = Instant::now();
    assert!(wait(store.renew(node(1), 2_000)).is_err());
    assert!(began.elapsed() < Duration::from_millis(1_900), "{:?}", began.elapsed());
    proxy.go_on();
    wait(store.renew(node(1), 2_000)).unwrap();
}
