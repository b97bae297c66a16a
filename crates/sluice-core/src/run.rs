//! One run: its state, the commands it takes, and the effects it waits for.
//!
//! `decide` turns commands into events, `evolve` folds an event into the run, and `due` lists
//! the effects that the run waits for. Time, random bits and registry rows come in through
//! `Given`; no module here reads them from the system.

pub mod command;
pub mod decide;
pub mod definition;
pub mod due;
pub mod message;
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
pub mod history;
mod index;
mod label;
mod lineage;
mod link;
mod recovery;
mod scope;
pub(crate) mod seen;
#[cfg(test)]
mod tests;
mod waits_for_people;
