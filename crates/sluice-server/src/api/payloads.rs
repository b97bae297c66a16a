//! What runs were given and said: handed out whole, and taken away for good.

use super::ask::{Ask, Nothing, bad};
use super::reply::Reply;
use super::route::{Need, Route};
use super::shape::Exported;
use crate::auth::permission::Permission as P;
use crate::refused::Done;
use crate::service::elide::{self, Wish};
use crate::service::{course, erase, export, find};
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest reason, in bytes.
const REASON_BYTES_MAX: usize = 4096;
/// Most events that are named at once.
const EVENTS_MAX: usize = 10_000;

/// The routes of payloads.
pub(super) fn routes() -> Vec<Route> {
    let read = Need::Permission(P::WorkflowRead);
    let write = Need::Permission(P::GovernanceWrite);
    vec![
        Route::new(
            (Method::GET, "/api/v1/runs/{run}/export"),
            read,
            "Everything about a run in one object",
            exported,
        ),
        Route::new(
            (Method::POST, "/api/v1/runs/{run}/erase"),
            write,
            "Erase what a run that ended was given and answered",
            erased,
        ),
        Route::new(
            (Method::POST, "/api/v1/elide"),
            write,
            "Drop what steps said on the way to their answers",
            elided,
        ),
    ]
}

async fn exported(ask: Ask) -> Done<Reply<Exported>> {
    let run = course::load(ask.service(), ask.path("run")).await?;
    Ok(Reply::ok(Exported(export::export(ask.service(), &run).await?)))
}

/// What goes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EraseBody {
    /// Only these events; all without them.
    #[serde(default)]
    events: Vec<u64>,
    /// Why, for the audit.
    reason: String,
}

/// What went.
#[derive(Debug, Serialize, JsonSchema)]
struct ErasedShown {
    /// The run.
    run_id: String,
    /// How many payloads.
    payloads: usize,
}

async fn erased(ask: Ask<Nothing, EraseBody>) -> Done<Reply<ErasedShown>> {
    let EraseBody { events, reason } = &ask.body;
    if reason.trim().is_empty() || reason.len() > REASON_BYTES_MAX || events.len() > EVENTS_MAX {
        return Err(bad("`reason` says why, in at most 4096 bytes; at most 10000 events").into());
    }
    let row = find::whole_run(ask.service(), ask.path("run")).await?;
    let by = &ask.caller.name;
    let payloads = erase::erase(ask.service(), &row, events, by, reason).await?;
    Ok(Reply::ok(ErasedShown { run_id: row.run.to_string(), payloads }))
}

/// Of which runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ElideBody {
    /// One run; without it, all that are old enough.
    run: Option<String>,
    /// Only runs that ended so long ago.
    older_than_ms: Option<u64>,
    /// Why, for the audit.
    reason: String,
}

/// What went.
#[derive(Debug, Serialize, JsonSchema)]
struct ElidedShown {
    /// Parts of answers.
    parts: u64,
    /// Runs they were of.
    runs: u64,
}

async fn elided(ask: Ask<Nothing, ElideBody>) -> Done<Reply<ElidedShown>> {
    let ElideBody { run, older_than_ms, reason } = &ask.body;
    if reason.trim().is_empty() || reason.len() > REASON_BYTES_MAX {
        return Err(bad("`reason` says why, in at most 4096 bytes").into());
    }
    if run.is_none() && older_than_ms.is_none() {
        return Err(bad("name a `run`, or say `older_than_ms`").into());
    }
    let run = match run {
        Some(text) => Some(find::whole_run(ask.service(), text).await?.run.to_string()),
        None => None,
    };
    let wish = Wish {
        run,
        older_than_ms: *older_than_ms,
        actor: ask.caller.name.clone(),
        reason: reason.clone(),
    };
    let gone = elide::elide(ask.service(), &wish).await?;
    Ok(Reply::ok(ElidedShown { parts: gone.parts, runs: gone.runs }))
}
