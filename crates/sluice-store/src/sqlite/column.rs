//! Conversions between our types and SQLite columns.

use super::fault::Fault;
use sluice_core::choice;
use sluice_core::id::RunId;
use sluice_core::port::store::NodeId;
use sluice_core::status::RunStatus;

/// A count or a time. SQLite integers are signed; no real value is too large.
pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Reads what `int` wrote.
pub(super) fn uint(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Bytes in the sort order of the id.
pub(super) fn run_bytes(run: RunId) -> [u8; 16] {
    run.0.to_be_bytes()
}

/// Reads what `run_bytes` wrote.
pub(super) fn run_id(bytes: [u8; 16]) -> RunId {
    RunId(u128::from_be_bytes(bytes))
}

/// Bytes in the sort order of the id.
pub(super) fn node_bytes(node: NodeId) -> [u8; 16] {
    node.0.to_be_bytes()
}

/// Reads what `node_bytes` wrote.
pub(super) fn node_id(bytes: [u8; 16]) -> NodeId {
    NodeId(u128::from_be_bytes(bytes))
}

/// Reads what `as_str` wrote.
pub(super) fn status(word: &str) -> Result<RunStatus, Fault> {
    choice::find(word).ok_or_else(|| Fault::Corrupt(format!("{word:?} is not a run status")))
}
