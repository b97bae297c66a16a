//! The Trust Fabric: turns facts and policies into a decision.
//!
//! Nothing is sent to an agent, a tool or the network before [`evaluate`] allows it. It
//! is a pure function: time, counters, registry rows and rules are arguments, and the
//! same facts always give the same decision. The transaction that marks a step as
//! running checks the counters again, which guards against races; this crate says which
//! counters those are.
//!
//! INVARIANT: fail closed. Missing, unreadable or invalid data blocks.

pub mod account;
pub mod action;
pub mod canonical;
mod case;
pub mod catalog;
pub mod choice;
pub mod decimal;
pub mod decision;
mod evaluate;
pub mod facts;
pub mod flow_label;
mod gates;
mod key_bytes;
pub mod limits;
pub mod money;
pub mod policy;
pub mod registry;
pub mod route;
pub mod secret;
pub mod tools;
pub mod visible;

pub use evaluate::{GateResults, ask, evaluate};
pub use policy::Policies;
pub use route::route;
