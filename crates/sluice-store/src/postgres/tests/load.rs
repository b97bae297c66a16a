//! Appends of many runs that continue through failures, and the checks afterwards.

use super::*;
use sluice_core::port::feed::Feed as _;
use sluice_testing::conformance::{DONE, first, hashed, plain, run};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread::ScopedJoinHandle;
use std::time::Instant;

/// The reported result of one append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AppendResult {
    /// It was stored, as this version.
    Done(u64),
    /// It may be stored.
    Unknown,
    /// It was not stored.
    Not,
}

/// The results of one caller, by the unique bodies of its appends.
struct CallerResults {
    number: u128,
    appends: BTreeMap<Vec<u8>, AppendResult>,
    /// The longest time between two successful appends.
    gap: Duration,
}

/// The figures of a load.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) done: usize,
    pub(super) unknown: usize,
    /// The number of those that were stored.
    pub(super) unknown_stored: usize,
    pub(super) not: usize,
    pub(super) gap: Duration,
}

/// How long a store may take to work again.
const BACK_MS_MAX: u64 = 60_000;

/// Appends from several callers during a failure, and for a while after it. Then checks
/// everything that is stored.
pub(super) fn under_load(
    store: &PostgresStore,
    callers: u128,
    happening: impl FnOnce(),
) -> Figures {
    for number in 1..=callers {
        assert_eq!(append(store, hashed(first(run(number)))), DONE);
    }
    let over = &AtomicBool::new(false);
    let results: Vec<CallerResults> = std::thread::scope(|threads| {
        let callers: Vec<_> = (1..=callers)
            .map(|number| threads.spawn(move || caller(store, number, over)))
            .collect();
        happening();
        // Every caller must complete an append after the failure.
        std::thread::sleep(Duration::from_millis(300));
        over.store(true, Ordering::SeqCst);
        callers.into_iter().map(ScopedJoinHandle::join).map(Result::unwrap).collect()
    });
    let mut figures = Figures::default();
    let mut frames = 0;
    for results in &results {
        frames += check(store, results, &mut figures);
    }
    check_places(store, frames);
    figures
}

fn caller(store: &PostgresStore, number: u128, over: &AtomicBool) -> CallerResults {
    let mut results = CallerResults { number, appends: BTreeMap::new(), gap: Duration::ZERO };
    let (mut after, mut last, mut tries) = (1, Instant::now(), 0u64);
    // One more append at the end: the store must work again.
    loop {
        let ending = over.load(Ordering::SeqCst);
        tries += 1;
        let body = format!("{number} {tries}").into_bytes();
        let next = hashed(Append { body: body.clone(), ..plain(run(number), after) });
        match wait(store.append(Arc::new(next))) {
            Ok(Appended::Done { .. }) => {
                after += 1;
                results.appends.insert(body, AppendResult::Done(after));
                results.gap = results.gap.max(last.elapsed());
                last = Instant::now();
                if ending {
                    return results;
                }
                continue;
            }
            Ok(Appended::Conflict) => {
                let doubted =
                    results.appends.values().any(|result| *result == AppendResult::Unknown);
                assert!(doubted, "no other caller writes to {number}");
                results.appends.insert(body, AppendResult::Not);
            }
            Ok(answer) => panic!("{answer:?}"),
            Err(StoreError::Unavailable(_)) => _ = results.appends.insert(body, AppendResult::Not),
            Err(StoreError::Unknown(_)) => _ = results.appends.insert(body, AppendResult::Unknown),
            Err(error) => panic!("{error}"),
        }
        assert!(last.elapsed() < Duration::from_millis(BACK_MS_MAX), "it does not come back");
        std::thread::sleep(Duration::from_millis(5));
        if let Ok(Some(loaded)) = wait(store.load(run(number))) {
            after = loaded.frames.len() as u64;
        }
    }
}

/// Checks a journal against the results its writer got. Returns its length.
fn check(store: &PostgresStore, results: &CallerResults, figures: &mut Figures) -> usize {
    let frames = wait(store.load(run(results.number))).unwrap().unwrap().frames;
    let mut found = BTreeMap::new();
    for (version, frame) in (1..).zip(&frames) {
        assert_eq!((frame.first, frame.count), (version, 1), "ids are dense");
        assert_eq!(found.insert(&frame.body, version), None, "nothing is there twice");
    }
    for (body, result) in &results.appends {
        let there = found.remove(body);
        match result {
            AppendResult::Done(version) => assert_eq!(there, Some(*version), "an answer is kept"),
            AppendResult::Not => assert_eq!(there, None, "what failed left nothing"),
            AppendResult::Unknown => figures.unknown_stored += usize::from(there.is_some()),
        }
        match result {
            AppendResult::Done(_) => figures.done += 1,
            AppendResult::Not => figures.not += 1,
            AppendResult::Unknown => figures.unknown += 1,
        }
    }
    assert_eq!(found.len(), 1, "only the first event is left");
    figures.gap = figures.gap.max(results.gap);
    frames.len()
}

/// Checks that the feed has every frame once, and no gap.
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
