//! The events that match a pattern, kept up to date event by event.
//!
//! A count or sum over a window is then a search in a sorted list, however long the
//! history is. The lists are a cache: they follow from the events.

use super::eval::Events;
use super::fact::Occurrences;
use super::formula::{EventPattern, Operand, UNIT, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most lists. More are of policies that are no longer in force.
const LISTS_MAX: usize = 20_000;

/// Lists of matching events, by the name of a fact and a conversation.
#[derive(Debug, Default)]
pub struct Postings {
    lists: BTreeMap<(Arc<str>, u32), Posting>,
}

#[derive(Debug, Default)]
struct Posting {
    /// The number of events that it covers.
    upto: usize,
    /// Oldest first.
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    event: usize,
    at_ms: u64,
    value: i128,
    /// The sum of the values before it.
    before: i128,
}

impl Postings {
    /// The sum over the window that ends at the last event. Facts of the same name and
    /// conversation must see the same events, apart from the last one.
    pub(super) fn sum(
        &mut self,
        (fact, conversation): (&Arc<str>, u32),
        of: &Occurrences,
        events: &dyn Events,
    ) -> i128 {
        let Some(last) = events.count().checked_sub(1) else { return 0 };
        let posting = self.updated((fact, conversation), of, events, last);
        let oldest_ms = events.at_ms(last).saturating_sub(of.window.ms);
        let first = posting.entries.partition_point(|entry| entry.at_ms < oldest_ms);
        let total = posting.entries.last().map_or(0, |entry| entry.before + entry.value);
        let before = posting.entries.get(first).map_or(total, |entry| entry.before);
        total - before + contribution(of, events, last).unwrap_or(0)
    }

    /// The newest matching event in the window that ends at the last event.
    pub(super) fn newest(
        &mut self,
        (fact, conversation): (&Arc<str>, u32),
        of: &Occurrences,
        events: &dyn Events,
    ) -> Option<usize> {
        let last = events.count().checked_sub(1)?;
        let posting = self.updated((fact, conversation), of, events, last);
        if contribution(of, events, last).is_some() {
            return Some(last);
        }
        let oldest_ms = events.at_ms(last).saturating_sub(of.window.ms);
        let entry = posting.entries.last().filter(|entry| entry.at_ms >= oldest_ms);
        entry.map(|entry| entry.event)
    }

    /// The list of a fact, with all events before the last one.
    fn updated(
        &mut self,
        (fact, conversation): (&Arc<str>, u32),
        of: &Occurrences,
        events: &dyn Events,
        last: usize,
    ) -> &Posting {
        if self.lists.len() >= LISTS_MAX {
            self.lists.clear();
        }
        let posting = self.lists.entry((Arc::clone(fact), conversation)).or_default();
        for event in posting.upto..last {
            posting.add(event, of, events);
        }
        posting.upto = posting.upto.max(last);
        if let Some(undone) = events.undone_by(last) {
            posting.remove(undone, of, events);
        }
        posting
    }
}

impl Posting {
    fn add(&mut self, event: usize, of: &Occurrences, events: &dyn Events) {
        if let Some(undone) = events.undone_by(event) {
            self.remove(undone, of, events);
        }
        if let Some(value) = contribution(of, events, event) {
            let before = self.entries.last().map_or(0, |entry| entry.before + entry.value);
            self.entries.push(Entry { event, at_ms: events.at_ms(event), value, before });
        }
    }

    /// Removes an event that no longer matches.
    fn remove(&mut self, event: usize, of: &Occurrences, events: &dyn Events) {
        let Ok(at) = self.entries.binary_search_by_key(&event, |entry| entry.event) else { return };
        if contribution(of, events, event).is_some() {
            return;
        }
        let gone = self.entries.remove(at).value;
        for entry in &mut self.entries[at..] {
            entry.before -= gone;
        }
    }
}

/// What an event adds to a count or sum; `None` if it does not match.
pub(super) fn contribution(of: &Occurrences, events: &dyn Events, event: usize) -> Option<i128> {
    if !is_match(&of.pattern, events, event) {
        return None;
    }
    let Some(field) = &of.sum else { return Some(UNIT) };
    match events.value(event, field) {
        // What is negative would make room for more.
        Some(Value::Number(number)) if number >= 0 => Some(number),
        _ => None,
    }
}

/// Whether an event matches a pattern without variables.
pub(super) fn is_match(pattern: &EventPattern, events: &dyn Events, event: usize) -> bool {
    events.is(event, &pattern.action, &pattern.kind)
        && pattern.fields.iter().all(|(field, operand)| match operand {
            Operand::Any => events.value(event, field).is_some(),
            Operand::Value(value) => events.has(event, field, value),
            _ => false,
        })
}
