//! One run: what happened to it, what it is, what it now waits for.

pub mod id;
pub mod label;
pub mod status;
