//! Counter names, formatted only where they are needed.
//!
//! A turn names the same few counters repeatedly, mostly to look them up in a cache.
//! For that the parts are enough, and counters of one account share its name.

use crate::choice::choices;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The name of a counter: what it counts, of what, and an optional suffix.
#[derive(Debug, Clone, Copy)]
pub struct Name<'a> {
    kind: CounterKind,
    of: &'a str,
    part: &'static str,
}

/// What a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CounterKind {
    /// The rest of the name says it.
    Other,
    Busy,
    Rate,
    Account(Figure),
}

choices! {
    /// A counter of an account; its word is the prefix of the name.
    pub enum Figure, "a counter of an account" {
        /// Amount spent and reserved.
        Held = "held:",
        /// Amount spent.
        Spent = "spent:",
        /// Overruns booked.
        Over = "over:",
    }
}

/// An owned counter name. Counters of the same account share its text.
#[derive(Debug, Clone)]
pub struct CounterName {
    kind: CounterKind,
    of: Arc<str>,
    part: &'static str,
    /// Process-wide id of the account; 0 means none.
    number: u64,
}

impl CounterKind {
    /// The prefix of the name.
    const fn prefix(self) -> &'static str {
        match self {
            CounterKind::Other => "",
            CounterKind::Busy => "busy:",
            CounterKind::Rate => "rate:",
            CounterKind::Account(figure) => figure.as_str(),
        }
    }
}

impl<'a> Name<'a> {
    /// Steps of an agent in flight.
    pub const fn busy(agent: &'a str) -> Name<'a> {
        Name { kind: CounterKind::Busy, of: agent, part: "" }
    }

    /// Dispatches of an agent in its sliding window.
    pub const fn rate(agent: &'a str) -> Name<'a> {
        Name { kind: CounterKind::Rate, of: agent, part: "" }
    }

    /// Amount spent and reserved in an account.
    pub const fn held(account: &'a str) -> Name<'a> {
        Name { kind: CounterKind::Account(Figure::Held), of: account, part: "" }
    }

    /// Amount spent in an account.
    pub const fn spent(account: &'a str) -> Name<'a> {
        Name { kind: CounterKind::Account(Figure::Spent), of: account, part: "" }
    }

    /// Overruns booked in an account.
    pub const fn over(account: &'a str) -> Name<'a> {
        Name { kind: CounterKind::Account(Figure::Over), of: account, part: "" }
    }

    /// A complete name.
    pub const fn of(name: &'a str) -> Name<'a> {
        Name { kind: CounterKind::Other, of: name, part: "" }
    }

    /// The account of the counter, and which of its three counters it is.
    pub fn of_account(self) -> Option<(Figure, &'a str)> {
        match self.kind {
            CounterKind::Account(figure) => Some((figure, self.of)),
            CounterKind::Busy | CounterKind::Rate => None,
            CounterKind::Other => Figure::ALL.into_iter().find_map(|figure| {
                let account = self.of.strip_prefix(figure.as_str())?;
                self.part.is_empty().then_some((figure, account))
            }),
        }
    }

    /// The agent, if this counts its steps in flight.
    pub fn busy_agent(self) -> Option<&'a str> {
        match self.kind {
            CounterKind::Busy => Some(self.of),
            CounterKind::Other => self.of.strip_prefix(CounterKind::Busy.prefix()),
            CounterKind::Rate | CounterKind::Account(_) => None,
        }
    }

    /// Whether the name equals a text.
    pub fn is(self, name: &str) -> bool {
        let Name { kind, of, part } = self;
        if kind == CounterKind::Other && part.is_empty() {
            return of == name;
        }
        let kind = kind.prefix();
        // Most names differ in length.
        name.len() == kind.len() + of.len() + part.len()
            && name.as_bytes()[kind.len()..].starts_with(of.as_bytes())
            && name.starts_with(kind)
            && name.ends_with(part)
    }

    /// The complete name.
    pub fn whole(self) -> String {
        [self.kind.prefix(), self.of, self.part].concat()
    }

    /// The complete name, borrowed if it is not in parts.
    pub fn text(self) -> Cow<'a, str> {
        if self.kind == CounterKind::Other && self.part.is_empty() {
            return Cow::Borrowed(self.of);
        }
        Cow::Owned(self.whole())
    }

    /// The owned name.
    pub fn keep(self) -> CounterName {
        CounterName { kind: self.kind, of: self.of.into(), part: self.part, number: 0 }
    }

    /// The bytes of the complete name.
    fn bytes(self) -> impl Iterator<Item = u8> {
        self.kind.prefix().bytes().chain(self.of.bytes()).chain(self.part.bytes())
    }
}

/// Two names are equal if their texts are, however they are split into parts.
impl PartialEq for Name<'_> {
    fn eq(&self, other: &Name<'_>) -> bool {
        if self.kind == other.kind && self.part.len() == other.part.len() {
            return self.of == other.of && self.part == other.part;
        }
        self.bytes().eq(other.bytes())
    }
}

impl Eq for Name<'_> {}

impl PartialOrd for Name<'_> {
    fn partial_cmp(&self, other: &Name<'_>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Ordered by text.
impl Ord for Name<'_> {
    fn cmp(&self, other: &Name<'_>) -> Ordering {
        if self.kind == other.kind && self.part.is_empty() && other.part.is_empty() {
            return self.of.cmp(other.of);
        }
        self.bytes().cmp(other.bytes())
    }
}

impl CounterName {
    /// A counter of an account. `number` is the id of the account, for fast lookups:
    /// see [`is_surely`](CounterName::is_surely).
    pub fn of_account(figure: Figure, account: &Arc<str>, number: u64) -> CounterName {
        CounterName {
            kind: CounterKind::Account(figure),
            of: Arc::clone(account),
            part: "",
            number,
        }
    }

    /// A name with a suffix.
    pub fn part(of: &Arc<str>, part: &'static str) -> CounterName {
        CounterName { kind: CounterKind::Other, of: Arc::clone(of), part, number: 0 }
    }

    /// The id of the account, if it has one.
    pub fn number(&self) -> Option<u64> {
        (self.number != 0).then_some(self.number)
    }

    /// Whether both have the same account id, without comparing text, which another
    /// thread may have allocated. Two accounts never share an id.
    pub fn is_surely(&self, other: &CounterName) -> bool {
        self.number != 0 && self.number == other.number && self.kind == other.kind
    }

    /// The borrowed name.
    pub fn name(&self) -> Name<'_> {
        Name { kind: self.kind, of: &self.of, part: self.part }
    }

    /// The complete name.
    pub fn whole(&self) -> String {
        self.name().whole()
    }

    /// Whether the complete name starts with a text.
    pub fn starts_with(&self, beginning: &str) -> bool {
        if self.kind == CounterKind::Other && beginning.len() <= self.of.len() {
            return self.of.starts_with(beginning);
        }
        let mut bytes = self.name().bytes();
        beginning.bytes().all(|byte| bytes.next() == Some(byte))
    }
}

impl PartialEq for CounterName {
    fn eq(&self, other: &CounterName) -> bool {
        self.name() == other.name()
    }
}

impl Eq for CounterName {}

impl PartialEq<str> for CounterName {
    fn eq(&self, other: &str) -> bool {
        self.name().is(other)
    }
}

impl PartialEq<&str> for CounterName {
    fn eq(&self, other: &&str) -> bool {
        self.name().is(other)
    }
}

impl fmt::Display for CounterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        [self.kind.prefix(), &self.of, self.part].iter().try_for_each(|part| f.write_str(part))
    }
}

