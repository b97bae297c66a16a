//! Where journals live.
//!
//! Three stores behind one port: memory, for tests and the simulator, SQLite, for
//! everything that runs on one machine, and PostgreSQL, for many nodes. All pass
//! the same conformance suite, which is public so that any other store can run it
//! unchanged.
//!
//! INVARIANT: a store never looks into a frame and never branches on what a run
//! is doing. It checks versions, epochs, keys and counters, nothing else.

pub mod authentic;
pub mod conformance;
mod inspect;
pub mod limits;
pub mod memory;
pub mod postgres;
pub mod sqlite;
mod text;
pub mod transfer;
mod window;

use serde_json::Value;
use sluice_core::port::ledger::{Entry, Erasure};
use sluice_core::port::store::{Append, Guard};

/// The counter that says how often the registry was changed: its epoch.
const REGISTRY: &str = "registry";

/// What a counter is after a guard's change; none where that passes its bound.
///
/// A counter that goes down is never refused. A change of zero with a bound only
/// looks: it refuses if the counter is past the bound already.
fn guarded(guard: &Guard, count: i64) -> Option<i64> {
    let changed = count.saturating_add(guard.delta);
    let refused = guard.delta >= 0 && guard.max.is_some_and(|max| changed > max);
    (!refused).then_some(changed)
}

/// How many rows a list answers with.
fn page(limit: usize) -> usize {
    if limit == 0 { limits::LIST_DEFAULT } else { limit.min(limits::LIST_MAX) }
}

/// Checks what only a broken caller gets wrong.
fn assert_sound(append: &Append) {
    let hashed = append.chain.len() as u64 == u64::from(append.count) * 32;
    assert!(append.chain.is_empty() || hashed, "each event of a frame has a hash of 32 bytes");
    assert!(append.beside.is_empty() || append.count > 0, "nothing is beside no frame");
    assert!(append.snapshot.is_none() || append.count > 0, "a snapshot comes with its last event");
}

/// Whether an erasure takes out what snapshots and memos may hold. They never
/// hold what stood beside a frame.
fn takes_out_payloads(erasure: &Erasure) -> bool {
    erasure.besides.is_empty() || !erasure.bodies.is_empty()
}

/// About how many bytes an append takes.
fn append_bytes(append: &Append) -> usize {
    append.body.len()
        + append.beside.len()
        + append.chain.len()
        + entries_bytes(&append.entries)
        + append.snapshot.as_ref().map_or(0, Vec::len)
        + append.blobs.iter().map(|blob| blob.body.len()).sum::<usize>()
        + append.letters.iter().map(|letter| letter.body.len()).sum::<usize>()
        + append.memos.iter().map(|memo| memo.body.len()).sum::<usize>()
}

/// About how many bytes entries take.
fn entries_bytes(entries: &[Entry]) -> usize {
    let bytes = |entry: &Entry| {
        let words = [&entry.what, &entry.actor, &entry.resource_type, &entry.resource_id];
        512 + words.iter().map(|word| word.len()).sum::<usize>() + json_bytes(&entry.detail)
    };
    entries.iter().map(bytes).sum()
}

/// About how many bytes a value takes when it is written.
fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(values) => values.iter().map(|value| json_bytes(value) + 1).sum(),
        Value::Object(map) => {
            map.iter().map(|(key, value)| key.len() + json_bytes(value) + 4).sum()
        }
    }
}
