//! What starts runs by itself and whom events are sent to, beside their rows.

use super::ask::{Ask, bad};
use super::gate::too_often;
use super::problem::{Rejection, UNAUTHENTICATED};
use super::reply::Reply;
use super::route::{Answers, Incoming, Need, Route};
use super::runs::{limit, page};
use super::shape::Anything;
use super::strict;
use crate::app::App;
use crate::auth::permission::Permission as P;
use crate::hooks;
use crate::house::{House, SecretReading};
use crate::refused::{Done, Failure, Refused};
use crate::service::registry;
use crate::service::start::{self, Wish};
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

/// The routes of triggers.
pub(super) fn routes() -> Vec<Route> {
    let started = Answers::Json(|_| json_schema!({"type": "object"}));
    vec![
        Route::new(
            (Method::GET, "/api/v1/schedules/{name}/slots"),
            Need::Permission(P::WorkflowRead),
            "What became of a schedule's times",
            slots,
        )
        .paged(),
        Route::new(
            (Method::GET, "/api/v1/webhooks/{name}/deliveries"),
            Need::Permission(P::GovernanceRead),
            "What was sent, and what became of it",
            deliveries,
        )
        .paged(),
        Route::open(
            (Method::POST, "/hooks/{hook}"),
            Need::Nothing,
            "Start a run through a door: signed with its secret",
            started,
            knock,
        )
        .before_body(|app, path, from| Box::pin(may_knock(app, path, from)))
        .answering(202),
    ]
}

/// Which page.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PageQuery {
    /// The `next_cursor` of the page before.
    cursor: Option<u64>,
    /// Most to list.
    #[serde(default = "page")]
    #[schemars(range(min = 1, max = 500))]
    limit: u16,
}

async fn slots(ask: Ask<PageQuery>) -> Done<Reply<Vec<Anything>>> {
    let rows = ask.house.rows().await?;
    let name = ask.path("name");
    registry::row(&rows.rows, Kind::Schedule, name)?;
    let limit = limit(ask.query.limit)?;
    let store = &ask.service().store;
    let slots = store.slots(name.to_owned(), ask.query.cursor, limit).await?;
    let next = slots.last().filter(|_| slots.len() == limit).map(|slot| slot.slot_ms.to_string());
    let shown = slots.iter().map(|slot| {
        Anything(json!({
            "slot_at": timestamp(slot.slot_ms),
            "count": slot.count,
            "fate": slot.fate,
            "why": slot.why,
            "run_id": slot.run.map(|run| run.to_string()),
            "at": timestamp(slot.at_ms),
        }))
    });
    Ok(Reply::page(shown.collect(), next))
}

async fn deliveries(ask: Ask<PageQuery>) -> Done<Reply<Vec<Anything>>> {
    let rows = ask.house.rows().await?;
    let name = ask.path("name");
    registry::row(&rows.rows, Kind::Webhook, name)?;
    let limit = limit(ask.query.limit)?;
    let store = &ask.service().store;
    let found = store.deliveries(name.to_owned(), ask.query.cursor, limit).await?;
    let next = found.last().filter(|_| found.len() == limit).map(|one| one.number.to_string());
    let shown = found.iter().map(|one| Anything(webhooks::shown(one)));
    Ok(Reply::page(shown.collect(), next))
}