impl From<&str> for CounterName {
    fn from(name: &str) -> CounterName {
        Name::of(name).keep()
    }
}

impl From<String> for CounterName {
    fn from(name: String) -> CounterName {
        CounterName { kind: CounterKind::Other, of: name.into(), part: "", number: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_its_parts_in_a_row_and_nothing_else() {
        let names =
            [Name::busy("a"), Name::rate("a"), Name::held("a"), Name::spent("a"), Name::over("a")];
        let whole = names.map(Name::whole);
        assert_eq!(whole, ["busy:a", "rate:a", "held:a", "spent:a", "over:a"]);
        for (at, name) in names.into_iter().enumerate() {
            for (other, text) in whole.iter().enumerate() {
                assert_eq!(name.is(text), at == other, "{name:?} {text}");
                assert!(Name::of(text).is(text));
            }
            assert!(!name.is("a") && !name.is(""));
        }
        let figures = [None, None, Some(Figure::Held), Some(Figure::Spent), Some(Figure::Over)];
        for ((name, text), figure) in names.into_iter().zip(&whole).zip(figures) {
            assert_eq!(name.of_account(), figure.map(|figure| (figure, "a")));
            assert_eq!(Name::of(text).of_account(), name.of_account());
        }
        assert_eq!(Name::of("held").of_account(), None);
        assert_eq!(Name::held("a:b").of_account(), Some((Figure::Held, "a:b")));
        assert!(!Name::held("a").is("held:aa") && !Name::held("aa").is("held:a"));
    }

    #[test]
    fn a_name_that_is_kept_reads_the_same_however_it_is_divided() {
        let account: Arc<str> = "é/1".into();
        let parts = [
            CounterName::of_account(Figure::Held, &account, 7),
            CounterName::of_account(Figure::Over, &account, 7),
            CounterName::of_account(Figure::Spent, &account, 0),
            CounterName::part(&"spend|x|".into(), "cost"),
            Name::busy("a").keep(),
        ];
        for one in &parts {
            let whole = CounterName::from(one.whole());
            assert_eq!((one, one.to_string()), (&whole, one.whole()));
            assert!(*one == *whole.whole() && one.name() == whole.name());
            assert_eq!(
                (one.name().text(), whole.name().text()),
                (one.whole().into(), one.whole().into())
            );
            assert!(one.starts_with("") && one.starts_with(&one.whole()));
            assert!(!one.starts_with(&format!("{one}x")) && !one.name().is(&format!("{one}x")));
            for other in &parts {
                assert_eq!(one == other, one.whole() == other.whole());
                assert_eq!(one.is_surely(other), one == other && one.number().is_some());
                assert_eq!(one.name().cmp(&other.name()), one.whole().cmp(&other.whole()));
                assert_eq!(one.name().is(&other.whole()), one == other);
                assert_eq!(one.starts_with(&other.whole()), one == other);
            }
        }
        let busy = parts.each_ref().map(|one| one.name().busy_agent());
        assert_eq!(busy, [None, None, None, None, Some("a")]);
        assert_eq!(Name::of("busy:a").busy_agent(), Some("a"));
        assert!(parts[3].starts_with("spend|x|co") && !parts[3].starts_with("spend|y"));
    }
}
