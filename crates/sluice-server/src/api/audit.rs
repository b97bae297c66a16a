//! The audit over HTTP: read, verified, exported.

use super::reply::Reply;
use super::request::{ApiRequest, Nothing, bad};
use super::route::{Need, ResponseKind, Route};
use super::runs::{limit, page};
use super::shape::{AuditFact, AuditReport};
use crate::auth::permission::Permission as P;
use crate::refused::{NOT_SEALED, Refused, ServiceResult};
use crate::service::Service;
use crate::service::audit::{self, Cursor, FactFilter, back, packet, verify};
use crate::service::find;
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sluice_core::evidence::key::PublicKey;
use sluice_core::evidence::seal::Seal;
use sluice_core::evidence::verify::Verifier;
use sluice_core::journal::envelope::timestamp;

pub(super) fn routes() -> Vec<Route> {
    let read = Need::Permission(P::AuditRead);
    vec![
        Route::new((Method::GET, "/api/v1/audit"), read, "List audit facts, oldest first", list)
            .paged(),
        Route::new(
            (Method::GET, "/api/v1/audit/verify"),
            read,
            "Verify everything with its hashes, chains and seals",
            verified,
        )
        .long()
        .lasting(),
        Route::new(
            (Method::POST, "/api/v1/audit/verify"),
            read,
            "Verify everything, also with external seals and keys",
            verified_by,
        )
        .long()
        .lasting(),
        Route::new((Method::GET, "/api/v1/audit/seal"), read, "Show the newest seal", sealed),
        Route::new(
            (Method::POST, "/api/v1/audit/seal"),
            read,
            "Seal everything written so far, and return the seal for safekeeping",
            seal,
        ),
        Route::raw(
            (Method::GET, "/api/v1/runs/{run}/audit"),
            read,
            "Export the packet of a run, for offline verification",
            ResponseKind::Text("text/plain"),
            export,
        )
        .heavy(),
    ]
}

/// Selects audit facts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AuditQuery {
    /// Only these categories, separated by commas.
    category: Option<String>,
    /// Only this run.
    run: Option<String>,
    /// Only since this time, in milliseconds since 1970.
    since_ms: Option<u64>,
    /// Only this type, such as `node_completed`.
    #[serde(rename = "type")]
    what: Option<String>,
    /// Only this actor.
    actor: Option<String>,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
    /// The newest instead of the oldest; cannot be combined with `cursor`.
    #[serde(default)]
    newest: bool,
    /// Newest first, before this position: `now`, or the `next_cursor` of such a page, which
    /// is missing on the last. Such a page may hold fewer than `limit` facts, or none.
    before: Option<String>,
    /// Approximate number of facts.
    #[serde(default = "page")]
    #[schemars(range(min = 1, max = 500))]
    limit: u16,
}

async fn list(request: ApiRequest<AuditQuery>) -> ServiceResult<Reply<Vec<AuditFact>>> {
    let query = &request.query;
    let limit = limit(query.limit)?;
    let run = match &query.run {
        Some(text) => Some(find::run(request.service(), text).await?.run),
        None => None,
    };
    let words = query.category.iter().flat_map(|list| list.split(','));
    let filter = FactFilter {
        categories: words.map(str::to_owned).collect(),
        run,
        since_ms: query.since_ms.unwrap_or(0),
        what: query.what.clone(),
        actor: query.actor.clone(),
    };
    if let Some(position) = &query.before {
        if query.cursor.is_some() || query.newest {
            return Err(bad("`before` cannot be combined with `cursor` or `newest`").into());
        }
        return list_back(request.service(), position, &filter, limit).await;
    }
    let (facts, next) = match &query.cursor {
        None if query.newest => audit::newest(request.service(), &filter, limit).await?,
        None => audit::page(request.service(), Cursor::default(), &filter, limit).await?,
        Some(text) => {
            let after = Cursor::parse(text).ok_or_else(|| bad("invalid cursor"))?;
            audit::page(request.service(), after, &filter, limit).await?
        }
    };
    let shown = facts.iter().map(|fact| AuditFact(fact.object())).collect();
    Ok(Reply::page(shown, Some(next.to_string())))
}

