//! Costs over HTTP.

use super::reply::Reply;
use super::request::{ApiRequest, bad};
use super::route::{Need, Route};
use crate::auth::permission::Permission as P;
use crate::refused::{Refused, ServiceResult};
use crate::service::cost::{self, CostRange, CostShown};
use axum::http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_core::choice::{self, Choice};
use sluice_core::cost::By;
use sluice_core::visible;

/// Default time range: a week.
const SINCE_MS: u64 = 7 * 24 * 60 * 60 * 1000;

pub(super) fn routes() -> Vec<Route> {
    let read = Need::Permission(P::GovernanceRead);
    vec![Route::new((Method::GET, "/api/v1/cost"), read, "Show costs by time", list).paged()]
}

/// The time range and grouping of costs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CostQuery {
    /// Length of a bucket: `hour`, `day` (default), `week` or `month`, in UTC.
    bucket: Option<String>,
    /// Fields to group by, separated by commas: `agent`, `workflow`, `model`.
    by: Option<String>,
    /// Start, in milliseconds since 1970 (default: a week ago).
    since_ms: Option<u64>,
    /// End, in milliseconds since 1970 (default: now).
    until_ms: Option<u64>,
}

fn word<T: Choice>(word: &str) -> Result<T, Refused> {
    let words = T::NAMES.join(", ");
    let bad = || bad(format!("`{}` is not one of: {words}", visible::brief(word)));
    choice::find(word).ok_or_else(bad)
}

async fn list(request: ApiRequest<CostQuery>) -> ServiceResult<Reply<Vec<CostShown>>> {
    let query = &request.query;
    let now_ms = request.app.now_ms();
    let by: Result<Vec<By>, Refused> =
        query.by.iter().flat_map(|list| list.split(',')).map(word).collect();
    let range = CostRange {
        bucket: word(query.bucket.as_deref().unwrap_or("day"))?,
        by: by?,
        since_ms: query.since_ms.unwrap_or(now_ms.saturating_sub(SINCE_MS)),
        until_ms: query.until_ms.unwrap_or(now_ms),
    };
    let rows = cost::rows(request.service(), &range).await?;
    Ok(Reply::ok(rows.iter().map(CostShown::from).collect()))
}
