//! Gateways, beside their rows: their tokens, their health, their heartbeats.
//!
//! INVARIANT: a gateway speaks for itself alone. Its token says which gateway of
//! which organisation it is.

use super::ask::{Ask, bad};
use super::gate::too_often;
use super::problem::{Rejection, UNAUTHENTICATED};
use super::reply::Reply;
use super::route::{Answers, Asking, Incoming, Need, Route, body};
use crate::app::App;
use crate::auth::permission::Permission as P;
use crate::auth::secret;
use crate::house::House;
use crate::refused::{Done, Failure, Refused};
use crate::service::registry::{self, Asked, Mode};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_bridge::protocol::GATEWAY_TOKEN;
use sluice_core::journal::envelope::timestamp;
use sluice_core::port::store::Hash;
use sluice_govern::registry::{Health, Kind, Row};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest id of an instance, in bytes.
const INSTANCE_BYTES_MAX: usize = 128;
/// What the ids of our own bridges begin with, before when they were started.
const OUR_INSTANCES: &str = "brg_";
/// How long such an id is, in bytes.
const OUR_INSTANCE_BYTES: usize = 32;

/// The routes of gateways.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::POST, "/api/v1/gateways/{name}/token"),
            Need::Permission(P::GatewayWrite),
            "Give a gateway a new token, shown once",
            token,
        )
        .answering(201),
        Route::new(
            (Method::GET, "/api/v1/gateways/{name}/health"),
            Need::Permission(P::GovernanceRead),
            "Whether a gateway can do work, and how that changed",
            health,
        ),
        Route::open(
            (Method::POST, "/api/v1/gateways/{name}/heartbeat"),
            Need::Gateway,
            "A gateway says how it is, by its own token",
            Answers::Json(|_| json_schema!({"type": "object"})),
            heartbeat,
        ),
    ]
}

/// A token of a gateway that was just made.
#[derive(Debug, Serialize, JsonSchema)]
struct GatewayToken {
    /// The gateway.
    gateway: String,
    /// The token. Only its hash is kept.
    token: String,
}

async fn token(ask: Ask) -> Done<Reply<GatewayToken>> {
    let name = ask.path("name").to_owned();
    let mut entropy = ask.app.entropy();
    let made: String = (0..4).map(|_| format!("{:016x}", entropy.bits())).collect();
    let token = format!("gwt_{made}");
    let hash = Hash::of(token.as_bytes()).to_string();
    let wish = |there: &[Row]| -> Done<Asked> {
        let mut row = registry::row(there, Kind::Gateway, &name)?.clone();
        row.body["token_sha256"] = hash.clone().into();
        Ok(Asked { put: vec![row], remove: Vec::new() })
    };
    registry::change(ask.service(), &ask.caller.name, Mode::Write, &wish).await?;
    // The token before it is not valid any more.
    ask.house.rows().await?;
    Ok(Reply::created(GatewayToken { gateway: name, token }))
}

/// How a gateway was at a time.
#[derive(Debug, Serialize, JsonSchema)]
struct HealthChange {
    /// When it became so.
    at: String,
    /// `healthy`, `degraded` or `offline`.
    health: String,
}

/// How a gateway is.
#[derive(Debug, Serialize, JsonSchema)]
struct HealthShown {
    /// The gateway.
    gateway: String,
    /// `healthy`, `degraded` or `offline`, as far as this process can tell.
    health: String,
    /// The last changes, oldest first.
    history: Vec<HealthChange>,
}

fn word(health: Health) -> String {
    serde_json::to_value(health)
        .ok()
        .and_then(|word| word.as_str().map(str::to_owned))
        .unwrap_or_default()
}

async fn health(ask: Ask) -> Done<Reply<HealthShown>> {
    let rows = ask.house.rows().await?;
    let name = ask.path("name");
    registry::row(&rows.rows, Kind::Gateway, name)?;
    let (now, history) = ask.service().engine.health(name);
    let change = |(at_ms, health)| HealthChange { at: timestamp(at_ms), health: word(health) };
    Ok(Reply::ok(HealthShown {
        gateway: name.to_owned(),
        health: word(now),
        history: history.into_iter().map(change).collect(),
    }))
}

/// How a gateway says it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeartbeatBody {
    status: Health,
    /// The process behind the gateway; a new one says that it was started anew.
    instance_id: Option<String>,
}

async fn heartbeat(incoming: Incoming) -> Response {
    let request_id = incoming.request_id.clone();
    match beat(&incoming).await {
        Ok(reply) => reply.into_response(&request_id),
        Err(rejection) => rejection.into_response(&request_id),
    }
}

