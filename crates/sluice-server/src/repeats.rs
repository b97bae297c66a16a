//! Repeated refusals: the first few of an interval are audited one by one, the rest as one
//! entry with their number.
//!
//! INVARIANT: the number of entries depends on how many clients were refused, not on how
//! often; and every refusal is included in the number of an entry.

use sluice_core::port::ledger::Entry;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Refusals of one kind and client that are audited one by one in each interval.
const ONE_BY_ONE: u64 = 10;
/// Maximum number of clients with a counter of their own; further ones share a counter.
const CLIENTS_MAX: usize = 4096;

/// The kind of refusal, and the client.
type RefusalKey = (String, String);

/// Refusals of the current intervals.
#[derive(Debug, Default)]
pub struct Repeats(Mutex<HashMap<RefusalKey, Interval>>);

#[derive(Debug)]
struct Interval {
    since_ms: u64,
    count: u64,
    /// The last refusal, which represents all that were not audited one by one.
    last: Option<Entry>,
}

impl Repeats {
    /// Counts a refusal of a client; returns the entry if it must be written now.
    pub fn note(&self, client: &str, entry: Entry) -> Option<Entry> {
        let mut all = self.lock();
        let mut key = (entry.what.clone(), client.to_owned());
        if all.len() >= CLIENTS_MAX && !all.contains_key(&key) {
            key.1.clear();
        }
        let fresh = Interval { since_ms: entry.at_ms, count: 0, last: None };
        let interval = all.entry(key).or_insert(fresh);
        interval.count += 1;
        if interval.count <= ONE_BY_ONE {
            return Some(entry);
        }
        interval.last = Some(entry);
        None
    }

    /// Ends the intervals that began before this time, and returns the entries to write.
    pub fn ended(&self, began_before_ms: u64) -> Vec<Entry> {
        let mut ended = Vec::new();
        self.lock().retain(|_, interval| {
            if interval.since_ms >= began_before_ms {
                return true;
            }
            if let Some(mut entry) = interval.last.take() {
                entry.detail["repeated"] = (interval.count - ONE_BY_ONE).into();
                entry.detail["since_ms"] = interval.since_ms.into();
                ended.push(entry);
            }
            false
        });
        ended
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RefusalKey, Interval>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(at_ms: u64, what: &str) -> Entry {
        Entry {
            at_ms,
            category: "security",
            what: what.to_owned(),
            actor: "gateway:far".to_owned(),
            resource_type: "run".to_owned(),
            resource_id: "run_1".to_owned(),
            event: None,
            detail: json!({"step": "a"}),
        }
    }

    #[test]
    fn the_first_are_written_and_the_rest_is_one_entry_with_their_number() {
        let repeats = Repeats::default();
        let noted = (0..1000).filter_map(|at| repeats.note("far", entry(at, "callback_refused")));
        assert_eq!(noted.count(), 10);
        assert!(repeats.note("near", entry(5, "callback_refused")).is_some(), "another client");
        assert!(repeats.ended(0).is_empty(), "the interval goes on");
        let ended = repeats.ended(6);
        let [one] = &ended[..] else { panic!("{ended:?}") };
        assert_eq!((one.at_ms, &one.what[..]), (999, "callback_refused"));
        assert_eq!(one.detail, json!({"step": "a", "repeated": 990, "since_ms": 0}));
        assert!(repeats.ended(u64::MAX).is_empty());
        assert!(repeats.note("far", entry(2000, "callback_refused")).is_some(), "a new interval");
    }

    #[test]
    fn any_number_of_clients_uses_bounded_memory() {
        let repeats = Repeats::default();
        for client in 0..2 * CLIENTS_MAX {
            repeats.note(&client.to_string(), entry(0, "sign_in_failed"));
        }
        assert!(repeats.lock().len() <= CLIENTS_MAX + 1);
        assert_eq!(repeats.ended(1).len(), 1);
    }
}
