//! The registry as a whole: read at once, and changed all together or not at all.

use super::ask::{Ask, Nothing, bad};
use super::problem::FORBIDDEN;
use super::reply::Reply;
use super::route::{Need, Route};
use super::rows::write_permission;
use super::shape::Changes as ChangesShown;
use super::workflows::told;
use crate::auth::permission::Permission as P;
use crate::refused::{Done, REGISTRY_BUSY, Refused};
use crate::service::changes::{Changes, redacted};
use crate::service::registry::{self, Asked, Mode};
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sluice_core::port::store::Hash;
use sluice_govern::registry::{Kind, Row};

/// Most rows that are changed at once.
const ROWS_MAX: usize = 10_000;

/// The routes of the registry.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::GET, "/api/v1/registry"),
            Need::Permission(P::GovernanceRead),
            "Every row, secrets apart",
            all,
        ),
        Route::new(
            (Method::POST, "/api/v1/registry"),
            Need::Permission(P::WorkflowWrite),
            "Change rows all together or not at all; each needs its kind's permission",
            change,
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
#[serde(deny_unknown_fields)]
pub struct RowSent {
    /// What it is.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What it says.
    pub body: Map<String, Value>,
}

/// Which row.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RowNamed {
    /// What it is.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// All rows.
#[derive(Debug, Serialize, JsonSchema)]
struct Registry {
    /// Which state of the registry it is.
    epoch: u64,
    /// The rows.
    rows: Vec<RowSent>,
}

async fn all(ask: Ask) -> Done<Reply<Registry>> {
    permitted(&ask, P::WorkflowRead)?;
    let there = ask.house.rows().await?;
    let rows = there.rows.iter().filter(|row| row.kind != Kind::Token).cloned();
    let rows = rows.map(redacted).map(|row| RowSent {
        kind: row.kind.as_str().to_owned(),
        name: row.name,
        body: match row.body {
            Value::Object(body) => body,
            _ => Map::new(),
        },
    });
    Ok(Reply::ok(Registry { epoch: there.epoch, rows: rows.collect() }))
}

/// What changes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChangesBody {
    /// Only if the registry is still in this state.
    epoch: Option<u64>,
    /// Rows as they should be.
    #[serde(default)]
    put: Vec<RowSent>,
    /// Rows that go.
    #[serde(default)]
    remove: Vec<RowNamed>,
    /// Only say what would change.
    #[serde(default)]
    dry_run: bool,
}

fn permitted<Q, B>(ask: &Ask<Q, B>, need: P) -> Result<(), Refused> {
    if ask.caller.may(need) {
        return Ok(());
    }
    let message = format!("this needs the permission `{}`", need.as_str());
    Err(Refused::new(FORBIDDEN, message, "ask somebody who has it"))
}

/// A kind that may be changed here, by whoever asks.
fn kind<Q, B>(ask: &Ask<Q, B>, word: &str) -> Result<Kind, Refused> {
    let found = Kind::ALL.iter().find(|kind| kind.as_str() == word);
    let found = found.filter(|kind| **kind != Kind::Token).copied();
    let found = found.ok_or_else(|| {
        bad(format!("`{}` is no kind of row", sluice_core::visible::brief(word)))
    })?;
    permitted(ask, write_permission(found))?;
    Ok(found)
}

async fn change(ask: Ask<Nothing, ChangesBody>) -> Done<Reply<ChangesShown>> {
    let body = &ask.body;
    if body.put.len() + body.remove.len() > ROWS_MAX {
        return Err(bad(format!("at most {ROWS_MAX} rows are changed at once")).into());
    }
    let mut wish = Changes::default();
    for row in &body.put {
        let (kind, name) = (kind(&ask, &row.kind)?, row.name.clone());
        wish.put.push(Row { kind, name, body: Value::Object(row.body.clone()) });
    }
    for row in &body.remove {
        wish.remove.push((kind(&ask, &row.kind)?, row.name.clone()));
    }
    let there = ask.service().store.registry(None).await?.epoch;
    if body.epoch.is_some_and(|epoch| epoch != there) {
        let message = format!("the registry has changed: it is at {there}");
        return Err(Refused::new(REGISTRY_BUSY, message, "read it again, and try again").into());
    }
    let mode = if body.dry_run { Mode::Look } else { Mode::Write };
    let outcome = registry::change(ask.service(), &ask.caller.name, mode, &wish).await?;
    Ok(Reply::ok(ChangesShown(told(&outcome)?)))
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
    let mut entropy = ask.app.entropy();
    let secret: String = (0..4).map(|_| format!("{:016x}", entropy.bits())).collect();
    drop(entropy);
    let token = format!("gwt_{secret}");
    let hash = Hash::of(token.as_bytes()).to_string();
    let wish = |there: &[Row]| -> Done<Asked> {
        let mut row = registry::row(there, Kind::Gateway, name)?.clone();
        row.body["token_sha256"] = hash.clone().into();
        Ok(Asked { put: vec![row], remove: Vec::new() })
    };
    registry::change(ask.service(), &ask.caller.name, Mode::Write, &wish).await?;
    Ok(Reply::ok(GatewayToken { gateway: name.to_owned(), token }))
}
