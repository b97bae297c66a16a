//! Durations as documents write them: `90s`, `5m`, `1.5h`, or plain seconds.
//!
//! Held as whole milliseconds. What is finer is rounded up, so that a limit is
//! never shorter than its author asked for.

use crate::decimal::Decimal;
use crate::limits::DURATION_MS_MAX;
use crate::span::Fault;

/// Units and their milliseconds, the longest first.
const UNITS: [(&str, u32); 5] = [
    ("d", 24 * 60 * 60 * 1000),
    ("h", 60 * 60 * 1000),
    ("m", 60 * 1000),
    ("s", 1000),
    ("ms", 1),
];

const HINT: &str =
    "write a number and one of ms, s, m, h, d, as in `90s`; a number alone is seconds";

/// Reads a duration in milliseconds. Zero, negative and over-long ones are refused.
pub fn parse(text: &str) -> Result<u64, Fault> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let unit = &text[digits.len()..];
    let whole = 0..text.len();
    let unit_ms = match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, unit_ms)) => *unit_ms,
        None if unit.is_empty() => 1000,
        None if digits.is_empty() => {
            return Err(Fault::new(whole, "is not a duration").with_hint(HINT));
        }
        None => {
            let message = format!("unknown unit `{unit}`");
            return Err(Fault::new(digits.len()..text.len(), message).with_hint(HINT));
        }
    };
    let Some(count) = Decimal::parse(digits) else {
        return Err(Fault::new(whole, "is not a duration").with_hint(HINT));
    };
    if count.negative {
        return Err(Fault::new(whole, "a duration cannot be negative"));
    }
    let too_long = || {
        let longest = format(DURATION_MS_MAX);
        Fault::new(
            whole.clone(),
            format!("a duration can be at most {longest}"),
        )
    };
    let Some(exact) = count.times(unit_ms) else {
        return Err(Fault::new(whole, "a duration has at most 30 digits"));
    };
    let ms = exact.rounded_up().filter(|ms| *ms <= DURATION_MS_MAX);
    let ms = ms.ok_or_else(too_long)?;
    if ms == 0 {
        return Err(Fault::new(whole, "a duration cannot be zero"));
    }
    Ok(ms)
}

/// The shortest exact spelling: the longest unit that leaves no rest.
pub fn format(ms: u64) -> String {
    let exact = |(_, unit_ms): &&(&str, u32)| ms > 0 && ms.is_multiple_of(u64::from(*unit_ms));
    let (name, unit_ms) = UNITS.iter().find(exact).unwrap_or(&("ms", 1));
    format!("{}{name}", ms / u64::from(*unit_ms))
}
