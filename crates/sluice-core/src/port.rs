//! Ports: what the core needs from the world, as traits.
//!
//! The store, the adapters and the engine know each other only through these traits. Futures
//! are boxed and of the standard library, so the core depends on no async runtime.

pub mod adapter;
pub mod authority;
pub mod decision_record;
pub mod deliveries;
pub mod feed;
pub mod inspect;
pub mod ledger;
pub mod lineage;
pub mod moderator;
pub mod remembered_output;
pub mod slots;
pub mod store;

use std::future::Future;
use std::pin::Pin;

/// The future that a port returns.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The source of time, so that tests can set it.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970, UTC.
    fn now_ms(&self) -> u64;
}
