//! The format of lens documents.

use crate::code::Code;
use crate::contract::field::{ContractField, ContractType};
use crate::contract::{InputContract, OutputContract};
use crate::diagnostic::Problem;
use crate::doc::fields::{ArgDoc, Length, SchemaDoc, check_endorse};
use crate::doc::flow_labels::FlowLabels;
use crate::doc::leaf::{Millis, NameOrNumber, Table, WholeNumber};
use crate::doc::lobsterx::written::{ApprovalDoc, ApprovalMap, MaxParallel, VersionNumber};
use crate::doc::read::{DocumentReader, PathPart, Read, camel_case, document};
use crate::doc::schema::Defs;
use crate::doc::shared::{BudgetDoc, RecoveryDoc, RetryDoc};
use crate::doc::team::TeamField;
use crate::expr::Expr;
use crate::limits::DURATION_MS_MAX;
use crate::merge::Strategy;
use crate::money::Money;
use crate::node::{Kind, Node};
use crate::pattern::Pattern;
use crate::plan::policy::{Moderation, OnFailure, OnParentFailure, Scheduling};
use crate::plan::step::Approval;
use crate::span::Spanned;
use crate::template::Template;
use crate::template::lens::LensTemplate;
use crate::template::tree::LabelTree;
use crate::violation::Contradiction;
use serde_json::{Number, Value, json};
use sluice_govern::registry::LensKind;

document! {
    /// A workflow drawn as a graph: nodes apply lenses, edges carry values.
    pub(crate) struct LensDocument {
        /// The workflow's name.
        required "name" name: Spanned<String>,
        /// The author's version number.
        optional "version" version: VersionNumber,
        /// A description for people.
        optional "description" description: String,
        /// The arguments of a run; by default, the unbound labels of entry nodes.
        optional "args" args: Table<ArgDoc>,
        /// Lenses by id; other lenses are looked up in the registry.
        optional "lenses" lenses: Table<LensDoc>,
        /// The nodes, at least one.
        required "nodes" nodes: PositionedList<NodeDoc>,
        /// The edges; values merge in their order.
        optional "edges" edges: PositionedList<EdgeDoc>,
        /// When a ready node may start: `eager` (default) or `waves`.
        optional "scheduling" scheduling: Scheduling,
        /// The default model of nodes.
        optional "default_model" default_model: String,
        /// The budget of the whole run.
        optional "budget" budget: BudgetDoc,
        /// The members that share the nodes.
        optional "team" team: TeamField,
        /// How often a failed run is retried automatically.
        optional "recovery" recovery: RecoveryDoc,
        /// The maximum number of nodes in flight (64).
        optional "max_parallel" max_parallel: MaxParallel,
        /// The time limit of the whole run.
        optional "timeout" timeout: Millis,
        /// The run's result, by name; by default its final variables.
        optional "outputs" outputs: Table<Spanned<Template>>,
    }
}

impl LensDocument {
    pub(crate) fn nodes(&self) -> &[NodeDoc] {
        self.nodes.as_ref().map_or(&[], |rows| &rows.0)
    }

    pub(crate) fn edges(&self) -> &[EdgeDoc] {
        self.edges.as_ref().map_or(&[], |rows| &rows.0)
    }
}

/// A list that keeps the positions of its items: an item that cannot be read is reported and
/// replaced by an empty one.
#[derive(Debug, Clone)]
pub(crate) struct PositionedList<T>(Vec<T>);

impl<T: Read + Default> Read for PositionedList<T> {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<PositionedList<T>> {
        let items = cx.list(node)?.iter().enumerate();
        let read = |(index, item)| cx.within(PathPart::Index(index), |cx| T::read(item, cx));
        Some(PositionedList(items.map(read).map(Option::unwrap_or_default).collect()))
    }

    fn schema(defs: &mut Defs) -> Value {
        Vec::<T>::schema(defs)
    }
}

document! {
    /// A lens: a prompt with its contracts, in versions.
    pub(crate) struct LensDoc {
        /// Its versions; nodes use the newest by default.
        required "versions" versions: Table<VersionDoc>,
    }
}

document! {
    /// One version of a lens.
    pub(crate) struct VersionDoc {
        /// The instruction, with `[[label]]` placeholders.
        required "template" template: LensTemplate,
        /// Requirements for its inputs.
        optional "input_contract" input_contract: InputContractDoc,
        /// Requirements for its output.
        optional "output_contract" output_contract: OutputContractDoc,
        /// The kind of output (text).
        optional "kind" kind: LensKind,
    }
}

