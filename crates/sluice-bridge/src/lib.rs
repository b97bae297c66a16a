//! Who does the work of a step: the adapters behind the core's port.
//!
//! Beside them, who judges texts: the moderators behind another port.
//!
//! The only crate that talks to models, tools and shells. It holds no workflow
//! logic: a request goes in, an answer comes out, and what to make of a failure
//! is the core's business.

pub mod conformance;
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
pub mod patient;
pub mod pinned;
pub mod protocol;
pub mod record;
pub mod recording;
pub mod remote;
pub mod replay;
pub mod scrubbed;
pub mod secret;
pub mod shell;
pub mod station;
pub mod token;
pub mod tools;
pub mod wire;

#[cfg(test)]
mod desk;
