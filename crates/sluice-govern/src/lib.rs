//! The Trust Fabric: facts and policies to a decision.
//!
//! Nothing reaches an agent, a tool or the network before [`evaluate`] has said
//! so. It is a pure function: time, counters, rows and rules come in as
//! arguments, and the same facts give the same decision for ever. What must
//! hold under races (counters) is taken again in the transaction that marks the
//! step running; this crate says which counters those are.
//!
//! INVARIANT: fail closed. What is missing, unreadable or in error blocks.

pub mod account;
pub mod action;
pub mod canonical;
mod case;
pub mod decimal;
pub mod decision;
mod evaluate;
pub mod facts;
mod gates;
mod key;
pub mod limits;
pub mod money;
pub mod policy;
pub mod registry;
pub mod route;
pub mod secret;
pub mod tools;

pub use evaluate::{Said, ask, evaluate};
pub use policy::Policies;
pub use route::route;