document! {
    /// Requirements for the inputs of a lens.
    pub(crate) struct InputContractMap {
        /// The kind of input.
        optional "kind" kind: String,
        /// The inputs by label.
        optional "fields" fields: Table<ContractFieldDoc>,
        /// Groups of labels; of each group, at least one must be set.
        optional "require_any_of" require_any_of: Vec<Vec<String>>,
        /// Whether undeclared inputs are rejected.
        optional "strict" strict: bool,
    }
}

/// A compiled input contract.
#[derive(Debug, Clone)]
pub(crate) struct InputContractDoc(pub(crate) InputContract);

impl Read for InputContractDoc {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<InputContractDoc> {
        let map = InputContractMap::read(node, cx)?;
        let contract = InputContract {
            kind: map.kind,
            fields: map.fields.unwrap_or_default().into_map(|field| field.0),
            require_any_of: map.require_any_of.unwrap_or_default(),
            strict: map.strict.unwrap_or(false),
        };
        report(contract.contradictions(), node, cx);
        Some(InputContractDoc(contract))
    }

    fn schema(defs: &mut Defs) -> Value {
        InputContractMap::schema(defs)
    }
}

/// Reports contradictions in a contract, each at the part that causes it, in either spelling.
fn report<'n>(found: Vec<Contradiction>, node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) {
    for contradiction in found {
        let mut at = node;
        let mut path = cx.path();
        for key in &contradiction.path {
            let entries = at.entries().unwrap_or_default();
            let entry = entries.iter().find(|one| one.key == *key || camel_case(&one.key) == *key);
            let item = key.parse().ok().and_then(|index| at.item(index));
            if let Some(entry) = entry {
                at = &entry.value;
                path = format!("{path}.{}", entry.key);
            } else if let Some(item) = item {
                at = item;
                path = format!("{path}[{key}]");
            }
        }
        cx.add_at(Problem::new(Code::BadSchema, at.span, contradiction.message), path);
    }
}

document! {
    /// Requirements for the output of a lens.
    pub(crate) struct OutputContractMap {
        /// The kind of output envelope.
        optional "kind" kind: String,
        /// The kind of artefact in it.
        optional "artifact_kind" artifact_kind: String,
        /// The fields of the envelope's data.
        optional "schema" schema: Table<ContractFieldDoc>,
        /// Where the data of the whole output came from, by name, besides the node's inputs.
        optional "origin" origin: FlowLabels,
        /// Secrets that the whole output contains, by name, besides those of the node's
        /// inputs.
        optional "sensitive" sensitive: FlowLabels,
    }
}

/// A compiled output contract.
#[derive(Debug, Clone)]
pub(crate) struct OutputContractDoc(pub(crate) OutputContract);

impl Read for OutputContractDoc {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<OutputContractDoc> {
        let map = OutputContractMap::read(node, cx)?;
        let contract = OutputContract {
            kind: map.kind,
            artifact_kind: map.artifact_kind,
            schema: map.schema.map(|table| table.into_map(|field| field.0)),
            origin: FlowLabels::names(map.origin),
            sensitive: FlowLabels::names(map.sensitive),
        };
        report(contract.contradictions(), node, cx);
        Some(OutputContractDoc(contract))
    }

    fn schema(defs: &mut Defs) -> Value {
        OutputContractMap::schema(defs)
    }
}

document! {
    /// The rules for one field of a contract.
    pub(crate) struct ContractFieldMap {
        /// The type (any).
        optional "type" kind: ContractType,
        /// Whether it is required (false).
        optional "required" required: bool,
        /// The smallest number of characters.
        optional "min_length" min_length: Length,
        /// The largest number of characters.
        optional "max_length" max_length: Length,
        /// A pattern that a part of the text must match.
        optional "pattern" pattern: Pattern,
        /// The smallest number.
        optional "min" min: Number,
        /// The largest number.
        optional "max" max: Number,
        /// The type of every item of an array.
        optional "item_type" item_type: ContractType,
        /// The allowed values.
        optional "enum" values: Vec<Value>,
        /// Where its data came from, by name, besides the node's inputs; only in an output
        /// contract.
        optional "origin" origin: FlowLabels,
        /// Secrets that it contains, by name, besides those of the node's inputs; only in an
        /// output contract.
        optional "sensitive" sensitive: FlowLabels,
        /// Labels that it does not take over from the node's inputs; only with `enum`, for a
        /// boolean, or for an integer with `min` and `max`.
        optional "endorse" endorse: FlowLabels,
    }
}

/// A compiled field of a contract.
#[derive(Debug, Clone)]
pub(crate) struct ContractFieldDoc(pub(crate) ContractField);

