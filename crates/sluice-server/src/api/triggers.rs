//! Schedule slots, deliveries of outbound webhooks, and the endpoint of inbound webhooks.

use super::admission::too_often;
use super::problem::{Rejection, UNAUTHENTICATED};
use super::reply::Reply;
use super::request::{ApiRequest, bad, trace};
use super::route::{Incoming, Need, ResponseKind, Route};
use super::runs::{limit, page};
use super::shape::Anything;
use super::strict;
use crate::app::App;
use crate::auth::permission::Permission as P;
use crate::inbound_webhooks;
use crate::organisation::{Organisation, SecretReading};
use crate::refused::{Failure, Refused, ServiceResult};
use crate::service::registry;
use crate::service::start::{self, StartRequest};
use crate::signature;
use crate::webhooks;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use schemars::{JsonSchema, json_schema};
use serde::Deserialize;
use serde_json::json;
use sluice_core::journal::envelope::timestamp;
use sluice_govern::registry::{Hook, Kind};
use std::net::IpAddr;
use std::sync::Arc;

pub(super) fn routes() -> Vec<Route> {
    let started = ResponseKind::Json(|_| json_schema!({"type": "object"}));
    vec![
        Route::new(
            (Method::GET, "/api/v1/schedules/{name}/slots"),
            Need::Permission(P::WorkflowRead),
            "List the slots of a schedule with their outcomes",
            slots,
        )
        .paged(),
        Route::new(
            (Method::GET, "/api/v1/webhooks/{name}/deliveries"),
            Need::Permission(P::GovernanceRead),
            "List the deliveries of an outbound webhook",
            deliveries,
        )
        .paged(),
        Route::open(
            (Method::POST, "/hooks/{hook}"),
            Need::Nothing,
            "Start a run through an inbound webhook, with a signed request",
            started,
            receive,
        )
        .before_body(|app, path, from| Box::pin(check_webhook_exists(app, path, from)))
        .with_status(202),
    ]
}

/// A page of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PageQuery {
    /// The `next_cursor` of the previous page.
    cursor: Option<u64>,
    /// Maximum number of items.
    #[serde(default = "page")]
    #[schemars(range(min = 1, max = 500))]
    limit: u16,
}

async fn slots(request: ApiRequest<PageQuery>) -> ServiceResult<Reply<Vec<Anything>>> {
    let rows = request.organisation.rows().await?;
    let name = request.path("name");
    registry::row(&rows.rows, Kind::Schedule, name)?;
    let limit = limit(request.query.limit)?;
    let store = &request.service().store;
    let slots = store.slots(name.to_owned(), request.query.cursor, limit).await?;
    let next = slots.last().filter(|_| slots.len() == limit).map(|slot| slot.slot_ms.to_string());
    let shown = slots.iter().map(|slot| {
        Anything(json!({
            "slot_at": timestamp(slot.slot_ms),
            "count": slot.count,
            "fate": slot.outcome,
            "why": slot.why,
            "run_id": slot.run.map(|run| run.to_string()),
            "at": timestamp(slot.at_ms),
        }))
    });
    Ok(Reply::page(shown.collect(), next))
}

async fn deliveries(request: ApiRequest<PageQuery>) -> ServiceResult<Reply<Vec<Anything>>> {
    let rows = request.organisation.rows().await?;
    let name = request.path("name");
    registry::row(&rows.rows, Kind::Webhook, name)?;
    let limit = limit(request.query.limit)?;
    let store = &request.service().store;
    let found = store.deliveries(name.to_owned(), request.query.cursor, limit).await?;
    let next = found.last().filter(|_| found.len() == limit).map(|one| one.number.to_string());
    let shown = found.iter().map(|one| Anything(webhooks::shown(one)));
    Ok(Reply::page(shown.collect(), next))
}

