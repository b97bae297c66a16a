//! Dates and times of day inside of texts.

mod clock;
mod month;

use super::number::digit_run;
use std::borrow::Cow;

pub(super) use clock::clocks;

/// A day of the calendar, as it was written: without a year it stands for every year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Day {
    pub(super) year: Option<u16>,
    pub(super) month: u16,
    pub(super) day: u16,
}

/// All days in a normal text.
pub(super) fn days(form: &str) -> Vec<Day> {
    let mut found = iso_days(form.as_bytes());
    found.extend(month::before_day(form).into_iter().map(|(_, day)| day));
    found.extend(month::after_day(form).into_iter().map(|(_, day)| day));
    found
}

/// A normal text with blanks in place of the dates that name a month: the day of a date is not
/// a number that was named.
pub(super) fn undated(form: &str) -> Cow<'_, str> {
    let mut form = Cow::Borrowed(form);
    for find in [month::before_day, month::after_day] {
        for (range, _) in find(&form) {
            let blanks = " ".repeat(range.len());
            form.to_mut().replace_range(range, &blanks);
        }
    }
    form
}

/// A text that is a date, with or without a time: the day, and the minutes of the time.
pub(super) fn moment(form: &str) -> Option<(Day, Option<u16>)> {
    let bytes = form.trim().as_bytes();
    let (day, mut at) = iso_day(bytes, 0)?;
    if at == bytes.len() {
        return Some((day, None));
    }
    if !matches!(bytes[at], b' ' | b't') {
        return None;
    }
    let (hour, end) = short_number(bytes, at + 1)?;
    let minute = two_digits(bytes, end).filter(|_| bytes.get(end) == Some(&b':'))?;
    at = end + 3;
    if bytes.get(at) == Some(&b':') {
        two_digits(bytes, at)?;
        at += 3;
    }
    if bytes.get(at) == Some(&b'.') {
        let fraction = digit_run(bytes, at + 1);
        at += if fraction > 0 { 1 + fraction } else { 0 };
    }
    at += usize::from(bytes.get(at) == Some(&b'z'));
    (at == bytes.len()).then_some((day, Some(hour * 60 + minute)))
}

fn iso_days(bytes: &[u8]) -> Vec<Day> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let run = digit_run(bytes, at);
        let day = (run == 4).then(|| iso_day(bytes, at)).flatten();
        found.extend(day.map(|(day, _)| day));
        at = day.map_or(at + run.max(1), |(_, end)| end);
    }
    found
}

/// The day `2024-5-19` at a place, and its end.
fn iso_day(bytes: &[u8], at: usize) -> Option<(Day, usize)> {
    if digit_run(bytes, at) != 4 || bytes.get(at + 4) != Some(&b'-') {
        return None;
    }
    let (month, end) = short_number(bytes, at + 5)?;
    if bytes.get(end) != Some(&b'-') {
        return None;
    }
    let (day, end) = short_number(bytes, end + 1)?;
    Some((Day { year: Some(value(&bytes[at..at + 4])), month, day }, end))
}

/// A number of one or two digits that no further digit follows, and its end.
fn short_number(bytes: &[u8], at: usize) -> Option<(u16, usize)> {
    let run = digit_run(bytes, at);
    (1..=2).contains(&run).then(|| (value(&bytes[at..at + run]), at + run))
}

/// The two digits after the character at `at`.
fn two_digits(bytes: &[u8], at: usize) -> Option<u16> {
    (digit_run(bytes, at + 1) >= 2).then(|| value(&bytes[at + 1..at + 3]))
}

/// The value of at most four digits.
fn value(digits: &[u8]) -> u16 {
    digits.iter().fold(0, |value, digit| value * 10 + u16::from(digit - b'0'))
}

#[cfg(test)]
mod tests;
