//! Many concurrent callers.

use super::{Bench, DONE, cases, entry, first, guard, node, plain, refused, run, wait_all};
use sluice_core::evidence::entry::START;
use sluice_core::port::store::{Append, Appended, Posted};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::{ScopedJoinHandle, scope};

cases![
    appends_of_many_runs_do_not_mix,
    one_of_many_appends_to_one_version_wins,
    a_bound_holds_against_many,
    a_refusal_does_not_touch_its_neighbours,
    a_run_is_claimed_by_one_of_many,
    a_letter_is_posted_by_one_of_many,
    entries_of_many_writers_do_not_mix,
];

const CALLERS: u128 = 8;

/// The result of each thread.
fn together<T: Send>(call: impl Fn(u128) -> T + Sync) -> Vec<T> {
    let call = &call;
    scope(|threads| {
        let callers: Vec<ScopedJoinHandle<'_, T>> =
            (1..=CALLERS).map(|caller| threads.spawn(move || call(caller))).collect();
        let joined = callers.into_iter().map(ScopedJoinHandle::join);
        joined.map(|answer| answer.expect("no caller panics")).collect()
    })
}

fn appends_of_many_runs_do_not_mix(bench: &Bench) {
    together(|caller| {
        bench.create(run(caller));
        for after in 1..50 {
            bench.done(plain(run(caller), after));
        }
    });
    for caller in 1..=CALLERS {
        let loaded = bench.load(run(caller)).expect("it exists");
        let bodies: Vec<Vec<u8>> = loaded.frames.into_iter().map(|frame| frame.body).collect();
        let sent: Vec<Vec<u8>> = (0..50).map(|after| plain(run(caller), after).body).collect();
        assert_eq!(bodies, sent);
    }
}

fn one_of_many_appends_to_one_version_wins(bench: &Bench) {
    bench.create(run(1));
    for after in 1..=10 {
        let outcomes = together(|_| bench.append(plain(run(1), after)));
        let count = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
        assert_eq!((count(DONE), count(Appended::Conflict)), (1, 7));
    }
    assert_eq!(bench.journal(run(1)).len(), 11);
}

fn a_bound_holds_against_many(bench: &Bench) {
    let outcomes = together(|caller| {
        bench.create(run(caller));
        let mut done = 0;
        for _ in 0..10 {
            let guards = vec![guard("c", 1, Some(20))];
            let append = Append { guards, ..plain(run(caller), 1 + done) };
            match bench.append(append) {
                Appended::Done { .. } => done += 1,
                answer => assert_eq!(answer, refused("c", 20)),
            }
        }
        done
    });
    assert_eq!(outcomes.iter().sum::<u64>(), 20);
    for (caller, done) in (1..).zip(outcomes) {
        assert_eq!(bench.journal(run(caller)).len() as u64, 1 + done);
    }
}

fn a_refusal_does_not_touch_its_neighbours(bench: &Bench) {
    together(|caller| {
        bench.create(run(caller));
        for after in 1..20 {
            let never = vec![guard("never", 1, Some(0))];
            let appends = [
                Append { guards: never, ..plain(run(caller), after) },
                plain(run(caller), after - 1),
                Append { node: node(9), ..plain(run(caller), after) },
                first(run(caller)),
                plain(run(caller), after),
            ];
            let answers = appends.map(|append| bench.store.append(Arc::new(append)));
            let outcomes = wait_all(answers.into()).into_iter();
            let outcomes: Vec<Appended> =
                outcomes.map(|outcome| outcome.expect("the store works")).collect();
            let expected = [
                refused("never", 0),
                Appended::Conflict,
                Appended::NotOwner,
                Appended::Exists { run: run(caller), same: true },
                DONE,
            ];
            assert_eq!(outcomes, expected);
        }
        assert_eq!(bench.journal(run(caller)).len(), 20);
    });
}

fn a_run_is_claimed_by_one_of_many(bench: &Bench) {
    for number in 1..=100 {
        bench.park(run(number), Some(5));
    }
    let claims = together(|caller| {
        bench.renew(node(caller), 1000);
        let mut all = Vec::new();
        loop {
            let claimed = bench.claimed(node(caller), 5, 3);
            if claimed.is_empty() {
                return all;
            }
            all.extend(claimed);
        }
    });
    let claims = claims.concat();
    assert_eq!(claims.len(), 100);
    assert_eq!(claims.into_iter().collect::<BTreeSet<_>>().len(), 100);
}

fn a_letter_is_posted_by_one_of_many(bench: &Bench) {
    bench.create(run(1));
    let outcomes = together(|_| bench.post(super::message(run(1), "a")));
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Posted::Done).count(), 1);
}

fn entries_of_many_writers_do_not_mix(bench: &Bench) {
    together(|caller| {
        for number in 0..20 {
            let entries = vec![entry(&format!("{caller} says {number}"))];
            bench.wait_ok(bench.store.record(node(1 + caller % 3), entries));
        }
    });
    let entries = bench.entries();
    assert_eq!(entries.len(), 160);
    for writer in 1..=3 {
        let mut last = (0, START);
        for one in entries.iter().filter(|one| one.writer == node(writer)) {
            last = entry::follows(one, last);
        }
    }
}
