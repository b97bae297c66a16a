//! Dates that name a month: `May 19th, 2024` and `19th of May`.

use super::{Day, digit_run, short_number, value};
use std::ops::Range;

const MONTHS: [(&str, &str); 12] = [
    ("january", "jan"),
    ("february", "feb"),
    ("march", "mar"),
    ("april", "apr"),
    ("may", "may"),
    ("june", "jun"),
    ("july", "jul"),
    ("august", "aug"),
    ("september", "sep"),
    ("october", "oct"),
    ("november", "nov"),
    ("december", "dec"),
];

/// The dates with the month first.
pub(super) fn before_day(form: &str) -> Vec<(Range<usize>, Day)> {
    let bytes = form.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let word = letter_run(bytes, at);
        let begins = at == 0 || !bytes[at - 1].is_ascii_lowercase();
        let month = month(&bytes[at..at + word]).filter(|_| begins);
        let date = month.and_then(|month| day_after(bytes, at + word, month));
        let end = date.map_or(at + word.max(1), |(_, end)| end);
        found.extend(date.map(|(day, end)| (at..end, day)));
        at = end;
    }
    found
}

/// The dates with the day first.
pub(super) fn after_day(form: &str) -> Vec<(Range<usize>, Day)> {
    let bytes = form.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let run = digit_run(bytes, at);
        let begins = at == 0 || !bytes[at - 1].is_ascii_digit();
        let day = short_number(bytes, at).filter(|_| begins);
        let date = day.and_then(|(day, end)| month_after(bytes, end, day));
        let end = date.map_or(at + run.max(1), |(_, end)| end);
        found.extend(date.map(|(day, end)| (at..end, day)));
        at = end;
    }
    found
}

fn day_after(bytes: &[u8], mut at: usize, month: u16) -> Option<(Day, usize)> {
    at += usize::from(bytes.get(at) == Some(&b'.'));
    if bytes.get(at) != Some(&b' ') {
        return None;
    }
    let (day, mut end) = short_number(bytes, at + 1)?;
    if has_suffix(bytes, end) && digit_run(bytes, end + 2) == 0 {
        end += 2;
    }
    Some(with_year(bytes, end, month, day))
}

fn month_after(bytes: &[u8], mut at: usize, day: u16) -> Option<(Day, usize)> {
    at += if has_suffix(bytes, at) { 2 } else { 0 };
    at += if bytes[at..].starts_with(b" of ") { 3 } else { 0 };
    if bytes.get(at) != Some(&b' ') {
        return None;
    }
    let end = at + 1 + letter_run(bytes, at + 1);
    let month = month(&bytes[at + 1..end])?;
    Some(with_year(bytes, end, month, day))
}

fn with_year(bytes: &[u8], end: usize, month: u16, day: u16) -> (Day, usize) {
    let space = end + usize::from(bytes.get(end) == Some(&b','));
    if bytes.get(space) == Some(&b' ') && digit_run(bytes, space + 1) >= 4 {
        let year = value(&bytes[space + 1..space + 5]);
        return (Day { year: Some(year), month, day }, space + 5);
    }
    (Day { year: None, month, day }, end)
}

fn has_suffix(bytes: &[u8], at: usize) -> bool {
    [b"st", b"nd", b"rd", b"th"].iter().any(|suffix| bytes[at..].starts_with(*suffix))
}

fn month(word: &[u8]) -> Option<u16> {
    if !(3..=9).contains(&word.len()) {
        return None;
    }
    if word == b"sept" {
        return Some(9);
    }
    let is = |(long, short): &(&str, &str)| word == long.as_bytes() || word == short.as_bytes();
    (1..).zip(&MONTHS).find(|(_, names)| is(names)).map(|(number, _)| number)
}

fn letter_run(bytes: &[u8], at: usize) -> usize {
    bytes.iter().skip(at).take_while(|byte| byte.is_ascii_lowercase()).count()
}
