//! What work has cost: sums by time, agent, workflow and model.

use super::Service;
use crate::refused::{COST_TOO_WIDE, Done, Failure, Refused};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sluice_core::cost::{self, Bucket, By, Rollup, Row};
use sluice_core::journal::envelope::timestamp;

/// Counters that are read at once.
const PAGE: usize = 10_000;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// How much time a row is about.
    pub bucket: Bucket,
    /// What rows are told apart by.
    pub by: Vec<By>,
    /// From when on, in milliseconds since 1970. The bucket it is in counts whole.
    pub since_ms: u64,
    /// Until when; the hour it is in counts whole.
    pub until_ms: u64,
}

/// What work has cost, for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostShown {
    /// When its time began.
    pub start: String,
    /// Who did it, where rows are told apart by that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What it was a run of, where rows are told apart by that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Which model, where rows are told apart by that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it cost, in dollars.
    pub cost: serde_json::Number,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Dispatches that cost something.
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

/// What work has cost, by time and whatever rows are told apart by.
pub async fn rows(service: &Service, asked: &Asked) -> Done<Vec<Row>> {
    let mut rollup = Rollup::new(asked.bucket, &asked.by);
    let since_ms = asked.bucket.start_ms(asked.since_ms);
    let (mut after, before) = cost::range(since_ms, asked.until_ms);
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
    let remedy = "ask for less time, longer buckets, or fewer things told apart";
    Refused::new(COST_TOO_WIDE, too_many.to_string(), remedy).into()
}
