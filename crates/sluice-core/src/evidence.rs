//! Evidence: proves afterwards that nothing was changed.
//!
//! Every event has a hash over its header, a salted commitment to its payload, and the previous
//! hash. Every writer chains its audit entries. Seals cover the heads of both; they are chained
//! and signed.
//!
//! A packet contains one run and everything needed to verify it without the store. `verify`
//! checks a whole store.

pub mod audit;
pub mod elision;
pub mod entry;
pub mod erasure;
#[cfg(test)]
mod fake_store;
pub mod kept;
pub mod key;
pub mod leaf;
pub mod mac;
pub mod merkle;
pub mod packet;
pub mod seal;
pub mod verify;
