//! Adapters against real sockets: a server of our own that plays every trick, and
//! one of somebody else's that speaks the providers' formats.

mod aimock;
mod formats;
mod listener;
mod server;
mod tool_servers;
mod tricks;
