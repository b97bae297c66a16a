//! Several nodes on one database, and a database that goes away.

use super::*;
use sluice_core::port::deliveries::{Ahead, Deliveries as _};
use sluice_core::port::feed::Feed as _;
use sluice_core::port::ledger::{Change, Changed, Counter, Ledger as _};
use sluice_core::port::slots::{Mark, Slot, Slots as _};
use sluice_core::port::store::{Create, Key};
use sluice_testing::conformance::{
    DONE, entry, first, guard, hashed, message, node, plain, refused, released, run, wait_all,
};
use std::collections::BTreeSet;
use std::thread::scope;
use std::time::Instant;

/// The stores of some nodes on one new schema.
fn nodes(count: usize) -> Vec<PostgresStore> {
    let url = server().schema();
    (0..count).map(|_| open(&url)).collect()
}

#[test]
fn everything_survives_reopening() {
    let url = server().schema();
    let (loaded, rows) = {
        let store = open(&url);
        append(&store, first(run(1)));
        append(&store, Append { head: Some(released(Some(7))), ..first(run(2)) });
        wait(store.post(message(run(1), "a"))).unwrap();
        append(&store, Append { guards: vec![guard("c", 1, Some(1))], ..plain(run(1), 1) });
        let rows = wait(store.list(Filter::default())).unwrap();
        (wait(store.load(run(1))).unwrap(), rows)
    };
    let store = open(&url);
    assert_eq!(wait(store.load(run(1))).unwrap(), loaded);
    assert_eq!(wait(store.list(Filter::default())).unwrap(), rows);
    assert_eq!(wait(store.messages(Mailboxes::Run(run(1)))).unwrap().len(), 1);
    assert_eq!(append(&store, plain(run(1), 1)), Appended::Conflict);
    let guarded = Append { guards: vec![guard("c", 1, Some(1))], ..plain(run(1), 2) };
    assert_eq!(append(&store, guarded), refused("c", 1));
    assert_eq!(append(&store, plain(run(1), 2)), DONE);
}

