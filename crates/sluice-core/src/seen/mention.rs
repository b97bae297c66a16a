//! Addresses inside of a text: what a reader can follow, write to or pay to.
//!
//! One pass from left to right. At each place the first of these wins, as in the regular
//! expression of the prototype: an e-mail address, a URL, the name of a host or file, the
//! number of a host, an account number or code.

use super::letters::is_word;

/// The addresses in a clean text.
pub(super) fn addresses(text: &str) -> Vec<&str> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(begin) = text[at..].find(is_run) {
        let start = at + begin;
        let end = end_of(text, start, is_run);
        at = Run::new(text, start, end).map_or(end, |run| run.addresses(&mut found));
    }
    found
}

/// Characters from which every address begins, up to the first other one.
struct Run<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    /// Where the e-mail address ends whose name is this run.
    mail: Option<usize>,
    /// From where on the run can be the scheme of a URL, if it is followed by one.
    scheme: Option<usize>,
}

impl<'a> Run<'a> {
    /// `None` if no address can begin in it: most words.
    fn new(text: &'a str, start: usize, end: usize) -> Option<Run<'a>> {
        let mail = text[end..].starts_with('@').then(|| end_of_domain(text, end + 1)).flatten();
        let scheme = text[end..].starts_with("://").then(|| {
            let tail = text[start..end].trim_end_matches(is_scheme);
            start + tail.len()
        });
        let may = mail.is_some() || scheme.is_some();
        let may = may || text[start..end].bytes().any(|b| b == b'.' || b.is_ascii_digit());
        may.then_some(Run { text, start, end, mail, scheme })
    }

    /// Finds the addresses that begin in the run; returns where the last one, or the run, ends.
    fn addresses(&self, found: &mut Vec<&'a str>) -> usize {
        let mut at = self.start;
        while at < self.end {
            match self.address(at) {
                Some(end) => {
                    found.push(&self.text[at..end]);
                    at = end;
                }
                None => at += self.text[at..].chars().next().map_or(1, char::len_utf8),
            }
        }
        at
    }

    /// The end of the address that begins at `at`.
    fn address(&self, at: usize) -> Option<usize> {
        let text = self.text;
        if self.mail.is_some() {
            return self.mail;
        }
        let rest = &text.as_bytes()[at..];
        if self.scheme.is_some_and(|scheme| at >= scheme)
            && rest[0].is_ascii_alphabetic()
            && let Some(end) = end_of_url(text, self.end + 3)
        {
            return Some(end);
        }
        if rest.len() > 4
            && rest[..4].eq_ignore_ascii_case(b"www.")
            && let Some(end) = end_of_url(text, at + 4)
        {
            return Some(end);
        }
        let before = text[..at].chars().next_back();
        let host = (!before.is_some_and(is_host)).then(|| end_of_host(text, at)).flatten();
        host.or_else(|| {
            let begins = !before.is_some_and(|c| c.is_ascii_alphanumeric());
            begins.then(|| end_of_code(text, at)).flatten()
        })
    }
}

/// Letters, digits and joints of the part of an e-mail address before the `@`.
fn is_run(c: char) -> bool {
    is_host(c) || c == '+'
}

/// Characters of the scheme of a URL.
fn is_scheme(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-')
}

/// Characters of the name of a host.
fn is_host(c: char) -> bool {
    is_label(c) || c == '.'
}

/// Characters of a part of such a name.
fn is_label(c: char) -> bool {
    is_word(c) || c == '_' || c == '-'
}

/// The first place from `at` on where a character is not of this kind.
fn end_of(text: &str, at: usize, is: impl Fn(char) -> bool) -> usize {
    text[at..].find(|c| !is(c)).map_or(text.len(), |length| at + length)
}

/// The end of labels with dots between them, if there is a dot.
fn end_of_domain(text: &str, at: usize) -> Option<usize> {
    let labels = labels(text, at);
    (labels.len() > 1).then(|| labels[labels.len() - 1].1)
}

fn end_of_url(text: &str, at: usize) -> Option<usize> {
    let end = end_of(text, at, |c| !matches!(c, ' ' | '"' | '\'' | '<' | '>' | ')' | ']'));
    (end > at).then_some(end)
}

/// The end of a dotted name whose last label is one of a top-level domain or file type, or of
/// four numbers, with the path after it.
fn end_of_host(text: &str, at: usize) -> Option<usize> {
    let labels = labels(text, at);
    let label = |index: usize| &text[labels[index].0..labels[index].1];
    let named = (1..labels.len()).rev().find(|index| is_top(label(*index)));
    let is_byte = |text: &str| text.len() <= 3 && text.bytes().all(|b| b.is_ascii_digit());
    let numbered = || (labels.len() == 4 && (0..4).all(|index| is_byte(label(index)))).then_some(3);
    let end = labels[named.or_else(numbered)?].1;
    let has_path = text[end..].starts_with('/');
    Some(if has_path { end_of_url(text, end).unwrap_or(end) } else { end })
}

/// Whether a label can be the last one: two letters or more, or an encoded name.
fn is_top(label: &str) -> bool {
    let is_letter = |c: char| is_word(c) && !c.is_ascii_digit();
    let encoded = label.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--"));
    encoded || (label.chars().nth(1).is_some() && label.chars().all(is_letter))
}

/// The labels from `at` on that single dots separate.
fn labels(text: &str, mut at: usize) -> Vec<(usize, usize)> {
    let mut labels = Vec::new();
    loop {
        let end = end_of(text, at, is_label);
        if end == at {
            return labels;
        }
        labels.push((at, end));
        if !text[end..].starts_with('.') {
            return labels;
        }
        at = end + 1;
    }
}

/// The end of six or more letters and digits with a digit.
fn end_of_code(text: &str, at: usize) -> Option<usize> {
    let code = text[at..].bytes().take_while(u8::is_ascii_alphanumeric);
    let (length, has_digit) =
        code.fold((0, false), |(length, has), byte| (length + 1, has || byte.is_ascii_digit()));
    (length >= 6 && has_digit).then_some(at + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_from_left_to_right() {
        for (text, expected) in [
            ("mail ada.b+c@x-y.co.uk, or bob@z.com.", vec!["ada.b+c@x-y.co.uk", "bob@z.com"]),
            ("(see https://x.com/a?b=1) now", vec!["https://x.com/a?b=1"]),
            ("HTTPS://X.com", vec!["HTTPS://X.com"]),
            ("ftp://10.0.0.1/x", vec!["ftp://10.0.0.1/x"]),
            ("www.evil.com.They", vec!["www.evil.com.They"]),
            ("at WWW.x", vec!["WWW.x"]),
            ("evil.com/pay, notes.txt", vec!["evil.com/pay,", "notes.txt"]),
            ("my_x.evil.com", vec!["my_x.evil.com"]),
            ("bücher.de 请访问evil.com", vec!["bücher.de", "请访问evil.com"]),
            ("evil.xn--p1ai", vec!["evil.xn--p1ai"]),
            ("evil.com.123", vec!["evil.com"]),
            ("93.184.216.34/pay 1.2.3 1.2.3.4.5", vec!["93.184.216.34/pay"]),
            ("IBAN DE89370400440532013000.", vec!["DE89370400440532013000"]),
            ("账号12345678请", vec!["12345678"]),
            ("x".repeat(40).as_str(), vec![]),
            (
                "bc1qxy2kgdygjrsqtzq2n0yrf2493p83kkfjhx0wlh",
                vec!["bc1qxy2kgdygjrsqtzq2n0yrf2493p83kkfjhx0wlh"],
            ),
            ("e.g. this, i.e. that", vec![]),
            ("12345 abcdef 2024-05-19", vec![]),
            ("user@localhost a@b", vec![]),
            ("a..b. .com -", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(addresses(text), expected, "{text}");
        }
    }
}
