//! Where journals live.
//!
//! Two stores behind one port: memory, for tests and the simulator, and SQLite,
//! for everything that runs on one machine. Both pass the same conformance
//! suite, which is public so that a third store can run it unchanged.
//!
//! INVARIANT: a store never looks into a frame and never branches on what a run
//! is doing. It checks versions, epochs, keys and counters, nothing else.

pub mod conformance;
pub mod limits;
pub mod memory;
pub mod sqlite;

use sluice_core::port::store::Guard;

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
