//! The shell around the pure core: loads runs, gives them turns, performs the
//! effects they are due, and recovers them after crashes.
//!
//! INVARIANT: a run changes only in `turn`, by an append at an expected version
//! and owner epoch. Nothing is dispatched before the append that records it is durable.

pub mod agents;
pub mod config;
pub mod definition;
pub mod engine;
pub mod error;
pub mod examine;
pub mod feed;
pub mod forecast;
pub mod limits;
pub mod observe;
pub mod provenance;
pub mod registered;
pub mod schedule;
pub mod sealer;
pub mod world;

mod admit;
mod children;
mod claim;
mod idempotency;
mod load;
mod loaded_run;
mod mailbox;
mod moderation;
mod perform;
mod remote_cancel;
mod remote_results;
pub mod start;
mod start_policy;
mod stream;
mod sweep;
pub mod tail;
mod tool_calls;
pub mod trust;
mod turn;
pub mod watch;

pub use engine::Engine;
