//! The engine in a simulated world: one seed determines workflows, agents, approvers,
//! clocks and all faults, and checkers inspect every append.
//!
//! `make sim SEED=123 RUNS=1` plays one seed, `make sim` a thousand. With `SIM_TRACE=1`
//! the engine's log is shown; with `SIM_GO_ON=1` a failure does not stop the other seeds.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a test tells people what it saw")]

mod adapter;
mod check;
mod fault;
mod flow;
mod moderation;
mod random;
mod registry;
mod sabotage;
mod scene;
mod store;
mod suite;
mod tally;
mod trace;
mod world;
