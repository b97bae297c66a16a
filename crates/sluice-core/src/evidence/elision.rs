//! Audit entries about elided stream deltas.
//!
//! When a run has ended, the stream deltas of its steps can be removed; the final outputs stay.
//! The journal keeps the commitment to each delta, so the hash chain stays complete. The audit
//! entry about the elision covers the stand-ins that remain: a range of event ids, how many
//! deltas were removed, and one hash over all stand-ins.

use crate::hash::Hash;
use crate::id::RunId;
use crate::port::ledger::Entry;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The type of the audit entry.
pub(crate) const ELIDED: &str = "stream_elided";

/// A range of stream deltas that were elided together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elision {
    /// The first elided event.
    pub first: u64,
    /// The last elided event.
    pub last: u64,
    /// The number of elided events; other events in the range stay.
    pub count: u64,
    /// The hash of the stand-ins.
    pub left: Hash,
}

/// Collects the stand-ins of elided events.
#[derive(Debug, Clone, Default)]
pub struct Left {
    hash: Sha256,
    ids: Option<(u64, u64)>,
    count: u64,
}

impl Left {
    /// Adds the next elided event: its id and its stand-in.
    pub fn add(&mut self, id: u64, stand_in: &str) {
        if self.count == 0 {
            self.hash.update(b"sluice/elided/1\n");
        }
        self.hash.update(format!("{id}\n{stand_in}\n"));
        self.ids = Some((self.ids.map_or(id, |(first, _)| first), id));
        self.count += 1;
    }

    /// The collected range; `None` if it is empty. The hash is SHA-256 of the line
    /// `sluice/elided/1` and two lines for each event: its id and its stand-in.
    pub fn end(self) -> Option<Elision> {
        let (first, last) = self.ids?;
        let left = Hash(self.hash.finalize().into());
        Some(Elision { first, last, count: self.count, left })
    }
}

/// The audit entry about an elision.
pub fn entry(run: RunId, at_ms: u64, actor: &str, reason: &str, elision: &Elision) -> Entry {
    let Elision { first, last, count, left } = elision;
    Entry {
        at_ms,
        category: "lifecycle",
        what: ELIDED.to_owned(),
        actor: actor.to_owned(),
        resource_type: "run".to_owned(),
        resource_id: run.to_string(),
        event: None,
        detail: json!({
            "reason": reason,
            "first": first,
            "last": last,
            "count": count,
            "left": left.to_string(),
        }),
    }
}

/// Reads an audit entry about an elision; `None` for other entries.
pub(super) fn read(entry: &Value) -> Option<(RunId, Elision)> {
    if entry["type"] != ELIDED || entry["resource_type"] != "run" {
        return None;
    }
    let detail = &entry["detail"];
    let elision = Elision {
        first: detail["first"].as_u64()?,
        last: detail["last"].as_u64()?,
        count: detail["count"].as_u64()?,
        left: Hash::parse(detail["left"].as_str()?)?,
    };
    Some((RunId::parse(entry["resource_id"].as_str()?)?, elision))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_has_a_hash_as_described() {
        let mut left = Left::default();
        left.add(4, "{\"a\":1}");
        left.add(9, "{}");
        let expected = Hash::of(b"sluice/elided/1\n4\n{\"a\":1}\n9\n{}\n");
        let elision = Elision { first: 4, last: 9, count: 2, left: expected };
        assert_eq!(left.end(), Some(elision));
        assert_eq!(Left::default().end(), None);
    }

    #[test]
    fn an_entry_says_again_what_it_was_told() {
        let left = Hash([3; 32]);
        let elision = Elision { first: 1, last: 7, count: 3, left };
        let told = entry(RunId(8), 5, "ada", "old", &elision);
        let mut text = json!({
            "type": told.what,
            "resource_type": told.resource_type,
            "resource_id": told.resource_id,
            "detail": told.detail,
        });
        assert_eq!(read(&text), Some((RunId(8), elision)));
        text["type"] = json!("payload_erased");
        assert_eq!(read(&text), None);
    }
}
