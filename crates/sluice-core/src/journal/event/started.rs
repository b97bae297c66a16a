//! Payload of the start of a run.

use crate::choices::choices;
use crate::hash::Hash;
use crate::id::RunId;
use crate::journal::declare::form::{
    Always, Form, Maybe, Optional, Shared, Sparse, Text, Unless, Word,
};
use crate::journal::declare::{Read, payload};
use crate::journal::wire::fields::{Fields, Pairs};
use crate::journal::wire::malformed;
use crate::journal::wire::object::{self, PayloadWriter};
use crate::money::Money;
use crate::origin::PassedLabels;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sluice_govern::facts::SeenIn;
use sluice_govern::registry::Posture;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

payload! {
    /// What a run starts with. It does not change while the run lives.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    pub struct RunStarted {
        /// Name of the workflow; `inline/NAME` for a document that was sent with the start.
        workflow: String = "workflow" as Always, Whole;
        /// Version of the workflow.
        version: Option<u64> = "version" as Optional, Whole;
        /// Where the definition comes from.
        source: DocumentSource = "source" as Unless<Word>, Whole;
        /// SHA-256 of the plan.
        definition_hash: String = "definitionHash" as Always, Whole;
        /// Hash of the stored definition.
        definition: Option<Hash> = "definition" as Maybe<Text>, Whole;
        /// Definitions of sub-workflows, by reference as written (`name`, `name@2`).
        children: BTreeMap<String, Hash> = "children" as Unless<Hashes>, Whole;
        /// Arguments, complete.
        args: Arc<Map<String, Value>> = "args" as Shared<Sparse>, Gone;
        /// Agent of each role.
        role_bindings: BTreeMap<String, String> = "roleBindings" as Sparse, Whole;
        /// Agent of steps that name none.
        default_agent: Option<String> = "defaultAgent" as Optional, Whole;
        /// Model of steps that name none, as the caller of the start chose.
        default_model: Option<String> = "defaultModel" as Optional, Whole;
        /// Model of steps for which nothing else names one, as configured.
        fallback_model: Option<String> = "fallbackModel" as Optional, Whole;
        /// How many runs may be above a run of this family.
        recursion_depth_max: Option<u32> = "recursionDepthMax" as Optional, Whole;
        /// Default gateway of its steps.
        gateway: String = "gateway" as Sparse, Whole;
        /// The caller that started it.
        initiator: String = "initiator" as Sparse, Gone;
        /// People whose inbound webhook or schedule started it: they count as initiators.
        on_behalf_of: Vec<String> = "onBehalfOf" as Sparse, Gone;
        /// W3C trace id, 32 hexadecimal digits.
        trace_id: String = "traceId" as Sparse, Whole;
        /// W3C span id, 16 hexadecimal digits.
        root_span_id: String = "rootSpanId" as Sparse, Whole;
        /// Span that caused it, in the same trace: 16 hexadecimal digits.
        parent_span_id: Option<String> = "parentSpanId" as Optional, Whole;
        /// The run and step that started it.
        parent: Option<ParentStep>;
        /// The run at the top of the family.
        root: Option<RunId> = "rootRunId" as Maybe<Text>, Whole;
        /// How many runs are above it.
        depth: u32 = "depth" as Sparse, Whole;
        /// The run that it was restarted or branched from.
        origin: Option<Origin>;
        /// The deployment that it runs under.
        deployment: Option<String> = "deployment" as Optional, Whole;
        /// How much freedom it has.
        posture: Posture = "posture" as Sparse, Whole;
        /// Highest trust that any agent has in it.
        trust_ceiling: Option<u8> = "trustCeiling" as Optional, Whole;
        /// The gateway that an agent is pinned to.
        pins: BTreeMap<String, String> = "pins" as Sparse, Whole;
        /// Caps of the runs above it, which its spending counts in.
        caps: Vec<(RunId, Money)> = "caps" as Unless<Caps>, Whole;
        /// Actions that people approved in the run that it was made from, by step: a request
        /// for another action shows the difference.
        agreed: BTreeMap<String, Value> = "agreed" as Sparse, Gone;
        /// Labels of the arguments, if another run passed them.
        passed: PassedLabels;
        /// Where the run that started this one had seen the value of each argument.
        args_seen: BTreeMap<String, Vec<SeenIn>> = "argsSeen" as Sparse, Whole;
    }
}

