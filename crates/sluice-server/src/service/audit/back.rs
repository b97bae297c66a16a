//! The audit from its end: the newest first, a page at a time.
//!
//! Entries and appends are two lists, each in the order of its places; here they
//! are merged by time. Clocks of several writers need not agree, so a fact counts
//! as no newer than those behind it in its own list: then what was shown is
//! always the end of both lists.
//!
//! INVARIANT: pages that follow each other leave nothing out and show nothing twice.
//!
//! INVARIANT: a page looks at a bounded number of places, and may hold fewer facts
//! than were asked for; where to go on is said as long as there is more.

use super::fact::Fact;
use super::{Cursor, PAGE, PAGE_BYTES, Wanted, entries_end};
use crate::refused::Done;
use crate::service::Service;
use sluice_core::port::feed::Placed;
use std::cmp::Reverse;

/// Places of each list that are looked at together.
const WINDOW: u64 = 500;
/// How often a page looks further back before it says what it has.
const LOOKS_MAX: usize = 16;
/// How far clocks of writers may be apart.
const SKEW_MS: u64 = 60 * 60 * 1000;

/// Which of the two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Entries,
    Frames,
}

/// What stands at a place.
#[derive(Debug)]
struct Item {
    list: List,
    place: u64,
    at_ms: u64,
    /// Newest first.
    facts: Vec<Fact>,
}

/// The end of a list, as far back as it was read.
struct End {
    /// Newest first.
    items: Vec<Item>,
    /// The place after which it was read.
    from: u64,
}

/// The end of everything there is.
pub async fn end(service: &Service) -> Done<Cursor> {
    let frames = service.store.feed_end().await?;
    Ok(Cursor { entries: entries_end(service).await?, frames })
}

/// Facts up to a place, newest first, and up to where the next page is; none if
/// there is nothing before.
pub async fn page(
    service: &Service,
    mut upto: Cursor,
    wanted: &Wanted,
    limit: usize,
) -> Done<(Vec<Fact>, Option<Cursor>)> {
    let mut facts = Vec::new();
    let oldest_ms = wanted.since_ms.saturating_sub(SKEW_MS);
    for _ in 0..LOOKS_MAX {
        let entries = entries(service, upto.entries).await?;
        let frames = frames(service, upto.frames).await?;
        let taken = take(entries, frames, &mut upto, wanted, limit - facts.len());
        let too_old = taken.last_ms.is_some_and(|at_ms| at_ms < oldest_ms);
        facts.extend(taken.facts);
        if upto == Cursor::default() || too_old {
            return Ok((facts, None));
        }
        if facts.len() >= limit {
            break;
        }
    }
    Ok((facts, Some(upto)))
}

/// What was taken off the ends of both lists.
struct Taken {
    facts: Vec<Fact>,
    last_ms: Option<u64>,
}

/// Takes the newest off both lists, as far as nothing newer can lie before what
/// was read of the other.
fn take(entries: End, frames: End, upto: &mut Cursor, wanted: &Wanted, limit: usize) -> Taken {
    let reach = |end: &End| match end.items.last() {
        Some(oldest) if end.from > 0 => oldest.at_ms,
        _ => 0,
    };
    let floor_ms = reach(&entries).max(reach(&frames));
    let froms = Cursor { entries: entries.from, frames: frames.from };
    let mut items: Vec<Item> = entries.items.into_iter().chain(frames.items).collect();
    // Stable, so that each list stays in its own order.
    items.sort_by_key(|item| Reverse(item.at_ms));
    let mut taken = Taken { facts: Vec::new(), last_ms: None };
    let mut left = items.into_iter().peekable();
    while let Some(item) = left.next_if(|item| item.at_ms >= floor_ms && taken.facts.len() < limit)
    {
        *of(upto, item.list) = item.place - 1;
        taken.last_ms = Some(item.at_ms);
        taken.facts.extend(item.facts.into_iter().filter(|fact| wanted.has(fact)));
    }
    let left: Vec<List> = left.map(|item| item.list).collect();
    if !left.contains(&List::Entries) {
        upto.entries = froms.entries;
    }
    if !left.contains(&List::Frames) {
        upto.frames = froms.frames;
    }
    taken
}

fn of(cursor: &mut Cursor, list: List) -> &mut u64 {
    match list {
        List::Entries => &mut cursor.entries,
        List::Frames => &mut cursor.frames,
    }
}

/// Newest first, each no newer than the one before it.
fn levelled(mut items: Vec<Item>, from: u64) -> End {
    items.reverse();
    let mut least_ms = u64::MAX;
    for item in &mut items {
        least_ms = least_ms.min(item.at_ms);
        item.at_ms = least_ms;
    }
    End { items, from }
}

