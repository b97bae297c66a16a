//! Numbers inside of texts, compared by their exact value.

use super::letters::is_word;
use std::ops::Range;

/// The numbers in a normal text, from left to right. A number is not a part of a word, a date
/// or another text with joints.
pub(super) fn numbers(form: &str) -> Vec<Range<usize>> {
    let bytes = form.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let digits = at + usize::from(bytes[at] == b'-');
        let run = digit_run(bytes, digits);
        let begins = run > 0 && !form[..at].chars().next_back().is_some_and(is_joined_before);
        match begins.then(|| end_of_number(form, digits, run)).flatten() {
            Some(end) => {
                found.push(at..end);
                at = end;
            }
            None => at = (digits + run).max(at + 1),
        }
    }
    found
}

/// The number that a whole text is, apart from a currency sign before it.
pub(super) fn whole_number(form: &str) -> Option<&str> {
    let text = form.trim().trim_start_matches(['$', '€', '£']);
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').map_or((digits, "0"), |(w, f)| (w, f));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let is_grouped = is_digits(first)
        && (first.len() <= 3 || !whole.contains(','))
        && groups.all(|group| group.len() == 3 && is_digits(group));
    (is_grouped && is_digits(fraction)).then_some(text)
}

/// One text for one value: `1,200.00` is `1200`. Exact, because floats cannot tell two account
/// numbers of 20 digits apart.
pub(super) fn canonical(number: &str) -> String {
    let digits = number.strip_prefix('-');
    let (whole, fraction) = digits.unwrap_or(number).split_once('.').unwrap_or_default();
    let whole = if whole.is_empty() { digits.unwrap_or(number) } else { whole };
    let mut value: String = whole.chars().filter(|c| *c != ',').collect();
    value.drain(..value.len() - value.trim_start_matches('0').len());
    if value.is_empty() {
        value.push('0');
    }
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        value.push('.');
        value.push_str(fraction);
    }
    if digits.is_some() && value != "0" {
        value.insert(0, '-');
    }
    value
}

/// The number of ASCII digits from `at` on.
pub(super) fn digit_run(bytes: &[u8], at: usize) -> usize {
    bytes.iter().skip(at).take_while(|byte| byte.is_ascii_digit()).count()
}

/// The end of the number whose first `run` digits begin at `digits`: with as many groups of
/// thousands as possible, else with none.
fn end_of_number(form: &str, digits: usize, run: usize) -> Option<usize> {
    let bytes = form.as_bytes();
    let first = digits + run;
    let mut end = first;
    while run <= 3 && bytes.get(end) == Some(&b',') && digit_run(bytes, end + 1) >= 3 {
        end += 4;
    }
    loop {
        let found = with_fraction(form, end);
        if found.is_some() || end == first {
            return found;
        }
        end -= 4;
    }
}

/// The end with the digits after the point, if the number may end there.
fn with_fraction(form: &str, end: usize) -> Option<usize> {
    let bytes = form.as_bytes();
    let has_fraction = bytes.get(end) == Some(&b'.') && digit_run(bytes, end + 1) > 0;
    let end = if has_fraction { end + 1 + digit_run(bytes, end + 1) } else { end };
    let mut rest = form[end..].chars();
    let goes_on = match rest.next() {
        Some('.') => rest.next().is_some_and(|c| c.is_ascii_digit()),
        Some(next) => is_word(next) || matches!(next, '_' | ':' | '/' | '-'),
        None => false,
    };
    (!goes_on).then_some(end)
}

fn is_joined_before(c: char) -> bool {
    is_word(c) || matches!(c, '_' | '.' | ':' | '/' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(form: &str) -> Vec<String> {
        numbers(form).into_iter().map(|range| canonical(&form[range])).collect()
    }

    #[test]
    fn numbers_are_found_by_value() {
        assert_eq!(values("pay 1,200.00, not $5 or -3.50"), ["1200", "5", "-3.5"]);
        assert_eq!(values("007 0.0 -0 1000"), ["7", "0", "0", "1000"]);
        assert_eq!(values("12345678901234567890 98765432109876543210.5").len(), 2);
        assert_eq!(values("1,234,5678 1,2345"), ["1234", "5678", "1", "2345"]);
        assert_eq!(values("1234,567"), ["1234", "567"]);
    }

    #[test]
    fn a_part_of_a_word_a_date_or_a_version_is_not_a_number() {
        for none in ["a1", "1a", "2024-05-19", "10:30", "1.2.3", "a/5", "x_5", "--5", "é5", "-", ""]
        {
            assert_eq!(values(none), [""; 0], "{none}");
        }
    }

    #[test]
    fn a_whole_text_is_a_number() {
        for (text, number) in [
            ("1,200.00", Some("1200")),
            ("98.70", Some("98.7")),
            ("$5", Some("5")),
            ("-5", Some("-5")),
            ("12345", Some("12345")),
            ("5a", None),
            ("12,34", None),
            ("1234,567", None),
            ("1.", None),
            (".5", None),
            ("$ 5", None),
            ("1.2.3", None),
            ("-", None),
            ("", None),
        ] {
            assert_eq!(whole_number(text).map(canonical).as_deref(), number, "{text}");
        }
    }
}
