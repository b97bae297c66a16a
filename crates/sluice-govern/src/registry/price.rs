//! Prices of models.

use crate::money::Money;
use serde::{Deserialize, Serialize};

/// Prices per million tokens. The name of the row is the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input tokens.
    #[serde(with = "crate::money::cents")]
    pub input_cents_per_mtok: Money,
    /// Output tokens, including reasoning.
    #[serde(with = "crate::money::cents")]
    pub output_cents_per_mtok: Money,
    /// Cached input tokens; default: the price of other input tokens.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::money::cents::option"
    )]
    pub cached_input_cents_per_mtok: Option<Money>,
    /// Output limit, if neither step nor agent sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}
