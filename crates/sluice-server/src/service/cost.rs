//! Sums costs by time, agent, workflow and model.

use super::Service;
use crate::refused::{COST_TOO_WIDE, Failure, Refused, ServiceResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sluice_core::cost::{self, Bucket, By, Rollup, Row};
use sluice_core::journal::envelope::timestamp;

/// Counters per query.
const PAGE: usize = 10_000;

/// A query of costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostRange {
    /// Length of a bucket.
    pub bucket: Bucket,
    /// The fields to group by.
    pub by: Vec<By>,
    /// Start, in milliseconds since 1970. The bucket it falls into is included as a whole.
    pub since_ms: u64,
    /// End; the hour it falls into is included as a whole.
    pub until_ms: u64,
}

/// The cost of one group in one bucket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostShown {
    /// Start of the bucket.
    pub start: String,
    /// Agent that did the work, if grouped by agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Workflow of the runs, if grouped by workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Model that was used, if grouped by model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Cost in dollars.
    pub cost: serde_json::Number,
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Number of dispatches that had a cost.
    pub steps: u64,
}

impl From<&Row> for CostShown {
    fn from(row: &Row) -> CostShown {
        let cost = serde_json::from_str(&row.cost.to_string());
        CostShown {
            start: timestamp(row.start_ms),
            agent: row.agent.clone(),
            workflow: row.workflow.clone(),
            model: row.model.clone(),
            cost: cost.expect("dollars are written as a number"),
            input_tokens: row.input_tokens,
            output_tokens: row.output_tokens,
            steps: row.steps,
        }
    }
}

/// Costs by bucket and group, oldest bucket first.
pub async fn rows(service: &Service, range: &CostRange) -> ServiceResult<Vec<Row>> {
    let mut rollup = Rollup::new(range.bucket, &range.by);
    let since_ms = range.bucket.start_ms(range.since_ms);
    let (mut after, before) = cost::range(since_ms, range.until_ms);
    loop {
        let page = service.store.counters(after, before.clone(), PAGE).await?;
        for counter in &page {
            rollup.add(counter).map_err(|too_many| too_wide(&too_many))?;
        }
        match page.into_iter().next_back() {
            Some(last) => after = last.name,
            None => return Ok(rollup.rows()),
        }
    }
}

fn too_wide(too_many: &cost::TooMany) -> Failure {
    let remedy = "choose a shorter time range, longer buckets, or fewer groups";
    Refused::new(COST_TOO_WIDE, too_many.to_string(), remedy).into()
}
