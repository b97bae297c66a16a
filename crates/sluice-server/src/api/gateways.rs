//! Tokens, health and heartbeats of gateways.
//!
//! INVARIANT: a gateway acts only for itself. Its token identifies the gateway and its
//! organisation.

use super::admission::too_often;
use super::problem::{Rejection, UNAUTHENTICATED};
use super::reply::Reply;
use super::request::{ApiRequest, bad};
use super::route::{GatewayCaller, Incoming, Need, ResponseKind, Route, body};
use crate::app::App;
use crate::auth::permission::Permission as P;
use crate::auth::secret;
use crate::organisation::Organisation;
use crate::refused::{Failure, Refused, ServiceResult};
use crate::service::registry::{self, Mode, RowChange};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_bridge::protocol::GATEWAY_TOKEN;
use sluice_core::hash::Hash;
use sluice_core::journal::envelope::timestamp;
use sluice_govern::registry::{Health, Kind, Row};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum length of an instance id, in bytes.
const INSTANCE_BYTES_MAX: usize = 128;
/// Prefix of the instance ids of Sluice's own bridges; their start time follows.
const OUR_INSTANCES: &str = "brg_";
/// Length of such an id, in bytes.
const OUR_INSTANCE_BYTES: usize = 32;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::POST, "/api/v1/gateways/{name}/token"),
            Need::Permission(P::GatewayWrite),
            "Create a new token for a gateway; it is shown once",
            token,
        )
        .with_status(201),
        Route::new(
            (Method::GET, "/api/v1/gateways/{name}/health"),
            Need::Permission(P::GovernanceRead),
            "Show the health of a gateway and its history",
            health,
        ),
        Route::open(
            (Method::POST, "/api/v1/gateways/{name}/heartbeat"),
            Need::Gateway,
            "Report the health of a gateway, with its own token",
            ResponseKind::Json(|_| json_schema!({"type": "object"})),
            heartbeat,
        ),
    ]
}

/// A new token of a gateway.
#[derive(Debug, Serialize, JsonSchema)]
struct GatewayToken {
    /// Name of the gateway.
    gateway: String,
    /// The token. Only its hash is stored.
    token: String,
}

async fn token(request: ApiRequest) -> ServiceResult<Reply<GatewayToken>> {
    let name = request.path("name").to_owned();
    let mut entropy = request.app.entropy();
    let made: String = (0..4).map(|_| format!("{:016x}", entropy.bits())).collect();
    let token = format!("gwt_{made}");
    let hash = Hash::of(token.as_bytes()).to_string();
    let edit = |stored: &[Row]| -> ServiceResult<RowChange> {
        let mut row = registry::row(stored, Kind::Gateway, &name)?.clone();
        row.body["token_sha256"] = hash.clone().into();
        Ok(RowChange { put: vec![row], remove: Vec::new() })
    };
    registry::change(request.service(), &request.caller, Mode::Write, &edit).await?;
    // The previous token must not be valid any more.
    request.organisation.rows().await?;
    Ok(Reply::created(GatewayToken { gateway: name, token }))
}

/// A change of a gateway's health.
#[derive(Debug, Serialize, JsonSchema)]
struct HealthChange {
    /// When it changed.
    at: String,
    /// `healthy`, `degraded` or `offline`.
    health: String,
}

/// The health of a gateway.
#[derive(Debug, Serialize, JsonSchema)]
struct HealthShown {
    /// Name of the gateway.
    gateway: String,
    /// `healthy`, `degraded` or `offline`, as this process last observed it.
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

async fn health(request: ApiRequest) -> ServiceResult<Reply<HealthShown>> {
    let rows = request.organisation.rows().await?;
    let name = request.path("name");
    registry::row(&rows.rows, Kind::Gateway, name)?;
    let (now, history) = request.service().engine.health(name).await?;
    let change = |(at_ms, health)| HealthChange { at: timestamp(at_ms), health: word(health) };
    Ok(Reply::ok(HealthShown {
        gateway: name.to_owned(),
        health: word(now),
        history: history.into_iter().map(change).collect(),
    }))
}

/// A heartbeat of a gateway.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeartbeatBody {
    status: Health,
    /// Id of the process behind the gateway; it changes when the gateway is restarted.
    instance_id: Option<String>,
}

async fn heartbeat(incoming: Incoming) -> Response {
    let request_id = incoming.request_id.clone();
    match record_heartbeat(&incoming).await {
        Ok(reply) => reply.into_response(&request_id),
        Err(rejection) => rejection.into_response(&request_id),
    }
}

