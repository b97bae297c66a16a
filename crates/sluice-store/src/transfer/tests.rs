mod figures;
mod kill;
mod refused;

use super::*;
use crate::authentic::{self, Keyed as _};
use crate::postgres::OpenError;
use crate::postgres::tests::server;
use crate::sqlite::SqliteStore;
use proptest::prelude::*;
use sluice_core::evidence::mac::Doubts;
use sluice_core::port::Clock as _;
use sluice_core::port::deliveries::{Ahead, Delivery};
use sluice_core::port::ledger::{Change, Counter, SealMark, Sealing};
use sluice_core::port::lineage::ProvenanceEdge;
use sluice_core::port::remembered_output::RememberedOutput;
use sluice_core::port::slots::{Mark, Slot};
use sluice_core::port::store::{
    Append, Appended, Blob, Create, Filter, Guard, Key, MailboxMessage, Mailboxes, ReadMessage,
    Store,
};
use sluice_govern::registry::{Kind, Row as RegistryRow};
use sluice_testing::conformance::authentic::key;
use sluice_testing::conformance::inspect::{common, everything, is_foreign};
use sluice_testing::conformance::{
    self, Bench, SetClock, entry, first, guard, hashed, message, node, plain, released, run, wait,
};
use std::sync::Arc;

/// A text with both characters that are encoded as two, and with their encodings.
const STRANGE: &str = "a\0b\u{1}c\u{1}\u{2}d\u{1}\u{1}";
/// Later than every lease.
const LATE_MS: u64 = 1_000_000;

/// With a key: all rows have MACs, which are transferred with them.
fn sqlite(dir: &Path) -> SqliteStore {
    let store = SqliteStore::open(dir, Arc::new(SetClock::default())).unwrap();
    match store.marked(&key()) {
        authentic::Mark::Own => store.unlock(key()),
        _ => wait(store.adopt(key(), Doubts::default())).unwrap(),
    }
    store
}

fn postgres(url: &str) -> Result<PostgresStore, OpenError> {
    let store = PostgresStore::open(url, Arc::new(SetClock::default()))?;
    if store.marked(&key()) == authentic::Mark::Own {
        store.unlock(key());
    }
    Ok(store)
}

fn on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A complete transfer.
fn transfer(dir: &Path, url: &str) -> Vec<Carried> {
    let mut transfer = Transfer::begin(dir, url, None, LATE_MS).unwrap();
    transfer.carry(&mut on).unwrap();
    transfer.end().unwrap();
    transfer.carried().to_vec()
}

fn append(store: &dyn Store, append: Append) {
    let appended = wait(store.append(Arc::new(append))).unwrap();
    assert!(matches!(appended, Appended::Done { .. }), "{appended:?}");
}

/// Puts rows into every table, most of them with unusual names.
fn furnish(store: &dyn Store) {
    let strange = || STRANGE.to_owned();
    let fingerprint = Hash::of(b"inputs");
    let key = Some(Key { key: strange(), former: None, fingerprint, expires_at_ms: 5_000_000 });
    let create = Create {
        workflow: strange(),
        version: Some(3),
        initiator: strange(),
        started_at_ms: 900,
        parent: Some(run(9)),
        key,
    };
    let body = b"blob".to_vec();
    let remembered_output = |agent: &str| RememberedOutput {
        agent: agent.to_owned(),
        run: run(1),
        at_ms: 5,
        body: vec![0],
    };
    let windowed = Guard { window_ms: Some(60_000), ..guard(STRANGE, 2, None) };
    append(
        store,
        hashed(Append {
            create: Some(create),
            beside: b"beside".to_vec(),
            snapshot: Some(b"state".to_vec()),
            blobs: vec![Blob { hash: Hash::of(&body), body }],
            guards: vec![guard(STRANGE, 7, None), windowed, guard("", 1, None)],
            entries: vec![entry(STRANGE), entry("b")],
            provenance_edges: vec![ProvenanceEdge { from: run(2), values: 4 }],
            remembered_outputs: vec![
                remembered_output(STRANGE),
                remembered_output("b"),
                remembered_output(STRANGE),
            ],
            ..first(run(1))
        }),
    );
    for number in 2..6 {
        let head = Some(released((number % 2 == 0).then_some(1500)));
        append(store, hashed(Append { head, ..first(run(number)) }));
    }
    let messages = ["read", STRANGE, "", "last"].map(|key| message(run(1), key));
    for message in messages {
        wait(store.post(message)).unwrap();
    }
    let received = wait(store.messages(Mailboxes::Run(run(1)))).unwrap();
    let read = received.first().map(|one| ReadMessage { id: one.id, key: one.message.key.clone() });
    append(store, Append { read: read.into_iter().collect(), ..plain(run(1), 1) });
    ledger(store);
    triggers(store);
}