/// Looks at ever more places before one, until there is something or nothing before.
fn windows(upto: u64) -> impl Iterator<Item = u64> {
    (0..u64::BITS).map(move |step| upto.saturating_sub(WINDOW.saturating_mul(1 << step.min(60))))
}

async fn entries(service: &Service, upto: u64) -> Done<End> {
    let mut items = Vec::new();
    for from in windows(upto) {
        let mut after = from;
        while after < upto {
            let page = service.store.entries(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.place;
            for row in page.iter().filter(|row| row.place <= upto) {
                let Some(fact) = Fact::of_entry(row) else { continue };
                let (list, place, at_ms) = (List::Entries, row.place, fact.at_ms);
                items.push(Item { list, place, at_ms, facts: vec![fact] });
            }
        }
        if !items.is_empty() || from == 0 {
            return Ok(levelled(items, from));
        }
    }
    Ok(levelled(items, 0))
}

async fn frames(service: &Service, upto: u64) -> Done<End> {
    let mut items = Vec::new();
    for from in windows(upto) {
        let mut after = from;
        while after < upto {
            let page = service.store.feed(after, PAGE_BYTES).await?;
            let Some(last) = page.last() else { break };
            after = last.place;
            let shown = |placed: &&Placed| placed.is_authentic && placed.place <= upto;
            for placed in page.iter().filter(shown) {
                let mut facts = Fact::of_frame(placed.run, &placed.frame, 0);
                facts.reverse();
                let Some(at_ms) = facts.first().map(|fact| fact.at_ms) else { continue };
                items.push(Item { list: List::Frames, place: placed.place, at_ms, facts });
            }
        }
        if !items.is_empty() || from == 0 {
            return Ok(levelled(items, from));
        }
    }
    Ok(levelled(items, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn item(list: List, place: u64, at_ms: u64) -> Item {
        let fact = Fact {
            at_ms,
            category: "lifecycle".to_owned(),
            what: place.to_string(),
            actor: None,
            resource: (format!("{list:?}"), String::new()),
            event: None,
            step: None,
            detail: Value::Null,
        };
        Item { list, place, at_ms, facts: vec![fact] }
    }

    /// Pages over two lists of times, each read in windows of so many places.
    fn pages(times: [&[u64]; 2], window: usize, limit: usize) -> Vec<Vec<(String, u64)>> {
        let read = |list: List, times: &[u64], upto: u64| {
            let upto = usize::try_from(upto).unwrap();
            let from = upto.saturating_sub(window);
            let places = (from as u64 + 1..).zip(&times[from..upto]);
            let items = places.map(|(place, at_ms)| item(list, place, *at_ms)).collect();
            levelled(items, from as u64)
        };
        let mut upto = Cursor { entries: times[0].len() as u64, frames: times[1].len() as u64 };
        let mut pages = Vec::new();
        while upto != Cursor::default() {
            let entries = read(List::Entries, times[0], upto.entries);
            let frames = read(List::Frames, times[1], upto.frames);
            let taken = take(entries, frames, &mut upto, &Wanted::default(), limit);
            assert!(!taken.facts.is_empty(), "a page without progress");
            let shown = |fact: Fact| (format!("{}{}", fact.resource.0, fact.what), fact.at_ms);
            pages.push(taken.facts.into_iter().map(shown).collect());
        }
        pages
    }

    #[test]
    fn both_lists_are_told_by_time_from_the_newest() {
        let sparse: &[u64] = &[10, 500, 900];
        let dense: Vec<u64> = (100..=899).collect();
        let all: Vec<(String, u64)> = pages([sparse, &dense], 7, 5).concat();
        assert_eq!(all.len(), 803);
        assert!(all.is_sorted_by_key(|(_, at_ms)| Reverse(*at_ms)));
        assert_eq!(all[0].1, 900);
        assert_eq!(all[802].1, 10);
    }

    #[test]
    fn clocks_that_disagree_lose_nothing_and_repeat_nothing() {
        let entries: &[u64] = &[50, 10, 70, 20, 90, 30];
        let frames: &[u64] = &[40, 95, 15, 60, 60, 25, 80];
        for (window, limit) in [(1, 1), (2, 1), (3, 4), (100, 2), (100, 100)] {
            let mut all: Vec<String> = pages([entries, frames], window, limit)
                .concat()
                .into_iter()
                .map(|one| one.0)
                .collect();
            assert_eq!(all.len(), 13, "{window} {limit}");
            all.sort();
            all.dedup();
            assert_eq!(all.len(), 13, "{window} {limit}");
        }
    }
}
