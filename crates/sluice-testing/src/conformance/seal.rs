//! Seals, and what no seal covers yet.

use super::{Bench, cases, entry, event_hash, first, hashed, node, plain, run};
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::ledger::{SealMark, SealRow, Sealed, Sealing, Unsealed};
use sluice_core::port::store::{Append, NodeId};

cases![
    nothing_is_unsealed_at_first,
    the_newest_version_of_each_run_is_unsealed,
    a_seal_covers_what_came_before_it,
    frames_without_hashes_pass,
    the_last_entry_of_each_writer_is_unsealed,
    run_heads_come_in_parts,
    a_seal_that_is_not_the_next_is_stale,
    seals_are_read_back_in_order,
];

fn head(number: u128, version: u64) -> (RunId, u64, Hash) {
    (run(number), version, event_hash(run(number), version))
}

/// Appends one hashed event, or two.
fn grow(bench: &Bench, number: u128, after: u64, count: u32) {
    let append = if after == 0 { first(run(number)) } else { plain(run(number), after) };
    bench.done(hashed(Append { count, ..append }));
}

fn sealing(number: u64, upto: SealMark) -> Sealing {
    let text = format!("seal {number}");
    let (hash, leaves) = (Hash::of(text.as_bytes()), vec![7; 3]);
    Sealing { number, text, leaves, hash, upto }
}

fn seal(bench: &Bench, number: u64, upto: SealMark) -> Sealed {
    bench.wait_ok(bench.store.seal(sealing(number, upto)))
}

fn nothing_is_unsealed_at_first(bench: &Bench) {
    assert_eq!(bench.unsealed(), Unsealed::default());
    assert_eq!(bench.wait_ok(bench.store.seals(0, 10)), []);
}

fn the_newest_version_of_each_run_is_unsealed(bench: &Bench) {
    grow(bench, 2, 0, 2);
    grow(bench, 1, 0, 1);
    grow(bench, 2, 2, 3);
    grow(bench, 1, 1, 1);
    let unsealed = bench.unsealed();
    assert_eq!(unsealed.heads, [head(1, 2), head(2, 5)]);
    assert_eq!((unsealed.last, unsealed.writers), (None, Vec::new()));
    assert_eq!(unsealed.upto, SealMark { frames: 4, entries: 0 });
}

fn a_seal_covers_what_came_before_it(bench: &Bench) {
    grow(bench, 1, 0, 1);
    grow(bench, 2, 0, 1);
    let upto = bench.unsealed().upto;
    // The next seal covers what is appended between the read and the seal.
    grow(bench, 2, 1, 1);
    assert_eq!(seal(bench, 1, upto), Sealed::Done);
    let unsealed = bench.unsealed();
    assert_eq!(unsealed.last, Some((1, sealing(1, upto).hash)));
    assert_eq!(unsealed.heads, [head(2, 2)]);
    assert_eq!(seal(bench, 2, unsealed.upto), Sealed::Done);
    assert_eq!(bench.unsealed().heads, []);
    assert_eq!(bench.unsealed().upto, unsealed.upto);
}

fn frames_without_hashes_pass(bench: &Bench) {
    bench.create(run(1));
    grow(bench, 2, 0, 1);
    bench.done(plain(run(2), 1));
    bench.create(run(3));
    let unsealed = bench.unsealed();
    assert_eq!(unsealed.heads, [head(2, 1)]);
    assert_eq!(unsealed.upto.frames, 4);
}

fn the_last_entry_of_each_writer_is_unsealed(bench: &Bench) {
    let record = |writer| bench.wait_ok(bench.store.record(node(writer), vec![entry("a")]));
    [3, 1, 3].into_iter().for_each(record);
    let of = |place: usize| {
        let one = &bench.entries()[place];
        (one.writer, one.seq, one.hash)
    };
    let writers = |unsealed: &Unsealed| -> Vec<(NodeId, u64, Hash)> { unsealed.writers.clone() };
    let unsealed = bench.unsealed();
    assert_eq!(writers(&unsealed), [of(1), of(2)]);
    assert_eq!(unsealed.upto, SealMark { frames: 0, entries: 3 });
    seal(bench, 1, unsealed.upto);
    record(3);
    assert_eq!(writers(&bench.unsealed()), [of(3)]);
}

fn run_heads_come_in_parts(bench: &Bench) {
    for number in 1..=3 {
        grow(bench, number, 0, 1);
        grow(bench, number, 1, 1);
    }
    bench.done(plain(run(1), 2));
    let part = |limit| bench.wait_ok(bench.store.unsealed(limit));
    assert_eq!((part(0).heads, part(0).upto.frames), (Vec::new(), 0));
    assert_eq!((part(2).heads, part(2).upto.frames), (vec![head(1, 2), head(2, 2)], 4));
    assert_eq!(seal(bench, 1, part(2).upto), Sealed::Done);
    assert_eq!((part(2).heads, part(2).upto.frames), (vec![head(3, 2)], 7));
}

fn a_seal_that_is_not_the_next_is_stale(bench: &Bench) {
    let mark = SealMark::default();
    for (number, outcome) in [
        (0, Sealed::Stale),
        (2, Sealed::Stale),
        (1, Sealed::Done),
        (1, Sealed::Stale),
        (3, Sealed::Stale),
        (2, Sealed::Done),
    ] {
        assert_eq!(seal(bench, number, mark), outcome, "{number}");
    }
    assert_eq!(bench.unsealed().last, Some((2, sealing(2, mark).hash)));
}

fn seals_are_read_back_in_order(bench: &Bench) {
    for number in 1..=4 {
        assert_eq!(seal(bench, number, SealMark::default()), Sealed::Done);
    }
    let numbers = |from, limit| -> Vec<u64> {
        let seals = bench.wait_ok(bench.store.seals(from, limit));
        seals.iter().map(|seal| seal.number).collect()
    };
    assert_eq!(numbers(0, 10), [1, 2, 3, 4]);
    assert_eq!(numbers(1, 2), [1, 2]);
    assert_eq!(numbers(3, 2), [3, 4]);
    assert_eq!(numbers(5, 2), Vec::<u64>::new());
    let row = SealRow { number: 2, text: "seal 2".to_owned(), leaves: vec![7; 3] };
    assert_eq!(bench.wait_ok(bench.store.seals(2, 1)), [row]);
}