payload! {
    /// The step of another run that started a run.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ParentStep if "parentRunId" {
        /// The parent run.
        run: RunId = "parentRunId" as Text, Whole;
        /// Its step or instance, as `step` or `step[3]`.
        step: String = "parentNodeId" as Always, Whole;
    }
}

payload! {
    /// The run that another run was made from.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Origin if "originRunId" {
        /// `restart` or `branch`.
        kind: String = "originKind" as Always, Word;
        /// The other run.
        run: RunId = "originRunId" as Text, Whole;
        /// Its event up to which results are carried over.
        event: u64 = "originEventId" as Always, Whole;
    }
}

/// Hashes by name.
struct Hashes;

impl Form<BTreeMap<String, Hash>> for Hashes {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, hashes: &BTreeMap<String, Hash>) {
        payload.map(name, hashes.iter().map(|(name, hash)| (name, object::Text(hash))));
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<BTreeMap<String, Hash>> {
        let pairs: Pairs<'_, String> = fields.need(name)?;
        let entry = |(key, text): (Cow<'_, str>, String)| match Hash::parse(&text) {
            Some(hash) => Ok((key.into_owned(), hash)),
            None => Err(malformed(format_args!("{name}: not a valid hash"))),
        };
        pairs.0.into_iter().map(entry).collect()
    }

    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": {"type": "string"}})
    }
}

/// Runs, each with its cap in micro-cents.
struct Caps;

impl Form<Vec<(RunId, Money)>> for Caps {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, caps: &Vec<(RunId, Money)>) {
        payload.list(name, caps.iter().map(|(run, cap)| (object::Text(run), cap.micro_cents())));
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<Vec<(RunId, Money)>> {
        let written: Vec<(String, u64)> = fields.need(name)?;
        let cap = |(run, cap): (String, u64)| {
            let run = RunId::parse(&run);
            let run = run.ok_or_else(|| malformed(format_args!("{name}: not a valid run id")))?;
            Ok((run, Money::from_micro_cents(cap)))
        };
        written.into_iter().map(cap).collect()
    }

    fn schema() -> Value {
        json!({"type": "array", "items": {"type": "array", "prefixItems": [
            {"type": "string"}, {"type": "integer"},
        ]}})
    }
}

impl RunStarted {
    /// Whether a person is an initiator of the run: the caller of the start, or the author of
    /// the inbound webhook or schedule that started it.
    pub(crate) fn is_initiator(&self, person: &str) -> bool {
        self.initiator == person || self.on_behalf_of.iter().any(|one| one == person)
    }
}

choices! {
    /// Where the definition of a run comes from.
    #[derive(Default)]
    pub enum DocumentSource, "a source of a definition" {
        /// A file of the owner of the data directory, also in journals that do not record
        /// the source.
        #[default]
        File = "file",
        /// A document that was sent with the start.
        Inline = "inline",
        /// The registry.
        Registered = "registered",
    }
}

impl DocumentSource {
    /// Prefix of the workflow's name of an inline document.
    pub(crate) const INLINE: &'static str = "inline/";

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
    fn only_an_inline_document_has_another_name_and_its_children_are_registered() {
        assert_eq!(DocumentSource::Inline.workflow("pay"), "inline/pay");
        assert_eq!(DocumentSource::File.workflow("pay"), "pay");
        assert_eq!(DocumentSource::Registered.workflow("pay"), "pay");
        assert!(DocumentSource::Inline.of_child().is_registered());
        assert!(!DocumentSource::File.of_child().is_registered());
    }
}
