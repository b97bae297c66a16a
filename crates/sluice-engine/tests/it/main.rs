//! The engine on real stores.

mod restart;
mod runs;
mod world;
