//! The server over real HTTP on loopback, on real stores: permissions, isolation of
//! organisations, and attacks.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod assignment;
mod callbacks;
mod client;
mod console;
mod contract;
mod escalation;
mod fixture;
mod flood;
mod forecast;
mod heartbeat;
mod human_input;
mod inbound_webhooks;
mod keys;
mod matrix;
mod pages;
mod providers;
mod secrets;
mod spelling;
mod sse;
mod state;
mod streams;
mod walk;
mod world;
