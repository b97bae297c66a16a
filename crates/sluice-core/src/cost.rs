//! Costs by hour, agent, workflow and model.
//!
//! When the cost of a dispatch is known, the append that records it adds it to a few counters.
//! Their names contain the hour, agent, workflow and model. This module makes these names and
//! turns the counters back into rows. The sums are as durable as the journals, and no journal
//! is read to get them.
//!
//! INVARIANT: a cost is counted once, in the append that settles it: at the end of a dispatch,
//! or later if it becomes known later.

mod name;
mod rollup;

pub use name::{Of, Part, Spend, is_spend, names, range};
pub use rollup::{Bucket, By, Rollup, Row, TooMany};

pub(crate) const HOUR_MS: u64 = 60 * 60 * 1000;
