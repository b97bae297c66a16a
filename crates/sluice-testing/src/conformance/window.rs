//! Counters over a time window.

use super::{Bench, cases, guard, plain, refused, run};
use sluice_core::port::Clock as _;
use sluice_core::port::ledger::Counter;
use sluice_core::port::store::{Append, Appended, Guard};

cases![
    a_window_forgets_what_has_left_it,
    a_slice_that_is_leaving_still_counts,
    a_window_of_another_length_is_another_counter,
    plain_and_windowed_guards_go_together,
    guards_on_one_window_see_each_other,
    an_amount_moves_from_what_is_in_flight_to_a_window,
    a_refusal_adds_to_no_window,
    a_clock_that_goes_back_frees_nothing,
    no_window_ever_holds_more_than_its_bound,
];

fn windowed(counter: &str, delta: i64, max: i64, window_ms: u64) -> Guard {
    Guard { window_ms: Some(window_ms), ..guard(counter, delta, Some(max)) }
}

fn guarded(bench: &Bench, guards: &[Guard]) -> Appended {
    if bench.load(run(1)).is_none() {
        bench.create(run(1));
    }
    bench.append(Append { guards: guards.to_vec(), count: 0, ..plain(run(1), 1) })
}

fn sum(bench: &Bench, name: &str, window_ms: u64) -> i64 {
    let counter = Counter { name: name.to_owned(), window_ms: Some(window_ms) };
    bench.wait_ok(bench.store.counts(vec![counter]))[0]
}

fn done<const N: usize>(counts: [i64; N]) -> Appended {
    Appended::Done { counts: counts.to_vec() }
}

fn a_window_forgets_what_has_left_it(bench: &Bench) {
    let guards = [windowed("w", 1, 2, 600)];
    assert_eq!(guarded(bench, &guards), done([1]));
    bench.clock.set(1300);
    assert_eq!(guarded(bench, &guards), done([2]));
    assert_eq!(guarded(bench, &guards), refused("w", 2));
    assert_eq!(sum(bench, "w", 600), 2);
    bench.clock.set(1608);
    assert_eq!(guarded(bench, &guards), refused("w", 2));
    bench.clock.set(1609);
    assert_eq!(sum(bench, "w", 600), 1);
    assert_eq!(guarded(bench, &guards), done([2]));
    assert_eq!(guarded(bench, &guards), refused("w", 2));
    bench.clock.set(100_000);
    assert_eq!(sum(bench, "w", 600), 0);
    assert_eq!(guarded(bench, &guards), done([1]));
}

fn a_slice_that_is_leaving_still_counts(bench: &Bench) {
    // With slices of ten milliseconds, 1010 to 1019 stay until the last of them has
    // left.
    bench.clock.set(1010);
    assert_eq!(guarded(bench, &[windowed("w", 1, 2, 600)]), done([1]));
    bench.clock.set(1019);
    assert_eq!(guarded(bench, &[windowed("w", 1, 2, 600)]), done([2]));
    bench.clock.set(1618);
    assert_eq!(sum(bench, "w", 600), 2);
    bench.clock.set(1619);
    assert_eq!(sum(bench, "w", 600), 0);
}

fn a_window_of_another_length_is_another_counter(bench: &Bench) {
    let guards = [windowed("w", 1, 1, 600), windowed("w", 1, 1, 6000), guard("w", 1, Some(1))];
    assert_eq!(guarded(bench, &guards), done([1, 1, 1]));
    bench.clock.set(2000);
    assert_eq!((sum(bench, "w", 600), sum(bench, "w", 6000), bench.count("w")), (0, 1, 1));
    assert_eq!(guarded(bench, &guards), refused("w", 1));
    assert_eq!(guarded(bench, &guards[..1]), done([1]));
}

fn plain_and_windowed_guards_go_together(bench: &Bench) {
    let guards = [guard("p", 1, Some(5)), windowed("w", 2, 3, 100), guard("q", -1, None)];
    assert_eq!(guarded(bench, &guards), done([1, 2, -1]));
    assert_eq!(guarded(bench, &guards), refused("w", 2));
    assert_eq!((bench.count("p"), bench.count("q"), sum(bench, "w", 100)), (1, -1, 2));
    bench.clock.set(1101);
    assert_eq!(guarded(bench, &guards), done([2, 2, -2]));
}

fn guards_on_one_window_see_each_other(bench: &Bench) {
    let twice = [windowed("w", 1, 2, 60), windowed("w", 1, 2, 60)];
    assert_eq!(guarded(bench, &twice), done([2, 2]));
    assert_eq!(guarded(bench, &twice[..1]), refused("w", 2));
    let back = [windowed("w", -1, 0, 60), windowed("w", 1, 2, 60), windowed("w", 0, 2, 60)];
    assert_eq!(guarded(bench, &back), done([2, 2, 2]));
    bench.clock.set(1030);
    assert_eq!(
        guarded(bench, &[windowed("w", 1, 3, 60), windowed("w", 1, 3, 60)]),
        refused("w", 2)
    );
    assert_eq!(sum(bench, "w", 60), 2);
}

