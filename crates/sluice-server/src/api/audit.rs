//! The audit over HTTP: read, verified, exported.

use super::ask::{Ask, bad};
use super::reply::Reply;
use super::route::{Answers, Need, Route};
use super::runs::{limit, page};
use super::shape::{AuditFact, AuditReport};
use crate::auth::permission::Permission as P;
use crate::refused::Done;
use crate::service::audit::{self, Cursor, Wanted, packet, verify};
use crate::service::find;
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_core::evidence::verify::Verifier;

/// The routes of the audit.
pub(super) fn routes() -> Vec<Route> {
    let read = Need::Permission(P::AuditRead);
    vec![
        Route::new((Method::GET, "/api/v1/audit"), read, "What happened, oldest first", list)
            .paged(),
        Route::new(
            (Method::GET, "/api/v1/audit/verify"),
            read,
            "Hold everything against its hashes, chains and seals",
            verified,
        )
        .lasting(),
        Route::raw(
            (Method::GET, "/api/v1/runs/{run}/audit"),
            read,
            "A run's packet: what a stranger needs to check it offline",
            Answers::Text("text/plain"),
            export,
        ),
    ]
}

/// Which facts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AuditQuery {
    /// Only of these categories, by commas.
    category: Option<String>,
    /// Only of this run.
    run: Option<String>,
    /// Only since this time, in milliseconds since 1970.
    since_ms: Option<u64>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// The newest instead of the oldest; not with a cursor.
    #[serde(default)]
    newest: bool,
    /// About so many.
    #[serde(default = "page")]
    #[schemars(range(min = 1, max = 500))]
    limit: u16,
}

async fn list(ask: Ask<AuditQuery>) -> Done<Reply<Vec<AuditFact>>> {
    let query = &ask.query;
    let limit = limit(query.limit)?;
    let run = match &query.run {
        Some(text) => Some(find::run(ask.service(), text).await?.run),
        None => None,
    };
    let words = query.category.iter().flat_map(|list| list.split(','));
    let wanted = Wanted {
        categories: words.map(str::to_owned).collect(),
        run,
        since_ms: query.since_ms.unwrap_or(0),
    };
    let (facts, next) = match &query.cursor {
        None if query.newest => audit::newest(ask.service(), &wanted, limit).await?,
        None => audit::page(ask.service(), Cursor::default(), &wanted, limit).await?,
        Some(text) => {
            let after = Cursor::parse(text).ok_or_else(|| bad("the cursor is none of ours"))?;
            audit::page(ask.service(), after, &wanted, limit).await?
        }
    };
    let shown = facts.iter().map(|fact| AuditFact(fact.object())).collect();
    Ok(Reply::page(shown, Some(next.to_string())))
}

/// What is verified.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VerifyQuery {
    /// Only this run.
    run: Option<String>,
}

async fn verified(ask: Ask<VerifyQuery>) -> Done<Reply<AuditReport>> {
    let only = match &ask.query.run {
        Some(text) => Some(find::run(ask.service(), text).await?.run),
        None => None,
    };
    let mut verifier = Verifier::new(ask.house.keys().to_vec());
    if let Some(run) = only {
        verifier = verifier.only(run);
    }
    verify::read(&*ask.service().store, only, &mut verifier).await?;
    Ok(Reply::ok(AuditReport(verify::object(&verifier.finish()))))
}

async fn export(ask: Ask) -> Done<Response> {
    let run = find::run(ask.service(), ask.path("run")).await?.run;
    let (packet, _) = packet::packet(ask.service(), run).await?;
    let plain = (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    Ok(([plain], format!("{}\n", packet.text())).into_response())
}
