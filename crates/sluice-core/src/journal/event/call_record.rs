//! What the journal keeps of a tool call for policies about history.
//!
//! The arguments themselves can be erased. These facts stay, so that an erased journal
//! gives the same history.

use crate::journal::declare::Read;
use crate::journal::declare::form::Form;
use crate::journal::wire::fields::Fields;
use crate::journal::wire::object::PayloadWriter;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Facts of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CallRecord {
    /// Labels of the tool when it was called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Arc<str>>,
    /// Numbers among the arguments, in ten-thousandths, by their paths.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub numbers: BTreeMap<String, i64>,
    /// The sum of the arguments with the role `amount`, in ten-thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<i64>,
    /// What the call takes of counters across runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<HistoryTaken>,
}

/// An amount that something in flight holds of a counter about the history of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryTaken {
    /// Digest of the fact, and the agent.
    pub counter: Arc<str>,
    /// The amount, in ten-thousandths.
    pub amount: i64,
    /// The window in which the amount counts after the end.
    pub window_ms: u64,
}

/// Amounts, each as a list of counter, amount and window.
pub(in crate::journal) struct TakenList;

impl Form<Vec<HistoryTaken>> for TakenList {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, taken: &Vec<HistoryTaken>) {
        payload.list(name, taken.iter().map(|one| (&*one.counter, one.amount, one.window_ms)));
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<Vec<HistoryTaken>> {
        let written: Vec<(Arc<str>, i64, u64)> = fields.need(name)?;
        let taken = written.into_iter();
        Ok(taken
            .map(|(counter, amount, window_ms)| HistoryTaken { counter, amount, window_ms })
            .collect())
    }

    fn schema() -> Value {
        json!({"type": "array", "items": {"type": "array", "prefixItems": [
            {"type": "string"}, {"type": "integer"}, {"type": "integer"},
        ]}})
    }
}
