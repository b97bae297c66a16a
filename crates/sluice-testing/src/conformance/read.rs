//! Reads return what was stored.

use super::{Bench, cases, first, plain, run};
use sluice_core::hash::Hash;
use sluice_core::port::store::{Append, Blob, Frame, Loaded};

cases![
    without_a_snapshot_everything_is_loaded,
    a_snapshot_stands_for_what_came_before,
    the_newest_snapshot_counts,
    frames_come_in_pages,
    a_frame_that_reaches_past_the_place_counts,
    no_run_has_no_frames,
    a_long_journal_is_read_from_anywhere,
    blobs_are_kept_once,
];

/// A run with frames of these sizes in events, each with a body of 10 bytes.
fn with_frames(bench: &Bench, counts: &[u32]) {
    let mut after = 0;
    for count in counts {
        let body = format!("{after:010}").into_bytes();
        let append = if after == 0 { first(run(1)) } else { plain(run(1), after) };
        bench.done(Append { count: *count, body, ..append });
        after += u64::from(*count);
    }
}

fn firsts(frames: &[Frame]) -> Vec<u64> {
    frames.iter().map(|frame| frame.first).collect()
}

fn page(bench: &Bench, after: u64, bytes_max: usize) -> Vec<u64> {
    firsts(&bench.wait_ok(bench.store.frames(run(1), after, bytes_max)))
}

fn without_a_snapshot_everything_is_loaded(bench: &Bench) {
    with_frames(bench, &[2, 1, 3]);
    let Loaded { snapshot, frames, .. } = bench.load(run(1)).expect("it exists");
    assert_eq!(snapshot, None);
    assert_eq!(firsts(&frames), [1, 3, 4]);
}

fn a_snapshot_stands_for_what_came_before(bench: &Bench) {
    with_frames(bench, &[2, 1]);
    bench.done(Append { snapshot: Some(b"at 5".to_vec()), count: 2, ..plain(run(1), 3) });
    let loaded = bench.load(run(1)).expect("it exists");
    assert_eq!(loaded, super::loaded(Some((5, b"at 5".to_vec())), Vec::new()));
    bench.done(plain(run(1), 5));
    bench.done(plain(run(1), 6));
    let loaded = bench.load(run(1)).expect("it exists");
    assert_eq!(loaded.snapshot, Some((5, b"at 5".to_vec())));
    assert_eq!(firsts(&loaded.frames), [6, 7]);
    // The journal is complete nevertheless.
    assert_eq!(bench.journal(run(1)), [(1, 2), (3, 1), (4, 2), (6, 1), (7, 1)]);
}

fn the_newest_snapshot_counts(bench: &Bench) {
    bench.done(Append { snapshot: Some(b"at 1".to_vec()), ..first(run(1)) });
    bench.done(Append { snapshot: Some(Vec::new()), ..plain(run(1), 1) });
    let loaded = bench.load(run(1)).expect("it exists");
    assert_eq!(loaded.snapshot, Some((2, Vec::new())));
}

fn frames_come_in_pages(bench: &Bench) {
    with_frames(bench, &[1, 1, 1, 1]);
    assert_eq!(page(bench, 0, 20), [1, 2]);
    assert_eq!(page(bench, 2, 25), [3, 4]);
    assert_eq!(page(bench, 1, 19), [2]);
    assert_eq!(page(bench, 0, 0), [1]);
    assert_eq!(page(bench, 3, 0), [4]);
    assert_eq!(page(bench, 4, 100), Vec::<u64>::new());
    assert_eq!(page(bench, u64::MAX, 100), Vec::<u64>::new());
}

fn a_frame_that_reaches_past_the_place_counts(bench: &Bench) {
    with_frames(bench, &[3, 3]);
    assert_eq!(page(bench, 2, 100), [1, 4]);
    assert_eq!(page(bench, 3, 100), [4]);
    assert_eq!(page(bench, 5, 100), [4]);
    assert_eq!(page(bench, 6, 100), Vec::<u64>::new());
}

fn no_run_has_no_frames(bench: &Bench) {
    assert_eq!(page(bench, 0, 100), Vec::<u64>::new());
}

fn a_long_journal_is_read_from_anywhere(bench: &Bench) {
    let counts: Vec<u32> = (0..300).map(|n| 1 + n % 3).collect();
    with_frames(bench, &counts);
    let whole = bench.journal(run(1));
    assert_eq!(whole.len(), 300);
    let next = |(first, count): (u64, u32)| first + u64::from(count);
    assert!(whole.windows(2).all(|pair| next(pair[0]) == pair[1].0));
    for after in [0, 1, 126, 127, 128, 129, 130, 255, 256, 383, 384, 597, 598, 599] {
        let expected: Vec<u64> =
            whole.iter().filter(|f| next(**f) > after + 1).map(|(first, _)| *first).collect();
        assert_eq!(page(bench, after, usize::MAX), expected, "after {after}");
        assert_eq!(page(bench, after, 50), expected[..expected.len().min(5)], "after {after}");
    }
    let mut seen = Vec::new();
    let mut after = 0;
    loop {
        let frames = bench.wait_ok(bench.store.frames(run(1), after, 200));
        let Some(last) = frames.last() else { break };
        after = last.first + u64::from(last.count) - 1;
        seen.extend(frames.iter().map(|frame| (frame.first, frame.count)));
    }
    assert_eq!(seen, whole);
}

fn blobs_are_kept_once(bench: &Bench) {
    let blob = |text: &str| Blob { hash: Hash::of(text.as_bytes()), body: text.into() };
    let read = |text: &str| bench.wait_ok(bench.store.blob(Hash::of(text.as_bytes())));
    assert_eq!(read("a"), None);
    bench.done(Append { blobs: vec![blob("a"), blob(""), blob("a")], ..first(run(1)) });
    bench.done(Append { blobs: vec![blob("a"), blob("b")], ..plain(run(1), 1) });
    bench.done(Append { blobs: vec![blob("a")], ..first(run(2)) });
    assert_eq!(read("a"), Some(b"a".to_vec()));
    assert_eq!(read("b"), Some(b"b".to_vec()));
    assert_eq!(read(""), Some(Vec::new()));
}
