//! What work has cost, by hour, agent, workflow and model.
//!
//! When it is known what a dispatch cost, the append that says so adds it to a
//! few counters. Their names say the hour and whose it was; here they are named,
//! and read back into rows. So the sums are as durable as the journals they come
//! from, and no journal is read to see them.
//!
//! INVARIANT: a cost is counted once, with the append that settles it: with the
//! end of a dispatch, or when it becomes known later.

mod name;
mod rollup;

pub use name::{Of, Part, Spend, is_spend, names, range};
pub use rollup::{Bucket, By, Rollup, Row, TooMany};

/// Milliseconds of an hour.
pub(crate) const HOUR_MS: u64 = 60 * 60 * 1000;
