//! The engine under a simulated world: one seed decides the workflows, the
//! agents, the people, the clock and every fault, and checkers look at each
//! append.
//!
//! `make sim SEED=123 RUNS=1` plays one seed, `make sim` a thousand.

mod adapter;
mod chance;
mod check;
mod fault;
mod flow;
mod scene;
mod store;
mod suite;
mod tally;
mod trace;
mod world;
