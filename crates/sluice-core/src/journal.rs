//! What happened to a run, event by event.
//!
//! The journal is the one truth: the state of a run is its fold, the live stream its tail.

pub mod chain;
pub mod declare;
pub mod envelope;
pub mod event;
pub mod wire;
