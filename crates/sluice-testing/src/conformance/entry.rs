//! Audit entries in chains.

use super::{Bench, cases, entry, event_hash, first, guard, node, plain, refused, run};
use serde_json::Value;
use sluice_core::evidence::entry::{START, hash, link};
use sluice_core::hash::Hash;
use sluice_core::port::ledger::{Entry, EventRef, Recorded};
use sluice_core::port::store::{Append, Appended};

cases![
    entries_are_chained_after_the_writers_last,
    writers_have_chains_of_their_own,
    an_entry_is_kept_as_it_was_linked,
    an_append_that_is_refused_leaves_no_entry,
    nothing_is_recorded_for_nothing,
    entries_come_in_pages,
];

/// Checks that an entry follows the given end of its chain, and returns the new end.
pub(super) fn follows(one: &Recorded, (seq, prev): (u64, Hash)) -> (u64, Hash) {
    let text: Value = serde_json::from_str(&one.text).expect("it is JSON");
    assert_eq!(one.seq, seq + 1);
    assert_eq!(text["seq"], one.seq);
    assert_eq!(text["prev"], prev.to_string());
    assert_eq!(text["writer"], one.writer.to_string());
    assert_eq!(one.hash, hash(&one.text));
    (one.seq, one.hash)
}

fn record(bench: &Bench, writer: u128, entries: Vec<Entry>) {
    bench.wait_ok(bench.store.record(node(writer), entries));
}

fn entries_are_chained_after_the_writers_last(bench: &Bench) {
    record(bench, 1, vec![entry("one"), entry("two")]);
    bench.done(Append { entries: vec![entry("three"), entry("four")], ..first(run(1)) });
    bench.done(Append { entries: vec![entry("five")], ..plain(run(1), 1) });
    let entries = bench.entries();
    let places: Vec<u64> = entries.iter().map(|one| one.place).collect();
    assert!(places.is_sorted() && places.len() == 5, "{places:?}");
    let last = entries.iter().fold((0, START), |last, one| follows(one, last));
    assert_eq!(last.0, 5);
    for (one, what) in entries.iter().zip(["one", "two", "three", "four", "five"]) {
        assert!(one.text.contains(what), "{}", one.text);
    }
}

fn writers_have_chains_of_their_own(bench: &Bench) {
    for writer in [1, 2, 1, 3, 2] {
        record(bench, writer, vec![entry("a"), entry("b")]);
    }
    let entries = bench.entries();
    for (writer, count) in [(1, 4), (2, 4), (3, 2)] {
        let chain = entries.iter().filter(|one| one.writer == node(writer));
        assert_eq!(chain.fold((0, START), |last, one| follows(one, last)).0, count);
    }
}

fn an_entry_is_kept_as_it_was_linked(bench: &Bench) {
    let event = EventRef { run: run(1), event: 7, hash: event_hash(run(1), 7) };
    let sent = Entry { event: Some(event), actor: "ä\u{0}\"".to_owned(), ..entry("said") };
    record(bench, 2, vec![sent.clone()]);
    let (text, hash) = link(&sent, node(2), 1, START);
    let writer = node(2);
    let expected = Recorded { place: 1, writer, seq: 1, text, hash, is_authentic: true };
    assert_eq!(bench.entries(), [expected]);
}

fn an_append_that_is_refused_leaves_no_entry(bench: &Bench) {
    bench.create(run(1));
    record(bench, 1, vec![entry("before")]);
    let spoken = Append { entries: vec![entry("no")], ..plain(run(1), 1) };
    let guarded = Append { guards: vec![guard("never", 1, Some(0))], ..spoken.clone() };
    assert_eq!(bench.append(guarded), refused("never", 0));
    assert_eq!(bench.append(Append { after: 0, ..spoken.clone() }), Appended::Conflict);
    assert_eq!(bench.append(Append { node: node(2), ..spoken }), Appended::NotOwner);
    record(bench, 1, vec![entry("after")]);
    let entries = bench.entries();
    assert_eq!(entries.len(), 2);
    entries.iter().fold((0, START), |last, one| follows(one, last));
}

fn nothing_is_recorded_for_nothing(bench: &Bench) {
    record(bench, 1, Vec::new());
    assert_eq!(bench.entries(), []);
    assert_eq!(bench.unsealed().writers, []);
}

fn entries_come_in_pages(bench: &Bench) {
    record(bench, 1, (0..5).map(|number| entry(&number.to_string())).collect());
    let all = bench.entries();
    let page = |after: u64, limit| bench.wait_ok(bench.store.entries(after, limit));
    assert_eq!(page(0, 2), all[..2]);
    assert_eq!(page(all[1].place, 2), all[2..4]);
    assert_eq!(page(all[3].place, 2), all[4..]);
    assert_eq!(page(all[4].place, 2), []);
    assert_eq!(page(u64::MAX, 2), []);
    assert_eq!(page(0, 0), []);
}
