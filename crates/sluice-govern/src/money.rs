//! Exact amounts of money.
//!
//! Sluice counts money in whole micro-cents: a millionth of a US cent, so one dollar is
//! 10^8 of them. Amounts are parsed from decimal text and never become floats;
//! fractions of a micro-cent are rounded up, so that a budget can be overestimated but
//! never exceeded.

pub mod cents;

use crate::decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::fmt;

/// An amount in micro-cents.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize, Serialize,
)]
#[serde(transparent)]
pub struct Money(u64);

/// The error for a text or number that is not an amount of money: lower case, no full
/// stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadAmount(pub &'static str);

const USD_PLACES: i64 = 8;
const CENT_PLACES: i64 = 6;
const MICRO_CENTS_PER_USD: u64 = 100_000_000;
const MICRO_CENTS_PER_CENT: u64 = 1_000_000;

impl Money {
    /// No money.
    pub const ZERO: Money = Money(0);

    /// An amount of micro-cents.
    pub const fn from_micro_cents(micro_cents: u64) -> Money {
        Money(micro_cents)
    }

    /// The amount in micro-cents.
    pub const fn micro_cents(self) -> u64 {
        self.0
    }

    /// Parses an amount in cents: `12`, `12.5`, `1e-3`.
    pub fn from_cents_text(text: &str) -> Result<Money, BadAmount> {
        parse(text, CENT_PLACES)
    }

    /// Parses an amount in dollars.
    pub fn from_usd_text(text: &str) -> Result<Money, BadAmount> {
        parse(text, USD_PLACES)
    }

    /// An amount in cents from a document.
    pub fn from_cents(number: &Number) -> Result<Money, BadAmount> {
        Money::from_cents_text(&number.to_string())
    }

    /// An amount in dollars from a message.
    pub fn from_usd(number: &Number) -> Result<Money, BadAmount> {
        Money::from_usd_text(&number.to_string())
    }

    /// Whether it is zero.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// The sum; `None` on overflow.
    #[must_use]
    pub const fn checked_add(self, other: Money) -> Option<Money> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Money(sum)),
            None => None,
        }
    }
}

/// Dollars with cents and, if there are any, the digits below them: `12.50`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usd = self.0 / MICRO_CENTS_PER_USD;
        let cents = self.0 % MICRO_CENTS_PER_USD / MICRO_CENTS_PER_CENT;
        let below = format!("{:06}", self.0 % MICRO_CENTS_PER_CENT);
        write!(f, "{usd}.{cents:02}{}", below.trim_end_matches('0'))
    }
}

fn parse(text: &str, places: i64) -> Result<Money, BadAmount> {
    let fault = |why: &'static str| Err(BadAmount(why));
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn cents_and_dollars_are_read_exactly() {
        for (text, micro_cents) in [
            ("0", 0),
            ("-0", 0),
            ("1", 1_000_000),
            ("12.5", 12_500_000),
            ("0.000001", 1),
            ("1e-6", 1),
            ("1.5e2", 150_000_000),
            ("18446744073709.551615", u64::MAX),
        ] {
            assert_eq!(Money::from_cents_text(text), Ok(Money(micro_cents)), "{text}");
        }
        for (text, micro_cents) in [
            ("1", 100_000_000),
            ("0.1", 10_000_000),
            ("0.00000001", 1),
            ("184467440737.09551615", u64::MAX),
        ] {
            assert_eq!(Money::from_usd_text(text), Ok(Money(micro_cents)), "{text}");
        }
    }

    #[test]
    fn what_is_below_a_micro_cent_is_rounded_up() {
        for (text, micro_cents) in [
            ("0.0000001", 1),
            ("1e-300", 1),
            ("0.0000010000000000000000000000001", 2),
            ("0.0000015", 2),
            ("2.9999999", 3_000_000),
        ] {
            assert_eq!(Money::from_cents_text(text), Ok(Money(micro_cents)), "{text}");
        }
    }

    #[test]
    fn amounts_that_are_none_are_refused() {
        for (text, message) in [
            ("-1", "an amount of money cannot be negative"),
            ("-1e-300", "an amount of money cannot be negative"),
            ("", "is not an amount of money"),
            ("NaN", "is not an amount of money"),
            ("inf", "is not an amount of money"),
            ("$5", "is not an amount of money"),
            ("1,5", "is not an amount of money"),
            (
                "18446744073709.551616",
                "an amount of money over 184 billion dollars cannot be counted",
            ),
            (
                "18446744073709.5516151",
                "an amount of money over 184 billion dollars cannot be counted",
            ),
            ("1e300", "an amount of money over 184 billion dollars cannot be counted"),
        ] {
            let fault = Money::from_cents_text(text).unwrap_err();
            assert_eq!(fault.0, message, "{text}");
        }
    }

    #[test]
    fn numbers_of_documents_and_messages_are_amounts() {
        let number = |value: serde_json::Value| value.as_number().cloned().unwrap();
        assert_eq!(Money::from_cents(&number(json!(0.1))), Ok(Money(100_000)));
        assert_eq!(Money::from_cents(&number(json!(1e-7))), Ok(Money(1)));
        assert_eq!(Money::from_usd(&number(json!(0.1))), Ok(Money(10_000_000)));
        assert_eq!(Money::from_usd(&number(json!(3))), Ok(Money(300_000_000)));
        assert!(Money::from_usd(&number(json!(-1))).is_err());
        assert!(Money::from_cents(&number(json!(1e300))).is_err());
    }

    #[test]
    fn an_amount_is_shown_in_dollars_and_written_in_micro_cents() {
        for (micro_cents, shown) in [
            (0, "0.00"),
            (1, "0.00000001"),
            (1_000_000, "0.01"),
            (12_500_000, "0.125"),
            (1_250_000_000, "12.50"),
            (110_000_000, "1.10"),
            (u64::MAX, "184467440737.09551615"),
        ] {
            let money = Money::from_micro_cents(micro_cents);
            assert_eq!(money.to_string(), shown);
            assert_eq!(money.micro_cents(), micro_cents);
            assert_eq!(serde_json::to_value(money).unwrap(), json!(micro_cents));
        }
        assert_eq!(Money::ZERO, Money::default());
    }

    #[test]
    fn sums_are_checked() {
        assert_eq!(Money(1).checked_add(Money(2)), Some(Money(3)));
        assert_eq!(Money(u64::MAX).checked_add(Money(0)), Some(Money(u64::MAX)));
        assert_eq!(Money(u64::MAX).checked_add(Money(1)), None);
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(micro_cents: u64) {
            let money = Money(micro_cents);
            prop_assert_eq!(Money::from_usd_text(&money.to_string()), Ok(money));
        }
    }
}
