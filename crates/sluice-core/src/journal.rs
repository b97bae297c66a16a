//! What happened to a run, event by event.
//!
//! The journal is the one truth: state is its fold, the live stream its tail.

pub mod chain;
pub mod envelope;
pub mod event;
pub mod wire;

pub mod name;
