//! What tests and benchmarks share.
//!
//! INVARIANT: production crates have this crate only as a dev-dependency, so that no
//! build of `sluice` contains it.

pub mod conformance;
pub mod postgres;
