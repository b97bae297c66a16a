//! What can be asked of Sluice, and over the network.

pub mod api;
pub mod app;
pub mod auth;
pub mod checks;
pub mod console;
pub mod hooks;
pub mod house;
pub mod limits;
pub mod mcp;
pub mod metrics;
pub mod otel;
pub mod pages;
pub mod places;
pub mod rates;
pub mod ready;
pub mod refused;
pub mod repeats;
pub mod serve;
pub mod service;
pub mod signature;
pub mod webhooks;
pub mod workspaces;
