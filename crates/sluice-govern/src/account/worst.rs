//! The cost ceiling of a dispatch, and the output limit that enforces it.
//!
//! INVARIANT: an estimate is never too low for the tokens it counts: every division
//! rounds up, and overflow saturates.

use crate::facts::Worst;
use crate::money::Money;
use crate::registry::Price;

/// Tokens around a request: roles, separators, tool headers.
const OVERHEAD_TOKENS: u64 = 64;
/// Prices are per this many tokens.
const PRICE_TOKENS: u128 = 1_000_000;

/// How a dispatch is priced.
#[derive(Debug, Clone, Copy)]
pub enum Costing<'a> {
    /// The adapter costs nothing.
    Free,
    /// The model has a price.
    Priced {
        /// Price of the model.
        price: &'a Price,
        /// Upper bound of the input tokens: see [`input_tokens`].
        input_tokens: u64,
        /// Output limit of the step or the agent.
        max_output_tokens: Option<u64>,
    },
    /// The dispatch costs an unknown amount.
    Unpriced,
}

/// The cost ceiling of a dispatch, with the output limit it depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Amount to reserve.
    pub worst: Worst,
    /// Output limit that keeps to the ceiling; `None` if the cost does not depend on
    /// it. 0 means that the ceiling does not even cover the input.
    pub max_output_tokens: Option<u64>,
}

/// Upper bound of the tokens in texts: one per two bytes of ASCII, one per other byte
/// (no tokeniser makes more), plus the overhead.
pub fn input_tokens<'t>(texts: impl IntoIterator<Item = &'t str>) -> u64 {
    let tokens = texts.into_iter().map(|text| {
        let ascii = text.bytes().filter(u8::is_ascii).count();
        ascii.div_ceil(2) + (text.len() - ascii)
    });
    let total: usize = tokens.fold(0, usize::saturating_add);
    u64::try_from(total).unwrap_or(u64::MAX).saturating_add(OVERHEAD_TOKENS)
}

/// The cost ceiling of a dispatch: tokens times price, or `declared` (the step's
/// `max_cost_cents`) if that is lower, with the output limited to match. Without
/// either, `fallback` (the agent's `max_cost_cents`) applies.
pub fn worst(costing: Costing<'_>, declared: Option<Money>, fallback: Option<Money>) -> Estimate {
    let at_most = |ceiling: Option<Money>| Estimate {
        worst: ceiling.map_or(Worst::Unknown, Worst::Known),
        max_output_tokens: None,
    };
    match costing {
        Costing::Free => at_most(Some(Money::ZERO)),
        Costing::Unpriced => at_most(declared.or(fallback)),
        Costing::Priced { price, input_tokens, max_output_tokens } => {
            let bill = Bill { price, input_tokens };
            match max_output_tokens.or(price.max_output_tokens) {
                Some(output_tokens) => bill.bounded(output_tokens, declared),
                None => match declared.or(fallback) {
                    Some(ceiling) => bill.cut(ceiling, u64::MAX),
                    None if price.output_cents_per_mtok.is_zero() => at_most(Some(bill.total(0))),
                    None => at_most(None),
                },
            }
        }
    }
}

/// Tokens used by a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Input tokens.
    pub input: u64,
    /// Input tokens that the provider had cached.
    pub cached: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
}

/// The price of tokens, rounded up.
pub fn bill(price: &Price, tokens: Tokens) -> Money {
    let kept = price.cached_input_cents_per_mtok.unwrap_or(price.input_cents_per_mtok);
    let cached = tokens.cached.min(tokens.input);
    let part = |tokens: u64, money: Money| u128::from(tokens) * u128::from(money.micro_cents());
    let sum = part(tokens.input - cached, price.input_cents_per_mtok)
        .saturating_add(part(cached, kept))
        .saturating_add(part(tokens.output, price.output_cents_per_mtok));
    Money::from_micro_cents(u64::try_from(sum.div_ceil(PRICE_TOKENS)).unwrap_or(u64::MAX))
}

/// A price with the number of input tokens.
struct Bill<'a> {
    price: &'a Price,
    input_tokens: u64,
}

impl Bill<'_> {
    /// The cost with an output limit, under a ceiling.
    fn bounded(&self, output_tokens: u64, declared: Option<Money>) -> Estimate {
        let total = self.total(output_tokens);
        match declared {
            Some(ceiling) if ceiling < total => self.cut(ceiling, output_tokens),
            _ => Estimate { worst: Worst::Known(total), max_output_tokens: Some(output_tokens) },
        }
    }

    /// The largest output limit that keeps to a ceiling.
    fn cut(&self, ceiling: Money, output_tokens_max: u64) -> Estimate {
        let read = self.total(0);
        if read > ceiling {
            // Even an empty output exceeds the ceiling, so return the cost of the input
            // alone.
            return Estimate { worst: Worst::Known(read), max_output_tokens: Some(0) };
        }
        let one = u128::from(self.price.output_cents_per_mtok.micro_cents());
        let left = u128::from(ceiling.micro_cents()) * PRICE_TOKENS - self.reading();
        let tokens = left.checked_div(one).map_or(output_tokens_max, |tokens| {
            u64::try_from(tokens).unwrap_or(u64::MAX).min(output_tokens_max)
        });
        let max_output_tokens = (tokens < u64::MAX).then_some(tokens);
        Estimate { worst: Worst::Known(ceiling), max_output_tokens }
    }

    /// Cost of the input, in micro-cents times a million tokens.
    fn reading(&self) -> u128 {
        u128::from(self.input_tokens) * u128::from(self.price.input_cents_per_mtok.micro_cents())
    }

    /// Cost of input and output, rounded up.
    fn total(&self, output_tokens: u64) -> Money {
        let one = u128::from(self.price.output_cents_per_mtok.micro_cents());
        let sum = self.reading().saturating_add(u128::from(output_tokens) * one);
        let rounded = sum.div_ceil(PRICE_TOKENS);
        Money::from_micro_cents(u64::try_from(rounded).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
