//! Payloads of runs: exported, and erased permanently.

use super::reply::Reply;
use super::request::{ApiRequest, Nothing, bad};
use super::route::{Need, Route};
use super::shape::Exported;
use crate::auth::permission::Permission as P;
use crate::refused::ServiceResult;
use crate::service::elide::{self, ElideRequest};
use crate::service::{course, erase, export, find};
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum length of a reason, in bytes.
const REASON_BYTES_MAX: usize = 4096;
/// Maximum number of events in one request.
const EVENTS_MAX: usize = 10_000;

pub(super) fn routes() -> Vec<Route> {
    let read = Need::Permission(P::WorkflowRead);
    let write = Need::Permission(P::GovernanceWrite);
    vec![
        Route::new(
            (Method::GET, "/api/v1/runs/{run}/export"),
            read,
            "Export everything about a run",
            exported,
        ),
        Route::new(
            (Method::POST, "/api/v1/runs/{run}/erase"),
            write,
            "Erase the inputs and outputs of a run that ended",
            erased,
        ),
        Route::new(
            (Method::POST, "/api/v1/elide"),
            write,
            "Remove streamed parts of answers, keeping the complete answers",
            elided,
        ),
    ]
}

async fn exported(request: ApiRequest) -> ServiceResult<Reply<Exported>> {
    let run = course::load(request.service(), request.path("run")).await?;
    Ok(Reply::ok(Exported(export::export(request.service(), &run).await?)))
}

/// The payloads to erase.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EraseBody {
    /// Only these events (default: all).
    #[serde(default)]
    events: Vec<u64>,
    /// Reason, for the audit.
    reason: String,
}

/// The number of erased payloads.
#[derive(Debug, Serialize, JsonSchema)]
struct ErasedShown {
    /// Id of the run.
    run_id: String,
    /// Number of payloads.
    payloads: usize,
}

async fn erased(request: ApiRequest<Nothing, EraseBody>) -> ServiceResult<Reply<ErasedShown>> {
    let EraseBody { events, reason } = &request.body;
    if reason.trim().is_empty() || reason.len() > REASON_BYTES_MAX || events.len() > EVENTS_MAX {
        return Err(bad(
            "`reason` is required, with at most 4096 bytes; `events` has at most 10000 items",
        )
        .into());
    }
    let row = find::whole_run(request.service(), request.path("run")).await?;
    let by = &request.caller.name;
    let payloads = erase::erase(request.service(), &row, events, by, reason).await?;
    Ok(Reply::ok(ErasedShown { run_id: row.run.to_string(), payloads }))
}

/// The runs whose parts are removed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ElideBody {
    /// One run (default: all that are old enough).
    run: Option<String>,
    /// Only runs that ended at least this long ago.
    older_than_ms: Option<u64>,
    /// Reason, for the audit.
    reason: String,
}

/// How much was removed.
#[derive(Debug, Serialize, JsonSchema)]
struct ElidedShown {
    /// Number of parts.
    parts: u64,
    /// Number of runs that they belonged to.
    runs: u64,
}

async fn elided(request: ApiRequest<Nothing, ElideBody>) -> ServiceResult<Reply<ElidedShown>> {
    let ElideBody { run, older_than_ms, reason } = &request.body;
    if reason.trim().is_empty() || reason.len() > REASON_BYTES_MAX {
        return Err(bad("`reason` is required, with at most 4096 bytes").into());
    }
    if run.is_none() && older_than_ms.is_none() {
        return Err(bad("`run` or `older_than_ms` is required").into());
    }
    let run = match run {
        Some(text) => Some(find::whole_run(request.service(), text).await?.run.to_string()),
        None => None,
    };
    let selection = ElideRequest {
        run,
        older_than_ms: *older_than_ms,
        actor: request.caller.name.clone(),
        reason: reason.clone(),
    };
    let gone = elide::elide(request.service(), &selection).await?;
    Ok(Reply::ok(ElidedShown { parts: gone.parts, runs: gone.runs }))
}
