//! Audit entries about erased payloads.
//!
//! The hash of an event covers its original payload. The audit entry about the erasure contains
//! the hash of what remains, so no payload is erased silently and no remainder can be forged.

use crate::hash::Hash;
use crate::id::RunId;
use crate::limits::ERASED_EVENTS_MAX;
use crate::port::ledger::Entry;
use serde_json::{Map, Value, json};

/// The type of the audit entry.
pub(crate) const ERASED: &str = "payload_erased";

/// The audit entries about erased payloads of a run: each event with the hash of its remainder.
/// Many events are split over several entries.
pub fn entries(
    run: RunId,
    at_ms: u64,
    actor: &str,
    reason: &str,
    gone: &[(u64, Hash)],
) -> Vec<Entry> {
    let left = |(event, hash): &(u64, Hash)| (event.to_string(), Value::from(hash.to_string()));
    let entry = |gone: &[(u64, Hash)]| Entry {
        at_ms,
        category: "security",
        what: ERASED.to_owned(),
        actor: actor.to_owned(),
        resource_type: "run".to_owned(),
        resource_id: run.to_string(),
        event: None,
        detail: json!({"reason": reason, "events": gone.iter().map(left).collect::<Map<_, _>>()}),
    };
    gone.chunks(ERASED_EVENTS_MAX).map(entry).collect()
}

/// Reads an audit entry about an erasure; empty for other entries.
pub(super) fn read(entry: &Value) -> Vec<(RunId, u64, Hash)> {
    if entry["type"] != ERASED || entry["resource_type"] != "run" {
        return Vec::new();
    }
    let run = entry["resource_id"].as_str().and_then(RunId::parse);
    let (Some(run), Some(events)) = (run, entry["detail"]["events"].as_object()) else {
        return Vec::new();
    };
    let one = |(event, hash): (&String, &Value)| {
        Some((run, event.parse().ok()?, Hash::parse(hash.as_str()?)?))
    };
    events.iter().filter_map(one).collect()
}
