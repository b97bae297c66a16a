//! What work has cost.

use super::ask::{Ask, bad};
use super::reply::Reply;
use super::route::{Need, Route};
use crate::auth::permission::Permission as P;
use crate::refused::{Done, Refused};
use crate::service::cost::{self, Asked, CostShown};
use axum::http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_core::choice::{self, Choice};
use sluice_core::cost::By;
use sluice_core::visible;

/// How far back is looked when nobody says: a week.
const SINCE_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// The route of costs.
pub(super) fn routes() -> Vec<Route> {
    let read = Need::Permission(P::GovernanceRead);
    vec![
        Route::new((Method::GET, "/api/v1/cost"), read, "What work has cost, by time", list)
            .paged(),
    ]
}

/// Which sums.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CostQuery {
    /// How much time a row is about: `hour`, `day`, `week` or `month`, in UTC.
    bucket: Option<String>,
    /// What rows are told apart by: `agent`, `workflow`, `model`, by commas.
    by: Option<String>,
    /// From when on, in milliseconds since 1970; a week ago if it is not said.
    since_ms: Option<u64>,
    /// Until when, in milliseconds since 1970; now if it is not said.
    until_ms: Option<u64>,
}

fn word<T: Choice>(word: &str) -> Result<T, Refused> {
    let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
    let bad = || bad(format!("`{}` is none of: {}", visible::brief(word), words.join(", ")));
    choice::find(word).ok_or_else(bad)
}

async fn list(ask: Ask<CostQuery>) -> Done<Reply<Vec<CostShown>>> {
    let query = &ask.query;
    let now_ms = ask.app.now_ms();
    let by: Result<Vec<By>, Refused> =
        query.by.iter().flat_map(|list| list.split(',')).map(word).collect();
    let asked = Asked {
        bucket: word(query.bucket.as_deref().unwrap_or("day"))?,
        by: by?,
        since_ms: query.since_ms.unwrap_or(now_ms.saturating_sub(SINCE_MS)),
        until_ms: query.until_ms.unwrap_or(now_ms),
    };
    let rows = cost::rows(ask.service(), &asked).await?;
    Ok(Reply::ok(rows.iter().map(CostShown::from).collect()))
}
