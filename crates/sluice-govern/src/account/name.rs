//! Names of counters, put together only where they are kept.
//!
//! A turn names the same few counters again and again, mostly to find them among
//! those it has named before. For that the parts are enough.

/// The name of a counter: what is counted, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a> {
    kind: &'static str,
    of: &'a str,
}

impl<'a> Name<'a> {
    /// Steps an agent has in flight.
    pub const fn busy(agent: &'a str) -> Name<'a> {
        Name { kind: "busy:", of: agent }
    }

    /// Dispatches of an agent in its sliding window.
    pub const fn rate(agent: &'a str) -> Name<'a> {
        Name { kind: "rate:", of: agent }
    }

    /// What is spent and reserved in an account.
    pub const fn held(account: &'a str) -> Name<'a> {
        Name { kind: "held:", of: account }
    }

    /// What is spent in an account.
    pub const fn spent(account: &'a str) -> Name<'a> {
        Name { kind: "spent:", of: account }
    }

    /// Overruns booked in an account.
    pub const fn over(account: &'a str) -> Name<'a> {
        Name { kind: "over:", of: account }
    }

    /// A name that is whole already.
    pub const fn of(name: &'a str) -> Name<'a> {
        Name { kind: "", of: name }
    }

    /// Whether it is one of the three of an account.
    pub fn is_of_account(self) -> bool {
        ["held:", "spent:", "over:"].contains(&self.kind)
    }

    /// Whether this is the name.
    pub fn is(self, name: &str) -> bool {
        // Most names differ in length already.
        name.len() == self.kind.len() + self.of.len()
            && name.ends_with(self.of)
            && name.starts_with(self.kind)
    }

    /// Put together.
    pub fn whole(self) -> String {
        [self.kind, self.of].concat()
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
        let of_account = names.map(Name::is_of_account);
        assert_eq!(of_account, [false, false, true, true, true]);
        assert!(!Name::held("a").is("held:aa") && !Name::held("aa").is("held:a"));
    }
}
