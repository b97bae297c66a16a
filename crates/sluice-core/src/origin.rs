//! Labels of a value: where it came from, how old it is, whether it can be trusted. Labels flow
//! along every edge.

mod flow;
mod written;

pub(crate) use flow::is_trusted;
pub use flow::{FieldLabels, FlowLabels};
pub(crate) use written::{WrittenFields, WrittenFlow, WrittenLabels};

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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Labels {
    /// A bit for each source class.
    classes: u8,
    /// Part of the value came from outside, and no person has checked it.
    pub untrusted: bool,
    /// Part of the value must not leave the organisation.
    pub private: bool,
    /// When the oldest part of the value was produced; `None` for an empty value.
    pub since_ms: Option<u64>,
    /// The named labels.
    pub flow: FlowLabels,
}

impl Labels {
    /// The labels of a new value, with the origin that its class implies.
    pub fn of(class: SourceClass, now_ms: u64) -> Labels {
        let classes = bit(class);
        let flow = implied(classes);
        Labels { classes, since_ms: Some(now_ms), flow, ..Labels::default() }
    }

    /// The labels of a new value whose named labels are known.
    pub(crate) fn of_flow(class: SourceClass, now_ms: u64, flow: FlowLabels) -> Labels {
        let classes = bit(class);
        Labels { classes, since_ms: Some(now_ms), flow, ..Labels::default() }
    }

    /// The labels of tool output: it comes from outside, and no person has checked it.
    pub(crate) fn of_tools(flow: &FlowLabels) -> Labels {
        let (classes, flow) = (bit(SourceClass::Tool), flow.clone());
        Labels { classes, untrusted: true, flow, ..Labels::default() }
    }

    /// The same labels with other named ones.
    #[must_use]
    pub(crate) fn renamed(self, flow: FlowLabels) -> Labels {
        Labels { flow, ..self }
    }

    /// The labels of two values together: the stricter of both.
    #[must_use]
    pub fn with(mut self, other: &Labels) -> Labels {
        self.join(other);
        self
    }

    /// Adds the labels of another value.
    pub fn join(&mut self, other: &Labels) {
        self.classes |= other.classes;
        self.untrusted |= other.untrusted;
        self.private |= other.private;
        self.since_ms = match (self.since_ms, other.since_ms) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, None) | (None, one) => one,
        };
        self.flow.join(&other.flow);
    }

    /// The source classes of all parts.
    pub fn classes(&self) -> impl Iterator<Item = SourceClass> {
        use crate::choice::Choice as _;
        let classes = self.classes;
        let all = SourceClass::WORDS.iter().map(|(_, class)| *class);
        all.filter(move |class| classes & bit(*class) != 0)
    }

    /// Whether a part came from this source class.
    pub fn has(&self, class: SourceClass) -> bool {
        self.classes & bit(class) != 0
    }
}

/// The labels of several values that one run passes to another.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PassedLabels {
    /// Labels of all of them together.
    pub labels: Labels,
    /// Named labels of those that differ.
    pub field_labels: FieldLabels,
}

const fn bit(class: SourceClass) -> u8 {
    1 << class as u8
}

/// The origins that source classes imply, where nothing declares another.
fn implied(classes: u8) -> FlowLabels {
    let has = |class| classes & bit(class) != 0;
    let mut flow = FlowLabels::default();
    if has(SourceClass::Caller) {
        flow.join(&FlowLabels::caller());
    }
    if has(SourceClass::Agent) || has(SourceClass::Tool) {
        flow.join(&FlowLabels::unknown());
    }
    flow
}

impl FromIterator<SourceClass> for Labels {
    fn from_iter<I: IntoIterator<Item = SourceClass>>(classes: I) -> Labels {
        let classes = classes.into_iter().fold(0, |bits, class| bits | bit(class));
        Labels { classes, flow: implied(classes), ..Labels::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn together_values_have_the_worst_of_their_labels() {
        let caller = Labels::of(SourceClass::Caller, 20);
        let tool = Labels { untrusted: true, ..Labels::of(SourceClass::Tool, 10) };
        let both = caller.clone().with(&tool);
        assert_eq!(both.classes().collect::<Vec<_>>(), [SourceClass::Caller, SourceClass::Tool]);
        assert!(both.untrusted && !both.private);
        assert_eq!(both.since_ms, Some(10));
        assert_eq!(both.flow.origins().collect::<Vec<_>>(), ["caller", "unknown"]);
        assert_eq!(both.clone().with(&Labels::default()), both);
        assert!(Labels { private: true, ..Labels::default() }.with(&caller).private);
    }

    #[test]
    fn what_is_written_is_read_and_classes_imply_an_origin_that_is_not_written() {
        let mut labels =
            Labels::of(SourceClass::Agent, 7).with(&Labels::of(SourceClass::Caller, 5));
        let text = |labels: &Labels| serde_json::to_string(&WrittenLabels::from(labels)).unwrap();
        let read = |text: &str| {
            let written: WrittenLabels<'_> = serde_json::from_str(text).unwrap();
            written.read().unwrap()
        };
        assert_eq!(text(&labels), r#"{"classes":["caller","agent"],"since":5}"#);
        assert_eq!(read(&text(&labels)), labels);
        labels.flow.endorse(|name| name == "unknown");
        labels.flow.join(&FlowLabels::of(["web"], ["customer"]));
        labels.flow.join(&FlowLabels::controlled());
        expect_test::expect![[
            r#"{"classes":["caller","agent"],"since":5,"origins":["web"],"without":["unknown"],"secrecy":["customer"],"control":true}"#
        ]]
        .assert_eq(&text(&labels));
        assert_eq!(read(&text(&labels)), labels);
        let alone = Labels { flow: FlowLabels::unknown(), ..Labels::default() };
        assert_eq!(text(&alone), r#"{"origins":["unknown"]}"#);
        assert_eq!(read(&text(&alone)), alone);
    }
}
