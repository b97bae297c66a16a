//! Prices: what a model costs.

use crate::money::Money;
use serde::{Deserialize, Serialize};

/// What a million tokens of a model cost. The row's name is the model's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// A million tokens read.
    #[serde(with = "crate::money::cents")]
    pub input_cents_per_mtok: Money,
    /// A million tokens written, thought included.
    #[serde(with = "crate::money::cents")]
    pub output_cents_per_mtok: Money,
    /// A million tokens read that the provider had kept; as any others if absent.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::money::cents::option"
    )]
    pub cached_input_cents_per_mtok: Option<Money>,
    /// Longest answer, where neither step nor agent bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}
