//! The journal of a run: its events, their encoding and their hashes.
//!
//! The journal is the only source of truth: the state of a run is the fold of its journal, and
//! the live stream is its tail.

pub mod chain;
pub mod declare;
pub mod envelope;
pub mod event;
pub mod wire;
