//! The audit from its end: newest first, a page at a time.
//!
//! Entries and appends are two lists, each ordered by position; this module merges them by
//! time. The clocks of several writers may disagree, so each fact is treated as no newer
//! than the fact that follows it in its own list: then the facts that were shown are
//! always the tail of both lists.
//!
//! INVARIANT: consecutive pages omit nothing and repeat nothing.
//!
//! INVARIANT: a page reads a bounded number of positions. It may hold fewer facts than
//! requested; it has a cursor as long as there are older facts.

use super::fact::Fact;
use super::{Cursor, FactFilter, PAGE, PAGE_BYTES, entries_end};
use crate::refused::ServiceResult;
use crate::service::Service;
use sluice_core::port::feed::Placed;
use std::cmp::Reverse;

/// Positions of each list that are read together.
const WINDOW: u64 = 500;
/// How often a page reads further back before it returns what it has.
const LOOKS_MAX: usize = 16;
/// Maximum clock difference between writers.
const SKEW_MS: u64 = 60 * 60 * 1000;

/// One of the two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuditList {
    Entries,
    Frames,
}

/// The facts at one position.
#[derive(Debug)]
struct Item {
    list: AuditList,
    place: u64,
    at_ms: u64,
    /// Newest first.
    facts: Vec<Fact>,
}

/// The tail of a list, as far back as it was read.
struct ListTail {
    /// Newest first.
    items: Vec<Item>,
    /// The position after which it was read.
    from: u64,
}

/// The position after the last entry and append.
pub async fn end(service: &Service) -> ServiceResult<Cursor> {
    let frames = service.store.feed_end().await?;
    Ok(Cursor { entries: entries_end(service).await?, frames })
}

/// Facts up to a position, newest first, and the position of the next page; `None` if
/// there are no older facts.
pub async fn page(
    service: &Service,
    mut upto: Cursor,
    filter: &FactFilter,
    limit: usize,
) -> ServiceResult<(Vec<Fact>, Option<Cursor>)> {
    let mut facts = Vec::new();
    let oldest_ms = filter.since_ms.saturating_sub(SKEW_MS);
    for _ in 0..LOOKS_MAX {
        let entries = entries(service, upto.entries).await?;
        let frames = frames(service, upto.frames).await?;
        let merged = merge(entries, frames, &mut upto, filter, limit - facts.len());
        let too_old = merged.last_ms.is_some_and(|at_ms| at_ms < oldest_ms);
        facts.extend(merged.facts);
        if upto == Cursor::default() || too_old {
            return Ok((facts, None));
        }
        if facts.len() >= limit {
            break;
        }
    }
    Ok((facts, Some(upto)))
}

/// The facts that were taken from both lists.
struct MergedFacts {
    facts: Vec<Fact>,
    last_ms: Option<u64>,
}

/// Merges the newest facts of both lists. Stops where the other list may have a newer fact
/// that was not read yet.
fn merge(
    entries: ListTail,
    frames: ListTail,
    upto: &mut Cursor,
    filter: &FactFilter,
    limit: usize,
) -> MergedFacts {
    let reach = |end: &ListTail| match end.items.last() {
        Some(oldest) if end.from > 0 => oldest.at_ms,
        _ => 0,
    };
    let floor_ms = reach(&entries).max(reach(&frames));
    let froms = Cursor { entries: entries.from, frames: frames.from };
    let mut items: Vec<Item> = entries.items.into_iter().chain(frames.items).collect();
    // A stable sort keeps each list in its own order.
    items.sort_by_key(|item| Reverse(item.at_ms));
    let mut merged = MergedFacts { facts: Vec::new(), last_ms: None };
    let mut left = items.into_iter().peekable();
    while let Some(item) = left.next_if(|item| item.at_ms >= floor_ms && merged.facts.len() < limit)
    {
        *position_in(upto, item.list) = item.place - 1;
        merged.last_ms = Some(item.at_ms);
        merged.facts.extend(item.facts.into_iter().filter(|fact| filter.matches(fact)));
    }
    let left: Vec<AuditList> = left.map(|item| item.list).collect();
    if !left.contains(&AuditList::Entries) {
        upto.entries = froms.entries;
    }
    if !left.contains(&AuditList::Frames) {
        upto.frames = froms.frames;
    }
    merged
}

fn position_in(cursor: &mut Cursor, list: AuditList) -> &mut u64 {
    match list {
        AuditList::Entries => &mut cursor.entries,
        AuditList::Frames => &mut cursor.frames,
    }
}

/// Reverses a list to newest first, and lowers each time to that of its successor.
fn tail(mut items: Vec<Item>, from: u64) -> ListTail {
    items.reverse();
    let mut least_ms = u64::MAX;
    for item in &mut items {
        least_ms = least_ms.min(item.at_ms);
        item.at_ms = least_ms;
    }
    ListTail { items, from }
}

/// Start positions of ever larger windows before `upto`.
fn windows(upto: u64) -> impl Iterator<Item = u64> {
    (0..u64::BITS).map(move |step| upto.saturating_sub(WINDOW.saturating_mul(1 << step.min(60))))
}

async fn entries(service: &Service, upto: u64) -> ServiceResult<ListTail> {
    let mut items = Vec::new();
    for from in windows(upto) {
        let mut after = from;
        while after < upto {
            let page = service.store.entries(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.place;
            for row in page.iter().filter(|row| row.place <= upto) {
                let Some(fact) = Fact::of_entry(row) else { continue };
                let (list, place, at_ms) = (AuditList::Entries, row.place, fact.at_ms);
                items.push(Item { list, place, at_ms, facts: vec![fact] });
            }
        }
        if !items.is_empty() || from == 0 {
            return Ok(tail(items, from));
        }
    }
    Ok(tail(items, 0))
}

async fn frames(service: &Service, upto: u64) -> ServiceResult<ListTail> {
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
                items.push(Item { list: AuditList::Frames, place: placed.place, at_ms, facts });
            }
        }
        if !items.is_empty() || from == 0 {
            return Ok(tail(items, from));
        }
    }
    Ok(tail(items, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn item(list: AuditList, place: u64, at_ms: u64) -> Item {
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

    /// All pages over two lists of times, each read in windows of `window` positions.
    fn pages(times: [&[u64]; 2], window: usize, limit: usize) -> Vec<Vec<(String, u64)>> {
        let read = |list: AuditList, times: &[u64], upto: u64| {
            let upto = usize::try_from(upto).unwrap();
            let from = upto.saturating_sub(window);
            let places = (from as u64 + 1..).zip(&times[from..upto]);
            let items = places.map(|(place, at_ms)| item(list, place, *at_ms)).collect();
            tail(items, from as u64)
        };
        let mut upto = Cursor { entries: times[0].len() as u64, frames: times[1].len() as u64 };
        let mut pages = Vec::new();
        while upto != Cursor::default() {
            let entries = read(AuditList::Entries, times[0], upto.entries);
            let frames = read(AuditList::Frames, times[1], upto.frames);
            let merged = merge(entries, frames, &mut upto, &FactFilter::default(), limit);
            assert!(!merged.facts.is_empty(), "the page makes no progress");
            let shown = |fact: Fact| (format!("{}{}", fact.resource.0, fact.what), fact.at_ms);
            pages.push(merged.facts.into_iter().map(shown).collect());
        }
        pages
    }

    #[test]
    fn both_lists_are_merged_by_time_newest_first() {
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