fn ledger(store: &dyn Store) {
    let row = |name: &str| RegistryRow {
        kind: Kind::Agent,
        name: name.to_owned(),
        body: serde_json::json!({ "said": STRANGE }),
    };
    let change = |put, remove| Change {
        expect: None,
        put,
        remove,
        node: node(2),
        entries: vec![entry("c")],
    };
    wait(store.change(change(vec![row(STRANGE), row("b")], Vec::new()))).unwrap();
    wait(store.change(change(vec![row("c")], vec![(Kind::Agent, "b".to_owned())]))).unwrap();
    let (text, upto) = ("seal 1".to_owned(), SealMark { frames: 2, entries: 1 });
    let hash = Hash::of(text.as_bytes());
    wait(store.seal(Sealing { number: 1, text, leaves: vec![1, 0], hash, upto })).unwrap();
}

fn triggers(store: &dyn Store) {
    let strange = || STRANGE.to_owned();
    let slot = |schedule: &str, slot_ms| Slot {
        schedule: schedule.to_owned(),
        slot_ms,
        count: 2,
        outcome: strange(),
        why: Some(strange()),
        run: (slot_ms == 1).then(|| run(1)),
        at_ms: 4,
    };
    let slots = [slot(STRANGE, 1), slot(STRANGE, 2), slot("b", 1)];
    let marks = slots.map(|slot| Mark { slot, from: Vec::new() }).to_vec();
    assert_eq!(wait(store.mark(marks)).unwrap(), [true; 3]);
    let delivery = |event, error: Option<String>| Delivery {
        number: 0,
        webhook: strange(),
        run: run(1),
        event,
        kind: strange(),
        tries: 2,
        status: error.as_ref().map(|_| 503),
        error,
        at_ms: 5,
        next_ms: (event == 1).then_some(9),
    };
    let put = vec![delivery(1, None), delivery(2, Some(strange()))];
    let ahead = Ahead { webhook: strange(), from: None, to: 6, put };
    assert!(wait(store.deliver(ahead)).unwrap());
}

/// Everything that a store can be queried for.
fn answers(store: &dyn Store) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |line: String| lines.push(line);
    for number in 1..6 {
        say(format!("{:?}", wait(store.load(run(number)))));
        say(format!("{:?}", wait(store.frames(run(number), 0, usize::MAX))));
        // Without their ids: a store may choose the ids of future messages.
        let messages = wait(store.messages(Mailboxes::Run(run(number)))).unwrap();
        say(format!(
            "{:?}",
            messages.into_iter().map(|one| one.message).collect::<Vec<MailboxMessage>>()
        ));
        say(format!("{:?}", wait(store.consumers(run(number), None, 0))));
    }
    say(format!("{:?}", wait(store.list(Filter::default()))));
    say(format!("{:?}", wait(store.blob(Hash::of(b"blob")))));
    say(format!("{:?}", wait(store.feed(0, usize::MAX))));
    say(format!("{:?}", wait(store.feed_end())));
    let windowed = Counter { name: STRANGE.to_owned(), window_ms: Some(60_000) };
    let counters = vec![Counter::plain(STRANGE), Counter::plain(""), windowed];
    say(format!("{:?}", wait(store.counts(counters))));
    say(format!("{:?}", wait(store.counters(String::new(), "zz".to_owned(), 0xff))));
    for epoch in 0..3 {
        say(format!("{:?}", wait(store.registry(Some(epoch)))));
    }
    say(format!("{:?}", wait(store.entries(0, usize::MAX))));
    say(format!("{:?}", wait(store.seals(0, usize::MAX))));
    say(format!("{:?}", wait(store.unsealed(usize::MAX))));
    say(format!("{:?}", wait(store.remembered_outputs(vec![STRANGE.to_owned(), "b".to_owned()]))));
    for name in [STRANGE, "b"] {
        say(format!("{:?}", wait(store.slots(name.to_owned(), None, 0))));
        say(format!("{:?}", wait(store.delivering(name.to_owned()))));
        say(format!("{:?}", wait(store.deliveries(name.to_owned(), None, 0))));
    }
    // The target knows read messages and used keys too.
    for key in ["read", STRANGE] {
        say(format!(
            "{:?}",
            wait(store.post(MailboxMessage { body: Vec::new(), ..message(run(1), key) }))
        ));
    }
    let fingerprint = Hash::of(b"others");
    let key = STRANGE.to_owned();
    let key = Some(Key { key, former: None, fingerprint, expires_at_ms: 5_000_000 });
    let again = first(run(77));
    let create = again.create.clone().map(|create| Create { key, ..create });
    say(format!("{:?}", wait(store.append(Arc::new(Append { create, ..again })))));
    lines
}

/// What both stores do next: the same, with the same numbers.
fn goes_on(store: &dyn Store) -> Vec<String> {
    wait(store.post(message(run(2), "new"))).unwrap();
    let claims = wait(store.claim(node(7), 2000, 10)).unwrap();
    let next = claims.iter().find(|claim| claim.run == run(1)).expect("its owner is dead");
    let (node, epoch) = (node(7), next.epoch);
    let entries = vec![entry("later")];
    let more = Append { node, epoch, entries, ..plain(run(1), 2) };
    append(store, hashed(Append { guards: vec![guard(STRANGE, 1, Some(8))], ..more }));
    let mut lines = vec![format!("{claims:?}")];
    lines.extend(answers(store));
    lines
}

