//! The registry as a whole, for those who work out what should change.

use super::ask::Ask;
use super::gate::forbidden;
use super::reply::Reply;
use super::route::{Need, Route};
use super::rows::redacted;
use crate::auth::permission::Permission as P;
use crate::refused::Done;
use axum::http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use sluice_govern::registry::Kind;

/// The routes of the registry.
pub(super) fn routes() -> Vec<Route> {
    vec![Route::new(
        (Method::GET, "/api/v1/registry"),
        Need::Permission(P::GovernanceRead),
        "Every row as it is kept, secrets and tokens apart",
        all,
    )]
}

/// A row.
#[derive(Debug, Serialize, JsonSchema)]
struct RowKept {
    /// What it is.
    kind: String,
    /// Its name.
    name: String,
    /// What it says.
    body: Map<String, Value>,
}

/// All rows.
#[derive(Debug, Serialize, JsonSchema)]
struct Registry {
    /// Which state of the registry it is.
    epoch: u64,
    /// The rows.
    rows: Vec<RowKept>,
}

async fn all(ask: Ask) -> Done<Reply<Registry>> {
    if !ask.caller.may(P::WorkflowRead) {
        return Err(forbidden(P::WorkflowRead).into());
    }
    let there = ask.house.rows().await?;
    let rows = there.rows.iter().filter(|row| row.kind != Kind::Token).map(|row| {
        let Value::Object(body) = redacted(row.body.clone()) else { return None };
        Some(RowKept { kind: row.kind.as_str().to_owned(), name: row.name.clone(), body })
    });
    Ok(Reply::ok(Registry { epoch: there.epoch, rows: rows.flatten().collect() }))
}