impl Read for ContractFieldDoc {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<ContractFieldDoc> {
        let map = ContractFieldMap::read(node, cx)?;
        let field = ContractField {
            kind: map.kind.unwrap_or(ContractType::Any),
            required: map.required.unwrap_or(false),
            min_length: map.min_length.map(|length| length.0),
            max_length: map.max_length.map(|length| length.0),
            pattern: map.pattern,
            min: map.min,
            max: map.max,
            item_type: map.item_type,
            values: map.values.unwrap_or_default(),
            origin: FlowLabels::names(map.origin),
            sensitive: FlowLabels::names(map.sensitive),
            endorse: FlowLabels::names(map.endorse),
        };
        check_endorse(field.is_endorsable(), &field.endorse, node, cx);
        Some(ContractFieldDoc(field))
    }

    fn schema(defs: &mut Defs) -> Value {
        ContractFieldMap::schema(defs)
    }
}

impl Read for LensTemplate {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<LensTemplate> {
        match LensTemplate::parse(cx.text(node)?) {
            Ok(template) => Some(template),
            Err(faults) => {
                for fault in faults {
                    // Locating a fault takes time, so skip it if the problem
                    // would not be shown.
                    if cx.problems.is_full() {
                        cx.add(Problem::from_fault(Code::BadTemplate, node.span, fault));
                    } else {
                        cx.fault(Code::BadTemplate, node, fault);
                    }
                }
                None
            }
        }
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "string" })
    }
}

/// The name of a version. A number is still a name: `1.10` differs from `1.1` and means the
/// version whose key is written the same way.
#[derive(Debug, Clone)]
pub(crate) struct VersionId(pub(crate) String);

impl Read for VersionId {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<VersionId> {
        let word = NameOrNumber::read(node, cx)?;
        // The span of an alias has no number.
        let written = cx.written(node.span).filter(|text| !text.starts_with('*'));
        match (&node.kind, written) {
            (Kind::Number(_), Some(text)) => Some(VersionId(text.to_owned())),
            _ => Some(VersionId(word.0)),
        }
    }

    fn schema(defs: &mut Defs) -> Value {
        NameOrNumber::schema(defs)
    }
}

document! {
    /// A node of the graph: it applies a lens, runs another workflow, or requests values or
    /// an approval.
    pub(crate) struct NodeDoc {
        /// Unique in the document.
        required "id" id: Spanned<String>,
        /// The lens to apply; without one, the node runs another workflow or requests
        /// values or an approval.
        optional "lens_id" lens_id: Tried<Spanned<String>>,
        /// The version of the lens; by default the newest.
        optional "version_id" version_id: Spanned<VersionId>,
        /// The name for people, and the key in merged objects.
        optional "label" label: String,
        /// The author's order of nodes.
        optional "ordinal" ordinal: i64,
        /// Settings of the node's work.
        optional "config" config: ConfigDoc,
    }
}

document! {
    /// Settings of a node's work.
    pub(crate) struct ConfigDoc {
        /// The model to use.
        optional "model_id" model_id: String,
        /// The time limit of one attempt, from dispatch (60000).
        optional "timeout_ms" timeout_ms: WholeNumber<1, DURATION_MS_MAX>,
        /// When and how often a failed attempt is retried.
        optional "retry" retry: Spanned<RetryDoc>,
        /// What a failed parent does: `skip` (default), `propagate` or `substitute_default`.
        optional "on_parent_failure" on_parent_failure: OnParentFailure,
        /// How several edges are merged into one label (last_write_wins).
        optional "merge" merge: Strategy,
        /// What is moderated: `off` (default), `input`, `output` or `both`.
        optional "moderation" moderation: Moderation,
        /// The agent that executes it.
        optional "agent" agent: String,
        /// The role that executes it.
        optional "role" role: String,
        /// Tools that the work requires.
        optional "required_tools" required_tools: Vec<String>,
        /// The model tier that the work requires.
        optional "required_tier" required_tier: String,
        /// The maximum cost of one dispatch, in cents.
        optional "max_cost_cents" max_cost_cents: Money,
        /// Values that take precedence over root inputs and edges, by label.
        optional "param_overrides" param_overrides: Table<Value>,
        /// What a final failure does.
        optional "on_failure" on_failure: Spanned<OnFailure>,
        /// The memory profile it loads.
        optional "memory" memory: String,
        /// Another workflow to run instead of a lens: `name` or `name@version`.
        optional "workflow_ref" workflow_ref: Tried<Spanned<String>>,
        /// The arguments of the other workflow, with `[[label]]` placeholders; by
        /// default the wired values, by label.
        optional "args" args: Spanned<Table<LabelTree>>,
        /// `required`, or a map with the approvers and rules.
        optional "approval" approval: Tried<ApprovalDoc>,
        /// Requests values from a person instead of applying a lens.
        optional "human_input" human_input: Tried<Spanned<HumanInputMap>>,
    }
}

