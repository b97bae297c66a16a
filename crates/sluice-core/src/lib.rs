//! The deterministic core: from the text of a workflow to a finished, provable run.
//!
//! Pure: nothing in this crate reads a clock, a random source, the environment, a file
//! or a socket. Everything that varies comes in as an argument, so the same input gives
//! the same plan, the same events and the same hashes on every machine.
//!
//! The modules form four storeys. A module uses modules of its own storey and of the
//! storeys below it, never of one above, and no two modules need each other; a test
//! (`tidy`) reads the headings below and checks both.

// Storey 1, values: ids, hashes, text, expressions, templates, output schemas and
// contracts. Knows neither documents nor runs.
pub use sluice_govern::{canonical, choice, money, secret, tools, visible};

pub mod args;
pub mod bind;
mod choices;
pub mod code;
mod compact;
pub mod contract;
pub mod duration;
pub mod edge;
pub mod event_names;
pub mod expr;
pub mod failure;
pub mod hash;
pub mod hex;
pub mod id;
pub mod label;
pub mod limits;
pub mod merge;
pub mod origin;
pub mod outputs;
pub mod path;
pub mod pattern;
pub mod scope;
pub mod seen;
pub mod span;
pub mod suggest;
pub mod template;
pub mod value;
pub mod violation;
pub mod word;

mod bounds;
mod wire;

// Storey 2, documents: YAML and JSON text, diagnostics, the plan that a document
// becomes, and the times of a schedule.
pub mod diagnostic;
pub mod doc;
pub mod node;
pub mod plan;
pub mod schedule;
pub mod yaml;

// Storey 3, runs: the ports to the world, the journal, and how a run decides, changes
// and waits. Rows of the registry, teams, cost and memory belong to runs.
pub mod cost;
pub mod inputs;
pub mod journal;
pub mod layers;
pub mod memory;
pub mod port;
pub mod rows;
pub mod run;
pub mod status;
pub mod team;
pub mod trace;

// Storey 4, evidence and analysis: seals, packets and the verification of a whole store, and
// the flow of data through a plan before it runs.
pub mod evidence;
pub mod flow;
