//! The operations on an organisation, and the HTTP API, event streams, sign-in, webhooks and
//! MCP server that expose them.

pub mod api;
pub mod app;
pub mod auth;
pub mod capacity;
pub mod checks;
pub mod console;
pub mod inbound_webhooks;
pub mod limits;
pub mod mcp;
pub mod metrics;
pub mod organisation;
pub mod otel;
pub mod pages;
pub mod rates;
pub mod ready;
pub mod refused;
pub mod repeats;
pub mod serve;
pub mod service;
pub mod signature;
pub mod webhooks;
pub mod workspaces;
