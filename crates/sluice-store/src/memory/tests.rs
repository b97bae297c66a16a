use super::*;
use sluice_core::port::store::{Append, Appended, Posted};
use sluice_testing::conformance::{
    self, Bench, DONE, SetClock, first, message, node, plain, run, wait,
};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

fn bench() -> Bench {
    let clock = Arc::new(SetClock::default());
    Bench { store: Arc::new(MemoryStore::new(clock.clone())), clock }
}

fn without(checks: Checks) -> MemoryStore {
    MemoryStore::with_checks(Arc::new(SetClock::default()), checks)
}

fn now<T>(later: &mut Later<'_, T>) -> Poll<T> {
    later.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn memory_is_a_store() {
    conformance::check(bench);
}

#[test]
fn without_the_version_check_readers_see_ids_twice() {
    let store = without(Checks { version: false, ..Checks::default() });
    wait(store.append(Arc::new(first(run(1))))).unwrap();
    for _ in 0..2 {
        assert_eq!(wait(store.append(Arc::new(plain(run(1), 1)))).unwrap(), DONE);
    }
    let frames = wait(store.frames(run(1), 0, 1000)).unwrap();
    assert_eq!(frames.iter().map(|frame| frame.first).collect::<Vec<_>>(), [1, 2, 2]);
}

#[test]
fn without_the_epoch_check_anyone_appends() {
    let store = without(Checks { epoch: false, ..Checks::default() });
    wait(store.append(Arc::new(first(run(1))))).unwrap();
    let foreign = Append { node: node(2), epoch: 9, ..plain(run(1), 1) };
    assert_eq!(wait(store.append(Arc::new(foreign))).unwrap(), DONE);
    assert_eq!(wait(store.append(Arc::new(plain(run(1), 1)))).unwrap(), Appended::Conflict);
}

#[test]
fn without_deduplication_letters_come_twice() {
    let store = without(Checks { dedupe: false, ..Checks::default() });
    wait(store.append(Arc::new(first(run(1))))).unwrap();
    for _ in 0..2 {
        assert_eq!(wait(store.post(message(run(1), "a"))).unwrap(), Posted::Done);
    }
    assert_eq!(wait(store.messages(Mailboxes::Run(run(1)))).unwrap().len(), 2);
}

#[test]
fn a_change_through_another_handle_is_noticed() {
    let one = without(Checks::default());
    let other = one.beside();
    let mut changed = one.changed(1000);
    assert!(now(&mut changed).is_pending());
    wait(one.append(Arc::new(first(run(1))))).unwrap();
    assert!(now(&mut changed).is_pending(), "its own change");
    wait(other.renew(node(2), 10)).unwrap();
    assert!(now(&mut changed).is_ready());
    assert!(now(&mut one.changed(1000)).is_pending(), "reported once");
    wait(other.renew(node(2), 10)).unwrap();
    assert!(now(&mut one.changed(1000)).is_ready(), "also without a waiting caller");
}

#[test]
fn random_scripts_meet_every_answer() {
    let mut bits = 1u64;
    let mut next = || {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bits ^ (bits >> 29)
    };
    let mut text = String::new();
    for _ in 0..40 {
        let commands: Vec<u64> = (0..100).map(|_| next()).collect();
        text += &conformance::script::transcript(&bench(), &commands).join("\n");
    }
    for answer in [
        ": Done",
        "Conflict",
        "NotOwner",
        "Refused",
        "same: true",
        "same: false",
        "Duplicate",
        "NoRun",
        "from: None",
        "from: Some",
        "Already",
        "Held",
        "changed Done",
        "Stale { epoch",
        "sealed Done",
        "sealed Stale",
        "erased Done",
        "NoFrame",
    ] {
        assert!(text.matches(answer).count() > 5, "{answer}: {}", text.matches(answer).count());
    }
}
