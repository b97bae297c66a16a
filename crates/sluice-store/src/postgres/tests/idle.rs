//! Statements that a store sends to the database, especially while it is idle.

use super::*;
use sluice_core::port::ledger::{Change, Counter, Ledger as _};
use sluice_core::port::slots::Slots as _;
use sluice_testing::conformance::{entry, first, message, node, run};

/// A server that logs every statement with its sender.
fn scribe() -> Server {
    Server::start(&["log_statement=all", "log_line_prefix=%a "]).unwrap()
}

/// Number of statements that stores have sent so far.
fn statements(server: &Server) -> usize {
    let log = server.log();
    let said = |line: &&str| line.contains(" LOG:  execute ") || line.contains(" LOG:  statement:");
    log.lines().filter(|line| line.starts_with("sluice ")).filter(said).count()
}

fn counted<T>(server: &Server, ask: impl FnOnce() -> T) -> usize {
    let before = statements(server);
    ask();
    statements(server) - before
}

/// With the database's clock, as on a node.
fn store_of(server: &Server) -> PostgresStore {
    PostgresStore::open_by(&server.url(), Time::Database).unwrap()
}

/// Waits until the store has its connection for notifications.
fn settled(server: &Server) {
    let listening = |log: String| log.contains("LISTEN");
    assert!((0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        listening(server.log())
    }));
}

/// The queries of one sweep of a node, as the engine does it.
fn look(store: &PostgresStore) {
    wait(store.messages(Mailboxes::Owner(node(1)))).unwrap();
    wait(store.counts(vec![Counter::plain("registry")])).unwrap();
    wait(store.claim(node(1), 0, 100)).unwrap();
}

#[test]
fn what_is_asked_again_and_again_is_one_statement_each() {
    let server = scribe();
    let store = store_of(&server);
    settled(&server);
    let change = Change {
        expect: None,
        put: Vec::new(),
        remove: Vec::new(),
        node: node(1),
        entries: vec![entry("changed")],
    };
    wait(store.change(change)).unwrap();
    append(&store, first(run(1)));
    // Once before: connections are made, statements prepared, the registry read.
    let round = || {
        wait(store.renew(node(1), 10_000)).unwrap();
        look(&store);
        wait(store.registry(None)).unwrap();
    };
    round();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(counted(&server, || wait(store.renew(node(1), 10_000)).unwrap()), 1);
    assert_eq!(counted(&server, || wait(store.messages(Mailboxes::Owner(node(1)))).unwrap()), 1);
    let plain = || wait(store.counts(vec![Counter::plain("registry")])).unwrap();
    assert_eq!(counted(&server, plain), 1);
    assert_eq!(counted(&server, || wait(store.claim(node(1), 0, 100)).unwrap()), 1);
    assert_eq!(counted(&server, || wait(store.registry(None)).unwrap()), 1);
    assert_eq!(counted(&server, || wait(store.slots("s".to_owned(), None, 9)).unwrap()), 1);
    assert_eq!(counted(&server, || wait(store.unsealed(100)).unwrap()), 3);
    let windowed = Counter { window_ms: Some(60_000), ..Counter::plain("c") };
    assert_eq!(counted(&server, || wait(store.counts(vec![windowed])).unwrap()), 2);
}

#[test]
fn a_store_that_is_asked_nothing_asks_nothing() {
    let server = scribe();
    let store = store_of(&server);
    settled(&server);
    wait(store.changed(100));
    let asked = counted(&server, || wait(store.changed(2_000)));
    assert_eq!(asked, 0);
}

#[test]
fn an_idle_node_asks_a_few_things_a_second() {
    let server = scribe();
    let store = store_of(&server);
    settled(&server);
    wait(store.changed(100));
    let asked = counted(&server, || {
        for second in 0..4 {
            if second % 3 == 0 {
                wait(store.renew(node(1), 10_000)).unwrap();
            }
            look(&store);
            wait(store.changed(1_000));
        }
    });
    // Three per sweep, the renewals, two purges, and the setup of a new connection.
    assert!((12..=24).contains(&asked), "{asked}");
}

#[test]
fn busy_neighbours_do_not_make_a_node_look_without_rest() {
    let server = scribe();
    let (idle, busy) = (store_of(&server), [(); 3].map(|()| store_of(&server)));
    append(&busy[0], first(run(1)));
    std::thread::sleep(Duration::from_millis(500));
    let over = &std::sync::atomic::AtomicBool::new(false);
    let looks = std::thread::scope(|threads| {
        for (number, store) in busy.iter().enumerate() {
            threads.spawn(move || {
                let mut messages = 0;
                while !over.load(Ordering::SeqCst) {
                    messages += 1;
                    wait(store.post(message(run(1), &format!("{number} {messages}")))).unwrap();
                }
            });
        }
        let began = Instant::now();
        let mut looks = 0;
        while began.elapsed() < Duration::from_secs(2) {
            wait(idle.changed(1_000));
            looks += 1;
        }
        over.store(true, Ordering::SeqCst);
        looks
    });
    // At most one in 25 ms.
    assert!((10..=82).contains(&looks), "{looks}");
}
