//! Schedule slots and provenance edges between runs.

use super::{Bench, cases, first, plain, run};
use sluice_core::port::lineage::{Consumer, ProvenanceEdge};
use sluice_core::port::slots::{Mark, Slot};
use sluice_core::port::store::{Append, Appended};

cases![
    a_slot_is_noted_once,
    a_fate_changes_only_from_what_it_is_said_to_be,
    slots_come_newest_first_and_only_those_of_their_schedule,
    of_very_many_slots_the_oldest_go,
    a_provenance_edge_is_known_from_both_runs,
    a_provenance_edge_replaces_the_one_before_and_zero_removes_it,
    a_refused_append_takes_nothing,
];

fn slot(schedule: &str, slot_ms: u64, outcome: &str) -> Slot {
    let run = (outcome == "started").then(|| run(u128::from(slot_ms)));
    Slot {
        schedule: schedule.to_owned(),
        slot_ms,
        count: 1,
        outcome: outcome.to_owned(),
        why: (outcome == "skipped").then(|| "overlap".to_owned()),
        run,
        at_ms: slot_ms + 1,
    }
}

fn mark(slot: Slot, from: &[&str]) -> Mark {
    Mark { slot, from: from.iter().map(|one| (*one).to_owned()).collect() }
}

fn slots(bench: &Bench, schedule: &str) -> Vec<Slot> {
    bench.wait_ok(bench.store.slots(schedule.to_owned(), None, 0))
}

fn marked(bench: &Bench, marks: Vec<Mark>) -> Vec<bool> {
    bench.wait_ok(bench.store.mark(marks))
}

fn a_slot_is_noted_once(bench: &Bench) {
    let first = slot("nightly", 100, "starting");
    let both = vec![mark(first.clone(), &[]), mark(slot("nightly", 100, "skipped"), &[])];
    assert_eq!(marked(bench, both), [true, false]);
    assert_eq!(slots(bench, "nightly"), [first]);
}

fn a_fate_changes_only_from_what_it_is_said_to_be(bench: &Bench) {
    assert_eq!(marked(bench, vec![mark(slot("a", 5, "started"), &["starting"])]), [false]);
    assert_eq!(marked(bench, vec![mark(slot("a", 5, "starting"), &[])]), [true]);
    assert_eq!(marked(bench, vec![mark(slot("a", 5, "skipped"), &["queued"])]), [false]);
    let started = mark(slot("a", 5, "started"), &["queued", "starting"]);
    assert_eq!(marked(bench, vec![started]), [true]);
    assert_eq!(slots(bench, "a"), [slot("a", 5, "started")]);
}

fn slots_come_newest_first_and_only_those_of_their_schedule(bench: &Bench) {
    for at_ms in [7, 3, 5] {
        marked(bench, vec![mark(slot("a", at_ms, "skipped"), &[])]);
        marked(bench, vec![mark(slot("ab", at_ms, "started"), &[])]);
    }
    let times = |slots: Vec<Slot>| slots.into_iter().map(|one| one.slot_ms).collect::<Vec<_>>();
    assert_eq!(times(slots(bench, "a")), [7, 5, 3]);
    assert_eq!(times(bench.wait_ok(bench.store.slots("a".to_owned(), Some(7), 1))), [5]);
    assert_eq!(slots(bench, "b"), []);
}

fn of_very_many_slots_the_oldest_go(bench: &Bench) {
    let kept = sluice_core::limits::SLOTS_KEPT as u64;
    let marks = (1..=kept + 5).map(|at_ms| mark(slot("a", at_ms, "skipped"), &[]));
    marked(bench, marks.collect());
    let all = bench.wait_ok(bench.store.slots("a".to_owned(), None, sluice_core::limits::LIST_MAX));
    let oldest = bench.wait_ok(bench.store.slots("a".to_owned(), Some(7), 0));
    assert_eq!((all.len() as u64, all[0].slot_ms), (kept, kept + 5));
    assert_eq!(oldest.iter().map(|one| one.slot_ms).collect::<Vec<_>>(), [6]);
}

fn provenance_edge(from: u128, values: u64) -> ProvenanceEdge {
    ProvenanceEdge { from: run(from), values }
}

fn consumers(bench: &Bench, of: u128) -> Vec<(u128, u64)> {
    let all: Vec<Consumer> = bench.wait_ok(bench.store.consumers(run(of), None, 0));
    all.into_iter().map(|one| (one.run.0, one.values)).collect()
}

fn a_provenance_edge_is_known_from_both_runs(bench: &Bench) {
    bench.create(run(1));
    bench.done(Append { provenance_edges: vec![provenance_edge(1, 2)], ..first(run(2)) });
    bench.done(Append {
        provenance_edges: vec![provenance_edge(1, 3), provenance_edge(2, 1)],
        ..first(run(3))
    });
    assert_eq!(consumers(bench, 1), [(2, 2), (3, 3)]);
    assert_eq!(consumers(bench, 2), [(3, 1)]);
    assert_eq!(consumers(bench, 3), []);
    assert_eq!(bench.wait_ok(bench.store.taken(run(1))), 5);
    assert_eq!(bench.wait_ok(bench.store.taken(run(3))), 0);
    let later = bench.wait_ok(bench.store.consumers(run(1), Some(run(2)), 0));
    assert_eq!(later, [Consumer { run: run(3), values: 3 }]);
}

fn a_provenance_edge_replaces_the_one_before_and_zero_removes_it(bench: &Bench) {
    bench.done(Append {
        provenance_edges: vec![provenance_edge(1, 2), provenance_edge(9, 1)],
        ..first(run(2))
    });
    bench.done(Append {
        provenance_edges: vec![provenance_edge(1, 7), provenance_edge(9, 0)],
        ..plain(run(2), 1)
    });
    assert_eq!(consumers(bench, 1), [(2, 7)]);
    assert_eq!(consumers(bench, 9), []);
}

fn a_refused_append_takes_nothing(bench: &Bench) {
    bench.create(run(2));
    let stale = Append { provenance_edges: vec![provenance_edge(1, 2)], ..plain(run(2), 5) };
    assert_eq!(bench.append(stale), Appended::Conflict);
    assert_eq!(consumers(bench, 1), []);
}
