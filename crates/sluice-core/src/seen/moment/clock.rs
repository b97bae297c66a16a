//! Times of day: `10:00`, `10:00:00`, `6 pm`.

use super::{digit_run, short_number, two_digits};

/// The times of day in a normal text, in minutes.
pub(in crate::seen) fn clocks(form: &str) -> Vec<u16> {
    let bytes = form.as_bytes();
    let mut found = Vec::new();
    for (find, joints) in [(clock as Find, b":".as_slice()), (hour, b":.")] {
        let mut at = 0;
        while at < bytes.len() {
            let run = digit_run(bytes, at);
            let joined = at > 0 && joints.contains(&bytes[at - 1]);
            let time = (run > 0 && !joined).then(|| find(bytes, at)).flatten();
            found.extend(time.map(|(minutes, _)| minutes));
            at = time.map_or(at + run.max(1), |(_, end)| end);
        }
    }
    found
}

type Find = fn(&[u8], usize) -> Option<(u16, usize)>;

/// A time with minutes, and its end. Seconds, fractions and `am` belong to it if it may end
/// after them.
fn clock(bytes: &[u8], at: usize) -> Option<(u16, usize)> {
    let (hour, end) = short_number(bytes, at)?;
    let minute = two_digits(bytes, end).filter(|_| bytes.get(end) == Some(&b':'))?;
    let end = end + 3;
    for seconds in [true, false] {
        let has = bytes.get(end) == Some(&b':') && digit_run(bytes, end + 1) >= 2;
        let end = match (seconds, has) {
            (true, true) => end + 3,
            (true, false) => continue,
            (false, _) => end,
        };
        for fraction in [true, false] {
            let digits = if bytes.get(end) == Some(&b'.') { digit_run(bytes, end + 1) } else { 0 };
            let end = match (fraction, digits) {
                (true, 0) => continue,
                (true, digits) => end + 1 + digits,
                (false, _) => end,
            };
            if let Some((half, end)) = half_of_day(bytes, end).filter(|(_, end)| ends(bytes, *end))
            {
                return Some((minutes(hour, minute, Some(half)), end));
            }
            if ends(bytes, end) {
                return Some((minutes(hour, minute, None), end));
            }
        }
    }
    None
}

/// An hour with `am` or `pm`, and its end.
fn hour(bytes: &[u8], at: usize) -> Option<(u16, usize)> {
    let (hour, end) = short_number(bytes, at)?;
    let (half, end) = half_of_day(bytes, end)?;
    let goes_on = bytes.get(end).is_some_and(u8::is_ascii_lowercase);
    (!goes_on).then(|| (minutes(hour, 0, Some(half)), end))
}

/// Which half of the day is named, and where the word ends.
fn half_of_day(bytes: &[u8], at: usize) -> Option<(u16, usize)> {
    let at = at + usize::from(bytes.get(at) == Some(&b' '));
    match bytes.get(at..at + 2)? {
        b"am" => Some((0, at + 2)),
        b"pm" => Some((12, at + 2)),
        _ => None,
    }
}

fn ends(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(|byte| !byte.is_ascii_digit() && *byte != b':')
}

fn minutes(hour: u16, minute: u16, half: Option<u16>) -> u16 {
    half.map_or(hour, |half| hour % 12 + half) * 60 + minute
}
