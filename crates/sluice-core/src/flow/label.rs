//! Labels as bits: a set of labels is four machine words.

use sluice_govern::facts::FlowFacts;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of words in a set.
const WORDS: usize = 4;
/// Maximum number of different labels in one analysis.
pub(super) const LABELS_MAX: u16 = 256;
const _: () = assert!(LABELS_MAX as usize == WORDS * 64);
/// Origins that no stranger can influence: see `docs/guide/flow.md`.
const TRUSTED: [&str; 2] = ["caller", "operator"];
/// Number of the label of control.
const CONTROL: u16 = 0;

/// A label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Label {
    /// Data from this source.
    Origin(Arc<str>),
    /// Data that contains this secret.
    Secret(Arc<str>),
    /// A condition that read an untrusted value decided about it.
    Control,
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Label::Origin(name) => write!(f, "origin `{name}`"),
            Label::Secret(name) => write!(f, "secret `{name}`"),
            Label::Control => f.write_str("untrusted control"),
        }
    }
}

/// A set of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct LabelSet([u64; WORDS]);

impl LabelSet {
    pub(super) const CONTROL: LabelSet = LabelSet([1, 0, 0, 0]);

    pub(super) const fn one(label: u16) -> LabelSet {
        let mut words = [0; WORDS];
        words[label as usize / 64] = 1 << (label % 64);
        LabelSet(words)
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0[0] | self.0[1] | self.0[2] | self.0[3] == 0
    }

    #[must_use]
    pub(super) fn with(self, other: LabelSet) -> LabelSet {
        LabelSet(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    #[must_use]
    pub(super) fn without(self, other: LabelSet) -> LabelSet {
        LabelSet(std::array::from_fn(|at| self.0[at] & !other.0[at]))
    }

    #[must_use]
    pub(super) fn both(self, other: LabelSet) -> LabelSet {
        LabelSet(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }

    /// The numbers of its labels.
    pub(super) fn numbers(self) -> impl Iterator<Item = u16> {
        (0..LABELS_MAX).filter(move |label| !self.both(LabelSet::one(*label)).is_empty())
    }
}

/// The names of all labels of one analysis.
#[derive(Debug)]
pub(super) struct Labels {
    labels: Vec<Label>,
    numbers: BTreeMap<Label, u16>,
    /// All origins.
    pub(super) origins: LabelSet,
    /// Origins that a stranger can influence, and control.
    pub(super) untrusted: LabelSet,
    /// Whether there were more labels than bits.
    pub(super) overflowed: bool,
}

impl Default for Labels {
    fn default() -> Labels {
        Labels {
            labels: vec![Label::Control],
            numbers: [(Label::Control, CONTROL)].into(),
            origins: LabelSet::default(),
            untrusted: LabelSet::CONTROL,
            overflowed: false,
        }
    }
}

impl Labels {
    /// The set of these origins and secrets.
    pub(super) fn set<S: AsRef<str>>(
        &mut self,
        origins: impl IntoIterator<Item = S>,
        secrecy: impl IntoIterator<Item = S>,
    ) -> LabelSet {
        let mut set = LabelSet::default();
        for name in origins {
            set = set.with(self.intern(Label::Origin(name.as_ref().into())));
        }
        for name in secrecy {
            set = set.with(self.intern(Label::Secret(name.as_ref().into())));
        }
        set
    }

    pub(super) fn origin(&mut self, name: &str) -> LabelSet {
        self.intern(Label::Origin(name.into()))
    }

    fn intern(&mut self, label: Label) -> LabelSet {
        if let Some(number) = self.numbers.get(&label) {
            return LabelSet::one(*number);
        }
        let Some(number) = u16::try_from(self.labels.len()).ok().filter(|n| *n < LABELS_MAX) else {
            self.overflowed = true;
            return LabelSet::default();
        };
        let set = LabelSet::one(number);
        if let Label::Origin(name) = &label {
            self.origins = self.origins.with(set);
            if !TRUSTED.contains(&&**name) {
                self.untrusted = self.untrusted.with(set);
            }
        }
        self.labels.push(label.clone());
        self.numbers.insert(label, number);
        set
    }

    pub(super) fn number(&self, label: &Label) -> Option<u16> {
        self.numbers.get(label).copied()
    }

    /// The names in a set, as policies read them.
    pub(super) fn facts(&self, set: LabelSet) -> FlowFacts {
        let mut facts = FlowFacts::default();
        for number in set.numbers() {
            match &self.labels[usize::from(number)] {
                Label::Origin(name) => drop(facts.origins.insert(Arc::clone(name))),
                Label::Secret(name) => drop(facts.secrecy.insert(Arc::clone(name))),
                Label::Control => facts.control = true,
            }
        }
        facts
    }
}
