//! Erased payloads, and what remains.

use super::{Bench, cases, entry, first, hashed, loaded, node, plain, run};
use sluice_core::hash::Hash;
use sluice_core::port::ledger::{Erased, Erasure};
use sluice_core::port::store::{Append, Blob, Frame};

cases![
    bodies_are_replaced_and_hashes_stay,
    snapshots_and_blobs_go,
    what_is_not_there_is_not_erased,
    any_frame_of_a_long_journal_is_found,
    an_erasure_changes_nothing_a_seal_covers,
    an_erased_run_goes_on,
];

fn erasure(number: u128, bodies: &[(u64, &str)]) -> Erasure {
    Erasure {
        run: run(number),
        bodies: bodies.iter().map(|(first, body)| (*first, body.as_bytes().to_vec())).collect(),
        besides: Vec::new(),
        blobs: Vec::new(),
        node: node(2),
        entries: Vec::new(),
    }
}

fn erase(bench: &Bench, erasure: Erasure) -> Erased {
    bench.wait_ok(bench.store.erase(erasure))
}

/// A run with three frames of two events each.
fn with_frames(bench: &Bench, number: u128) {
    bench.done(hashed(Append { count: 2, ..first(run(number)) }));
    bench.done(hashed(Append { count: 2, ..plain(run(number), 2) }));
    bench.done(hashed(Append { count: 2, ..plain(run(number), 4) }));
}

fn frames(bench: &Bench, number: u128) -> Vec<Frame> {
    bench.wait_ok(bench.store.frames(run(number), 0, usize::MAX))
}

fn bodies_are_replaced_and_hashes_stay(bench: &Bench) {
    with_frames(bench, 1);
    with_frames(bench, 2);
    let mut expected = frames(bench, 1);
    let others = frames(bench, 2);
    expected[0].body = b"x".to_vec();
    expected[2].body = Vec::new();
    let entries = vec![entry("payload_erased")];
    let asked = Erasure { entries, ..erasure(1, &[(5, ""), (1, "x")]) };
    assert_eq!(erase(bench, asked), Erased::Done);
    assert_eq!(frames(bench, 1), expected);
    assert_eq!(bench.load(run(1)), Some(loaded(None, expected)));
    assert_eq!(frames(bench, 2), others);
    let recorded = bench.entries();
    assert_eq!((recorded.len(), recorded[0].writer), (1, node(2)));
}

fn snapshots_and_blobs_go(bench: &Bench) {
    let blob = |text: &str| Blob { hash: Hash::of(text.as_bytes()), body: text.into() };
    for number in [1, 2] {
        let blobs = vec![blob("a"), blob("b")];
        bench.done(Append { blobs, snapshot: Some(b"state".to_vec()), ..first(run(number)) });
    }
    let asked = Erasure { blobs: vec![blob("a").hash, blob("none").hash], ..erasure(1, &[]) };
    assert_eq!(erase(bench, asked), Erased::Done);
    assert_eq!(bench.load(run(1)).expect("it exists").snapshot, None);
    assert_eq!(bench.load(run(1)).expect("it exists").frames.len(), 1);
    assert!(bench.load(run(2)).expect("it exists").snapshot.is_some());
    assert_eq!(bench.wait_ok(bench.store.blob(blob("a").hash)), None);
    assert_eq!(bench.wait_ok(bench.store.blob(blob("b").hash)), Some(b"b".to_vec()));
    // A blob that is sent again is stored again.
    bench.done(Append { blobs: vec![blob("a")], ..plain(run(1), 1) });
    assert_eq!(bench.wait_ok(bench.store.blob(blob("a").hash)), Some(b"a".to_vec()));
}

fn what_is_not_there_is_not_erased(bench: &Bench) {
    with_frames(bench, 1);
    bench.done(Append { snapshot: Some(b"state".to_vec()), ..plain(run(1), 6) });
    let (before, loaded) = (frames(bench, 1), bench.load(run(1)));
    for missing in [0, 2, 4, 6, 8, 99, u64::MAX] {
        let entries = vec![entry("payload_erased")];
        let asked = Erasure { entries, ..erasure(1, &[(1, "x"), (missing, "x"), (3, "x")]) };
        assert_eq!(erase(bench, asked), Erased::NoFrame, "{missing}");
    }
    assert_eq!(erase(bench, erasure(9, &[(1, "x")])), Erased::NoFrame);
    assert_eq!(erase(bench, erasure(9, &[])), Erased::NoFrame);
    assert_eq!((frames(bench, 1), bench.load(run(1))), (before, loaded));
    assert_eq!(bench.entries(), []);
}

fn any_frame_of_a_long_journal_is_found(bench: &Bench) {
    bench.create(run(1));
    (1..200).for_each(|after| bench.done(plain(run(1), after)));
    let places = [1, 2, 63, 64, 65, 127, 128, 129, 192, 199, 200];
    let bodies: Vec<(u64, &str)> = places.iter().map(|first| (*first, "gone")).collect();
    assert_eq!(erase(bench, erasure(1, &bodies)), Erased::Done);
    for frame in frames(bench, 1) {
        assert_eq!(frame.body == b"gone", places.contains(&frame.first), "{}", frame.first);
    }
}

fn an_erasure_changes_nothing_a_seal_covers(bench: &Bench) {
    with_frames(bench, 1);
    let before = bench.unsealed();
    assert_eq!(erase(bench, erasure(1, &[(1, ""), (3, ""), (5, "")])), Erased::Done);
    assert_eq!(bench.unsealed(), before);
}

fn an_erased_run_goes_on(bench: &Bench) {
    with_frames(bench, 1);
    assert_eq!(erase(bench, erasure(1, &[(5, "")])), Erased::Done);
    bench.done(plain(run(1), 6));
    assert_eq!(bench.journal(run(1)), [(1, 2), (3, 2), (5, 2), (7, 1)]);
}
