//! Estimates the effort of matching a regular expression.
//!
//! Matching is linear in the text, but the factor is the number of pattern positions that can
//! be active at once: up to some thousand for `[ab]{2000}`. Fuel must include that factor, or a
//! short pattern over a long text takes seconds.

/// The number of characters and classes in `pattern`, each multiplied by its repetitions. An
/// estimate; never 0.
pub(super) fn effort(pattern: &str) -> usize {
    // The weights of the open groups, innermost last.
    let mut sums = vec![0_usize];
    // The weight of the item that a repetition would repeat.
    let mut last = 0_usize;
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let used = match first {
            '\\' => escape_length(rest),
            '[' => class_length(rest),
            '{' => rest.find('}').map_or(1, |end| end + 1),
            other => other.len_utf8(),
        };
        let added = match first {
            '(' => {
                sums.push(0);
                0
            }
            ')' if sums.len() > 1 => {
                last = sums.pop().unwrap_or(0);
                last
            }
            '{' => {
                let once = last;
                last = last.saturating_mul(repetitions(&rest[1..used]));
                last.saturating_sub(once)
            }
            '*' | '+' | '?' | '|' => 0,
            _ => {
                last = 1;
                1
            }
        };
        if let Some(sum) = sums.last_mut() {
            *sum = sum.saturating_add(added);
        }
        rest = &rest[used..];
    }
    sums.into_iter().fold(1, usize::saturating_add)
}

/// The maximum number of repetitions in `{n}`, `{n,}` or `{n,m}`, at least 1.
fn repetitions(counts: &str) -> usize {
    let numbers = counts.trim_end_matches('}').split(',');
    let numbers = numbers.map(|number| number.trim().parse().unwrap_or(1));
    numbers.max().unwrap_or(1).max(1)
}

/// The length of the escape at the start: `\d`, `\p{Greek}`, `\x{41}`.
fn escape_length(text: &str) -> usize {
    let after = text.get(1..).unwrap_or_default();
    let name = after.chars().next().map_or(0, char::len_utf8);
    let braces = match after.as_bytes() {
        [b'p' | b'P' | b'x' | b'u' | b'U' | b'b', b'{', ..] => after.find('}').unwrap_or(0),
        _ => 0,
    };
    1 + name.max(braces + usize::from(braces > 0))
}

/// The length of the class at the start: `[a-z]`, `[^]]`, `[[:alpha:]_]`.
fn class_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let used = match next {
            '\\' => escape_length(&text[at..]),
            other => other.len_utf8(),
        };
        at += used;
        match next {
            '[' => {
                depth += 1;
                // A `]` that comes first is a character of the class.
                let negated = usize::from(text[at..].starts_with('^'));
                if text[at + negated..].starts_with(']') {
                    at += negated + 1;
                }
            }
            ']' if depth == 1 => return at,
            ']' => depth -= 1,
            _ => {}
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effort_counts_places_and_multiplies_repetitions() {
        for (pattern, expected) in [
            ("", 1),
            ("abc", 4),
            ("a*b+c?", 4),
            ("a{5}", 6),
            ("a{2,7}", 8),
            ("a{3,}", 4),
            ("a{0}", 2),
            ("a{ 4 }", 5),
            ("xa{5}", 7),
            ("(ab){5}", 11),
            ("((ab){5}c){2}", 23),
            ("(a|b){3}", 7),
            ("a{10}{10}", 101),
            (r"\d{4}-\d{2}-\d{2}", 11),
            (r"\p{Greek}{3}", 4),
            (r"\x{41}\{5", 4),
            (r"[ab]{2000}", 2001),
            (r"[a\]b]{3}", 4),
            (r"[]a]{3}", 4),
            (r"[^]a]{3}", 4),
            (r"[[:alpha:]_]{3}", 4),
            (r"[^a]{3}[b]{2}", 6),
            ("é{2}", 3),
            (r"\é{2}", 3),
            (r"\", 2),
            ("[a", 2),
            ("a)b", 4),
            ("a{9", 3),
        ] {
            assert_eq!(effort(pattern), expected, "{pattern}");
        }
    }
}
