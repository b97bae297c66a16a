//! Stream deltas: stored with a frame, read separately.

use super::{Bench, cases, entry, event_hash, first, hashed, node, plain, refused, run};
use sluice_core::port::ledger::{Erased, Erasure};
use sluice_core::port::store::{Append, Frame, Guard};

cases![
    what_is_beside_frames_comes_with_them_and_not_with_a_load,
    it_counts_for_the_length_of_a_page,
    a_refused_append_leaves_nothing_beside,
    it_is_replaced_by_itself,
    where_nothing_is_beside_nothing_is_replaced,
    what_is_left_beside_may_be_nothing,
];

fn frames(bench: &Bench) -> Vec<Frame> {
    bench.wait_ok(bench.store.frames(run(1), 0, usize::MAX))
}

fn besides(bench: &Bench) -> Vec<String> {
    let text = |frame: Frame| String::from_utf8(frame.beside).expect("tests write text");
    frames(bench).into_iter().map(text).collect()
}

/// A run of four frames, two of them with stream deltas.
fn streamed(bench: &Bench) {
    bench.done(hashed(first(run(1))));
    bench.done(hashed(Append { beside: b"one".to_vec(), ..plain(run(1), 1) }));
    bench.done(hashed(plain(run(1), 2)));
    bench.done(hashed(Append { beside: b"two".to_vec(), count: 2, ..plain(run(1), 3) }));
}

fn erasure(besides: &[(u64, &str)]) -> Erasure {
    Erasure {
        run: run(1),
        bodies: Vec::new(),
        besides: besides.iter().map(|(first, text)| (*first, text.as_bytes().to_vec())).collect(),
        blobs: Vec::new(),
        node: node(2),
        entries: vec![entry("stream_elided")],
    }
}

fn what_is_beside_frames_comes_with_them_and_not_with_a_load(bench: &Bench) {
    streamed(bench);
    assert_eq!(besides(bench), ["", "one", "", "two"]);
    let after: Vec<Frame> = bench.wait_ok(bench.store.frames(run(1), 4, usize::MAX));
    assert_eq!((after.len(), after[0].beside.as_slice()), (1, &b"two"[..]));
    let loaded = bench.load(run(1)).expect("it exists");
    assert!(loaded.frames.iter().all(|frame| frame.beside.is_empty()));
    let bare = |frame: Frame| Frame { beside: Vec::new(), ..frame };
    let expected: Vec<Frame> = frames(bench).into_iter().map(bare).collect();
    assert_eq!(loaded.frames, expected);
}

fn it_counts_for_the_length_of_a_page(bench: &Bench) {
    bench.create(run(1));
    for after in 1..4 {
        bench.done(Append { beside: vec![b'x'; 1000], ..plain(run(1), after) });
    }
    let page = |bytes_max| bench.wait_ok(bench.store.frames(run(1), 1, bytes_max)).len();
    assert_eq!((page(1), page(1500), page(2500), page(5000)), (1, 1, 2, 3));
}

fn a_refused_append_leaves_nothing_beside(bench: &Bench) {
    bench.create(run(1));
    let spoken = Append { beside: b"never".to_vec(), ..plain(run(1), 1) };
    let guards = vec![Guard { counter: "c".into(), delta: 1, max: Some(0), window_ms: None }];
    assert_eq!(bench.append(Append { guards, ..spoken.clone() }), refused("c", 0));
    let stale = bench.append(Append { after: 0, ..spoken.clone() });
    let foreign = bench.append(Append { node: node(2), ..spoken });
    assert_ne!((stale, foreign), (super::DONE, super::DONE));
    bench.done(plain(run(1), 1));
    assert_eq!(besides(bench), ["", ""]);
}

fn it_is_replaced_by_itself(bench: &Bench) {
    bench.done(hashed(first(run(1))));
    let snapshot = Some(b"state".to_vec());
    bench.done(hashed(Append { beside: b"one".to_vec(), snapshot, ..plain(run(1), 1) }));
    bench.done(hashed(Append { beside: b"two".to_vec(), ..plain(run(1), 2) }));
    let (mut expected, loaded) = (frames(bench), bench.load(run(1)));
    expected[1].beside = b"gone".to_vec();
    assert_eq!(bench.wait_ok(bench.store.erase(erasure(&[(2, "gone")]))), Erased::Done);
    assert_eq!(frames(bench), expected);
    // The folded state has not changed, so the snapshot stays.
    assert_eq!(bench.load(run(1)), loaded);
    assert_eq!(bench.entries().len(), 1);
    assert_eq!(bench.unsealed().heads, [(run(1), 3, event_hash(run(1), 3))]);
    // Together with a body it is a normal erasure.
    let bodies = vec![(2, b"x".to_vec())];
    let both = Erasure { bodies, ..erasure(&[(3, "too")]) };
    assert_eq!(bench.wait_ok(bench.store.erase(both)), Erased::Done);
    assert_eq!(besides(bench), ["", "gone", "too"]);
    assert_eq!(bench.load(run(1)).expect("it exists").snapshot, None);
}

fn where_nothing_is_beside_nothing_is_replaced(bench: &Bench) {
    streamed(bench);
    let before = frames(bench);
    for missing in [0, 1, 3, 5, 6, u64::MAX] {
        let asked = erasure(&[(2, "x"), (missing, "x"), (4, "x")]);
        assert_eq!(bench.wait_ok(bench.store.erase(asked)), Erased::NoFrame, "{missing}");
    }
    assert_eq!(frames(bench), before);
    assert_eq!(bench.entries(), []);
}

fn what_is_left_beside_may_be_nothing(bench: &Bench) {
    streamed(bench);
    let asked = Erasure { entries: Vec::new(), ..erasure(&[(2, "")]) };
    assert_eq!(bench.wait_ok(bench.store.erase(asked)), Erased::Done);
    assert_eq!(besides(bench), ["", "", "", "two"]);
}