/// A page from the end.
async fn list_back(
    service: &Service,
    position: &str,
    filter: &FactFilter,
    limit: usize,
) -> ServiceResult<Reply<Vec<AuditFact>>> {
    let end = back::end(service).await?;
    let upto = match position {
        "now" => end,
        text => Cursor::parse(text).ok_or_else(|| bad("invalid position in `before`"))?,
    };
    // A position beyond the end means the end.
    let upto =
        Cursor { entries: upto.entries.min(end.entries), frames: upto.frames.min(end.frames) };
    let (facts, next) = back::page(service, upto, filter, limit).await?;
    let shown = facts.iter().map(|fact| AuditFact(fact.object())).collect();
    Ok(Reply::page(shown, next.map(|next| next.to_string())))
}

/// What is verified.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VerifyQuery {
    /// Only this run (default: everything).
    run: Option<String>,
}

async fn verified(request: ApiRequest<VerifyQuery>) -> ServiceResult<Reply<AuditReport>> {
    let keys = request.organisation.keys().to_vec();
    report(request.service(), request.query.run.as_deref(), keys, Vec::new()).await
}

/// What is verified, and with which seals and keys.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VerifyBody {
    /// Only this run (default: everything).
    run: Option<String>,
    /// External seals, each as `sluice audit seal` prints it.
    #[serde(default)]
    seals: Vec<String>,
    /// Public keys to trust (default: those of the seals, else those of the server).
    #[serde(default)]
    keys: Vec<String>,
}

async fn verified_by(
    request: ApiRequest<Nothing, VerifyBody>,
) -> ServiceResult<Reply<AuditReport>> {
    let VerifyBody { run, seals, keys } = &request.body;
    let invalid = |what: &str| bad(format!("`{what}` contains an invalid value"));
    let kept: Option<Vec<Seal>> = seals.iter().map(|line| Seal::parse(line.trim_end())).collect();
    let kept = kept.ok_or_else(|| invalid("seals"))?;
    let named: Option<Vec<PublicKey>> = keys.iter().map(|key| PublicKey::parse(key)).collect();
    let mut keys = named.ok_or_else(|| invalid("keys"))?;
    if keys.is_empty() {
        keys.extend(kept.iter().map(|seal| seal.key));
    }
    if keys.is_empty() {
        keys.extend(request.organisation.keys());
    }
    report(request.service(), run.as_deref(), keys, kept).await
}

async fn report(
    service: &Service,
    run: Option<&str>,
    keys: Vec<PublicKey>,
    kept: Vec<Seal>,
) -> ServiceResult<Reply<AuditReport>> {
    let only = match run {
        Some(text) => Some(find::run(service, text).await?.run),
        None => None,
    };
    let mut verifier = Verifier::new(keys);
    if let Some(run) = only {
        verifier = verifier.only(run);
    }
    kept.into_iter().for_each(|seal| verifier.kept(seal));
    let report = verify::read(&*service.store, verifier).await?;
    Ok(Reply::ok(AuditReport(verify::object(&report))))
}

/// A seal of the audit.
#[derive(Debug, Serialize, JsonSchema)]
struct SealShown {
    /// Number of the seal.
    number: u64,
    /// The signed line.
    seal: String,
}

async fn seal(request: ApiRequest) -> ServiceResult<Reply<SealShown>> {
    request.service().engine.seal().await?;
    let row = packet::newest(&*request.service().store).await?.ok_or_else(|| {
        let remedy =
            "run a workflow first; records of an older Sluice without hashes are never sealed";
        Refused::new(NOT_SEALED, "there is nothing to seal", remedy)
    })?;
    Ok(Reply::ok(SealShown { number: row.number, seal: row.text }))
}

/// The newest seal.
#[derive(Debug, Serialize, JsonSchema)]
struct SealedShown {
    /// Number of the newest seal; 0 if there is none.
    number: u64,
    /// When it was made.
    at: Option<String>,
    /// The public key that verifies it.
    key: Option<String>,
    /// The signed line.
    seal: Option<String>,
}

async fn sealed(request: ApiRequest) -> ServiceResult<Reply<SealedShown>> {
    let row = packet::newest(&*request.service().store).await?;
    let read = row.as_ref().and_then(|row| Seal::parse(&row.text));
    Ok(Reply::ok(SealedShown {
        number: row.as_ref().map_or(0, |row| row.number),
        at: read.as_ref().map(|seal| timestamp(seal.at_ms)),
        key: read.as_ref().map(|seal| seal.key.to_string()),
        seal: row.map(|row| row.text),
    }))
}

async fn export(request: ApiRequest) -> ServiceResult<Response> {
    let run = find::run(request.service(), request.path("run")).await?.run;
    let (packet, _) = packet::packet(request.service(), run).await?;
    let plain = (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    Ok(([plain], format!("{}\n", packet.text())).into_response())
}
