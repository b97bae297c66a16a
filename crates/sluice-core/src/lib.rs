//! Workflow documents, from text to [`Plan`](plan::Plan), and the rules of their values.
//!
//! Pure: nothing here reads a clock, a random source, the environment, a file
//! or a socket. Everything that varies comes in as an argument, so the same
//! text gives the same plan and the same hash on every machine.

pub use sluice_govern::{canonical, money, secret, tools};

pub mod args;
pub mod bind;
pub mod choice;
pub mod code;
pub mod contract;
pub mod cost;
pub mod diagnostic;
pub mod doc;
pub mod duration;
pub mod edge;
pub mod evidence;
pub mod expr;
pub mod failure;
pub mod inputs;
pub mod journal;
pub mod label;
pub mod layers;
pub mod limits;
pub mod memory;
pub mod merge;
pub mod node;
pub mod outputs;
pub mod path;
pub mod pattern;
pub mod plan;
pub mod port;
pub mod rows;
pub mod run;
pub mod schedule;
pub mod scope;
pub mod span;
pub mod suggest;
pub mod team;
pub mod template;
pub mod trace;
pub mod value;
pub mod violation;
pub mod visible;
pub mod word;
pub mod yaml;

mod bounds;
mod wire;
