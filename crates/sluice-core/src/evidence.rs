//! Evidence: what proves afterwards that nothing was changed.
//!
//! Every event has a hash over its header, a salted commitment to its payload
//! and the hash before it. Every writer chains its audit entries. Seals cover
//! the heads of both, are chained themselves, and signed.

pub mod entry;
pub mod event;
pub mod hex;
