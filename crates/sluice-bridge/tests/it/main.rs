//! Adapters against real sockets: a fake server that misbehaves in every way, and a third-party
//! server with the providers' formats.

mod aimock;
mod formats;
mod listener;
mod server;
mod tool_servers;
mod tricks;
