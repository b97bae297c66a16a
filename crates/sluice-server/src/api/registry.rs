//! The whole registry, for clients that compute a change.

use super::admission::forbidden;
use super::reply::Reply;
use super::request::ApiRequest;
use super::route::{Need, Route};
use super::rows::redacted;
use crate::auth::permission::Permission as P;
use crate::refused::ServiceResult;
use axum::http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use sluice_govern::registry::Kind;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::new(
        (Method::GET, "/api/v1/registry"),
        Need::Permission(P::GovernanceRead),
        "List every row as stored, without secrets and tokens",
        all,
    )]
}

/// A row of the registry, as stored.
#[derive(Debug, Serialize, JsonSchema)]
struct StoredRow {
    /// Kind of the row, such as `agent`.
    kind: String,
    /// Name of the row.
    name: String,
    /// Fields of the row.
    body: Map<String, Value>,
}

/// All rows of one epoch.
#[derive(Debug, Serialize, JsonSchema)]
struct Registry {
    /// Number of the registry's last change.
    epoch: u64,
    /// The rows, without tokens.
    rows: Vec<StoredRow>,
}

async fn all(request: ApiRequest) -> ServiceResult<Reply<Registry>> {
    if !request.caller.may(P::WorkflowRead) {
        return Err(forbidden(P::WorkflowRead).into());
    }
    let stored = request.organisation.rows().await?;
    let rows = stored.rows.iter().filter(|row| row.kind != Kind::Token).map(|row| {
        let body = match request.caller.operator {
            Some(_) => row.body.clone(),
            None => redacted(row.body.clone()),
        };
        let Value::Object(body) = body else { return None };
        Some(StoredRow { kind: row.kind.as_str().to_owned(), name: row.name.clone(), body })
    });
    Ok(Reply::ok(Registry { epoch: stored.epoch, rows: rows.flatten().collect() }))
}
