//! What can be asked of Sluice, and over the network.

pub mod refused;
pub mod service;
