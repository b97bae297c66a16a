//! Workflow documents, from text to [`Plan`](plan::Plan), and the rules of their values.
//!
//! Pure: nothing here reads a clock, a random source, the environment, a file
//! or a socket. Everything that varies comes in as an argument, so the same
//! text gives the same plan and the same hash on every machine.

pub mod code;
pub mod expr;
pub mod label;
pub mod limits;
pub mod path;
pub mod pattern;
pub mod scope;
pub mod span;
pub mod template;
pub mod value;
