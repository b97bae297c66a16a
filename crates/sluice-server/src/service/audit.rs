//! The audit: what happened, by whom, and whether the record is unchanged.
//!
//! Entries come from the audit log, facts of runs from their journals: nothing is stored
//! twice, and what is shown is what was sealed.

pub mod back;
pub mod doubts;
pub mod fact;
pub mod packet;
pub mod verify;

use super::Service;
use crate::refused::ServiceResult;
use fact::Fact;
use sluice_core::id::RunId;

/// Entries per query.
const PAGE: usize = 500;
/// Bytes of frames per query.
const PAGE_BYTES: usize = 1024 * 1024;
/// How many appends back the search for the newest facts begins.
const BACK: u64 = 2000;

/// A position in the audit: the last entry and the last append that were read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Position of the last entry.
    pub entries: u64,
    /// Position of the last append.
    pub frames: u64,
}

impl Cursor {
    /// Parses the text form of a cursor.
    pub fn parse(text: &str) -> Option<Cursor> {
        let (entries, frames) = text.split_once('.')?;
        Some(Cursor { entries: entries.parse().ok()?, frames: frames.parse().ok()? })
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.entries, self.frames)
    }
}

/// Selects facts.
#[derive(Debug, Clone, Default)]
pub struct FactFilter {
    /// Only these categories; all if empty.
    pub categories: Vec<String>,
    /// Only this run.
    pub run: Option<RunId>,
    /// Only facts since this time.
    pub since_ms: u64,
    /// Only this type.
    pub what: Option<String>,
    /// Only this actor.
    pub actor: Option<String>,
}

impl FactFilter {
    fn matches(&self, fact: &Fact) -> bool {
        let of_run = |run: RunId| fact.resource == ("run".to_owned(), run.to_string());
        fact.is_of(&self.categories)
            && fact.at_ms >= self.since_ms
            && self.run.is_none_or(of_run)
            && self.what.as_ref().is_none_or(|what| *what == fact.what)
            && (self.actor.is_none() || self.actor == fact.actor)
    }
}

/// A page of facts after a cursor, sorted by time within the page, and the cursor of the
/// next page. The same cursor means that there are no more facts.
pub async fn page(
    service: &Service,
    mut after: Cursor,
    filter: &FactFilter,
    limit: usize,
) -> ServiceResult<(Vec<Fact>, Cursor)> {
    let mut facts = Vec::new();
    loop {
        let entries = service.store.entries(after.entries, PAGE).await?;
        let frames = service.store.feed(after.frames, PAGE_BYTES).await?;
        let before = after;
        after.entries = entries.last().map_or(after.entries, |last| last.place);
        after.frames = frames.last().map_or(after.frames, |last| last.place);
        facts.extend(entries.iter().filter_map(Fact::of_entry).filter(|fact| filter.matches(fact)));
        for placed in frames.iter().filter(|placed| placed.is_authentic) {
            let of_run = Fact::of_frame(placed.run, &placed.frame, 0);
            facts.extend(of_run.into_iter().filter(|fact| filter.matches(fact)));
        }
        if facts.len() >= limit || after == before {
            facts.sort_by_key(|fact| fact.at_ms);
            return Ok((facts, after));
        }
    }
}

/// The newest facts, oldest first, and the cursor after them.
pub async fn newest(
    service: &Service,
    filter: &FactFilter,
    limit: usize,
) -> ServiceResult<(Vec<Fact>, Cursor)> {
    let end = service.store.feed_end().await?;
    let entries = entries_end(service).await?;
    let mut back = BACK;
    loop {
        let from =
            Cursor { entries: entries.saturating_sub(back), frames: end.saturating_sub(back) };
        let (mut facts, mut after) = (Vec::new(), from);
        loop {
            let (page, next) = page(service, after, filter, usize::MAX).await?;
            facts.extend(page);
            if next == after {
                break;
            }
            after = next;
        }
        let whole = from == Cursor::default();
        if facts.len() >= limit || whole {
            facts.sort_by_key(|fact| fact.at_ms);
            let surplus = facts.len().saturating_sub(limit);
            return Ok((facts.split_off(surplus), after));
        }
        back = back.saturating_mul(8);
    }
}

/// The position of the last entry. Doubles the step until no entry follows, then bisects.
async fn entries_end(service: &Service) -> ServiceResult<u64> {
    let some_after = async |place: u64| -> ServiceResult<Option<u64>> {
        Ok(service.store.entries(place, 1).await?.first().map(|one| one.place))
    };
    let (mut low, mut step) = (0u64, 1u64);
    while let Some(found) = some_after(low.saturating_add(step - 1)).await? {
        low = found;
        step = step.saturating_mul(2);
    }
    while step > 1 {
        step /= 2;
        if let Some(found) = some_after(low.saturating_add(step - 1)).await? {
            low = found;
        }
    }
    Ok(low)
}
