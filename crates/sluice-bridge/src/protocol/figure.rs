//! Figures that somebody else reports: tokens and money, from their digits.
//!
//! A figure is read from its text, never through a float. One that is none, or is
//! negative, or is too large to count becomes the largest there is, which the core
//! refuses to believe.

use serde::de::{Deserialize as _, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize as _, Serializer};
use serde_json::value::RawValue;
use sluice_core::money::Money;

/// What nobody believes.
const UNBELIEVABLE: u64 = u64::MAX;

/// Reads a count of tokens.
pub(super) fn tokens<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let raw = Option::<Box<RawValue>>::deserialize(from)?;
    Ok(raw.map(|raw| count(digits(raw.get())).unwrap_or(UNBELIEVABLE)))
}

/// Reads an amount in dollars.
pub(super) fn cost<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Money>, D::Error> {
    let raw = Option::<Box<RawValue>>::deserialize(from)?;
    let money = |raw: Box<RawValue>| {
        Money::from_usd_text(digits(raw.get())).unwrap_or(Money::from_micro_cents(UNBELIEVABLE))
    };
    Ok(raw.map(money))
}

/// Writes an amount in dollars, all its digits and no more.
pub(super) fn usd<S: Serializer>(money: &Option<Money>, to: S) -> Result<S::Ok, S::Error> {
    let Some(money) = money else { return to.serialize_none() };
    RawValue::from_string(money.to_string()).map_err(S::Error::custom)?.serialize(to)
}

/// Reads an amount that must be one.
pub(super) fn exact_usd<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Money>, D::Error> {
    let Some(raw) = Option::<Box<RawValue>>::deserialize(from)? else { return Ok(None) };
    Money::from_usd_text(raw.get()).map(Some).map_err(D::Error::custom)
}

/// The digits of a number, also of one that was sent as a text.
fn digits(raw: &str) -> &str {
    raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')).unwrap_or(raw)
}

/// A whole number; `12.0` is one too, as some languages write them.
fn count(text: &str) -> Option<u64> {
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
        Some(_) => return None,
        None => text,
    };
    // `+5` is a number to the parser and to nobody else.
    whole.bytes().all(|byte| byte.is_ascii_digit()).then(|| whole.parse().ok())?
}