#[test]
fn a_bound_holds_against_many_nodes() {
    let nodes = nodes(3);
    let done: Vec<u64> = scope(|threads| {
        let callers: Vec<_> = (1u128..)
            .zip(&nodes)
            .map(|(number, store)| {
                threads.spawn(move || {
                    append(store, first(run(number)));
                    let mut done = 0;
                    for _ in 0..40 {
                        let guards = vec![guard("c", 1, Some(50)), guard("free", 1, None)];
                        match append(store, Append { guards, ..plain(run(number), 1 + done) }) {
                            Appended::Done { .. } => done += 1,
                            answer => assert_eq!(answer, refused("c", 50)),
                        }
                    }
                    done
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    assert_eq!(done.iter().sum::<u64>(), 50, "{done:?}");
    let counters = ["c", "free"].map(Counter::plain).to_vec();
    assert_eq!(wait(nodes[0].counts(counters)).unwrap(), [50, 50]);
}

#[test]
fn nodes_that_lock_the_same_rows_do_not_wait_in_a_circle() {
    let nodes = nodes(3);
    for number in 1..=20 {
        append(&nodes[0], Append { head: Some(released(None)), ..first(run(number)) });
    }
    let began = Instant::now();
    scope(|threads| {
        for (number, store) in (1u128..).zip(&nodes) {
            threads.spawn(move || {
                for round in 0..20u128 {
                    // Each in a different order, many at once.
                    let aim = |place: u128| run(1 + (place * (2 * number - 1) + round) % 20);
                    let posts = (0..20).map(|place| {
                        store.post(message(aim(place), &format!("{number} {round} {place}")))
                    });
                    for posted in wait_all(posts.collect()) {
                        assert_eq!(posted.unwrap(), Posted::Done);
                    }
                }
            });
        }
    });
    // The database would break each deadlock after a second.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let messages: usize = (1..=20)
        .map(|number| wait(nodes[1].messages(Mailboxes::Run(run(number)))).unwrap().len())
        .sum();
    assert_eq!(messages, 3 * 20 * 20);
}

#[test]
fn places_become_visible_in_their_order() {
    let nodes = nodes(3);
    let (writers, reader) = nodes.split_at(2);
    scope(|threads| {
        for (number, store) in (1u128..).zip(writers) {
            threads.spawn(move || {
                append(store, hashed(first(run(number))));
                for after in 1..150 {
                    append(store, hashed(plain(run(number), after)));
                }
            });
        }
        let (mut seen, mut after) = (0, 0);
        while seen < 300 {
            for placed in wait(reader[0].feed(after, usize::MAX)).unwrap() {
                assert_eq!(placed.place, after + 1, "no place comes late");
                after = placed.place;
                seen += 1;
            }
        }
    });
    assert_eq!(wait(reader[0].feed_end()).unwrap(), 300);
}

#[test]
fn one_run_one_key_one_slot_however_many_nodes_try() {
    let nodes = nodes(3);
    for round in 0..20u64 {
        let key = Key {
            key: format!("k{round}"),
            former: None,
            fingerprint: Hash::of(b"same"),
            expires_at_ms: 1_000_000,
        };
        let slot = Slot {
            schedule: "nightly".to_owned(),
            slot_ms: round,
            count: 1,
            outcome: "starting".to_owned(),
            why: None,
            run: None,
            at_ms: 0,
        };
        let tried = |number: u128, store: &PostgresStore| {
            let id = run(u128::from(round) * 10 + number);
            let append = first(id);
            let create = append.create.clone();
            let create = create.map(|create| Create { key: Some(key.clone()), ..create });
            let created = wait(store.append(Arc::new(Append { create, ..append }))).unwrap();
            let marks = vec![Mark { slot: slot.clone(), from: Vec::new() }];
            (created, wait(store.mark(marks)).unwrap()[0])
        };
        let tried: Vec<_> = scope(|threads| {
            let tried = &tried;
            let callers = (1u128..).zip(&nodes);
            let callers: Vec<_> = callers
                .map(|(number, store)| threads.spawn(move || tried(number, store)))
                .collect();
            callers.into_iter().map(|caller| caller.join().unwrap()).collect()
        });
        assert_eq!(tried.iter().filter(|(created, _)| *created == DONE).count(), 1, "{tried:?}");
        assert_eq!(tried.iter().filter(|(_, marked)| *marked).count(), 1, "{tried:?}");
        let same = |(created, _): &&(Appended, bool)| {
            matches!(created, Appended::Exists { same: true, .. })
        };
        assert_eq!(tried.iter().filter(same).count(), 2, "{tried:?}");
    }
}

#[test]
fn a_run_is_claimed_by_one_of_many_nodes() {
    let nodes = nodes(3);
    for number in 1..=90 {
        append(&nodes[0], Append { head: Some(released(Some(5))), ..first(run(number)) });
    }
    let claims: Vec<Vec<RunId>> = scope(|threads| {
        let callers = (1u128..).zip(&nodes).map(|(number, store)| {
            threads.spawn(move || {
                wait(store.renew(node(number), 1000)).unwrap();
                let mut all = Vec::new();
                for _ in 0..60 {
                    let claims = wait(store.claim(node(number), 5, 3)).unwrap();
                    all.extend(claims.into_iter().map(|claim| claim.run));
                }
                all
            })
        });
        let callers: Vec<_> = callers.collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let claims = claims.concat();
    assert_eq!((claims.len(), claims.iter().collect::<BTreeSet<_>>().len()), (90, 90));
}

#[test]
fn a_node_that_lost_a_run_cannot_append() {
    let url = server().schema();
    let clock = Arc::new(SetClock::default());
    let one = PostgresStore::open(&url, clock.clone()).unwrap();
    let other = PostgresStore::open(&url, clock.clone()).unwrap();
    wait(one.renew(node(1), 100)).unwrap();
    append(&one, first(run(1)));
    assert_eq!(wait(other.take(run(1), node(2))).unwrap(), Taken::Held(node(1)));
    clock.set(1200);
    let claim = Claim { run: run(1), epoch: 2, from: Some(node(1)) };
    assert_eq!(wait(other.claim(node(2), 0, 10)).unwrap(), [claim]);
    // It was suspended, and does not know.
    assert_eq!(append(&one, plain(run(1), 1)), Appended::NotOwner);
    assert_eq!(append(&other, Append { node: node(2), epoch: 2, ..plain(run(1), 1) }), DONE);
}

#[test]
fn no_message_is_left_with_a_run_that_no_node_will_claim() {
    let nodes = nodes(2);
    wait(nodes[0].renew(node(1), 1_000_000)).unwrap();
    append(&nodes[0], first(run(1)));
    let mut epoch = 1;
    for round in 1..=60u64 {
        // One node releases the run while another one posts a message.
        scope(|threads| {
            threads.spawn(|| wait(nodes[1].post(message(run(1), &round.to_string()))).unwrap());
            let head = Some(released(None));
            let letting_go = Append { head, epoch, ..plain(run(1), round) };
            assert_eq!(append(&nodes[0], letting_go), DONE);
        });
        let unread = wait(nodes[1].messages(Mailboxes::Run(run(1)))).unwrap();
        assert_eq!(unread.len() as u64, round);
        let claims = wait(nodes[0].claim(node(1), 1000, 10)).unwrap();
        assert_eq!(claims.len(), 1, "it is due, in round {round}");
        epoch = claims[0].epoch;
    }
}

#[test]
fn nothing_is_appended_behind_the_back_of_a_new_owner() {
    let nodes = nodes(2);
    append(&nodes[0], first(run(1)));
    let (mut epoch, mut version) = (1, 1);
    for _ in 0..60 {
        // No node has a lease, so the run can be claimed at any moment.
        let (claim, seen) = scope(|threads| {
            let appending = threads.spawn(|| {
                let mut after = version;
                let next = |after| Append { epoch, body: vec![7; 20_000], ..plain(run(1), after) };
                while append(&nodes[0], next(after)) == DONE {
                    after += 1;
                }
                after
            });
            std::thread::sleep(Duration::from_millis(12));
            let Taken::Done(claim) = wait(nodes[1].take(run(1), node(2))).unwrap() else {
                panic!("it is free")
            };
            let seen = wait(nodes[1].load(run(1))).unwrap().unwrap().frames.len() as u64;
            let last = appending.join().unwrap();
            assert_eq!(last, seen, "what was acknowledged was there when it changed hands");
            (claim, seen)
        });
        let next = Append { node: node(2), epoch: claim.epoch, ..plain(run(1), seen) };
        assert_eq!(append(&nodes[1], next), DONE);
        let Taken::Done(claim) = wait(nodes[0].take(run(1), node(1))).unwrap() else {
            panic!("it is free")
        };
        (epoch, version) = (claim.epoch, seen + 1);
    }
}

#[test]
fn rows_and_chains_are_shared_by_nodes() {
    let nodes = nodes(2);
    append(&nodes[0], first(run(1)));
    let change = |expect| Change {
        expect,
        put: Vec::new(),
        remove: Vec::new(),
        node: node(1),
        entries: vec![entry("changed")],
    };
    for epoch in 0..10 {
        let under = vec![guard("registry", 0, Some(i64::try_from(epoch).unwrap()))];
        let decided = Append { guards: under, ..plain(run(1), 1 + epoch) };
        assert!(matches!(append(&nodes[0], decided.clone()), Appended::Done { .. }));
        let changed = wait(nodes[1].change(change(Some(epoch)))).unwrap();
        assert_eq!(changed, Changed::Done { epoch: epoch + 1 });
        let late = Append { after: decided.after + 1, ..decided };
        let now = i64::try_from(epoch + 1).unwrap();
        assert_eq!(append(&nodes[0], late), refused("registry", now));
        wait(nodes[0].record(node(1), vec![entry("recorded")])).unwrap();
    }
    let entries = wait(nodes[0].entries(0, 100)).unwrap();
    let seqs: Vec<u64> = entries.iter().map(|one| one.seq).collect();
    assert_eq!(seqs, (1..=20).collect::<Vec<u64>>(), "one chain, written from two places");
}

#[test]
fn a_place_of_a_webhook_moves_from_where_it_was_seen() {
    let nodes = nodes(2);
    let ahead = |from, to| Ahead { webhook: "w".to_owned(), from, to, put: Vec::new() };
    for (from, to) in [(None, 5), (Some(5), 9)] {
        let moved: Vec<bool> = scope(|threads| {
            let callers: Vec<_> = nodes
                .iter()
                .map(|store| threads.spawn(move || wait(store.deliver(ahead(from, to))).unwrap()))
                .collect();
            callers.into_iter().map(|caller| caller.join().unwrap()).collect()
        });
        assert_eq!(moved.iter().filter(|moved| **moved).count(), 1, "{moved:?}");
    }
}

#[test]
fn nodes_that_start_at_once_make_one_schema() {
    for _ in 0..10 {
        let url = server().schema();
        let url = &url;
        scope(|threads| {
            let opened: Vec<_> = (0..4).map(|_| threads.spawn(move || open(url))).collect();
            for store in opened {
                wait(store.join().unwrap().list(Filter::default())).unwrap();
            }
        });
    }
}

#[test]
fn a_change_by_another_node_is_noticed() {
    let nodes = nodes(2);
    append(&nodes[0], first(run(1)));
    // The first poll after a connection reports nothing new.
    wait(nodes[0].changed(1000));
    scope(|threads| {
        let waiting = threads.spawn(|| {
            let began = Instant::now();
            wait(nodes[0].changed(20_000));
            began.elapsed()
        });
        std::thread::sleep(Duration::from_millis(100));
        wait(nodes[1].post(message(run(1), "a"))).unwrap();
        assert!(waiting.join().unwrap() < Duration::from_secs(10));
    });
    let began = Instant::now();
    wait(nodes[0].changed(50));
    assert!(began.elapsed() < Duration::from_secs(10), "patience ends");
}
