//! The feed over all journals, in append order.

use super::{Bench, DONE, cases, first, guard, hashed, node, plain, refused, run};
use sluice_core::id::RunId;
use sluice_core::port::feed::Placed;
use sluice_core::port::ledger::{Erased, Erasure};
use sluice_core::port::store::{Append, Appended};

cases![
    an_empty_feed_ends_at_its_beginning,
    frames_of_all_runs_come_in_the_order_of_appends,
    a_feed_goes_on_from_any_place,
    a_feed_comes_in_pages,
    what_is_beside_a_frame_comes_with_it_and_counts,
    what_was_refused_is_not_in_the_feed,
    an_append_without_a_frame_is_not_in_the_feed,
    an_erased_frame_keeps_its_place,
];

fn feed(bench: &Bench, after: u64, bytes_max: usize) -> Vec<Placed> {
    bench.wait_ok(bench.store.feed(after, bytes_max))
}

fn end(bench: &Bench) -> u64 {
    bench.wait_ok(bench.store.feed_end())
}

/// Run and first event of each frame.
fn order(frames: &[Placed]) -> Vec<(RunId, u64)> {
    frames.iter().map(|placed| (placed.run, placed.frame.first)).collect()
}

/// Three runs with interleaved appends, six frames in all.
fn fill(bench: &Bench) -> Vec<(RunId, u64)> {
    bench.done(hashed(first(run(2))));
    bench.done(hashed(first(run(1))));
    bench.done(hashed(Append { count: 3, ..plain(run(2), 1) }));
    bench.done(hashed(first(run(3))));
    bench.done(hashed(plain(run(1), 1)));
    bench.done(hashed(plain(run(2), 4)));
    vec![(run(2), 1), (run(1), 1), (run(2), 2), (run(3), 1), (run(1), 2), (run(2), 5)]
}

fn an_empty_feed_ends_at_its_beginning(bench: &Bench) {
    assert_eq!((feed(bench, 0, usize::MAX), end(bench)), (Vec::new(), 0));
    assert_eq!(feed(bench, 7, usize::MAX), []);
}

fn frames_of_all_runs_come_in_the_order_of_appends(bench: &Bench) {
    let expected = fill(bench);
    let all = feed(bench, 0, usize::MAX);
    assert_eq!(order(&all), expected);
    assert!(all.is_sorted_by(|one, next| one.place < next.place), "places only grow");
    assert_eq!(all.last().map(|placed| placed.place), Some(end(bench)));
    for number in 1..=3 {
        let of_run = all.iter().filter(|placed| placed.run == run(number));
        let frames: Vec<_> = of_run.map(|placed| placed.frame.clone()).collect();
        assert_eq!(frames, bench.wait_ok(bench.store.frames(run(number), 0, usize::MAX)));
    }
}

fn a_feed_goes_on_from_any_place(bench: &Bench) {
    fill(bench);
    let all = feed(bench, 0, usize::MAX);
    for (number, placed) in all.iter().enumerate() {
        assert_eq!(feed(bench, placed.place, usize::MAX), all[number + 1..]);
    }
    let before = end(bench);
    assert_eq!(feed(bench, before + 10, usize::MAX), []);
    assert_eq!(feed(bench, u64::MAX, usize::MAX), []);
    bench.done(plain(run(3), 1));
    let new = feed(bench, before, usize::MAX);
    assert_eq!(order(&new), [(run(3), 2)]);
    assert_eq!(end(bench), new[0].place);
}

fn a_feed_comes_in_pages(bench: &Bench) {
    fill(bench);
    let all = feed(bench, 0, usize::MAX);
    for bytes_max in [0, 1, 60, 100, 150, 10_000] {
        let (mut seen, mut after) = (Vec::new(), 0);
        loop {
            let page = feed(bench, after, bytes_max);
            let Some(last) = page.last() else { break };
            let bytes: usize = page.iter().map(|placed| placed.frame.body.len()).sum();
            assert!(page.len() == 1 || bytes <= bytes_max, "{bytes} of {bytes_max}");
            after = last.place;
            seen.extend(page);
        }
        assert_eq!(seen, all, "{bytes_max}");
    }
}

fn what_is_beside_a_frame_comes_with_it_and_counts(bench: &Bench) {
    bench.create(run(1));
    for after in 1..4 {
        bench.done(Append { beside: vec![b'x'; 1000], ..plain(run(1), after) });
    }
    let lengths: Vec<usize> =
        feed(bench, 0, usize::MAX).iter().map(|placed| placed.frame.beside.len()).collect();
    assert_eq!(lengths, [0, 1000, 1000, 1000]);
    let begin = feed(bench, 0, 1)[0].place;
    let page = |bytes_max| feed(bench, begin, bytes_max).len();
    assert_eq!((page(1), page(1500), page(2500), page(5000)), (1, 1, 2, 3));
}

fn what_was_refused_is_not_in_the_feed(bench: &Bench) {
    let expected = fill(bench);
    let before = end(bench);
    let guards = vec![guard("c", 1, Some(0))];
    assert_eq!(bench.append(Append { guards, ..plain(run(1), 2) }), refused("c", 0));
    assert_eq!(bench.append(plain(run(1), 1)), Appended::Conflict);
    assert_eq!(bench.append(Append { node: node(2), ..plain(run(1), 2) }), Appended::NotOwner);
    assert_ne!(bench.append(first(run(1))), DONE);
    assert_eq!((order(&feed(bench, 0, usize::MAX)), end(bench)), (expected, before));
}

fn an_append_without_a_frame_is_not_in_the_feed(bench: &Bench) {
    let expected = fill(bench);
    let before = end(bench);
    bench.done(Append { count: 0, body: Vec::new(), ..plain(run(1), 2) });
    assert_eq!((order(&feed(bench, 0, usize::MAX)), end(bench)), (expected, before));
}

fn an_erased_frame_keeps_its_place(bench: &Bench) {
    fill(bench);
    let mut expected = feed(bench, 0, usize::MAX);
    expected[2].frame.body = b"gone".to_vec();
    let erasure = Erasure {
        run: run(2),
        bodies: vec![(2, b"gone".to_vec())],
        besides: Vec::new(),
        blobs: Vec::new(),
        node: node(2),
        entries: Vec::new(),
    };
    assert_eq!(bench.wait_ok(bench.store.erase(erasure)), Erased::Done);
    assert_eq!(feed(bench, 0, usize::MAX), expected);
}
