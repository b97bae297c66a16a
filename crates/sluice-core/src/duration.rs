//! Durations in documents: `90s`, `5m`, `1.5h`, or plain seconds.
//!
//! Stored as whole milliseconds. Fractions are rounded up, so that a limit is never shorter
//! than written.

use crate::limits::DURATION_MS_MAX;
use crate::span::Fault;
use sluice_govern::decimal::Decimal;

/// Units and their milliseconds, the longest first.
const UNITS: [(&str, u32); 5] =
    [("d", 24 * 60 * 60 * 1000), ("h", 60 * 60 * 1000), ("m", 60 * 1000), ("s", 1000), ("ms", 1)];

const HINT: &str =
    "write a number and one of ms, s, m, h, d, as in `90s`; a number alone is seconds";

/// Parses a duration into milliseconds. Zero, negative and too long durations are errors.
pub fn parse(text: &str) -> Result<u64, Fault> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let unit = &text[digits.len()..];
    let whole = 0..text.len();
    let unit_ms = match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, unit_ms)) => *unit_ms,
        None if unit.is_empty() => 1000,
        None if digits.is_empty() => {
            return Err(no_duration(text));
        }
        None => {
            let message = format!("unknown unit `{unit}`");
            return Err(Fault::new(digits.len()..text.len(), message).with_hint(HINT));
        }
    };
    let Some(count) = Decimal::parse(digits) else {
        return Err(no_duration(text));
    };
    if count.negative {
        return Err(Fault::new(whole, "a duration cannot be negative"));
    }
    let too_long = || {
        let longest = format(DURATION_MS_MAX);
        Fault::new(whole.clone(), format!("a duration can be at most {longest}"))
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

fn no_duration(text: &str) -> Fault {
    let message = format!("`{}` is not a duration", crate::visible::shorten(text));
    Fault::new(0..text.len(), message).with_hint(HINT)
}

/// The shortest exact text: the longest unit without a remainder.
pub fn format(ms: u64) -> String {
    let exact = |(_, unit_ms): &&(&str, u32)| ms > 0 && ms.is_multiple_of(u64::from(*unit_ms));
    let (name, unit_ms) = UNITS.iter().find(exact).unwrap_or(&("ms", 1));
    format!("{}{name}", ms / u64::from(*unit_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_in_milliseconds() {
        for (text, ms) in [
            ("90s", 90_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("2d", 172_800_000),
            ("500ms", 500),
            ("600", 600_000),
            ("0.5", 500),
            ("1.5h", 5_400_000),
            ("1e3", 1_000_000),
            ("1e1ms", 10),
            ("366d", DURATION_MS_MAX),
            // Rounded up to the next millisecond.
            ("1.0001", 1001),
            ("0.1ms", 1),
            ("1e-9", 1),
        ] {
            assert_eq!(parse(text), Ok(ms), "{text}");
        }
    }

    #[test]
    fn durations_that_are_none_are_refused() {
        for (text, message) in [
            ("0", "a duration cannot be zero"),
            ("0.0h", "a duration cannot be zero"),
            ("-1s", "a duration cannot be negative"),
            ("367d", "a duration can be at most 366d"),
            ("31622400.001", "a duration can be at most 366d"),
            ("1e30", "a duration can be at most 366d"),
            ("", "`` is not a duration"),
            ("s", "`s` is not a duration"),
            ("soon", "`soon` is not a duration"),
            ("1h30m", "`1h30m` is not a duration"),
            (" 5s", "` 5s` is not a duration"),
            ("5 s", "`5 s` is not a duration"),
            ("--5s", "`--5s` is not a duration"),
            ("5w", "unknown unit `w`"),
            ("5M", "unknown unit `M`"),
            ("5 minutes", "unknown unit `minutes`"),
            ("5e", "unknown unit `e`"),
        ] {
            assert_eq!(parse(text).unwrap_err().message, message, "{text:?}");
        }
        let long = format!("0.{}", "3".repeat(40));
        let message = parse(&long).unwrap_err().message;
        assert_eq!(message, "a duration has at most 30 digits");
    }

    #[test]
    fn an_unknown_unit_is_pointed_at_with_the_known_ones() {
        let fault = parse("12 wk").unwrap_err();
        assert_eq!(fault.span.range(), 3..5);
        assert!(fault.hint.unwrap().contains("ms, s, m, h, d"));
        let fault = parse("soon").unwrap_err();
        assert_eq!(fault.span.range(), 0..4);
        assert!(fault.hint.is_some());
        assert!(parse("1h30m").unwrap_err().hint.is_some());
    }

    #[test]
    fn the_longest_exact_unit_is_written() {
        for (ms, text) in [
            (0, "0ms"),
            (1, "1ms"),
            (1500, "1500ms"),
            (1000, "1s"),
            (90_000, "90s"),
            (120_000, "2m"),
            (3_600_000, "1h"),
            (172_800_000, "2d"),
        ] {
            assert_eq!(format(ms), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(ms in 1..=DURATION_MS_MAX, unit in 0usize..5) {
            prop_assert_eq!(parse(&format(ms)), Ok(ms));
            let unit_ms = u64::from(UNITS[unit].1);
            let round = (ms / unit_ms).max(1) * unit_ms;
            prop_assert_eq!(parse(&format(round)), Ok(round));
        }

        #[test]
        fn any_text_is_answered(text in ".{0,12}") {
            let _ = parse(&text);
        }
    }
}
