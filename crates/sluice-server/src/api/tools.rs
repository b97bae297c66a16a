//! The tools of this machine: what is declared about them, and their definitions.
//!
//! Only the operator accepts definitions, with a command on the machine: its tool servers are
//! shared by all organisations.

use super::reply::Reply;
use super::request::ApiRequest;
use super::route::{Need, Route};
use crate::auth::permission::Permission as P;
use crate::refused::ServiceResult;
use crate::service::tools::{self, ToolShown};
use axum::http::Method;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::GET, "/api/v1/tools"),
            Need::Permission(P::GovernanceRead),
            "List the tools of this machine, without the texts of their definitions",
            list,
        )
        .paged(),
        Route::new(
            (Method::GET, "/api/v1/tools/{name}"),
            Need::Permission(P::GovernanceRead),
            "Show a tool with its definitions",
            show,
        ),
    ]
}

async fn list(request: ApiRequest) -> ServiceResult<Reply<Vec<ToolShown>>> {
    Ok(Reply::page(tools::list(&request.service().engine.catalog()), None))
}

async fn show(request: ApiRequest) -> ServiceResult<Reply<ToolShown>> {
    let catalog = request.service().engine.catalog();
    Ok(Reply::ok(tools::find(&catalog, request.path("name"))?))
}
