//! Numbers as Cedar's `decimal`: four decimal places in 64 bits.

use crate::decimal::{Decimal, Rest};
use cedar_policy::RestrictedExpression;
use serde_json::Value;

/// The number of decimal places.
const PLACES: i64 = 4;

/// A number in ten-thousandths. Further digits are rounded away from zero, and a number
/// beyond the range is the last one in it: so a limit is never passed unseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DecimalNumber(i64);

impl DecimalNumber {
    /// A number, or a text that is a plain number: digits with a sign, a decimal point
    /// and an exponent.
    pub(super) fn from_value(value: &Value) -> Option<DecimalNumber> {
        match value {
            Value::Number(number) => DecimalNumber::parse(&number.to_string()),
            Value::String(text) => DecimalNumber::parse(text.trim()),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<DecimalNumber> {
        let number = Decimal::parse(text)?;
        let negative = number.negative;
        let size = match number.shifted(PLACES).split() {
            Some((whole, rest)) => whole.saturating_add(u128::from(rest != Rest::Nothing)),
            None => u128::MAX,
        };
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        Some(DecimalNumber(if negative { -size } else { size }))
    }

    /// As Cedar writes it: `-12.5000`.
    pub(super) fn text(self) -> String {
        let sign = if self.0 < 0 { "-" } else { "" };
        let size = self.0.unsigned_abs();
        format!("{sign}{}.{:04}", size / 10_000, size % 10_000)
    }

    pub(super) fn cedar(self) -> RestrictedExpression {
        RestrictedExpression::new_decimal(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_keep_four_places_and_no_limit_is_passed_unseen() {
        for (value, text) in [
            (json!(500), "500.0000"),
            (json!(-500.25), "-500.2500"),
            (json!(0), "0.0000"),
            (json!(500.000_01), "500.0001"),
            (json!(-0.000_01), "-0.0001"),
            (json!("500.00001"), "500.0001"),
            (json!(" 1e3 "), "1000.0000"),
            (json!(1e300), "922337203685477.5807"),
            (json!(-1e300), "-922337203685477.5807"),
            (json!(u64::MAX), "922337203685477.5807"),
            (json!("99999999999999999999999999999999999999999"), "922337203685477.5807"),
        ] {
            let number = DecimalNumber::from_value(&value).unwrap();
            assert_eq!(number.text(), text, "{value}");
            let pair = ("number".to_owned(), number.cedar());
            cedar_policy::Context::from_pairs([pair]).expect("Cedar reads it");
        }
        for value in [json!("500 EUR"), json!("$5"), json!("1,000"), json!(""), json!(true)] {
            assert_eq!(DecimalNumber::from_value(&value), None, "{value}");
        }
    }
}
