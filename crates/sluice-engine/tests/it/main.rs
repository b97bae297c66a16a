//! The engine on real stores, in real time, in processes that are really killed.

mod orphan;
mod processes;
mod restart;
mod runs;
mod victim;
mod world;