/// The gateway that a request's token identifies. The number of invalid tokens is limited.
pub(super) async fn sender(
    app: &App,
    headers: &HeaderMap,
    from: IpAddr,
) -> Result<GatewayCaller, Rejection> {
    let sent = headers.get(GATEWAY_TOKEN).and_then(|value| value.to_str().ok());
    let hash = sent.map(|sent| Hash::of(sent.as_bytes()).to_string());
    let find = || hash.as_deref().and_then(|hash| find_gateway(app, hash));
    let now_ms = app.now_ms();
    for organisation in app.organisations() {
        organisation.refresh(now_ms).await;
    }
    if let Some(found) = find() {
        // A row takes effect when it is written, so the newest rows decide.
        found.organisation.rows().await.map_err(Failure::from)?;
    }
    if let Some(found) = find() {
        return Ok(found);
    }
    app.rates().stranger(from).map_err(|after| {
        too_often(app, "stranger_rate", "too many failed sign-in attempts", after)
    })?;
    // Another process may just have created it.
    for organisation in app.organisations() {
        organisation.refresh_now().await;
    }
    if let Some(found) = find() {
        return Ok(found);
    }
    let remedy = "send the token of the gateway as `X-Gateway-Token`";
    Err(Refused::new(UNAUTHENTICATED, "the gateway token is missing, invalid or revoked", remedy)
        .into())
}

async fn record_heartbeat(incoming: &Incoming) -> Result<Reply<Value>, Rejection> {
    let Some(gateway) = &incoming.gateway else { return Err(Rejection::internal()) };
    let organisation = &gateway.organisation;
    let name = incoming.path.first().map(|(_, name)| name.as_str()).unwrap_or_default();
    if gateway.name != name {
        let remedy = "send the token of the gateway as `X-Gateway-Token`";
        return Err(
            Refused::new(UNAUTHENTICATED, "the token belongs to another gateway", remedy).into()
        );
    }
    let sent: HeartbeatBody = body(&incoming.headers, &incoming.body)?;
    if let Some(instance) = &sent.instance_id
        && !record_instance(&incoming.app, organisation, (name, instance), sent.status).await?
    {
        return Ok(Reply::ok(serde_json::json!({"received": true, "superseded": true})));
    }
    organisation.service().engine.heard(name, sent.status).await;
    Ok(Reply::ok(serde_json::json!({"received": true})))
}

/// The gateway whose token has this hash, according to the cached rows.
fn find_gateway(app: &App, hash: &str) -> Option<GatewayCaller> {
    app.organisations().into_iter().find_map(|organisation| {
        let rows = organisation.known_rows();
        let gateways = rows.rows.iter().filter(|row| row.kind == Kind::Gateway);
        let is_its =
            |row: &&Row| secret::same(hash, row.body["token_sha256"].as_str().unwrap_or_default());
        let row = gateways.into_iter().find(is_its)?;
        let gateway = serde_json::from_value(row.body.clone()).ok()?;
        Some(GatewayCaller { organisation, name: row.name.clone(), row: gateway })
    })
}

/// Records which process is behind a gateway, or that none is. Returns whether this process
/// may report for the gateway: an old process may not report for its successor.
async fn record_instance(
    app: &App,
    organisation: &Organisation,
    (name, instance): (&str, &str),
    reported: Health,
) -> Result<bool, Rejection> {
    if instance.is_empty() || instance.len() > INSTANCE_BYTES_MAX {
        return Err(bad("`instance_id` has 1 to 128 bytes").into());
    }
    let rows = organisation.rows().await.map_err(Failure::from)?;
    let row = registry::row(&rows.rows, Kind::Gateway, name)?;
    let current = row.body["instance_id"].as_str();
    let leaves = reported == Health::Offline;
    match current {
        Some(current) if current == instance && !leaves => return Ok(true),
        Some(current) if current != instance && (leaves || is_later(current, instance)) => {
            return Ok(false);
        }
        None if leaves => return Ok(true),
        Some(_) | None => {}
    }
    // Each new process is a change of the registry, which every run has to notice.
    app.rates().instance(organisation.name(), name).map_err(|after| {
        too_often(app, "gateway_instances", "too many processes report as this gateway", after)
    })?;
    let current = current.map(str::to_owned);
    let overtaken = AtomicBool::new(false);
    let edit = |rows: &[Row]| -> ServiceResult<RowChange> {
        let mut row = registry::row(rows, Kind::Gateway, name)?.clone();
        // Another process may have come first; its next heartbeat reports itself.
        let late = row.body["instance_id"].as_str() != current.as_deref();
        overtaken.store(late, Ordering::Relaxed);
        if late {
            return Ok(RowChange { put: Vec::new(), remove: Vec::new() });
        }
        row.body["instance_id"] = if leaves { Value::Null } else { instance.into() };
        Ok(RowChange { put: vec![row], remove: Vec::new() })
    };
    registry::change(organisation.service(), &format!("gateway:{name}"), Mode::Write, &edit)
        .await?;
    Ok(!overtaken.load(Ordering::Relaxed))
}

/// Whether an instance was started after another. Only ids of Sluice's own bridges contain
/// their start time.
fn is_later(one: &str, other: &str) -> bool {
    let ours = |id: &str| id.starts_with(OUR_INSTANCES) && id.len() == OUR_INSTANCE_BYTES;
    ours(one) && ours(other) && one > other
}
