//! Times, money and tokens as people read them.

use crate::environment;
use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use sluice_core::money::Money;
use std::sync::LazyLock;

/// A span of time: `21 ms`, `1.2 s`, `2 m 05 s`, `1 h 03 m`.
pub(crate) fn time(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0 => format!("{ms} ms"),
        1..60 => format!("{s}.{} s", ms % 1000 / 100),
        60..3600 => format!("{} m {:02} s", s / 60, s % 60),
        3600..86_400 => format!("{} h {:02} m", s / 3600, s / 60 % 60),
        _ => format!("{} d {:02} h", s / 86_400, s / 3600 % 24),
    }
}

/// Attempts, tokens and cost, without those that are zero.
pub(crate) fn spent(attempts: u64, tokens: u64, cost: Money) -> Vec<String> {
    let mut spent = Vec::new();
    if attempts > 1 {
        spent.push(format!("{attempts} attempts"));
    }
    if tokens > 0 {
        spent.push(format!("{tokens} tokens"));
    }
    if cost != Money::ZERO {
        spent.push(format!("${cost}"));
    }
    spent
}

/// A point in time to the second, in the local time zone: `2026-01-31 10:05:00+01:00`.
pub(crate) fn moment(ms: u64) -> String {
    static ZONE: LazyLock<TimeZone> = LazyLock::new(environment::time_zone);
    moment_in(ms, &ZONE)
}

/// The same in the zone of this name; in UTC if there is no such zone.
pub(crate) fn moment_at(ms: u64, zone: &str) -> String {
    moment_in(ms, &TimeZone::get(zone).unwrap_or(TimeZone::UTC))
}

/// The same in a zone. UTC is written as `Z`.
pub(crate) fn moment_in(ms: u64, zone: &TimeZone) -> String {
    let at = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let at = at.unwrap_or(Timestamp::MAX).to_zoned(zone.clone());
    let offset = if at.offset() == Offset::UTC { "Z" } else { "%:z" };
    at.strftime(&format!("%Y-%m-%d %H:%M:%S{offset}")).to_string()
}

/// A point in time as it is written in JSON: `2026-01-31T09:05:00.123Z`.
pub(crate) fn ms(text: &str) -> Option<u64> {
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let fits = text.len() == 24 && text.is_ascii() && text.ends_with('Z');
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute) = (part(11, 13)?, part(14, 16)?);
    let (second, milli) = (part(17, 19)?, part(20, 23)?);
    if !fits || year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days since 1970, by years that begin in March.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = (365 * year + year / 4 - year / 100 + year / 400 + of_year).checked_sub(719_468)?;
    Some(((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + milli)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_time_is_read_back() {
        use sluice_core::journal::envelope::timestamp;
        for time in [0, 1, 951_782_400_000, 1_709_164_800_001, 1_793_404_799_999, 4_102_444_800_000]
        {
            assert_eq!(ms(&timestamp(time)), Some(time), "{}", timestamp(time));
        }
        for odd in ["", "2026-01-01", "2026-13-01T00:00:00.000Z", "2026-01-01T00:00:00.000+"] {
            assert_eq!(ms(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_moment_says_which_zone_it_is_in() {
        let summer_ms = 1_784_116_800_000;
        let winter_ms = summer_ms + 184 * 86_400_000;
        for (zone, summer, winter) in [
            ("UTC", "2026-07-15 12:00:00Z", "2027-01-15 12:00:00Z"),
            ("America/New_York", "2026-07-15 08:00:00-04:00", "2027-01-15 07:00:00-05:00"),
            ("Asia/Kolkata", "2026-07-15 17:30:00+05:30", "2027-01-15 17:30:00+05:30"),
            ("Nowhere/Here", "2026-07-15 12:00:00Z", "2027-01-15 12:00:00Z"),
        ] {
            let shown = [summer_ms, winter_ms].map(|ms| moment_at(ms, zone));
            assert_eq!(shown, [summer, winter], "{zone}");
        }
        assert!(moment_at(u64::MAX, "UTC").starts_with("9999-12-3"), "the end of time is shown");
    }

    #[test]
    fn times_have_two_figures_or_so() {
        let shown = [0, 999, 1000, 59_999, 60_000, 3_599_999, 3_600_000, 90_000_000].map(time);
        assert_eq!(
            shown,
            ["0 ms", "999 ms", "1.0 s", "59.9 s", "1 m 00 s", "59 m 59 s", "1 h 00 m", "1 d 01 h"]
        );
    }
}
