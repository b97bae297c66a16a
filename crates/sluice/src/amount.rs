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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_figures_or_so() {
        let shown = [0, 999, 1000, 59_999, 60_000, 3_599_999, 3_600_000, 90_000_000].map(time);
        assert_eq!(
            shown,
            ["0 ms", "999 ms", "1.0 s", "59.9 s", "1 m 00 s", "59 m 59 s", "1 h 00 m", "1 d 01 h"]
        );
    }
}
