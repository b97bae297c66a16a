//! The server over real HTTP on loopback, on real stores: who may ask for what,
//! what two organisations can see of each other, and what attackers try.

mod client;
mod contract;
mod matrix;
mod place;
mod sse;
mod walk;
mod world;