/// Refuses the body of a request to a hook that no organisation has.
async fn may_knock(
    app: &App,
    path: &[(&'static str, String)],
    from: IpAddr,
) -> Result<(), Rejection> {
    let name = path.first().map(|(_, name)| name.as_str()).unwrap_or_default();
    let there = || {
        let has =
            |house: &Arc<House>| registry::row(&house.known_rows().rows, Kind::Hook, name).is_ok();
        app.houses().iter().any(has)
    };
    let now_ms = app.now_ms();
    for house in app.houses() {
        house.refresh(now_ms).await;
    }
    if there() {
        return Ok(());
    }
    app.rates().stranger(from).map_err(|after| {
        too_often(app, "stranger_rate", "too many signatures that do not fit", after)
    })?;
    // Another process may just have made it.
    for house in app.houses() {
        house.refresh_now().await;
    }
    if there() { Ok(()) } else { Err(closed().into()) }
}

async fn knock(incoming: Incoming) -> Response {
    let request_id = incoming.request_id.clone();
    match knocked(&incoming).await {
        Ok(reply) => reply.into_response(&request_id),
        Err(rejection) => rejection.into_response(&request_id),
    }
}

/// Nobody learns which doors there are: one that is not there is one whose
/// signature does not fit.
fn closed() -> Failure {
    let remedy =
        "sign the timestamp and the raw body with the hook's secret: docs/guide/webhooks.md";
    Refused::new(UNAUTHENTICATED, "the signature does not fit", remedy).into()
}

async fn knocked(incoming: &Incoming) -> Result<Reply<Anything>, Rejection> {
    let name = incoming.path.iter().find(|(one, _)| *one == "hook");
    let name = name.map(|(_, value)| value.as_str()).unwrap_or_default();
    // For an address without tries left nothing is read. What a sender with the secret
    // signed still passes, if that address is a proxy's.
    let reading = match incoming.app.rates().has_tries(incoming.from) {
        Ok(()) => SecretReading::Anew,
        Err(_) => SecretReading::Kept,
    };
    let Some((house, hook)) = opened(incoming, name, reading).await? else {
        incoming.app.rates().stranger(incoming.from).map_err(|after| {
            let message = "too many signatures that do not fit";
            too_often(&incoming.app, "stranger_rate", message, after)
        })?;
        return Err(closed().into());
    };
    let stamp = text(&incoming.headers, signature::TIMESTAMP);
    let body = strict::parse(&incoming.body).map_err(|why| bad(format!("the body: {why}")))?;
    let wish = Wish {
        args: hooks::args(&body, &hook.args),
        key: Some(hooks::key(name, stamp, &incoming.body)),
        initiator: hooks::principal(name),
        on_behalf_of: hook.authors(),
        trace: start::trace(&incoming.headers),
        ..Wish::default()
    };
    let started = start::named(&house, &hook.workflow, wish).await?;
    if started.existed {
        let message = "this was sent before";
        let remedy = "nothing: its run was started then";
        return Err(Refused::new(REPLAYED, message, remedy).into());
    }
    Ok(Reply::accepted(Anything(json!({"run_id": started.run.to_string()}))))
}

/// The same letter twice.
pub(super) const REPLAYED: &str = "replayed";

/// The door of this name that the request is signed for. Organisations may have
/// doors of the same name: the secret says whose is meant.
async fn opened(
    incoming: &Incoming,
    name: &str,
    reading: SecretReading,
) -> Done<Option<(Arc<House>, Hook)>> {
    let stamp = text(&incoming.headers, signature::TIMESTAMP);
    let signed = text(&incoming.headers, signature::SIGNATURE);
    let now_ms = incoming.app.now_ms();
    // No secret is read for a request that no secret could have signed.
    if let Err(why) = hooks::plausible(stamp, signed, now_ms) {
        tracing::info!(hook = name, %why, "a request was refused");
        return Ok(None);
    }
    for house in incoming.app.houses() {
        let rows = house.rows().await?;
        let Ok(row) = registry::row(&rows.rows, Kind::Hook, name) else { continue };
        let Ok(hook) = serde_json::from_value::<Hook>(row.body.clone()) else { continue };
        if !hook.enabled {
            tracing::warn!(hook = name, "a hook that is off was tried");
            continue;
        }
        let secret = match house.hook_secret(name, &hook, reading) {
            Ok(Some(secret)) => secret,
            Ok(None) => continue,
            Err(why) => {
                tracing::warn!(hook = name, %why, "a hook without its secret was tried");
                continue;
            }
        };
        match hooks::verify(&secret, stamp, &incoming.body, signed, now_ms) {
            Ok(()) => return Ok(Some((house, hook))),
            Err(why) => tracing::info!(hook = name, %why, "a request was refused"),
        }
    }
    Ok(None)
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
