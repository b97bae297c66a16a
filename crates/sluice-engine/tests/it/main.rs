//! The engine on real stores, in real time, in processes that are really killed.

mod care;
mod crowd;
mod disk;
mod keys;
mod orphan;
mod poison;
mod processes;
mod restart;
mod runs;
mod snapshots;
mod victim;
mod world;
