//! Appends of many runs that go on whatever happens, and what must be true of
//! them afterwards.

use super::*;
use crate::conformance::{DONE, first, hashed, plain, run};
use sluice_core::port::feed::Feed as _;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread::ScopedJoinHandle;
use std::time::Instant;

/// What the store said of one append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    /// It is there, as this version.
    Done(u64),
    /// It may be there.
    Unknown,
    /// It is not there.
    Not,
}

/// What one caller was told, by the bodies of its appends: no two are the same.
struct Told {
    number: u128,
    appends: BTreeMap<Vec<u8>, Said>,
    /// The longest time between two that were done.
    gap: Duration,
}

/// What became of a load.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) done: usize,
    pub(super) unknown: usize,
    /// Of those, the ones that were there.
    pub(super) unknown_there: usize,
    pub(super) not: usize,
    pub(super) gap: Duration,
}

/// How long a store may take to be of use again.
const BACK_MS_MAX: u64 = 60_000;

/// Appends from several callers while something happens, and for a while after.
/// Then looks at everything that is there.
pub(super) fn under_load(
    store: &PostgresStore,
    callers: u128,
    happening: impl FnOnce(),
) -> Figures {
    for number in 1..=callers {
        assert_eq!(append(store, hashed(first(run(number)))), DONE);
    }
    let over = &AtomicBool::new(false);
    let told: Vec<Told> = std::thread::scope(|threads| {
        let callers: Vec<_> = (1..=callers)
            .map(|number| threads.spawn(move || caller(store, number, over)))
            .collect();
        happening();
        // Every caller must get something done after it.
        std::thread::sleep(Duration::from_millis(300));
        over.store(true, Ordering::SeqCst);
        callers.into_iter().map(ScopedJoinHandle::join).map(Result::unwrap).collect()
    });
    let mut figures = Figures::default();
    let mut frames = 0;
    for told in &told {
        frames += check(store, told, &mut figures);
    }
    check_places(store, frames);
    figures
}

fn caller(store: &PostgresStore, number: u128, over: &AtomicBool) -> Told {
    let mut told = Told { number, appends: BTreeMap::new(), gap: Duration::ZERO };
    let (mut after, mut last, mut tries) = (1, Instant::now(), 0u64);
    // One more after the end: what was out of reach must be back.
    loop {
        let ending = over.load(Ordering::SeqCst);
        tries += 1;
        let body = format!("{number} {tries}").into_bytes();
        let next = hashed(Append { body: body.clone(), ..plain(run(number), after) });
        match wait(store.append(Arc::new(next))) {
            Ok(Appended::Done { .. }) => {
                after += 1;
                told.appends.insert(body, Said::Done(after));
                told.gap = told.gap.max(last.elapsed());
                last = Instant::now();
                if ending {
                    return told;
                }
                continue;
            }
            Ok(Appended::Conflict) => {
                let doubted = told.appends.values().any(|said| *said == Said::Unknown);
                assert!(doubted, "nobody else writes to {number}");
                told.appends.insert(body, Said::Not);
            }
            Ok(answer) => panic!("{answer:?}"),
            Err(StoreError::Unavailable(_)) => _ = told.appends.insert(body, Said::Not),
            Err(StoreError::Unknown(_)) => _ = told.appends.insert(body, Said::Unknown),
            Err(error) => panic!("{error}"),
        }
        assert!(last.elapsed() < Duration::from_millis(BACK_MS_MAX), "it does not come back");
        std::thread::sleep(Duration::from_millis(5));
        if let Ok(Some(loaded)) = wait(store.load(run(number))) {
            after = loaded.frames.len() as u64;
        }
    }
}

/// Whether a journal is what its writer was told. Answers its length.
fn check(store: &PostgresStore, told: &Told, figures: &mut Figures) -> usize {
    let frames = wait(store.load(run(told.number))).unwrap().unwrap().frames;
    let mut found = BTreeMap::new();
    for (version, frame) in (1..).zip(&frames) {
        assert_eq!((frame.first, frame.count), (version, 1), "ids are dense");
        assert_eq!(found.insert(&frame.body, version), None, "nothing is there twice");
    }
    for (body, said) in &told.appends {
        let there = found.remove(body);
        match said {
            Said::Done(version) => assert_eq!(there, Some(*version), "an answer is kept"),
            Said::Not => assert_eq!(there, None, "what failed left nothing"),
            Said::Unknown => figures.unknown_there += usize::from(there.is_some()),
        }
        match said {
            Said::Done(_) => figures.done += 1,
            Said::Not => figures.not += 1,
            Said::Unknown => figures.unknown += 1,
        }
    }
    assert_eq!(found.len(), 1, "the first of all, and nothing that nobody wrote");
    figures.gap = figures.gap.max(told.gap);
    frames.len()
}

/// Whether the feed has every frame once, and no gap.
fn check_places(store: &PostgresStore, frames: usize) {
    let (mut after, mut seen) = (0, 0);
    loop {
        let placed = wait(store.feed(after, usize::MAX)).unwrap();
        if placed.is_empty() {
            break;
        }
        for one in &placed {
            assert_eq!(one.place, after + 1, "no place is left out");
            after = one.place;
        }
        seen += placed.len();
    }
    assert_eq!(seen, frames);
}
