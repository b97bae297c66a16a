//! What can be asked of Sluice, and over the network.

pub mod api;
pub mod app;
pub mod auth;
pub mod console;
pub mod hooks;
pub mod house;
pub mod limits;
pub mod mcp;
pub mod metrics;
pub mod otel;
pub mod pages;
pub mod ready;
pub mod refused;
pub mod serve;
pub mod service;
pub mod signature;
pub mod webhooks;
pub mod workspaces;
