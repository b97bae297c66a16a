//! Decimal numbers, exact.
//!
//! Money, durations and rounded integers must be exactly what a person computes; 64-bit
//! floats would lose the last digits of large numbers. Work is linear in the text,
//! whatever the exponent.

use std::ops::Range;

/// A number `0.d1d2d3… * 10^point`, without zeros at either end of its digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    /// Whether it is negative; never for zero.
    pub negative: bool,
    digits: Vec<u8>,
    point: i64,
}

/// The fraction after the decimal point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Zero.
    Nothing,
    /// Less than a half.
    BelowHalf,
    /// Rounding to the nearest number rounds up.
    HalfOrMore,
}

/// Exponents beyond this are infinite for anything that fits 128 bits.
const EXPONENT_MAX: i64 = 1_000_000_000;
/// Number of digits that always fits an unsigned 128-bit integer.
const DIGITS_MAX: i64 = 38;

impl Decimal {
    /// Parses digits with an optional sign, decimal point and exponent.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let written = [whole, fraction].concat();
        if written.is_empty() || !all_digits(&written) {
            return None;
        }
        let kept = significant(&written);
        let point = length(whole.len()) - length(kept.start) + exponent;
        let digits: Vec<u8> = written[kept].bytes().map(|b| b - b'0').collect();
        let zero = digits.is_empty();
        Some(Decimal { negative: negative && !zero, digits, point: if zero { 0 } else { point } })
    }

    /// The number times `10^places`.
    pub fn shifted(mut self, places: i64) -> Decimal {
        self.point += places;
        self
    }

    /// The exact product with `factor`; `None` if it has too many digits.
    pub fn times(&self, factor: u32) -> Option<Decimal> {
        let exponent = self.point - length(self.digits.len());
        let (mantissa, _) = self.clone().shifted(-exponent).split()?;
        let product = mantissa.checked_mul(u128::from(factor))?;
        let product = Decimal::parse(&product.to_string())?;
        Some(Decimal { negative: self.negative, ..product.shifted(exponent) })
    }

    /// The absolute integer part and the fraction; `None` beyond 128 bits.
    pub fn split(&self) -> Option<(u128, Rest)> {
        if self.digits.is_empty() {
            return Some((0, Rest::Nothing));
        }
        let Ok(point) = usize::try_from(self.point) else {
            return Some((0, Rest::BelowHalf));
        };
        if self.point > DIGITS_MAX {
            return None;
        }
        let digit = |at: usize| self.digits.get(at).copied();
        let whole =
            (0..point).fold(0, |sum: u128, at| sum * 10 + u128::from(digit(at).unwrap_or(0)));
        let rest = match digit(point) {
            None => Rest::Nothing,
            Some(0..=4) => Rest::BelowHalf,
            Some(_) => Rest::HalfOrMore,
        };
        Some((whole, rest))
    }

    /// The absolute value, rounded up; `None` beyond 64 bits.
    pub fn rounded_up(&self) -> Option<u64> {
        let (whole, rest) = self.split()?;
        u64::try_from(whole + u128::from(rest != Rest::Nothing)).ok()
    }
}

fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !all_digits(digits) {
        return None;
    }
    let size = digits.parse().unwrap_or(EXPONENT_MAX).min(EXPONENT_MAX);
    Some(if text.starts_with('-') { -size } else { size })
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// The range of `digits` between its first and last digit other than zero.
fn significant(digits: &str) -> Range<usize> {
    let end = digits.trim_end_matches('0').len();
    let start = end - digits[..end].trim_start_matches('0').len();
    start..end
}

fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).expect("a text is shorter than 2^63 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Option<(u128, Rest)> {
        Decimal::parse(text).unwrap().split()
    }

    #[test]
    fn whole_part_and_rest_are_exact() {
        for (text, whole, rest) in [
            ("0", 0, Rest::Nothing),
            ("000.000", 0, Rest::Nothing),
            ("7", 7, Rest::Nothing),
            ("+7", 7, Rest::Nothing),
            ("-7", 7, Rest::Nothing),
            ("007.100", 7, Rest::BelowHalf),
            ("7.4999999999999999999999999", 7, Rest::BelowHalf),
            ("7.5", 7, Rest::HalfOrMore),
            ("7.9", 7, Rest::HalfOrMore),
            ("7.05", 7, Rest::BelowHalf),
            ("0.5", 0, Rest::HalfOrMore),
            ("0.05", 0, Rest::BelowHalf),
            ("0.005", 0, Rest::BelowHalf),
            (".5", 0, Rest::HalfOrMore),
            ("5.", 5, Rest::Nothing),
            ("1200", 1200, Rest::Nothing),
            ("1.25e2", 125, Rest::Nothing),
            ("1.25E+1", 12, Rest::HalfOrMore),
            ("125e-1", 12, Rest::HalfOrMore),
            ("125e-9999999999999999999", 0, Rest::BelowHalf),
            ("0e9999999999999999999", 0, Rest::Nothing),
            ("1e37", 10_u128.pow(37), Rest::Nothing),
            ("99999999999999999999999999999999999999", 10_u128.pow(38) - 1, Rest::Nothing),
        ] {
            assert_eq!(split(text), Some((whole, rest)), "{text}");
        }
        for text in ["1e38", "1e99", "1e9999999999999999999"] {
            assert_eq!(split(text), None, "{text}");
        }
    }

    #[test]
    fn only_plain_decimals_are_read() {
        for text in [
            "", "-", "+", ".", "e5", ".e5", "1e", "1e+", "1e1.5", "1.2.3", "--1", "+-1", "nan",
            "inf", "1_0", "1 ", " 1", "0x1", "١",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn zero_has_no_sign() {
        assert!(Decimal::parse("-0.1").unwrap().negative);
        assert!(!Decimal::parse("-0.0").unwrap().negative);
        assert!(!Decimal::parse("1").unwrap().negative);
    }

    #[test]
    fn products_are_exact_and_bounded() {
        let times = |text: &str, factor| Decimal::parse(text).unwrap().times(factor);
        assert_eq!(times("1.5", 60), Decimal::parse("90"));
        assert_eq!(times("-0.001", 3), Decimal::parse("-0.003"));
        assert_eq!(times("0", 3), Decimal::parse("0"));
        assert_eq!(times("12e30", 10), Decimal::parse("1.2e32"));
        assert_eq!(times(&"9".repeat(39), 10), None);
        assert_eq!(times(&"9".repeat(38), 10), None);
    }

    #[test]
    fn rounding_up_counts_any_rest() {
        let up = |text: &str| Decimal::parse(text).unwrap().rounded_up();
        assert_eq!(up("3"), Some(3));
        assert_eq!(up("3.0000000000000000000000001"), Some(4));
        assert_eq!(up("18446744073709551615"), Some(u64::MAX));
        assert_eq!(up("18446744073709551615.1"), None);
        assert_eq!(up("1e40"), None);
    }

    proptest! {
        #[test]
        fn floats_are_read_like_the_standard_library_reads_them(text in "[+-]?[0-9]{0,3}[.]?[0-9]{0,3}(e[+-]?[0-9]{0,2})?") {
            prop_assert_eq!(Decimal::parse(&text).is_some(), text.parse::<f64>().is_ok());
        }

        #[test]
        fn integers_split_into_themselves(number: u64) {
            prop_assert_eq!(split(&number.to_string()), Some((u128::from(number), Rest::Nothing)));
        }
    }
}
