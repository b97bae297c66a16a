//! Adapters that do the work of a step: models, tools, shells, HTTP endpoints and bridges.
//!
//! The crate also has the moderators and the bridge process itself.
//!
//! It is the only crate that talks to models, tools and shells, and it has no workflow logic:
//! a request goes in, an answer comes out, and the core decides what a failure means.

pub mod bridge_server;
pub mod conformance;
pub mod connection_limits;
pub mod connections;
pub mod directory;
pub mod framing;
pub mod gitignore;
pub mod http;
pub mod limits;
pub mod mcp;
pub mod media;
pub mod mock;
pub mod model;
pub mod moderate;
pub mod normalise;
pub mod outbound;
pub mod pinned;
pub mod protocol;
pub mod record;
pub mod recording;
pub mod redacting_adapter;
pub mod remote;
pub mod replay;
pub mod secret;
pub mod shell;
pub mod token;
pub mod tool_catalog;
pub mod tools;
pub mod wire;

#[cfg(test)]
mod fake_call;
