//! Prices of models.

use super::row::{Form, row};
use crate::money::Money;

const TOKENS: Form = Form::Number(1, 100_000_000);

row! {
    /// The price of a model.
    #[derive(Eq)]
    pub struct Price, "PriceDoc" {
        /// A million input tokens, in cents.
        required input_cents_per_mtok: Money,
        /// A million output tokens, including thinking, in cents.
        required output_cents_per_mtok: Money,
        /// A million cached input tokens, in cents; by default the price of input
        /// tokens.
        optional cached_input_cents_per_mtok: Option<Money>,
        /// The limit on output tokens if neither step nor agent sets one.
        optional max_output_tokens: Option<u64> as TOKENS,
    }
}
