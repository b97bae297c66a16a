//! The hash chain of audit entries.

use crate::canonical;
use crate::hash::Hash;
use crate::port::ledger::Entry;
use crate::port::store::NodeId;
use serde_json::json;

/// The hash before a writer's first entry.
pub const START: Hash = Hash([0; 32]);

/// The text of an entry that follows another one of the same writer, and its hash: SHA-256 of
/// the line `sluice/entry/1` and the text.
pub fn link(entry: &Entry, writer: NodeId, seq: u64, prev: Hash) -> (String, Hash) {
    let event = entry.event.map(|event| {
        json!({
            "run": event.run.to_string(), "event": event.event, "hash": event.hash.to_string(),
        })
    });
    let text = canonical::to_string(&json!({
        "actor": entry.actor,
        "at": entry.at_ms,
        "category": entry.category,
        "detail": entry.detail,
        "event": event,
        "prev": prev.to_string(),
        "resource_id": entry.resource_id,
        "resource_type": entry.resource_type,
        "seq": seq,
        "type": entry.what,
        "writer": writer.to_string(),
    }));
    let hash = hash(&text);
    (text, hash)
}

/// The hash of an entry's text.
pub fn hash(text: &str) -> Hash {
    Hash::of(format!("sluice/entry/1\n{text}").as_bytes())
}
