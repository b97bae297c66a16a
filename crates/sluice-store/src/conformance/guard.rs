//! Counters that appends change, or are refused by.

use super::{Bench, cases, plain, run};
use sluice_core::port::store::{Append, Appended, Guard};

cases![
    a_counter_stops_at_its_bound,
    a_counter_that_goes_down_is_never_refused,
    a_change_of_zero_only_looks,
    a_counter_without_bound_is_counted,
    the_first_counter_that_refuses_is_named,
    one_append_may_change_a_counter_twice,
    a_refusal_counts_nothing,
];

fn guard(counter: &str, delta: i64, max: Option<i64>) -> Guard {
    Guard { counter: counter.to_owned(), delta, max }
}

fn refused(counter: &str) -> Appended {
    Appended::Refused { counter: counter.to_owned() }
}

/// Appends to run 1, one after the other, and answers with the last outcome.
fn guarded(bench: &Bench, guards: &[Guard]) -> Appended {
    if bench.load(run(1)).is_none() {
        bench.create(run(1));
    }
    let after = bench.journal(run(1)).len() as u64;
    bench.append(Append { guards: guards.to_vec(), ..plain(run(1), after) })
}

fn a_counter_stops_at_its_bound(bench: &Bench) {
    for _ in 0..3 {
        assert_eq!(guarded(bench, &[guard("c", 1, Some(3))]), Appended::Done);
    }
    assert_eq!(guarded(bench, &[guard("c", 1, Some(3))]), refused("c"));
    assert_eq!(guarded(bench, &[guard("c", 1, Some(4))]), Appended::Done);
    assert_eq!(guarded(bench, &[guard("other", 1, Some(1))]), Appended::Done);
}

fn a_counter_that_goes_down_is_never_refused(bench: &Bench) {
    assert_eq!(guarded(bench, &[guard("c", 5, None)]), Appended::Done);
    assert_eq!(guarded(bench, &[guard("c", -1, Some(2))]), Appended::Done);
    assert_eq!(guarded(bench, &[guard("c", 1, Some(4))]), refused("c"));
    assert_eq!(guarded(bench, &[guard("c", -4, None)]), Appended::Done);
    assert_eq!(guarded(bench, &[guard("c", 1, Some(1))]), Appended::Done);
}

fn a_change_of_zero_only_looks(bench: &Bench) {
    assert_eq!(guarded(bench, &[guard("c", 0, Some(0))]), Appended::Done);
    assert_eq!(guarded(bench, &[guard("c", 1, None)]), Appended::Done);
    assert_eq!(guarded(bench, &[guard("c", 0, Some(1))]), Appended::Done);
    assert_eq!(guarded(bench, &[guard("c", 0, Some(0))]), refused("c"));
}

fn a_counter_without_bound_is_counted(bench: &Bench) {
    for _ in 0..4 {
        assert_eq!(guarded(bench, &[guard("c", 10, None)]), Appended::Done);
    }
    assert_eq!(guarded(bench, &[guard("c", 1, Some(40))]), refused("c"));
    assert_eq!(guarded(bench, &[guard("c", 1, Some(41))]), Appended::Done);
}

fn the_first_counter_that_refuses_is_named(bench: &Bench) {
    let guards = [guard("a", 1, Some(1)), guard("b", 1, Some(0)), guard("c", 1, Some(0))];
    assert_eq!(guarded(bench, &guards), refused("b"));
}

fn one_append_may_change_a_counter_twice(bench: &Bench) {
    let twice = [guard("c", 1, Some(2)), guard("c", 1, Some(2))];
    assert_eq!(guarded(bench, &twice), Appended::Done);
    assert_eq!(guarded(bench, &[guard("c", 1, Some(2))]), refused("c"));
    let back = [guard("c", -2, None), guard("c", 2, Some(2))];
    assert_eq!(guarded(bench, &back), Appended::Done);
}

fn a_refusal_counts_nothing(bench: &Bench) {
    let guards = [guard("a", 1, Some(1)), guard("b", 1, Some(0))];
    assert_eq!(guarded(bench, &guards), refused("b"));
    assert_eq!(guarded(bench, &guards[..1]), Appended::Done);
    assert_eq!(bench.journal(run(1)), [(1, 1), (2, 1)]);
}
