//! The shell around the pure core: it loads runs, gives them turns, does what
//! they are due, and keeps its promises over crashes.
//!
//! INVARIANT: a run changes only in `turn`, by an append at an expected version
//! and owner epoch. Nothing is sent before the append that says so is durable.

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

mod abroad;
mod admit;
mod asking;
mod children;
mod elsewhere;
mod hold_back;
mod judge;
mod judging;
mod key;
mod load;
mod mail;
mod perform;
mod permit;
mod resident;
#[cfg(feature = "sabotage")]
mod sabotage;
pub mod start;
mod stream;
mod sweep;
pub mod tail;
mod take;
pub mod trust;
mod turn;
pub mod watch;

pub use engine::Engine;
