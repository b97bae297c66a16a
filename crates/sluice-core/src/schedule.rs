//! Schedules: when their slots are, and what becomes of those that are due.
//!
//! A slot is a time at which a schedule would start a run. Everything here is
//! arithmetic: what time it is comes in as an argument, and the time zones are
//! those that the program was built with, the same on every machine.

mod cron;
mod due;
mod timing;

pub use cron::Cron;
pub use due::{Due, What, due};
pub use timing::Timing;
