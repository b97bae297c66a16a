//! Stores of journals.
//!
//! Three stores implement one port: memory for tests and the simulator, SQLite for one
//! machine, PostgreSQL for many nodes. All pass the conformance suite of
//! `sluice-testing`.
//!
//! INVARIANT: a store never decodes a frame and never branches on the state of a run.
//! It checks versions, epochs, keys and counters, nothing else.

pub mod authentic;
mod inspect;
pub mod limits;
pub mod memory;
mod newest_rows;
pub mod postgres;
pub mod sqlite;
mod text;
pub mod transfer;
mod window;

use serde_json::Value;
use sluice_core::limits::{LIST_DEFAULT, LIST_MAX};
use sluice_core::port::ledger::{Entry, Erasure};
use sluice_core::port::store::{Append, Guard};
use sluice_govern::registry::{Kind, Row};

/// Counter of registry changes: the registry's epoch.
const REGISTRY: &str = "registry";

/// The counter after the guard's change, or `None` if the change exceeds its bound.
///
/// A decrement is never refused. A change of zero with a bound is a check: it refuses
/// if the counter already exceeds the bound.
fn guarded(guard: &Guard, count: i64) -> Option<i64> {
    let changed = count.saturating_add(guard.delta);
    let refused = guard.delta >= 0 && guard.max.is_some_and(|max| changed > max);
    (!refused).then_some(changed)
}

/// Parses a stored registry row, or says why it cannot be parsed.
fn registry_row(kind: &str, name: &str, body: &str) -> Result<Row, String> {
    let unreadable = |what: &str| format!("the {kind} {name:?} {what}");
    Ok(Row {
        kind: Kind::parse(kind).ok_or_else(|| unreadable("is of an unknown kind"))?,
        name: name.to_owned(),
        body: serde_json::from_str(body).map_err(|_| unreadable("is not valid JSON"))?,
    })
}

/// Page size for a list; a limit of 0 means the default.
fn page(limit: usize) -> usize {
    if limit == 0 { LIST_DEFAULT } else { limit.min(LIST_MAX) }
}

/// Asserts what only a bug in the caller can violate.
fn assert_sound(append: &Append) {
    let hashed = append.chain.len() as u64 == u64::from(append.count) * 32;
    assert!(append.chain.is_empty() || hashed, "each event of a frame has a hash of 32 bytes");
    assert!(append.beside.is_empty() || append.count > 0, "stream deltas need a frame");
    assert!(append.snapshot.is_none() || append.count > 0, "a snapshot comes with its last event");
}

/// Whether an erasure can affect snapshots and remembered outputs. They never contain
/// stream deltas, which are stored next to a frame.
fn erases_payloads(erasure: &Erasure) -> bool {
    erasure.besides.is_empty() || !erasure.bodies.is_empty()
}

/// Approximate size of an append in bytes.
fn append_bytes(append: &Append) -> usize {
    append.body.len()
        + append.beside.len()
        + append.chain.len()
        + entries_bytes(&append.entries)
        + append.snapshot.as_ref().map_or(0, Vec::len)
        + append.blobs.iter().map(|blob| blob.body.len()).sum::<usize>()
        + append.messages.iter().map(|message| message.body.len()).sum::<usize>()
        + append
            .remembered_outputs
            .iter()
            .map(|remembered_output| remembered_output.body.len())
            .sum::<usize>()
}

fn entries_bytes(entries: &[Entry]) -> usize {
    let bytes = |entry: &Entry| {
        let words = [&entry.what, &entry.actor, &entry.resource_type, &entry.resource_id];
        512 + words.iter().map(|word| word.len()).sum::<usize>() + json_bytes(&entry.detail)
    };
    entries.iter().map(bytes).sum()
}

/// Approximate size of a JSON value in bytes when serialised.
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
