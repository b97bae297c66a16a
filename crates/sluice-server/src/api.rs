//! The HTTP API: one table of routes.

pub mod admission;
pub mod cookie;
pub mod in_process;
pub mod openapi;
pub mod problem;
pub mod reply;
pub mod request;
pub mod route;
pub mod router;
pub mod shape;
pub mod strict;

mod approvals;
mod audit;
pub mod callbacks;
mod cors;
mod cost;
mod events;
mod forecast;
mod gateways;
mod payloads;
mod policies;
mod registry;
mod rows;
mod runs;
mod server;
mod session;
mod sets;
mod tokens;
mod tools;
mod triggers;
mod workflows;

use route::Route;

/// Prefix of all API paths.
pub const BASE: &str = "/api/v1";

/// All routes of the server.
pub fn routes() -> Vec<Route> {
    let mut all = Vec::new();
    all.extend(server::routes());
    all.extend(session::routes());
    all.extend(workflows::routes());
    all.extend(runs::routes());
    all.extend(forecast::routes());
    all.extend(events::routes());
    all.extend(approvals::routes());
    all.extend(payloads::routes());
    all.extend(audit::routes());
    all.extend(cost::routes());
    all.extend(policies::routes());
    all.extend(sets::routes());
    all.extend(rows::routes());
    all.extend(registry::routes());
    all.extend(triggers::routes());
    all.extend(gateways::routes());
    all.extend(tools::routes());
    all.extend(callbacks::routes());
    all.extend(tokens::routes());
    all
}
