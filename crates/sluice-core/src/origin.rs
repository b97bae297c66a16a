//! What is known of a value beside the value: where it came from, how old it
//! is, whether it can be trusted. Labels flow along every edge.

use crate::choice::choices;

choices! {
    /// Who made a value.
    pub enum SourceClass, "a source class" {
        /// Whoever started the run.
        Caller = "caller",
        /// An agent or a shell.
        Agent = "agent",
        /// A tool that an agent called.
        Tool = "tool",
        /// A person who was asked.
        Human = "human",
    }
}

/// The labels of a value, or of several together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Labels {
    /// A bit for each source class.
    classes: u8,
    /// Something in it came from outside and was checked by nobody.
    pub untrusted: bool,
    /// Something in it must not leave the house.
    pub private: bool,
    /// When the oldest part of it was made; none if nothing is in it.
    pub since_ms: Option<u64>,
}

impl Labels {
    /// Of a value that was just made.
    pub fn of(class: SourceClass, now_ms: u64) -> Labels {
        Labels { classes: bit(class), since_ms: Some(now_ms), ..Labels::default() }
    }

    /// Of what tools answer: it comes from outside, and no person has checked it.
    pub fn of_tools() -> Labels {
        let tools: Labels = [SourceClass::Tool].into_iter().collect();
        Labels { untrusted: true, ..tools }
    }

    /// Of two values together: the worst of both.
    #[must_use]
    pub fn with(self, other: Labels) -> Labels {
        let oldest = match (self.since_ms, other.since_ms) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, None) | (None, one) => one,
        };
        Labels {
            classes: self.classes | other.classes,
            untrusted: self.untrusted || other.untrusted,
            private: self.private || other.private,
            since_ms: oldest,
        }
    }

    /// The classes of everything in it.
    pub fn classes(self) -> impl Iterator<Item = SourceClass> {
        use crate::choice::Choice as _;
        SourceClass::WORDS.iter().map(|(_, class)| *class).filter(move |class| self.has(*class))
    }

    /// Whether something in it came from there.
    pub fn has(self, class: SourceClass) -> bool {
        self.classes & bit(class) != 0
    }
}

const fn bit(class: SourceClass) -> u8 {
    1 << class as u8
}

impl FromIterator<SourceClass> for Labels {
    fn from_iter<I: IntoIterator<Item = SourceClass>>(classes: I) -> Labels {
        let classes = classes.into_iter().fold(0, |bits, class| bits | bit(class));
        Labels { classes, ..Labels::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn together_values_have_the_worst_of_their_labels() {
        let caller = Labels::of(SourceClass::Caller, 20);
        let tool = Labels { untrusted: true, ..Labels::of(SourceClass::Tool, 10) };
        let both = caller.with(tool);
        assert_eq!(both.classes().collect::<Vec<_>>(), [SourceClass::Caller, SourceClass::Tool]);
        assert!(both.untrusted && !both.private);
        assert_eq!(both.since_ms, Some(10));
        assert_eq!(both.with(Labels::default()), both);
        assert!(Labels { private: true, ..Labels::default() }.with(caller).private);
    }
}