document! {
    /// Values that a person enters for a node.
    pub(crate) struct HumanInputMap {
        /// The values by name; they become the node's output.
        required "schema" schema: Table<SchemaDoc>,
        /// The text of the request, with `${…}` references.
        optional "summary" summary: Spanned<Template>,
        /// Users or roles that may answer.
        optional "approvers" approvers: Vec<String>,
        /// Whether the initiator of the run is excluded from answering.
        optional "not_initiator" not_initiator: bool,
        /// How long the request stays open.
        optional "expires_in" expires_in: Millis,
    }
}

impl From<HumanInputMap> for Approval {
    fn from(map: HumanInputMap) -> Approval {
        Approval {
            approvers: map.approvers.unwrap_or_default(),
            not_initiator: map.not_initiator.unwrap_or(false),
            expires_in_ms: map.expires_in.map(|time| time.0),
            summary: map.summary.map(|summary| summary.value),
            ..Approval::default()
        }
    }
}

impl NodeDoc {
    /// The lens that the node applies.
    pub(crate) fn lens(&self) -> Option<&Spanned<String>> {
        self.lens_id.as_ref()?.0.as_ref()
    }

    /// The workflow that the node runs.
    pub(crate) fn workflow(&self) -> Option<&Spanned<String>> {
        self.config.as_ref()?.workflow_ref.as_ref()?.0.as_ref()
    }

    /// The values that the node requests from a person.
    pub(crate) fn human_input(&self) -> Option<&Spanned<HumanInputMap>> {
        self.config.as_ref()?.human_input.as_ref()?.0.as_ref()
    }

    /// The approval that the node needs before its work, or instead of any.
    pub(crate) fn approval(&self) -> Option<&ApprovalMap> {
        let written = &self.config.as_ref()?.approval.as_ref()?.0.as_ref()?.0;
        Some(written).filter(|map| map.required.unwrap_or(true))
    }

    /// Whether the node says what it does, even if that cannot be read.
    pub(crate) fn does_something(&self) -> bool {
        let asks = |config: &ConfigDoc| {
            let unread = config.approval.as_ref().is_some_and(|approval| approval.0.is_none());
            unread || self.approval().is_some()
        };
        self.lens_id.is_some()
            || self.config.as_ref().is_some_and(|config| {
                config.workflow_ref.is_some() || config.human_input.is_some() || asks(config)
            })
    }
}

document! {
    /// An edge that carries a value from one node to another.
    pub(crate) struct EdgeDoc {
        /// Unique in the document.
        optional "id" id: Spanned<String>,
        /// The node it starts at.
        required "source_node_id" source_node_id: Spanned<String>,
        /// The node it ends at.
        required "target_node_id" target_node_id: Spanned<String>,
        /// The part of the source's output that it carries (output).
        optional "source_output_key" source_output_key: String,
        /// The label that it binds; without it, the edge only orders nodes.
        optional "target_param_label" target_param_label: String,
        /// How its value is merged with other edges of the same label.
        optional "merge_strategy" merge_strategy: Strategy,
        /// When the edge is active.
        optional "condition" condition: Spanned<ConditionDoc>,
    }
}

crate::choices::choices! {
    /// The test of an edge's condition.
    pub(crate) enum ConditionType, "a condition type" {
        /// The texts of both values are equal.
        Equals = "equals",
        /// One text contains the other.
        Contains = "contains",
        /// The value is neither null nor empty.
        Present = "present",
        /// The value is true, a number other than 0, or not empty.
        Truthy = "truthy",
        /// The expression is true.
        Expression = "expression",
    }
}

/// A field that is present, even if its value cannot be read.
#[derive(Debug, Clone)]
pub(crate) struct Tried<T>(pub(crate) Option<T>);

impl<T: Read> Read for Tried<T> {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Tried<T>> {
        Some(Tried(T::read(node, cx)))
    }

    fn schema(defs: &mut Defs) -> Value {
        T::schema(defs)
    }
}

document! {
    /// When an edge is active.
    pub(crate) struct ConditionDoc {
        /// The test.
        required "type" kind: Spanned<ConditionType>,
        /// The value that `equals` and `contains` compare with.
        optional "value" value: Spanned<Value>,
        /// The expression of an `expression` condition.
        optional "expr" expr: Spanned<Tried<Expr>>,
    }
}
