//! Amounts of money, exact.
//!
//! Inside Sluice money is a whole number of micro-cents: a millionth of a US
//! cent, so one dollar is 10^8 of them. Amounts come in as decimal text and are
//! never a float on the way; what is finer than a micro-cent is rounded up, so
//! that a budget can be overestimated but never passed.

use crate::decimal::Decimal;
use crate::span::Fault;
use serde::Serialize;
use serde_json::Number;
use std::fmt;

/// An amount in micro-cents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(transparent)]
pub struct Money(u64);

const USD_PLACES: i64 = 8;
const CENT_PLACES: i64 = 6;
const MICRO_CENTS_PER_USD: u64 = 100_000_000;
const MICRO_CENTS_PER_CENT: u64 = 1_000_000;

impl Money {
    /// Nothing.
    pub const ZERO: Money = Money(0);

    /// That many micro-cents.
    pub const fn from_micro_cents(micro_cents: u64) -> Money {
        Money(micro_cents)
    }

    /// The amount in micro-cents.
    pub const fn micro_cents(self) -> u64 {
        self.0
    }

    /// Reads an amount in cents: `12`, `12.5`, `1e-3`.
    pub fn from_cents_text(text: &str) -> Result<Money, Fault> {
        parse(text, CENT_PLACES)
    }

    /// Reads an amount in dollars.
    pub fn from_usd_text(text: &str) -> Result<Money, Fault> {
        parse(text, USD_PLACES)
    }

    /// An amount in cents as a document holds it.
    pub fn from_cents(number: &Number) -> Result<Money, Fault> {
        Money::from_cents_text(&number.to_string())
    }

    /// An amount in dollars as a message holds it.
    pub fn from_usd(number: &Number) -> Result<Money, Fault> {
        Money::from_usd_text(&number.to_string())
    }

    /// The sum; none where it does not fit.
    #[must_use]
    pub const fn checked_add(self, other: Money) -> Option<Money> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Money(sum)),
            None => None,
        }
    }
}

/// Dollars, with cents and, where there are any, the digits below them: `12.50`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usd = self.0 / MICRO_CENTS_PER_USD;
        let cents = self.0 % MICRO_CENTS_PER_USD / MICRO_CENTS_PER_CENT;
        let below = format!("{:06}", self.0 % MICRO_CENTS_PER_CENT);
        write!(f, "{usd}.{cents:02}{}", below.trim_end_matches('0'))
    }
}

fn parse(text: &str, places: i64) -> Result<Money, Fault> {
    let fault = |message: &str| Err(Fault::new(0..text.len(), message));
    let Some(amount) = Decimal::parse(text) else {
        return fault("is not an amount of money");
    };
    if amount.negative {
        return fault("an amount of money cannot be negative");
    }
    match amount.shifted(places).rounded_up() {
        Some(micro_cents) => Ok(Money(micro_cents)),
        None => fault("an amount of money over 184 billion dollars cannot be counted"),
    }
}
