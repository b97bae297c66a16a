//! Ownership of runs and leases.

use super::{Bench, cases, first, node, plain, released, run};
use sluice_core::port::store::{Append, Appended, Claim, Taken};

cases![
    a_due_run_is_claimed_once,
    a_run_without_due_is_not_claimed,
    what_is_due_first_is_claimed_first,
    a_claim_takes_no_more_than_asked,
    a_lease_ends_by_the_clock,
    a_lease_can_be_renewed,
    a_node_that_leaves_frees_its_runs,
    a_node_without_a_lease_holds_nothing,
    a_node_does_not_claim_its_own_runs,
    runs_of_the_dead_come_before_what_is_due,
    a_run_is_taken_due_or_not,
    a_held_run_is_not_taken,
    a_run_of_the_dead_is_taken,
    who_lost_a_run_cannot_append,
];

fn a_due_run_is_claimed_once(bench: &Bench) {
    bench.renew(node(2), 500);
    bench.park(run(1), Some(2000));
    assert_eq!(bench.claim(node(2), 1999, 10), []);
    let claim = Claim { run: run(1), epoch: 2, from: None };
    assert_eq!(bench.claim(node(2), 2000, 10), [claim]);
    assert_eq!(bench.claim(node(3), 2000, 10), []);
    assert_eq!(bench.row(run(1)).owner, Some(node(2)));
    bench.done(Append { node: node(2), epoch: 2, ..plain(run(1), 1) });
}

fn a_run_without_due_is_not_claimed(bench: &Bench) {
    bench.park(run(1), None);
    assert_eq!(bench.claim(node(2), u64::MAX, 10), []);
}

fn what_is_due_first_is_claimed_first(bench: &Bench) {
    for (number, due) in [(4, 30), (1, 20), (3, 10), (2, 20)] {
        bench.park(run(number), Some(due));
    }
    assert_eq!(bench.claimed(node(2), 30, 10), [3, 1, 2, 4].map(run));
}

fn a_claim_takes_no_more_than_asked(bench: &Bench) {
    bench.renew(node(2), 500);
    for number in 1..=5 {
        bench.park(run(number), Some(10));
    }
    assert_eq!(bench.claimed(node(2), 10, 0), []);
    assert_eq!(bench.claimed(node(2), 10, 2), [1, 2].map(run));
    assert_eq!(bench.claimed(node(2), 10, 2), [3, 4].map(run));
    assert_eq!(bench.claimed(node(2), 10, 2), [5].map(run));
}

fn a_lease_ends_by_the_clock(bench: &Bench) {
    bench.renew(node(1), 100);
    bench.create(run(1));
    bench.clock.set(1099);
    assert_eq!(bench.claim(node(2), 0, 10), []);
    assert_eq!(bench.row(run(1)).owner, Some(node(1)));
    bench.clock.set(1100);
    assert_eq!(bench.row(run(1)).owner, None);
    let claim = Claim { run: run(1), epoch: 2, from: Some(node(1)) };
    assert_eq!(bench.claim(node(2), 0, 10), [claim]);
}

fn a_lease_can_be_renewed(bench: &Bench) {
    bench.renew(node(1), 100);
    bench.create(run(1));
    bench.clock.set(1090);
    bench.renew(node(1), 100);
    bench.clock.set(1189);
    assert_eq!(bench.claim(node(2), 0, 10), []);
    bench.clock.set(1190);
    assert_eq!(bench.claimed(node(2), 0, 10), [run(1)]);
    // Also after it has expired, and also with a shorter lease.
    bench.renew(node(2), 1000);
    bench.renew(node(2), 10);
    bench.clock.set(1200);
    assert_eq!(bench.claimed(node(3), 0, 10), [run(1)]);
}

fn a_node_that_leaves_frees_its_runs(bench: &Bench) {
    bench.renew(node(1), 1000);
    bench.create(run(1));
    bench.leave(node(1));
    bench.leave(node(7));
    let claim = Claim { run: run(1), epoch: 2, from: Some(node(1)) };
    assert_eq!(bench.claim(node(2), 0, 10), [claim]);
    bench.renew(node(2), 100);
    bench.leave(node(2));
    bench.renew(node(2), 100);
    assert_eq!(bench.claim(node(3), 0, 10), []);
}

fn a_node_without_a_lease_holds_nothing(bench: &Bench) {
    bench.create(run(1));
    assert_eq!(bench.row(run(1)).owner, None);
    assert_eq!(bench.claimed(node(2), 0, 10), [run(1)]);
    assert_eq!(bench.claimed(node(3), 0, 10), [run(1)]);
}

fn a_node_does_not_claim_its_own_runs(bench: &Bench) {
    bench.create(run(1));
    assert_eq!(bench.claim(node(1), u64::MAX, 10), []);
    bench.done(plain(run(1), 1));
}

fn runs_of_the_dead_come_before_what_is_due(bench: &Bench) {
    bench.park(run(1), Some(5));
    bench.create(run(2));
    bench.done(Append { node: node(9), ..first(run(3)) });
    assert_eq!(bench.claimed(node(2), 5, 1), [run(2)]);
    bench.renew(node(2), 50);
    assert_eq!(bench.claimed(node(3), 5, 10), [3, 1].map(run));
}

fn a_run_is_taken_due_or_not(bench: &Bench) {
    bench.renew(node(2), 500);
    bench.park(run(1), None);
    bench.park(run(2), Some(9000));
    for number in [1, 2] {
        let claim = Claim { run: run(number), epoch: 2, from: None };
        assert_eq!(bench.take(run(number), node(2)), Taken::Done(claim));
        assert_eq!(bench.take(run(number), node(2)), Taken::Already(2));
        bench.done(Append { node: node(2), epoch: 2, ..plain(run(number), 1) });
    }
    assert_eq!(bench.take(run(3), node(2)), Taken::NoRun);
}

fn a_held_run_is_not_taken(bench: &Bench) {
    bench.renew(node(1), 500);
    bench.create(run(1));
    assert_eq!(bench.take(run(1), node(2)), Taken::Held(node(1)));
    bench.done(plain(run(1), 1));
    bench.done(Append { head: Some(released(None)), ..plain(run(1), 2) });
    assert!(matches!(bench.take(run(1), node(2)), Taken::Done(_)));
}

fn a_run_of_the_dead_is_taken(bench: &Bench) {
    bench.renew(node(1), 100);
    bench.create(run(1));
    bench.clock.set(1100);
    let claim = Claim { run: run(1), epoch: 2, from: Some(node(1)) };
    assert_eq!(bench.take(run(1), node(2)), Taken::Done(claim));
}

fn who_lost_a_run_cannot_append(bench: &Bench) {
    bench.renew(node(1), 100);
    bench.create(run(1));
    bench.clock.set(1200);
    // No other node has claimed the run, so the owner can append without a lease.
    bench.done(plain(run(1), 1));
    assert_eq!(bench.claimed(node(2), 0, 10), [run(1)]);
    bench.renew(node(1), 100);
    assert_eq!(bench.append(plain(run(1), 2)), Appended::NotOwner);
    bench.done(Append { node: node(2), epoch: 2, ..plain(run(1), 2) });
}