/// The gateway whose token was sent, and its organisation. Those who have none may
/// not try for ever.
pub(super) async fn sender(
    app: &App,
    headers: &HeaderMap,
    from: IpAddr,
) -> Result<Asking, Rejection> {
    let sent = headers.get(GATEWAY_TOKEN).and_then(|value| value.to_str().ok());
    let hash = sent.map(|sent| Hash::of(sent.as_bytes()).to_string());
    let look = || hash.as_deref().and_then(|hash| known(app, hash));
    let now_ms = app.now_ms();
    for house in app.houses() {
        house.refresh(now_ms).await;
    }
    if let Some(found) = look() {
        // What the row says counts from when it was written.
        found.house.rows().await.map_err(Failure::from)?;
    }
    if let Some(found) = look() {
        return Ok(found);
    }
    app.rates().stranger(from).map_err(|after| {
        too_often(app, "stranger_rate", "too many secrets that are none", after)
    })?;
    // It may just have been made.
    for house in app.houses() {
        house.refresh_now().await;
    }
    if let Some(found) = look() {
        return Ok(found);
    }
    let remedy = "send the gateway's own token as `X-Gateway-Token`";
    Err(Refused::new(UNAUTHENTICATED, "no token of a gateway", remedy).into())
}

async fn beat(incoming: &Incoming) -> Result<Reply<Value>, Rejection> {
    let Some(asking) = &incoming.gateway else { return Err(Rejection::internal()) };
    let house = &asking.house;
    let name = incoming.path.first().map(|(_, name)| name.as_str()).unwrap_or_default();
    if asking.name != name {
        let remedy = "send the gateway's own token as `X-Gateway-Token`";
        return Err(Refused::new(UNAUTHENTICATED, "no token of this gateway", remedy).into());
    }
    let said: HeartbeatBody = body(&incoming.headers, &incoming.body)?;
    if let Some(instance) = &said.instance_id
        && !note_instance(&incoming.app, house, (name, instance), said.status).await?
    {
        return Ok(Reply::ok(serde_json::json!({"received": true, "superseded": true})));
    }
    house.service().engine.heard(name, said.status).await;
    Ok(Reply::ok(serde_json::json!({"received": true})))
}

/// The gateway whose token has this hash, as far as is known in memory.
fn known(app: &App, hash: &str) -> Option<Asking> {
    app.houses().into_iter().find_map(|house| {
        let rows = house.known_rows();
        let gateways = rows.rows.iter().filter(|row| row.kind == Kind::Gateway);
        let is_its =
            |row: &&Row| secret::same(hash, row.body["token_sha256"].as_str().unwrap_or_default());
        let row = gateways.into_iter().find(is_its)?;
        let gateway = serde_json::from_value(row.body.clone()).ok()?;
        Some(Asking { house, name: row.name.clone(), row: gateway })
    })
}

/// Notes which process is behind a gateway, or that none is; whether this one may
/// speak for it. An old process does not speak for its successor.
async fn note_instance(
    app: &App,
    house: &House,
    (name, instance): (&str, &str),
    said: Health,
) -> Result<bool, Rejection> {
    if instance.is_empty() || instance.len() > INSTANCE_BYTES_MAX {
        return Err(bad("`instance_id` has 1 to 128 bytes").into());
    }
    let rows = house.rows().await.map_err(Failure::from)?;
    let row = registry::row(&rows.rows, Kind::Gateway, name)?;
    let there = row.body["instance_id"].as_str();
    let leaves = said == Health::Offline;
    match there {
        Some(there) if there == instance && !leaves => return Ok(true),
        Some(there) if there != instance && (leaves || is_later(there, instance)) => {
            return Ok(false);
        }
        None if leaves => return Ok(true),
        Some(_) | None => {}
    }
    // Each new process is a change of the registry, which every run would notice.
    app.rates().instance(house.name(), name).map_err(|after| {
        too_often(app, "gateway_instances", "too many processes say they are this gateway", after)
    })?;
    let there = there.map(str::to_owned);
    let overtaken = AtomicBool::new(false);
    let wish = |rows: &[Row]| -> Done<Asked> {
        let mut row = registry::row(rows, Kind::Gateway, name)?.clone();
        // Somebody may have come in between; the next beat says who it is.
        let late = row.body["instance_id"].as_str() != there.as_deref();
        overtaken.store(late, Ordering::Relaxed);
        if late {
            return Ok(Asked { put: Vec::new(), remove: Vec::new() });
        }
        row.body["instance_id"] = if leaves { Value::Null } else { instance.into() };
        Ok(Asked { put: vec![row], remove: Vec::new() })
    };
    registry::change(house.service(), &format!("gateway:{name}"), Mode::Write, &wish).await?;
    Ok(!overtaken.load(Ordering::Relaxed))
}

/// Whether an instance was started after another, as far as their ids tell: those
/// of our bridges begin with when that was.
fn is_later(one: &str, other: &str) -> bool {
    let ours = |id: &str| id.starts_with(OUR_INSTANCES) && id.len() == OUR_INSTANCE_BYTES;
    ours(one) && ours(other) && one > other
}
