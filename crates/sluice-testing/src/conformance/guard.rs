//! Counters that an append changes, or that refuse it.

use super::{Bench, cases, first, guard, plain, refused, run};
use sluice_core::port::ledger::Counter;
use sluice_core::port::store::{Append, Appended, Guard};
use sluice_govern::account::{CounterName, Figure};

cases![
    a_counter_stops_at_its_bound,
    a_counter_that_goes_down_is_never_refused,
    a_change_of_zero_only_looks,
    a_counter_without_bound_is_counted,
    the_first_counter_that_refuses_is_named,
    one_append_may_change_a_counter_twice,
    a_refusal_counts_nothing,
    counts_are_answered_in_the_order_of_guards,
    a_counter_is_its_name_whatever_number_stands_for_it,
    a_run_whose_creation_is_refused_is_not_there,
    a_stale_append_changes_no_counter,
    counters_do_not_overflow,
    counters_are_read_by_name_in_pages,
];

fn done<const N: usize>(counts: [i64; N]) -> Appended {
    Appended::Done { counts: counts.to_vec() }
}

/// Appends to run 1 several times, and returns the last outcome.
fn guarded(bench: &Bench, guards: &[Guard]) -> Appended {
    if bench.load(run(1)).is_none() {
        bench.create(run(1));
    }
    let after = bench.journal(run(1)).len() as u64;
    bench.append(Append { guards: guards.to_vec(), ..plain(run(1), after) })
}

fn a_counter_is_its_name_whatever_number_stands_for_it(bench: &Bench) {
    let of = |figure: Figure, account: &str, number: u64| Guard {
        counter: CounterName::of_account(figure, &account.into(), number),
        ..guard("", 1, Some(9))
    };
    let numbers = [0, 7, 7, 8, 0, 7];
    for (count, number) in (1..).zip(numbers) {
        let guards = [
            of(Figure::Held, "a", number),
            of(Figure::Spent, "a", number),
            of(Figure::Held, "b", number * 10),
        ];
        assert_eq!(guarded(bench, &guards), done([count; 3]));
    }
    // In the order of the query, and in a different order.
    let guards = [guard("held:b", 1, None), of(Figure::Held, "a", 7), guard("spent:a", 1, None)];
    assert_eq!(guarded(bench, &guards), done([7; 3]));
    let full = [of(Figure::Held, "b", 70), Guard { max: Some(7), ..of(Figure::Spent, "a", 7) }];
    assert_eq!(guarded(bench, &full), refused("spent:a", 7));
    assert_eq!(guarded(bench, &[of(Figure::Held, "b", 70)]), done([8]));
}

fn a_counter_stops_at_its_bound(bench: &Bench) {
    for count in 1..=3 {
        assert_eq!(guarded(bench, &[guard("c", 1, Some(3))]), done([count]));
    }
    assert_eq!(guarded(bench, &[guard("c", 1, Some(3))]), refused("c", 3));
    assert_eq!(guarded(bench, &[guard("c", 1, Some(4))]), done([4]));
    assert_eq!(guarded(bench, &[guard("other", 1, Some(1))]), done([1]));
}

fn a_counter_that_goes_down_is_never_refused(bench: &Bench) {
    assert_eq!(guarded(bench, &[guard("c", 5, None)]), done([5]));
    assert_eq!(guarded(bench, &[guard("c", -1, Some(2))]), done([4]));
    assert_eq!(guarded(bench, &[guard("c", 1, Some(4))]), refused("c", 4));
    assert_eq!(guarded(bench, &[guard("c", -4, None)]), done([0]));
    assert_eq!(guarded(bench, &[guard("c", 1, Some(1))]), done([1]));
}

fn a_change_of_zero_only_looks(bench: &Bench) {
    assert_eq!(guarded(bench, &[guard("c", 0, Some(0))]), done([0]));
    assert_eq!(guarded(bench, &[guard("c", 1, None)]), done([1]));
    assert_eq!(guarded(bench, &[guard("c", 0, Some(1))]), done([1]));
    assert_eq!(guarded(bench, &[guard("c", 0, Some(0))]), refused("c", 1));
}

fn a_counter_without_bound_is_counted(bench: &Bench) {
    for times in 1..=4 {
        assert_eq!(guarded(bench, &[guard("c", 10, None)]), done([10 * times]));
    }
    assert_eq!(guarded(bench, &[guard("c", 1, Some(40))]), refused("c", 40));
    assert_eq!(guarded(bench, &[guard("c", 1, Some(41))]), done([41]));
}

