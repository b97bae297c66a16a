//! Names of counters, put together only where somebody reads them.
//!
//! A turn names the same few counters again and again, mostly to find them among
//! those it has named before. For that the parts are enough, and what several
//! counters are of is kept once.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The name of a counter: what is counted, of what, and which part of that.
#[derive(Debug, Clone, Copy)]
pub struct Name<'a> {
    kind: Kind,
    of: &'a str,
    part: &'static str,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// What the rest of the name says.
    Other,
    Busy,
    Rate,
    Account(Figure),
}

/// What is counted of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// What is spent and reserved.
    Held,
    /// What is spent.
    Spent,
    /// Overruns booked.
    Over,
}

/// The name of a counter, to be kept. What it is of is shared with the other
/// counters of the same.
#[derive(Debug, Clone)]
pub struct CounterName {
    kind: Kind,
    of: Arc<str>,
    part: &'static str,
    /// Stands for what it is of; 0 if no number does.
    number: u64,
}

impl Kind {
    /// What a name begins with.
    const fn as_str(self) -> &'static str {
        match self {
            Kind::Other => "",
            Kind::Busy => "busy:",
            Kind::Rate => "rate:",
            Kind::Account(Figure::Held) => "held:",
            Kind::Account(Figure::Spent) => "spent:",
            Kind::Account(Figure::Over) => "over:",
        }
    }
}

impl<'a> Name<'a> {
    /// Steps an agent has in flight.
    pub const fn busy(agent: &'a str) -> Name<'a> {
        Name { kind: Kind::Busy, of: agent, part: "" }
    }

    /// Dispatches of an agent in its sliding window.
    pub const fn rate(agent: &'a str) -> Name<'a> {
        Name { kind: Kind::Rate, of: agent, part: "" }
    }

    /// What is spent and reserved in an account.
    pub const fn held(account: &'a str) -> Name<'a> {
        Name { kind: Kind::Account(Figure::Held), of: account, part: "" }
    }

    /// What is spent in an account.
    pub const fn spent(account: &'a str) -> Name<'a> {
        Name { kind: Kind::Account(Figure::Spent), of: account, part: "" }
    }

    /// Overruns booked in an account.
    pub const fn over(account: &'a str) -> Name<'a> {
        Name { kind: Kind::Account(Figure::Over), of: account, part: "" }
    }

    /// A name that is whole already.
    pub const fn of(name: &'a str) -> Name<'a> {
        Name { kind: Kind::Other, of: name, part: "" }
    }

    /// Which of the three counters of an account it is, and the account.
    pub fn of_account(self) -> Option<(Figure, &'a str)> {
        match self.kind {
            Kind::Account(figure) => Some((figure, self.of)),
            Kind::Busy | Kind::Rate => None,
            Kind::Other => {
                let figures = [Figure::Held, Figure::Spent, Figure::Over];
                figures.into_iter().find_map(|figure| {
                    let account = self.of.strip_prefix(Kind::Account(figure).as_str())?;
                    self.part.is_empty().then_some((figure, account))
                })
            }
        }
    }

    /// The agent whose steps in flight it counts.
    pub fn busy_agent(self) -> Option<&'a str> {
        match self.kind {
            Kind::Busy => Some(self.of),
            Kind::Other => self.of.strip_prefix(Kind::Busy.as_str()),
            Kind::Rate | Kind::Account(_) => None,
        }
    }

    /// Whether this is the name.
    pub fn is(self, name: &str) -> bool {
        let Name { kind, of, part } = self;
        if kind == Kind::Other && part.is_empty() {
            return of == name;
        }
        let kind = kind.as_str();
        // Most names differ in length already.
        name.len() == kind.len() + of.len() + part.len()
            && name.as_bytes()[kind.len()..].starts_with(of.as_bytes())
            && name.starts_with(kind)
            && name.ends_with(part)
    }

    /// Put together.
    pub fn whole(self) -> String {
        [self.kind.as_str(), self.of, self.part].concat()
    }

    /// The same, put together only where it is in parts.
    pub fn text(self) -> Cow<'a, str> {
        if self.kind == Kind::Other && self.part.is_empty() {
            return Cow::Borrowed(self.of);
        }
        Cow::Owned(self.whole())
    }

    /// To be kept.
    pub fn keep(self) -> CounterName {
        CounterName { kind: self.kind, of: self.of.into(), part: self.part, number: 0 }
    }

    /// Its letters.
    fn bytes(self) -> impl Iterator<Item = u8> {
        self.kind.as_str().bytes().chain(self.of.bytes()).chain(self.part.bytes())
    }
}

/// Two names are the same if they read the same, wherever their parts begin.
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

/// As they read.
impl Ord for Name<'_> {
    fn cmp(&self, other: &Name<'_>) -> Ordering {
        if self.kind == other.kind && self.part.is_empty() && other.part.is_empty() {
            return self.of.cmp(other.of);
        }
        self.bytes().cmp(other.bytes())
    }
}

impl CounterName {
    /// What is counted of an account. `number` stands for the account, for who
    /// looks the same one up again: see [`is_surely`](CounterName::is_surely).
    pub fn of_account(figure: Figure, account: &Arc<str>, number: u64) -> CounterName {
        CounterName { kind: Kind::Account(figure), of: Arc::clone(account), part: "", number }
    }

    /// A part of something: its name ends in that of the part.
    pub fn part(of: &Arc<str>, part: &'static str) -> CounterName {
        CounterName { kind: Kind::Other, of: Arc::clone(of), part, number: 0 }
    }

    /// What stands for the account, if a number does.
    pub fn number(&self) -> Option<u64> {
        (self.number != 0).then_some(self.number)
    }

    /// Whether it is the same by its number, without a look at a letter: what was
    /// made by another thread is far away. Two accounts never have one number.
    pub fn is_surely(&self, other: &CounterName) -> bool {
        self.number != 0 && self.number == other.number && self.kind == other.kind
    }

    /// For one look.
    pub fn name(&self) -> Name<'_> {
        Name { kind: self.kind, of: &self.of, part: self.part }
    }

    /// Put together.
    pub fn whole(&self) -> String {
        self.name().whole()
    }

    /// Whether it begins so.
    pub fn starts_with(&self, beginning: &str) -> bool {
        if self.kind == Kind::Other && beginning.len() <= self.of.len() {
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
        [self.kind.as_str(), &self.of, self.part].iter().try_for_each(|part| f.write_str(part))
    }
}

impl From<&str> for CounterName {
    fn from(name: &str) -> CounterName {
        Name::of(name).keep()
    }
}

impl From<String> for CounterName {
    fn from(name: String) -> CounterName {
        CounterName { kind: Kind::Other, of: name.into(), part: "", number: 0 }
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
