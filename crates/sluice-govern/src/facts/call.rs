//! Facts about the values of a call, the labels that flow into it, and the tool.
//!
//! They are stored with a decision, so a field at its default is not written.

use crate::choice::choices;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

choices! {
    /// Where a value was seen before.
    pub enum SeenIn, "a place where a value was seen" {
        /// In what the caller or a person wrote.
        Prompt = "prompt",
        /// In a field of an answer that the operator declared to be a record.
        Records = "records",
        /// In a field of an answer that the operator declared to be private.
        Private = "private",
        /// In any other text that a tool or a gateway returned.
        Stranger = "stranger",
        /// Nowhere: the model made it.
        Nowhere = "nowhere",
    }
}

choices! {
    /// Where a tool or a gateway sends what it is given.
    pub enum SendsTo, "a destination" {
        /// Out of the organisation.
        External = "external",
        /// To people or systems of the organisation.
        Internal = "internal",
        /// Nowhere.
        None = "none",
    }
}

choices! {
    /// What an argument of a tool means for its effect.
    pub enum ArgumentRole, "a role of an argument" {
        /// Who or what receives it: people, addresses, accounts, URLs.
        To = "to",
        /// The thing that is acted on.
        What = "what",
        /// A date that matters.
        When = "when",
        /// An amount of money.
        Amount = "amount",
        /// Words that a person will read.
        Text = "text",
    }
}

/// What is known about the values of one call: the arguments of a tool, the bound inputs of
/// a step, or the arguments of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CallFacts {
    /// By the path of the argument: `recipients`, `attachments.file_id`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, ArgumentFacts>,
    /// Whether the run has read a stranger's text.
    #[serde(skip_serializing_if = "is_false")]
    pub exposed: bool,
}

/// What is known about one argument.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ArgumentFacts {
    /// The best class of each item of the value. A value without items has none.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub seen: BTreeSet<SeenIn>,
    /// The best class of each address in the text.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub mentions: BTreeSet<SeenIn>,
    /// `private` or `stranger`: the text repeats a passage of such a text.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub carries: BTreeSet<SeenIn>,
    /// Whether policies see only the start of the text.
    #[serde(skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// Where its data came from.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub origins: BTreeSet<Arc<str>>,
    /// Which secrets it contains.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub secrecy: BTreeSet<Arc<str>>,
}

/// The labels of a whole action.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowFacts {
    /// Where its data came from.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub origins: BTreeSet<Arc<str>>,
    /// Which secrets it contains.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub secrecy: BTreeSet<Arc<str>>,
    /// Whether a condition that read an untrusted value decided that it happens.
    #[serde(skip_serializing_if = "is_false")]
    pub control: bool,
}

impl FlowFacts {
    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        *self == FlowFacts::default()
    }
}

/// What the operator declared about a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFacts {
    /// Name of its server.
    pub server: Arc<str>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Arc<str>>,
    /// Whether it changes nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub read_only: bool,
    /// Where it sends what it is given; absent if not declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sends_to: Option<SendsTo>,
    /// The roles of its arguments, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, ArgumentRole>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_known_is_not_written() {
        assert_eq!(json!(CallFacts::default()), json!({}));
        assert_eq!(json!(FlowFacts::default()), json!({}));
        let tool = ToolFacts {
            server: "mail".into(),
            labels: Vec::new(),
            read_only: false,
            sends_to: None,
            roles: BTreeMap::new(),
        };
        assert_eq!(json!(tool), json!({"server": "mail"}));
        assert_eq!(serde_json::from_value::<ToolFacts>(json!({"server": "mail"})).unwrap(), tool);
    }

    #[test]
    fn facts_are_read_as_they_were_written() {
        let argument = ArgumentFacts {
            seen: [SeenIn::Prompt, SeenIn::Nowhere].into(),
            carries: [SeenIn::Private].into(),
            origins: ["web".into()].into(),
            ..ArgumentFacts::default()
        };
        let call = CallFacts { arguments: [("to".to_owned(), argument)].into(), exposed: true };
        let written = json!({
            "arguments": {"to": {
                "seen": ["prompt", "nowhere"], "carries": ["private"], "origins": ["web"],
            }},
            "exposed": true,
        });
        assert_eq!(json!(call), written);
        assert_eq!(serde_json::from_value::<CallFacts>(written).unwrap(), call);
    }
}
