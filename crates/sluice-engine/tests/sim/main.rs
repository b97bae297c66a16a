//! The engine under a simulated world: one seed decides the workflows, the
//! agents, the people, the clock and every fault, and checkers look at each
//! append.
//!
//! `make sim SEED=123 RUNS=1` plays one seed, `make sim` a thousand. With
//! `SIM_TRACE=1` the engine's own log is shown, with `SIM_GO_ON=1` a failure
//! does not end the others.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a test tells people what it saw")]

mod adapter;
mod censor;
mod chance;
mod check;
mod fault;
mod flow;
mod registry;
mod scene;
mod store;
mod suite;
mod tally;
mod trace;
mod world;
