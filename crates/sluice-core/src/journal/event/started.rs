//! What a run starts with.

use crate::id::RunId;
use crate::money::Money;
use crate::port::store::Hash;
use serde_json::{Map, Value};
use sluice_govern::registry::Posture;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a run starts with, pinned.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunStarted {
    /// The workflow's name; `inline/NAME` for a document that was sent with the start.
    pub workflow: String,
    /// Its version.
    pub version: Option<u64>,
    /// Where the definition comes from.
    pub source: DocumentSource,
    /// SHA-256 of the plan.
    pub definition_hash: String,
    /// Where the definition is stored.
    pub definition: Option<Hash>,
    /// Definitions of sub-workflows, by reference as written (`name`, `name@2`).
    pub children: BTreeMap<String, Hash>,
    /// What the run was given, complete.
    pub args: Arc<Map<String, Value>>,
    /// Which agent stands for which role.
    pub role_bindings: BTreeMap<String, String>,
    /// Who does steps that name nobody.
    pub default_agent: Option<String>,
    /// The model of steps that name none, as the caller says.
    pub default_model: Option<String>,
    /// The model of steps for which nothing else names one, as is configured.
    pub fallback_model: Option<String>,
    /// How many runs may be above a run of this family.
    pub recursion_depth_max: Option<u32>,
    /// Where its steps are dispatched unless something else says so.
    pub gateway: String,
    /// Who started it.
    pub initiator: String,
    /// People whose hook or schedule started it: they count as initiators.
    pub on_behalf_of: Vec<String>,
    /// For tracing, 32 hexadecimal digits.
    pub trace_id: String,
    /// For tracing, 16 hexadecimal digits.
    pub root_span_id: String,
    /// The span that caused it, in the same trace: 16 hexadecimal digits.
    pub parent_span_id: Option<String>,
    /// The run and step that started it.
    pub parent: Option<(RunId, String)>,
    /// The run at the top.
    pub root: Option<RunId>,
    /// How many runs are above it.
    pub depth: u32,
    /// The run it was made from.
    pub origin: Option<Origin>,
    /// The deployment it runs under.
    pub deployment: Option<String>,
    /// How much freedom it has.
    pub posture: Posture,
    /// No agent counts as more trusted than this.
    pub trust_ceiling: Option<u8>,
    /// The gateway an agent is pinned to.
    pub pins: BTreeMap<String, String>,
    /// Caps of the runs above it, which its spending counts in.
    pub caps: Vec<(RunId, Money)>,
    /// What people agreed to in the run it was made from, by step: a question
    /// about something else shows the difference.
    pub agreed: BTreeMap<String, Value>,
}

impl RunStarted {
    /// Whether a person counts as the run's initiator: the caller of the start, or a
    /// person whose hook or schedule made it.
    pub fn is_initiator(&self, person: &str) -> bool {
        self.initiator == person || self.on_behalf_of.iter().any(|one| one == person)
    }
}

/// The run another run was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// `restart` or `branch`.
    pub kind: String,
    /// The other run.
    pub run: RunId,
    /// Its event up to which results are taken over.
    pub event: u64,
}

/// Where the definition of a run comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DocumentSource {
    /// A file of the owner of the data directory. Runs of earlier versions do not say
    /// where theirs came from.
    #[default]
    File,
    /// A document that was sent with the start.
    Inline,
    /// The registry.
    Registered,
}

impl DocumentSource {
    /// All of them.
    pub const ALL: [DocumentSource; 3] =
        [DocumentSource::File, DocumentSource::Inline, DocumentSource::Registered];
    /// What the workflow's name of an inline document begins with.
    pub const INLINE: &'static str = "inline/";

    /// The word on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            DocumentSource::File => "file",
            DocumentSource::Inline => "inline",
            DocumentSource::Registered => "registered",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<DocumentSource> {
        DocumentSource::ALL.into_iter().find(|one| one.as_str() == word)
    }

    /// The name by which policies, budgets, webhooks and lists know the workflow. An
    /// inline document cannot take the name of a registered workflow.
    pub fn workflow(self, name: &str) -> Cow<'_, str> {
        match self {
            DocumentSource::Inline => format!("{}{name}", DocumentSource::INLINE).into(),
            DocumentSource::File | DocumentSource::Registered => name.into(),
        }
    }

    /// Where the definitions of child workflows come from: an inline document refers to
    /// workflows of the registry, a file to files that lie next to it.
    pub const fn of_child(self) -> DocumentSource {
        match self {
            DocumentSource::File => DocumentSource::File,
            DocumentSource::Inline | DocumentSource::Registered => DocumentSource::Registered,
        }
    }

    /// Whether it is the registry.
    pub const fn is_registered(self) -> bool {
        matches!(self, DocumentSource::Registered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        for one in DocumentSource::ALL {
            assert_eq!(DocumentSource::parse(one.as_str()), Some(one));
        }
    }

    #[test]
    fn only_an_inline_document_has_another_name_and_its_children_are_registered() {
        assert_eq!(DocumentSource::Inline.workflow("pay"), "inline/pay");
        assert_eq!(DocumentSource::File.workflow("pay"), "pay");
        assert_eq!(DocumentSource::Registered.workflow("pay"), "pay");
        assert!(DocumentSource::Inline.of_child().is_registered());
        assert!(!DocumentSource::File.of_child().is_registered());
    }
}
