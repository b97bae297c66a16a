//! One run: what happened to it, what it is, what it now waits for.
//!
//! `decide` turns commands into events, `evolve` folds an event into the run,
//! `due` lists the effects the run waits for. Time, chance and whether work may
//! be done come in through `Given`; nothing here can read them from the world.

pub use crate::{id, status};

pub mod command;
pub mod decide;
pub mod definition;
pub mod due;
pub mod label;
pub mod letter;
pub mod moderate;
pub mod phase;
pub mod projection;
pub mod provenance;
pub mod recount;
pub mod seat;
pub mod snapshot;
pub mod start;
pub mod state;
pub mod transition;

pub(crate) mod evolve;
mod index;
mod lineage;
mod link;
mod recovery;
mod rest;
mod scope;
#[cfg(test)]
mod tests;
