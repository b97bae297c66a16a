//! What can be asked of Sluice, and over the network.

pub mod api;
pub mod app;
pub mod auth;
pub mod house;
pub mod limits;
pub mod refused;
pub mod serve;
pub mod service;