fn counts_are_answered_in_the_order_of_guards(bench: &Bench) {
    let guards =
        [guard("b", 2, None), guard("a", 1, None), guard("b", 0, None), guard("d", -3, None)];
    assert_eq!(guarded(bench, &guards), done([2, 1, 2, -3]));
    let counters = ["d", "never", "a", "b"].map(Counter::plain).to_vec();
    assert_eq!(bench.wait_ok(bench.store.counts(counters)), [-3, 0, 1, 2]);
    assert!(bench.wait_ok(bench.store.counts(Vec::new())).is_empty());
}

fn the_first_counter_that_refuses_is_named(bench: &Bench) {
    let guards = [guard("a", 1, Some(1)), guard("b", 1, Some(0)), guard("c", 1, Some(0))];
    assert_eq!(guarded(bench, &guards), refused("b", 0));
}

fn one_append_may_change_a_counter_twice(bench: &Bench) {
    let twice = [guard("c", 1, Some(2)), guard("c", 1, Some(2))];
    // Both results are the counter after the whole append.
    assert_eq!(guarded(bench, &twice), done([2, 2]));
    assert_eq!(guarded(bench, &[guard("c", 1, Some(2))]), refused("c", 2));
    let back = [guard("c", -2, None), guard("c", 2, Some(2))];
    assert_eq!(guarded(bench, &back), done([2, 2]));
    // The second guard refuses because of the first; the counter is unchanged.
    assert_eq!(guarded(bench, &[guard("c", 3, None), guard("c", 1, Some(5))]), refused("c", 2));
    assert_eq!(bench.count("c"), 2);
}

fn a_refusal_counts_nothing(bench: &Bench) {
    let guards = [guard("a", 1, Some(1)), guard("b", 1, Some(0))];
    assert_eq!(guarded(bench, &guards), refused("b", 0));
    assert_eq!(guarded(bench, &guards[..1]), done([1]));
    assert_eq!(bench.journal(run(1)), [(1, 1), (2, 1)]);
}

fn a_run_whose_creation_is_refused_is_not_there(bench: &Bench) {
    let guards = vec![guard("a", 1, None), guard("b", 1, Some(0))];
    assert_eq!(bench.append(Append { guards, ..first(run(2)) }), refused("b", 0));
    assert_eq!((bench.load(run(2)), bench.count("a")), (None, 0));
    bench.create(run(2));
}

fn a_stale_append_changes_no_counter(bench: &Bench) {
    bench.create(run(1));
    let stale = Append { guards: vec![guard("a", 1, None)], ..plain(run(1), 7) };
    assert_eq!(bench.append(stale), Appended::Conflict);
    assert_eq!(bench.count("a"), 0);
}

fn counters_do_not_overflow(bench: &Bench) {
    let guards = [guard("a", i64::MAX, None), guard("a", 1, None), guard("b", i64::MIN, None)];
    assert_eq!(guarded(bench, &guards), done([i64::MAX, i64::MAX, i64::MIN]));
    assert_eq!(guarded(bench, &[guard("b", -1, None)]), done([i64::MIN]));
    assert_eq!(guarded(bench, &[guard("a", 1, Some(i64::MAX - 1))]), refused("a", i64::MAX));
}

fn counters_are_read_by_name_in_pages(bench: &Bench) {
    let names = ["a|2", "a|1", "b", "a|10", "a", "a|3", "a}", "é"];
    let guards: Vec<Guard> =
        (1..).zip(names).map(|(count, name)| guard(name, count, None)).collect();
    let windowed = Guard { window_ms: Some(60_000), ..guard("a|4", 1, None) };
    bench.done(Append { guards: [guards, vec![windowed]].concat(), ..first(run(1)) });
    bench.done(Append { guards: vec![guard("a|3", -6, None)], ..plain(run(1), 1) });
    let read = |after: &str, before: &str, limit| -> Vec<(String, i64)> {
        let read = bench.store.counters(after.to_owned(), before.to_owned(), limit);
        bench.wait_ok(read).into_iter().map(|count| (count.name, count.count)).collect()
    };
    let named = |counts: &[(&str, i64)]| -> Vec<(String, i64)> {
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    };
    let all = named(&[("a|1", 2), ("a|10", 4), ("a|2", 1)]);
    assert_eq!(read("a|", "a}", 100), all, "neither end, no zero, no window");
    assert_eq!(read("a|", "a}", usize::MAX), all);
    assert_eq!(read("a|", "a}", 2), all[..2]);
    assert_eq!(read("a|10", "a}", 2), all[2..]);
    assert_eq!(read("a}", "b", 9), []);
    assert_eq!(read("a|", "a}", 0), []);
    assert_eq!((read("b", "a", 9), read("b", "b", 9)), (vec![], vec![]));
    assert_eq!(read("b", "\u{ff}", 9), named(&[("é", 8)]));
}
