//! The ledger's part of random scripts.

use super::{Dice, NODES, RUNS, blob, place};
use crate::conformance::{Bench, entry, node, run};
use serde_json::json;
use sluice_core::hash::Hash;
use sluice_core::port::ledger::{Change, Counter, Entry, Erasure, SealMark, Sealing};
use sluice_govern::registry::{Kind, Row};

const KINDS: [Kind; 2] = [Kind::Policy, Kind::Agent];

/// Usually none, sometimes one or two.
pub(super) fn entries(dice: &mut Dice) -> Vec<Entry> {
    let count = if dice.once_in(4) { 1 + dice.roll(2) } else { 0 };
    (0..count).map(|_| entry(&format!("said {}", dice.roll(9)))).collect()
}

pub(super) fn change(bench: &Bench, dice: &mut Dice) -> String {
    let name = |dice: &mut Dice| (KINDS[place(dice.roll(2))], format!("r{}", dice.roll(3)));
    let row = |dice: &mut Dice| {
        let (kind, name) = name(dice);
        Row { kind, name, body: json!({ "n": dice.roll(9) }) }
    };
    let change = Change {
        expect: dice.once_in(2).then(|| dice.roll(4)),
        put: (0..dice.roll(3)).map(|_| row(dice)).collect(),
        remove: (0..dice.roll(2)).map(|_| name(dice)).collect(),
        node: dice.node(),
        entries: entries(dice),
    };
    format!("changed {:?}", bench.wait_ok(bench.store.change(change)))
}

/// Reads what is unsealed and seals it, with the right number or not.
pub(super) fn seal(bench: &Bench, dice: &mut Dice) -> String {
    let unsealed = bench.wait_ok(bench.store.unsealed(place(dice.roll(4))));
    let last = unsealed.last.map_or(0, |(number, _)| number);
    let number = if dice.once_in(4) { dice.roll(3) } else { last + 1 };
    let text = format!("seal {number}");
    let (hash, upto) = (Hash::of(text.as_bytes()), unsealed.upto);
    let seal = Sealing { number, text, leaves: vec![1, 2], hash, upto };
    format!("{unsealed:?} sealed {:?}", bench.wait_ok(bench.store.seal(seal)))
}

/// Records, counts, erases, or reads the registry at an earlier epoch.
pub(super) fn beside(bench: &Bench, dice: &mut Dice) -> String {
    match dice.roll(4) {
        0 => {
            let (writer, entries) = (dice.node(), vec![entry("a"), entry("b")]);
            format!("recorded {:?}", bench.wait_ok(bench.store.record(writer, entries)))
        }
        1 => format!("counts {:?}", bench.wait_ok(bench.store.counts(counters()))),
        2 => format!("{:?}", bench.wait_ok(bench.store.registry(Some(dice.roll(6))))),
        _ => {
            let bodies: Vec<_> =
                (0..dice.roll(2)).map(|_| (1 + dice.roll(3), b"erased".to_vec())).collect();
            let besides = dice.once_in(4).then(|| (1 + dice.roll(4), b"left".to_vec()));
            let erasure = Erasure {
                run: dice.run(),
                bodies,
                besides: besides.into_iter().collect(),
                blobs: if dice.once_in(2) { vec![blob().hash] } else { Vec::new() },
                node: dice.node(),
                entries: entries(dice),
            };
            format!("erased {:?}", bench.wait_ok(bench.store.erase(erasure)))
        }
    }
}

fn counters() -> Vec<Counter> {
    let windows = [None, Some(7), Some(60), Some(300)];
    let names = ["c0", "c1", "registry"].map(str::to_owned);
    let of = |name: &String| windows.map(|window_ms| Counter { name: name.clone(), window_ms });
    names.iter().flat_map(of).collect()
}

/// Everything in the ledger.
pub(super) fn stored(bench: &Bench) -> Vec<String> {
    let seals = bench.wait_ok(bench.store.seals(0, usize::MAX));
    let last = seals.last().map_or(0, |seal| seal.number);
    let before = bench.unsealed();
    // The heads of all runs, as if nothing had been sealed.
    let begin = SealMark::default();
    let (text, leaves, hash) = (String::new(), Vec::new(), Hash([0; 32]));
    let again = Sealing { number: last + 1, text, leaves, hash, upto: begin };
    bench.wait_ok(bench.store.seal(again));
    let unsealed = bench.unsealed();
    assert!(unsealed.heads.len() as u64 <= RUNS && unsealed.writers.len() as u64 <= NODES);
    assert!(unsealed.heads.iter().all(|head| (1..=u128::from(RUNS)).any(|n| head.0 == run(n))));
    assert!(unsealed.writers.iter().all(|of| (1..=u128::from(NODES)).any(|n| of.0 == node(n))));
    let mut lines = vec![format!("{seals:?}"), format!("{before:?}"), format!("{unsealed:?}")];
    lines.push(format!("{:?}", bench.entries()));
    lines.push(format!("{:?}", bench.wait_ok(bench.store.counts(counters()))));
    for epoch in 0..=bench.wait_ok(bench.store.registry(None)).epoch {
        lines.push(format!("{:?}", bench.wait_ok(bench.store.registry(Some(epoch)))));
    }
    lines
}