/// A limit on the sum of what is in flight and what has happened within a window.
fn an_amount_moves_from_what_is_in_flight_to_a_window(bench: &Bench) {
    let takes = |amount: i64, most_open: i64, most_done: i64| {
        [guard("open", amount, Some(most_open)), windowed("done", 0, most_done, 600)]
    };
    assert_eq!(guarded(bench, &takes(6, 8, 2)), done([6, 0]));
    assert_eq!(guarded(bench, &takes(4, 8, 2)), refused("open", 6));
    // It succeeded: one append returns it and counts it.
    let succeeded = [guard("open", -6, None), Guard { max: None, ..windowed("done", 6, 0, 600) }];
    assert_eq!(guarded(bench, &succeeded), done([0, 6]));
    assert_eq!(guarded(bench, &takes(4, 6, 2)), refused("done", 6));
    assert_eq!(guarded(bench, &takes(4, 4, 6)), done([4, 6]));
    // It failed: only what was in flight is returned.
    assert_eq!(guarded(bench, &[guard("open", -4, None)]), done([0]));
    assert_eq!((bench.count("open"), sum(bench, "done", 600)), (0, 6));
    bench.clock.set(1609);
    assert_eq!(sum(bench, "done", 600), 0);
}

fn a_refusal_adds_to_no_window(bench: &Bench) {
    assert_eq!(guarded(bench, &[windowed("w", 1, 9, 60)]), done([1]));
    for now_ms in [1000, 1001, 1030] {
        bench.clock.set(now_ms);
        let guards =
            [windowed("w", 1, 9, 60), windowed("new", 1, 9, 60), guard("never", 1, Some(0))];
        assert_eq!(guarded(bench, &guards), refused("never", 0));
        assert_eq!((sum(bench, "w", 60), sum(bench, "new", 60)), (1, 0));
    }
    bench.clock.set(1060);
    assert_eq!(sum(bench, "w", 60), 0);
}

fn a_clock_that_goes_back_frees_nothing(bench: &Bench) {
    let guards = [windowed("w", 1, 2, 60)];
    bench.clock.set(5000);
    assert_eq!(guarded(bench, &guards), done([1]));
    bench.clock.set(4000);
    assert_eq!(guarded(bench, &guards), done([2]));
    assert_eq!(guarded(bench, &guards), refused("w", 2));
    bench.clock.set(5059);
    assert_eq!(guarded(bench, &guards), refused("w", 2));
    bench.clock.set(5060);
    assert_eq!(guarded(bench, &guards), done([1]));
}

/// Pseudo-random numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

/// Checks the admissions from outside: every window that ends with an admission stays
/// within the bound, and no window can hold more.
fn no_window_ever_holds_more_than_its_bound(bench: &Bench) {
    let mut chance = Chance(7);
    for window_ms in [1, 7, 60, 119, 1000, 60_000] {
        let width_ms = (window_ms / 60).max(1);
        let name = format!("every {window_ms}");
        let mut admitted: Vec<(u64, i64)> = Vec::new();
        let mut refusals = 0;
        for _ in 0..80 {
            let now_ms = bench.clock.now_ms() + chance.below(window_ms / 6 + 2);
            bench.clock.set(now_ms);
            let held = |back_ms: u64| -> i64 {
                let inside = admitted.iter().filter(|(at_ms, _)| at_ms + back_ms > now_ms);
                inside.map(|(_, delta)| delta).sum()
            };
            let delta = 1 + i64::try_from(chance.below(2)).expect("it is small");
            match guarded(bench, &[windowed(&name, delta, 3, window_ms)]) {
                Appended::Done { counts } => {
                    assert!(held(window_ms) + delta <= counts[0] && counts[0] <= 3);
                    admitted.push((now_ms, delta));
                }
                answer => {
                    // No stricter than the slice that is leaving requires.
                    assert!(held(window_ms + width_ms) + delta > 3, "{answer:?}");
                    refusals += 1;
                }
            }
        }
        for (end_ms, _) in &admitted {
            let inside = admitted.iter().filter(|(at_ms, _)| at_ms + window_ms > *end_ms);
            let sum: i64 =
                inside.filter(|(at_ms, _)| at_ms <= end_ms).map(|(_, delta)| delta).sum();
            assert!(sum <= 3, "{sum} within {window_ms} ms");
        }
        assert!(admitted.len() > 10 && refusals > 10, "{} {refusals}", admitted.len());
    }
}
