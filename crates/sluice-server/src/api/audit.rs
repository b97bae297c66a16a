//! The audit over HTTP: read, verified, exported.

use super::ask::{Ask, Nothing, bad};
use super::reply::Reply;
use super::route::{Answers, Need, Route};
use super::runs::{limit, page};
use super::shape::{AuditFact, AuditReport};
use crate::auth::permission::Permission as P;
use crate::refused::{Done, NOT_SEALED, Refused};
use crate::service::Service;
use crate::service::audit::{self, Cursor, Wanted, back, packet, verify};
use crate::service::find;
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sluice_core::evidence::key::PublicKey;
use sluice_core::evidence::seal::Seal;
use sluice_core::evidence::verify::Verifier;
use sluice_core::journal::envelope::timestamp;

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
        .long()
        .lasting(),
        Route::new(
            (Method::POST, "/api/v1/audit/verify"),
            read,
            "The same, also against seals and keys that were kept elsewhere",
            verified_by,
        )
        .long()
        .lasting(),
        Route::new(
            (Method::GET, "/api/v1/audit/seal"),
            read,
            "The newest seal there is, and how many came before it",
            sealed,
        ),
        Route::new(
            (Method::POST, "/api/v1/audit/seal"),
            read,
            "The newest seal over everything written by now, to be kept elsewhere",
            seal,
        ),
        Route::raw(
            (Method::GET, "/api/v1/runs/{run}/audit"),
            read,
            "A run's packet: what a stranger needs to check it offline",
            Answers::Text("text/plain"),
            export,
        )
        .heavy(),
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
    /// Only of this type, as `node_completed`.
    #[serde(rename = "type")]
    what: Option<String>,
    /// Only by whoever has this name.
    actor: Option<String>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// The newest instead of the oldest; not with a cursor.
    #[serde(default)]
    newest: bool,
    /// Newest first, up to this place: `now`, or the `next_cursor` of such a page, which
    /// is left out on the last. Such a page may hold fewer than `limit`, or none.
    before: Option<String>,
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
        what: query.what.clone(),
        actor: query.actor.clone(),
    };
    if let Some(place) = &query.before {
        if query.cursor.is_some() || query.newest {
            return Err(bad("`before` goes with neither `cursor` nor `newest`").into());
        }
        return list_back(ask.service(), place, &wanted, limit).await;
    }
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

/// A page from the end.
async fn list_back(
    service: &Service,
    place: &str,
    wanted: &Wanted,
    limit: usize,
) -> Done<Reply<Vec<AuditFact>>> {
    let end = back::end(service).await?;
    let upto = match place {
        "now" => end,
        text => Cursor::parse(text).ok_or_else(|| bad("the place is none of ours"))?,
    };
    // A place that nothing has come to yet is the end.
    let upto =
        Cursor { entries: upto.entries.min(end.entries), frames: upto.frames.min(end.frames) };
    let (facts, next) = back::page(service, upto, wanted, limit).await?;
    let shown = facts.iter().map(|fact| AuditFact(fact.object())).collect();
    Ok(Reply::page(shown, next.map(|next| next.to_string())))
}

/// What is verified.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VerifyQuery {
    /// Only this run.
    run: Option<String>,
}

async fn verified(ask: Ask<VerifyQuery>) -> Done<Reply<AuditReport>> {
    let keys = ask.house.keys().to_vec();
    report(ask.service(), ask.query.run.as_deref(), keys, Vec::new()).await
}

/// What is verified, and by what.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VerifyBody {
    /// Only this run.
    run: Option<String>,
    /// Seals that were kept elsewhere, each as `sluice audit seal` writes it.
    #[serde(default)]
    seals: Vec<String>,
    /// Public keys to believe; by default those of the seals, else of the server.
    #[serde(default)]
    keys: Vec<String>,
}

async fn verified_by(ask: Ask<Nothing, VerifyBody>) -> Done<Reply<AuditReport>> {
    let VerifyBody { run, seals, keys } = &ask.body;
    let none = |what: &str| bad(format!("`{what}` holds one that is none"));
    let kept: Option<Vec<Seal>> = seals.iter().map(|line| Seal::parse(line.trim_end())).collect();
    let kept = kept.ok_or_else(|| none("seals"))?;
    let named: Option<Vec<PublicKey>> = keys.iter().map(|key| PublicKey::parse(key)).collect();
    let mut keys = named.ok_or_else(|| none("keys"))?;
    if keys.is_empty() {
        keys.extend(kept.iter().map(|seal| seal.key));
    }
    if keys.is_empty() {
        keys.extend(ask.house.keys());
    }
    report(ask.service(), run.as_deref(), keys, kept).await
}

async fn report(
    service: &Service,
    run: Option<&str>,
    keys: Vec<PublicKey>,
    kept: Vec<Seal>,
) -> Done<Reply<AuditReport>> {
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

/// A seal.
#[derive(Debug, Serialize, JsonSchema)]
struct SealShown {
    /// Its number.
    number: u64,
    /// Its line, signed.
    seal: String,
}

async fn seal(ask: Ask) -> Done<Reply<SealShown>> {
    ask.service().engine.seal().await?;
    let row = packet::newest(&*ask.service().store).await?.ok_or_else(|| {
        let remedy = "run something first; what is older than hashes is never sealed";
        Refused::new(NOT_SEALED, "there is nothing to seal", remedy)
    })?;
    Ok(Reply::ok(SealShown { number: row.number, seal: row.text }))
}

/// How far everything is sealed.
#[derive(Debug, Serialize, JsonSchema)]
struct SealedShown {
    /// The number of the newest seal; 0 where there is none.
    number: u64,
    /// When it was made.
    at: Option<String>,
    /// The public key that signed it.
    key: Option<String>,
    /// Its line, signed.
    seal: Option<String>,
}

async fn sealed(ask: Ask) -> Done<Reply<SealedShown>> {
    let row = packet::newest(&*ask.service().store).await?;
    let read = row.as_ref().and_then(|row| Seal::parse(&row.text));
    Ok(Reply::ok(SealedShown {
        number: row.as_ref().map_or(0, |row| row.number),
        at: read.as_ref().map(|seal| timestamp(seal.at_ms)),
        key: read.as_ref().map(|seal| seal.key.to_string()),
        seal: row.map(|row| row.text),
    }))
}

async fn export(ask: Ask) -> Done<Response> {
    let run = find::run(ask.service(), ask.path("run")).await?.run;
    let (packet, _) = packet::packet(ask.service(), run).await?;
    let plain = (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    Ok(([plain], format!("{}\n", packet.text())).into_response())
}
