//! What a dispatch costs at most, and how long its answer may be so that it does.
//!
//! INVARIANT: an estimate is never too low for the tokens it counts: every
//! division rounds up, and what does not fit is as much as can be counted.

use crate::facts::Worst;
use crate::money::Money;
use crate::registry::Price;

/// Tokens that wrap a request: roles, separators, tool headers.
const OVERHEAD_TOKENS: u64 = 64;
/// Prices are for so many tokens.
const PRICE_TOKENS: u128 = 1_000_000;

/// What is known of the cost of a dispatch.
#[derive(Debug, Clone, Copy)]
pub enum Costing<'a> {
    /// The adapter cannot cost anything.
    Free,
    /// The model has a price.
    Priced {
        /// The price.
        price: &'a Price,
        /// Tokens that are read, counted high: see [`input_tokens`].
        input_tokens: u64,
        /// Longest answer that the step or the agent asks for.
        max_output_tokens: Option<u64>,
    },
    /// It costs, and nobody knows what.
    Unpriced,
}

/// What a dispatch costs at most, and what that rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// What to reserve.
    pub worst: Worst,
    /// Longest answer that keeps to it; none where the cost does not depend on
    /// it. Nothing (0) means that the ceiling does not even pay for what is read.
    pub max_output_tokens: Option<u64>,
}

/// Tokens in texts, counted high: one for two bytes of ASCII, one for each other
/// byte (no tokeniser makes more), and some for what wraps them.
pub fn input_tokens<'t>(texts: impl IntoIterator<Item = &'t str>) -> u64 {
    let tokens = texts.into_iter().map(|text| {
        let ascii = text.bytes().filter(u8::is_ascii).count();
        ascii.div_ceil(2) + (text.len() - ascii)
    });
    let total: usize = tokens.fold(0, usize::saturating_add);
    u64::try_from(total).unwrap_or(u64::MAX).saturating_add(OVERHEAD_TOKENS)
}

/// What a dispatch costs at most: tokens times price, or `declared` (the step's
/// `max_cost_cents`) if that is lower, with the answer cut to match. Where that
/// says nothing, `fallback` (the agent's `max_cost_cents`) does.
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

/// Tokens that work has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Read.
    pub input: u64,
    /// Of those, what the provider had kept.
    pub cached: u64,
    /// Written, thought included.
    pub output: u64,
}

/// What tokens cost, rounded up.
pub fn bill(price: &Price, tokens: Tokens) -> Money {
    let kept = price.cached_input_cents_per_mtok.unwrap_or(price.input_cents_per_mtok);
    let cached = tokens.cached.min(tokens.input);
    let part = |tokens: u64, money: Money| u128::from(tokens) * u128::from(money.micro_cents());
    let sum = part(tokens.input - cached, price.input_cents_per_mtok)
        .saturating_add(part(cached, kept))
        .saturating_add(part(tokens.output, price.output_cents_per_mtok));
    Money::from_micro_cents(u64::try_from(sum.div_ceil(PRICE_TOKENS)).unwrap_or(u64::MAX))
}

/// A price and what is read for it.
struct Bill<'a> {
    price: &'a Price,
    input_tokens: u64,
}

impl Bill<'_> {
    /// The cost of an answer of at most so many tokens, under a ceiling.
    fn bounded(&self, output_tokens: u64, declared: Option<Money>) -> Estimate {
        let total = self.total(output_tokens);
        match declared {
            Some(ceiling) if ceiling < total => self.cut(ceiling, output_tokens),
            _ => Estimate { worst: Worst::Known(total), max_output_tokens: Some(output_tokens) },
        }
    }

    /// The longest answer that keeps to a ceiling.
    fn cut(&self, ceiling: Money, output_tokens_max: u64) -> Estimate {
        let read = self.total(0);
        if read > ceiling {
            // No answer is short enough. Say what reading alone costs.
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

    /// Reading, in micro-cents for a million tokens.
    fn reading(&self) -> u128 {
        u128::from(self.input_tokens) * u128::from(self.price.input_cents_per_mtok.micro_cents())
    }

    /// Reading and an answer, rounded up.
    fn total(&self, output_tokens: u64) -> Money {
        let one = u128::from(self.price.output_cents_per_mtok.micro_cents());
        let sum = self.reading().saturating_add(u128::from(output_tokens) * one);
        let rounded = sum.div_ceil(PRICE_TOKENS);
        Money::from_micro_cents(u64::try_from(rounded).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
