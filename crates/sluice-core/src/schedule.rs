//! Schedules: the times of their slots, and what happens to slots that are due.
//!
//! A slot is a time at which a schedule would start a run. This module is pure arithmetic: the
//! current time is an argument, and the time zones are compiled in, so every machine has the
//! same.

mod cron;
mod due;
mod timing;

pub use cron::Cron;
pub use due::{Due, What, due};
pub use timing::Timing;
