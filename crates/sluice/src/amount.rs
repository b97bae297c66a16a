//! Times, money and tokens as people read them.

use sluice_core::money::Money;

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

/// What something took beside time, as far as there is anything to say.
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

/// A point in time to the second, in UTC.
pub(crate) fn moment(ms: u64) -> String {
    let text = sluice_core::journal::envelope::timestamp(ms);
    text[..19].replace('T', " ")
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
    fn times_have_two_figures_or_so() {
        let shown = [0, 999, 1000, 59_999, 60_000, 3_599_999, 3_600_000, 90_000_000].map(time);
        assert_eq!(
            shown,
            ["0 ms", "999 ms", "1.0 s", "59.9 s", "1 m 00 s", "59 m 59 s", "1 h 00 m", "1 d 01 h"]
        );
    }
}
