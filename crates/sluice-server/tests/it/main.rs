//! The server over real HTTP on loopback, on real stores: who may ask for what,
//! what two organisations can see of each other, and what attackers try.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod assignment;
mod callbacks;
mod client;
mod console;
mod contract;
mod doors;
mod escalation;
mod flood;
mod forecast;
mod heartbeat;
mod human_input;
mod keys;
mod matrix;
mod pages;
mod place;
mod providers;
mod secrets;
mod spelling;
mod sse;
mod state;
mod streams;
mod walk;
mod world;
