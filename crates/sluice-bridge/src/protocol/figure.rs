//! Parses figures that bridges and agents report: tokens, money and times.
//!
//! A figure is parsed from its digits, never through a float. A figure that is not a number, is
//! negative or is too large becomes the largest value, which the core rejects.

use serde::de::{Deserialize as _, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize as _, Serializer};
use serde_json::value::RawValue;
use sluice_core::journal::envelope::timestamp;
use sluice_core::money::Money;

/// Stands for an invalid figure; the core rejects it.
const UNBELIEVABLE: u64 = u64::MAX;
/// Limit of a number of seconds: as seconds this is the year 5138, as milliseconds 1973.
const EPOCH_SECONDS_MAX: u64 = 100_000_000_000;
/// The end of the year 9999.
const EPOCH_MS_MAX: u64 = 253_402_300_799_999;

/// Parses a number of tokens.
pub(super) fn tokens<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let raw = Option::<Box<RawValue>>::deserialize(from)?;
    Ok(raw.map(|raw| count(digits(raw.get())).unwrap_or(UNBELIEVABLE)))
}

/// Parses an amount in dollars.
pub(super) fn cost<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Money>, D::Error> {
    let raw = Option::<Box<RawValue>>::deserialize(from)?;
    let money = |raw: Box<RawValue>| {
        Money::from_usd_text(digits(raw.get())).unwrap_or(Money::from_micro_cents(UNBELIEVABLE))
    };
    Ok(raw.map(money))
}

/// Writes an amount in dollars with its exact digits.
pub(super) fn usd<S: Serializer>(money: &Option<Money>, to: S) -> Result<S::Ok, S::Error> {
    let Some(money) = money else { return to.serialize_none() };
    RawValue::from_string(money.to_string()).map_err(S::Error::custom)?.serialize(to)
}

/// Parses an amount that must be valid.
pub(super) fn exact_usd<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Money>, D::Error> {
    let Some(raw) = Option::<Box<RawValue>>::deserialize(from)? else { return Ok(None) };
    Money::from_usd_text(raw.get()).map(Some).map_err(D::Error::custom)
}

/// Parses a time. A text stays as it is. A number is milliseconds since 1970, or seconds if it
/// is small. An invalid time is dropped, and the result is still accepted.
pub(super) fn instant<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let raw = Option::<Box<RawValue>>::deserialize(from)?;
    Ok(raw.and_then(|raw| match raw.get() {
        text if text.starts_with('"') => serde_json::from_str(text).ok(),
        number => epoch_ms(number).map(timestamp),
    }))
}

/// Converts a number to milliseconds since 1970.
fn epoch_ms(number: &str) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = count(whole)?;
    if whole >= EPOCH_SECONDS_MAX {
        return Some(whole).filter(|ms| *ms <= EPOCH_MS_MAX);
    }
    let thousandths = format!("{fraction:0<3}");
    Some(whole * 1000 + count(thousandths.get(..3)?)?)
}

/// The digits of a number, also if it was sent as a text.
fn digits(raw: &str) -> &str {
    raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')).unwrap_or(raw)
}

/// A whole number, also written as `12.0`.
fn count(text: &str) -> Option<u64> {
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
        Some(_) => return None,
        None => text,
    };
    // The parser accepts `+5`, which is not a JSON number.
    whole.bytes().all(|byte| byte.is_ascii_digit()).then(|| whole.parse().ok())?
}
