//! The HTTP API: one table of routes.

pub mod ask;
pub mod gate;
pub mod openapi;
pub mod problem;
pub mod reply;
pub mod route;
pub mod router;
pub mod strict;

mod run_list;

use route::Route;

/// Where the API begins.
pub const BASE: &str = "/api/v1";

/// Every route there is.
pub fn routes() -> Vec<Route> {
    let mut all = Vec::new();
    all.extend(run_list::routes());
    all
}
