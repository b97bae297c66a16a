//! The part of a run's state that is drawn: its figures and statuses, without inputs and
//! outputs of steps.
//!
//! It is made from a loaded run, or from the state that the API returns.

use crate::amount;
use serde::Deserialize;
use serde_json::{Number, Value};
use sluice_core::choice;
use sluice_core::money::Money;
use sluice_core::run::projection::node::NodeResult;
use sluice_core::run::projection::{Projection, Time};
use sluice_core::status::{RunStatus, StepStatus, Waiting};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Picture {
    pub(crate) run_id: String,
    pub(crate) workflow: String,
    pub(crate) version: Option<u64>,
    pub(crate) status: RunStatus,
    pub(crate) pause_reason: Option<String>,
    pub(crate) degraded: bool,
    pub(crate) outputs: Option<Value>,
    pub(crate) error_code: Option<String>,
    pub(crate) error_message: Option<String>,
    #[serde(deserialize_with = "moment")]
    pub(crate) started_at: u64,
    #[serde(deserialize_with = "some_moment")]
    pub(crate) completed_at: Option<u64>,
    pub(crate) duration_ms: Option<u64>,
    #[serde(deserialize_with = "dollars")]
    pub(crate) cost: Money,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) pending_count: usize,
    pub(crate) waiting_count: usize,
    pub(crate) executed_count: usize,
    pub(crate) failed_count: usize,
    pub(crate) parent_run_id: Option<String>,
    pub(crate) node_results: Vec<StepPicture>,
}

/// A step, or an instance of one.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct StepPicture {
    pub(crate) node_id: String,
    pub(crate) status: StepStatus,
    #[serde(deserialize_with = "some_word")]
    pub(crate) waiting_reason: Option<Waiting>,
    pub(crate) unblock_hint: Option<String>,
    pub(crate) attempts: u32,
    pub(crate) error_code: Option<String>,
    pub(crate) error_message: Option<String>,
    pub(crate) skip_reason: Option<String>,
    #[serde(deserialize_with = "some_moment")]
    pub(crate) started_at: Option<u64>,
    #[serde(deserialize_with = "some_moment")]
    pub(crate) completed_at: Option<u64>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    #[serde(deserialize_with = "dollars")]
    pub(crate) cost: Money,
}

impl Picture {
    pub(crate) fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl StepPicture {
    pub(crate) fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Whether the step, or a step of its child run, waits at a gate.
    pub(crate) fn is_at_gate(&self) -> bool {
        matches!(self.status, StepStatus::Queued | StepStatus::Running)
            && self.waiting_reason == Some(Waiting::Gate)
    }
}

impl From<&Projection<'_>> for Picture {
    fn from(shown: &Projection<'_>) -> Picture {
        let ms = |time: Time| time.0;
        Picture {
            run_id: shown.run_id.to_string(),
            workflow: shown.workflow.to_owned(),
            version: shown.version,
            status: shown.status,
            pause_reason: shown.pause_reason.map(str::to_owned),
            degraded: shown.degraded,
            outputs: shown.outputs.cloned(),
            error_code: shown.error_code.map(str::to_owned),
            error_message: shown.error_message.map(str::to_owned),
            started_at: shown.started_at.0,
            completed_at: shown.completed_at.map(ms),
            duration_ms: shown.duration_ms,
            cost: shown.cost,
            input_tokens: shown.input_tokens,
            output_tokens: shown.output_tokens,
            pending_count: shown.pending_count,
            waiting_count: shown.waiting_count,
            executed_count: shown.executed_count,
            failed_count: shown.failed_count,
            parent_run_id: shown.parent_run_id.map(|parent| parent.to_string()),
            node_results: shown.node_results.iter().map(StepPicture::from).collect(),
        }
    }
}

impl From<&NodeResult<'_>> for StepPicture {
    fn from(node: &NodeResult<'_>) -> StepPicture {
        StepPicture {
            node_id: node.node_id.clone().into_owned(),
            status: node.status,
            waiting_reason: node.waiting_reason,
            unblock_hint: node.unblock_hint.clone(),
            attempts: node.attempts,
            error_code: node.error_code.map(str::to_owned),
            error_message: node.error_message.map(str::to_owned),
            skip_reason: node.skip_reason.map(str::to_owned),
            started_at: node.started_at.map(|time| time.0),
            completed_at: node.completed_at.map(|time| time.0),
            duration_ms: node.duration_ms,
            input_tokens: node.input_tokens,
            output_tokens: node.output_tokens,
            cost: node.cost,
        }
    }
}

fn some_word<'de, T: choice::Choice, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    // A newer server may have more statuses.
    Ok(text.as_deref().and_then(choice::find))
}

fn moment<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    amount::ms(&text).ok_or_else(|| serde::de::Error::custom(format!("`{text}` is not a time")))
}

fn some_moment<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.as_deref().and_then(amount::ms))
}

fn dollars<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Money, D::Error> {
    let number = Number::deserialize(from)?;
    Money::from_usd(&number).map_err(|_| serde::de::Error::custom("this is not an amount of money"))
}