/// Refuses a request to an inbound webhook that no organisation has, before its body is read.
async fn check_webhook_exists(
    app: &App,
    path: &[(&'static str, String)],
    from: IpAddr,
) -> Result<(), Rejection> {
    let name = path.first().map(|(_, name)| name.as_str()).unwrap_or_default();
    let exists = || {
        let has = |organisation: &Arc<Organisation>| {
            registry::row(&organisation.known_rows().rows, Kind::Hook, name).is_ok()
        };
        app.organisations().iter().any(has)
    };
    let now_ms = app.now_ms();
    for organisation in app.organisations() {
        organisation.refresh(now_ms).await;
    }
    if exists() {
        return Ok(());
    }
    app.rates()
        .stranger(from)
        .map_err(|after| too_often(app, "stranger_rate", "too many invalid signatures", after))?;
    // Another process may just have created it.
    for organisation in app.organisations() {
        organisation.refresh_now().await;
    }
    if exists() { Ok(()) } else { Err(bad_signature().into()) }
}

async fn receive(incoming: Incoming) -> Response {
    let request_id = incoming.request_id.clone();
    match start_run(&incoming).await {
        Ok(reply) => reply.into_response(&request_id),
        Err(rejection) => rejection.into_response(&request_id),
    }
}

/// The same refusal for an unknown webhook and a wrong signature, so that senders cannot
/// find out which webhooks exist.
fn bad_signature() -> Failure {
    let remedy =
        "sign the timestamp and the raw body with the webhook's secret: docs/guide/webhooks.md";
    Refused::new(UNAUTHENTICATED, "the signature is not valid", remedy).into()
}

async fn start_run(incoming: &Incoming) -> Result<Reply<Anything>, Rejection> {
    let name = incoming.path.iter().find(|(one, _)| *one == "hook");
    let name = name.map(|(_, value)| value.as_str()).unwrap_or_default();
    // For an address that has used up its attempts no secret is read. A correctly signed
    // request still passes with the cached secret: the address may be that of a proxy.
    let reading = match incoming.app.rates().has_tries(incoming.from) {
        Ok(()) => SecretReading::Fresh,
        Err(_) => SecretReading::Cached,
    };
    let Some((organisation, hook)) = signed_webhook(incoming, name, reading).await? else {
        incoming.app.rates().stranger(incoming.from).map_err(|after| {
            let message = "too many invalid signatures";
            too_often(&incoming.app, "stranger_rate", message, after)
        })?;
        return Err(bad_signature().into());
    };
    let stamp = text(&incoming.headers, signature::TIMESTAMP);
    let body = strict::parse(&incoming.body).map_err(|why| bad(format!("the body: {why}")))?;
    let request = StartRequest {
        args: inbound_webhooks::args(&body, &hook.args),
        key: Some(inbound_webhooks::key(name, stamp, &incoming.body)),
        initiator: inbound_webhooks::principal(name),
        on_behalf_of: hook.authors(),
        trace: trace(&incoming.headers),
        ..StartRequest::default()
    };
    let started = start::start_workflow(&organisation, &hook.workflow, request).await?;
    if started.existed {
        let message = "this request was received before";
        let remedy = "nothing: its run was started the first time";
        return Err(Refused::new(REPLAYED, message, remedy).into());
    }
    Ok(Reply::accepted(Anything(json!({"run_id": started.run.to_string()}))))
}

/// The code of a request that was received before.
pub(super) const REPLAYED: &str = "replayed";

/// The inbound webhook of this name whose secret signed the request. Organisations may have
/// webhooks of the same name: the secret selects the organisation.
async fn signed_webhook(
    incoming: &Incoming,
    name: &str,
    reading: SecretReading,
) -> ServiceResult<Option<(Arc<Organisation>, Hook)>> {
    let stamp = text(&incoming.headers, signature::TIMESTAMP);
    let signed = text(&incoming.headers, signature::SIGNATURE);
    let now_ms = incoming.app.now_ms();
    // No secret is read for a request that is refused anyway.
    if let Err(why) = inbound_webhooks::plausible(stamp, signed, now_ms) {
        tracing::info!(hook = name, %why, "a request was refused");
        return Ok(None);
    }
    for organisation in incoming.app.organisations() {
        let rows = organisation.rows().await?;
        let Ok(row) = registry::row(&rows.rows, Kind::Hook, name) else { continue };
        let Ok(hook) = serde_json::from_value::<Hook>(row.body.clone()) else { continue };
        if !hook.enabled {
            tracing::warn!(hook = name, "an inbound webhook that is disabled was called");
            continue;
        }
        let secret = match organisation.webhook_secret(name, &hook, reading) {
            Ok(Some(secret)) => secret,
            Ok(None) => continue,
            Err(why) => {
                tracing::warn!(hook = name, %why, "the secret of an inbound webhook cannot be read");
                continue;
            }
        };
        match inbound_webhooks::verify(&secret, stamp, &incoming.body, signed, now_ms) {
            Ok(()) => return Ok(Some((organisation, hook))),
            Err(why) => tracing::info!(hook = name, %why, "a request was refused"),
        }
    }
    Ok(None)
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
