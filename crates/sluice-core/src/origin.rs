//! Labels of a value: where it came from, how old it is, whether it can be trusted. Labels flow
//! along every edge.

use crate::choices::choices;
use serde::{Deserialize, Serialize};

choices! {
    /// The kind of component that produced a value.
    pub enum SourceClass, "a source class" {
        /// The caller that started the run.
        Caller = "caller",
        /// An agent or a shell.
        Agent = "agent",
        /// A tool that an agent called.
        Tool = "tool",
        /// A person who decided an approval.
        Human = "human",
    }
}

/// The labels of a value, or of several values together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Labels {
    /// A bit for each source class.
    classes: u8,
    /// Part of the value came from outside, and no person has checked it.
    pub untrusted: bool,
    /// Part of the value must not leave the organisation.
    pub private: bool,
    /// When the oldest part of the value was produced; `None` for an empty value.
    pub since_ms: Option<u64>,
}

impl Labels {
    /// The labels of a new value.
    pub fn of(class: SourceClass, now_ms: u64) -> Labels {
        Labels { classes: bit(class), since_ms: Some(now_ms), ..Labels::default() }
    }

    /// The labels of tool output: it comes from outside, and no person has checked it.
    pub(crate) fn of_tools() -> Labels {
        let tools: Labels = [SourceClass::Tool].into_iter().collect();
        Labels { untrusted: true, ..tools }
    }

    /// The labels of two values together: the stricter of both.
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

    /// The source classes of all parts.
    pub fn classes(self) -> impl Iterator<Item = SourceClass> {
        use crate::choice::Choice as _;
        SourceClass::WORDS.iter().map(|(_, class)| *class).filter(move |class| self.has(*class))
    }

    /// Whether a part came from this source class.
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