#[test]
fn every_table_arrives_whatever_characters_it_has() {
    let (dir, url) = (tempfile::tempdir().unwrap(), server().schema());
    furnish(&sqlite(dir.path()));
    let carried = transfer(dir.path(), &url);
    for table in &carried {
        assert!(table.rows > 0, "nothing of {} was there to be carried", table.table);
    }
    let (source, target) = (sqlite(dir.path()), postgres(&url).unwrap());
    let shown = [everything(&source), everything(&target)].map(common);
    assert!(!shown.iter().flatten().any(is_foreign), "{shown:?}");
    assert_eq!(shown[1], shown[0]);
    assert_eq!(answers(&target), answers(&source));
    assert_eq!(goes_on(&target), goes_on(&source));
}

#[test]
fn an_empty_store_is_carried_too() {
    let (dir, url) = (tempfile::tempdir().unwrap(), server().schema());
    drop(sqlite(dir.path()));
    transfer(dir.path(), &url);
    assert_eq!(answers(&postgres(&url).unwrap()), answers(&sqlite(dir.path())));
}

#[test]
fn a_transfer_that_stops_after_every_batch_goes_on_and_copies_nothing_twice() {
    let (dir, url) = (tempfile::tempdir().unwrap(), server().schema());
    furnish(&sqlite(dir.path()));
    let mut batches = Vec::new();
    loop {
        let mut transfer = Transfer::begin(dir.path(), &url, None, LATE_MS).unwrap();
        assert!(!transfer.has_ended());
        transfer.bytes_max = 1;
        let carried = transfer.carry(&mut |progress| {
            if progress.doing == Doing::Comparing {
                return ControlFlow::Continue(());
            }
            batches.push((progress.table, progress.rows, progress.of));
            ControlFlow::Break(())
        });
        match carried {
            Err(TransferError::Stopped) => {
                let opened = postgres(&url).err().expect("it is no store yet");
                assert!(matches!(opened, OpenError::Unfinished), "{opened}");
            }
            carried => {
                carried.unwrap();
                transfer.end().unwrap();
                break;
            }
        }
        assert!(batches.len() < 200, "it goes on for ever");
        // The row of positions is written again each time, and is the last one.
        if batches.last().is_some_and(|(table, ..)| *table == "position") {
            transfer.carry(&mut on).unwrap();
            transfer.end().unwrap();
            break;
        }
    }
    let one_by_one = |table: &str| {
        let of = batches.iter().filter(|(name, ..)| *name == table);
        of.map(|(_, rows, of)| (*rows, *of)).collect::<Vec<_>>()
    };
    assert_eq!(one_by_one("frame"), (1..=6).map(|rows| (rows, 6)).collect::<Vec<_>>());
    assert_eq!(one_by_one("letter"), (1..=4).map(|rows| (rows, 4)).collect::<Vec<_>>());
    let transfer = Transfer::begin(dir.path(), &url, None, LATE_MS).unwrap();
    assert!(transfer.has_ended(), "what has ended is not begun again");
    drop(transfer);
    assert_eq!(answers(&postgres(&url).unwrap()), answers(&sqlite(dir.path())));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_scripts_are_the_same_after_a_transfer_and_go_on_the_same(
        commands in prop::collection::vec(any::<u64>(), 1..120),
        later in prop::collection::vec(any::<u64>(), 1..60),
    ) {
        let (dir, url) = (tempfile::tempdir().unwrap(), server().schema());
        let clock = Arc::new(SetClock::default());
        let store = Arc::new(SqliteStore::open(dir.path(), clock.clone()).unwrap());
        let bench = Bench { store, clock: clock.clone() };
        conformance::script::transcript(&bench, &commands);
        drop(bench);
        // With the same clock: the leases of the script's nodes have not expired, but
        // their process is gone.
        let now_ms = clock.now_ms();
        let mut transfer = Transfer::begin(dir.path(), &url, None, now_ms).unwrap();
        transfer.bytes_max = 600;
        transfer.carry(&mut on).unwrap();
        transfer.end().unwrap();
        drop(transfer);
        let at = || {
            let clock = SetClock::default();
            clock.set(now_ms);
            Arc::new(clock)
        };
        let clock = at();
        let store = Arc::new(SqliteStore::open(dir.path(), clock.clone()).unwrap());
        let source = conformance::script::transcript(&Bench { store, clock }, &later);
        let clock = at();
        let store = Arc::new(PostgresStore::open(&url, clock.clone()).unwrap());
        let target = conformance::script::transcript(&Bench { store, clock }, &later);
        prop_assert_eq!(target, source);
    }
}
