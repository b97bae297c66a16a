//! The registry as a whole, for those who work out what should change.

use super::ask::Ask;
use super::gate::forbidden;
use super::reply::Reply;
use super::route::{Need, Route};
use super::rows::redacted;
use crate::auth::permission::Permission as P;
use crate::refused::Done;
use crate::service::registry::{self, Asked, Mode};
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sluice_core::port::store::Hash;
use sluice_govern::registry::{Kind, Row};

/// The routes of the registry.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::GET, "/api/v1/registry"),
            Need::Permission(P::GovernanceRead),
            "Every row as it is kept, secrets and tokens apart",
            all,
        ),
        Route::new(
            (Method::POST, "/api/v1/gateways/{name}/token"),
            Need::Permission(P::GatewayWrite),
            "Give a gateway a new token, shown once",
            token,
        ),
    ]
}

/// A row.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RowKept {
    /// What it is.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What it says.
    pub body: Map<String, Value>,
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

/// A token that was just made.
#[derive(Debug, Serialize, JsonSchema)]
struct GatewayToken {
    /// The gateway.
    gateway: String,
    /// The token. Only its SHA-256 is kept.
    token: String,
}

async fn token(ask: Ask) -> Done<Reply<GatewayToken>> {
    let name = ask.path("name");
    let token = {
        let mut entropy = ask.app.entropy();
        let secret: String = (0..4).map(|_| format!("{:016x}", entropy.bits())).collect();
        format!("gwt_{secret}")
    };
    let hash = Hash::of(token.as_bytes()).to_string();
    let wish = |there: &[Row]| -> Done<Asked> {
        let mut row = registry::row(there, Kind::Gateway, name)?.clone();
        row.body["token_sha256"] = hash.clone().into();
        Ok(Asked { put: vec![row], remove: Vec::new() })
    };
    registry::change(ask.service(), &ask.caller.name, Mode::Write, &wish).await?;
    Ok(Reply::ok(GatewayToken { gateway: name.to_owned(), token }))
}
