//! What a lens document may say.

use crate::code::Code;
use crate::contract::field::{ContractField, ContractType};
use crate::contract::{InputContract, OutputContract};
use crate::diagnostic::Problem;
use crate::doc::fields::{ArgDoc, Length, SchemaDoc};
use crate::doc::leaf::{Millis, NameOrNumber, Table, WholeNumber};
use crate::doc::lobsterx::written::{ApprovalDoc, ApprovalMap, MaxParallel, Version};
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
use crate::plan::policy::{LensKind, Moderation, OnFailure, OnParentFailure, Scheduling};
use crate::plan::step::Approval;
use crate::span::Spanned;
use crate::template::Template;
use crate::template::lens::LensTemplate;
use crate::template::tree::LabelTree;
use crate::violation::Contradiction;
use serde_json::{Number, Value, json};

document! {
    /// A workflow drawn as a graph: nodes apply lenses, edges carry values.
    pub(crate) struct LensDocument {
        /// The workflow's name.
        required "name" name: Spanned<String>,
        /// The author's version of it.
        optional "version" version: Version,
        /// For people.
        optional "description" description: String,
        /// What a run may be given; without it, whatever entry nodes leave open.
        optional "args" args: Table<ArgDoc>,
        /// Lenses by id; others are looked up in the registry.
        optional "lenses" lenses: Table<LensDoc>,
        /// The nodes, at least one.
        required "nodes" nodes: PositionedList<NodeDoc>,
        /// The edges; their order is the order of merging.
        optional "edges" edges: PositionedList<EdgeDoc>,
        /// When a ready node may start: `eager` (default) or `waves`.
        optional "scheduling" scheduling: Scheduling,
        /// The model of nodes that name none.
        optional "default_model" default_model: String,
        /// Most money the whole run may cost.
        optional "budget" budget: BudgetDoc,
        /// The members that share the nodes.
        optional "team" team: TeamField,
        /// How often a failed run is taken up again by itself.
        optional "recovery" recovery: RecoveryDoc,
        /// Most nodes in flight at once (64).
        optional "max_parallel" max_parallel: MaxParallel,
        /// Most time the whole run may take.
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

/// A list whose items keep their places: one that could not be read has been
/// reported, and an empty one stands for it.
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
        /// Its versions; the newest is the head.
        required "versions" versions: Table<VersionDoc>,
    }
}

document! {
    /// One version of a lens.
    pub(crate) struct VersionDoc {
        /// The instruction, with `[[label]]` placeholders.
        required "template" template: LensTemplate,
        /// What its inputs must be.
        optional "input_contract" input_contract: InputContractDoc,
        /// What its output must be.
        optional "output_contract" output_contract: OutputContractDoc,
        /// What it makes or does (text).
        optional "kind" kind: LensKind,
    }
}

document! {
    /// What a lens's inputs must be.
    pub(crate) struct InputContractMap {
        /// The kind of input.
        optional "kind" kind: String,
        /// The inputs by label.
        optional "fields" fields: Table<ContractFieldDoc>,
        /// Groups of labels, of each of which one must be given.
        optional "require_any_of" require_any_of: Vec<Vec<String>>,
        /// Whether inputs that are not declared are refused.
        optional "strict" strict: bool,
    }
}

/// An input contract, compiled.
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

/// Reports what a contract says that cannot be meant, at the part that says it,
/// however that is spelt.
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
    /// What a lens's output must be.
    pub(crate) struct OutputContractMap {
        /// The kind of envelope.
        optional "kind" kind: String,
        /// The kind of artefact in it.
        optional "artifact_kind" artifact_kind: String,
        /// The fields of the envelope's data.
        optional "schema" schema: Table<ContractFieldDoc>,
    }
}

/// An output contract, compiled.
#[derive(Debug, Clone)]
pub(crate) struct OutputContractDoc(pub(crate) OutputContract);

impl Read for OutputContractDoc {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<OutputContractDoc> {
        let map = OutputContractMap::read(node, cx)?;
        let contract = OutputContract {
            kind: map.kind,
            artifact_kind: map.artifact_kind,
            schema: map.schema.map(|table| table.into_map(|field| field.0)),
        };
        report(contract.contradictions(), node, cx);
        Some(OutputContractDoc(contract))
    }

    fn schema(defs: &mut Defs) -> Value {
        OutputContractMap::schema(defs)
    }
}

document! {
    /// What one field of a contract must be.
    pub(crate) struct ContractFieldMap {
        /// The type (any).
        optional "type" kind: ContractType,
        /// Whether it must be there (false).
        optional "required" required: bool,
        /// Fewest characters.
        optional "min_length" min_length: Length,
        /// Most characters.
        optional "max_length" max_length: Length,
        /// What a text must match somewhere.
        optional "pattern" pattern: Pattern,
        /// Least number.
        optional "min" min: Number,
        /// Greatest number.
        optional "max" max: Number,
        /// The type of every item of an array.
        optional "item_type" item_type: ContractType,
        /// The allowed values.
        optional "enum" values: Vec<Value>,
    }
}

/// A contract's field, compiled.
#[derive(Debug, Clone)]
pub(crate) struct ContractFieldDoc(pub(crate) ContractField);

impl Read for ContractFieldDoc {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<ContractFieldDoc> {
        let map = ContractFieldMap::read(node, cx)?;
        Some(ContractFieldDoc(ContractField {
            kind: map.kind.unwrap_or(ContractType::Any),
            required: map.required.unwrap_or(false),
            min_length: map.min_length.map(|length| length.0),
            max_length: map.max_length.map(|length| length.0),
            pattern: map.pattern,
            min: map.min,
            max: map.max,
            item_type: map.item_type,
            values: map.values.unwrap_or_default(),
        }))
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
                    // To find a fault's place takes time; none is looked for in vain.
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

/// The name of a version. Written as a number it is still a name: `1.10` is
/// not `1.1`, and means the version whose key is written so.
#[derive(Debug, Clone)]
pub(crate) struct VersionId(pub(crate) String);

impl Read for VersionId {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<VersionId> {
        let word = NameOrNumber::read(node, cx)?;
        // Behind an alias stands no number but the alias.
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
    /// A place in the graph where a lens is applied, another workflow run or a person asked.
    pub(crate) struct NodeDoc {
        /// Unique in the document.
        required "id" id: Spanned<String>,
        /// The lens to apply; without one the node runs another workflow or asks a person.
        optional "lens_id" lens_id: Tried<Spanned<String>>,
        /// Its version; the head when absent.
        optional "version_id" version_id: Spanned<VersionId>,
        /// What people read, and what merged objects are keyed by.
        optional "label" label: String,
        /// The author's order.
        optional "ordinal" ordinal: i64,
        /// How it does its work.
        optional "config" config: ConfigDoc,
    }
}

document! {
    /// How a node does its work.
    pub(crate) struct ConfigDoc {
        /// The model to use.
        optional "model_id" model_id: String,
        /// Time for one attempt, from dispatch (60000).
        optional "timeout_ms" timeout_ms: WholeNumber<1, DURATION_MS_MAX>,
        /// When and how often an attempt is repeated.
        optional "retry" retry: Spanned<RetryDoc>,
        /// What a failed parent does: `skip` (default), `propagate` or `substitute_default`.
        optional "on_parent_failure" on_parent_failure: OnParentFailure,
        /// How several edges meet in one label (last_write_wins).
        optional "merge" merge: Strategy,
        /// What is moderated: `off` (default), `input`, `output` or `both`.
        optional "moderation" moderation: Moderation,
        /// The agent that does it.
        optional "agent" agent: String,
        /// The role it is done in.
        optional "role" role: String,
        /// Tools the work needs.
        optional "required_tools" required_tools: Vec<String>,
        /// The tier of model the work needs.
        optional "required_tier" required_tier: String,
        /// Most money one dispatch may cost, in cents.
        optional "max_cost_cents" max_cost_cents: Money,
        /// Values that win over root inputs and edges, by label.
        optional "param_overrides" param_overrides: Table<Value>,
        /// What a final failure does.
        optional "on_failure" on_failure: Spanned<OnFailure>,
        /// The memory profile it loads.
        optional "memory" memory: String,
        /// Another workflow to run instead of a lens: `name` or `name@version`.
        optional "workflow_ref" workflow_ref: Tried<Spanned<String>>,
        /// What the other workflow is given, with `[[label]]` placeholders; without it, what is wired, by label.
        optional "args" args: Spanned<Table<LabelTree>>,
        /// `required`, or a map that says who decides and how.
        optional "approval" approval: Tried<ApprovalDoc>,
        /// Asks a person for values instead of a lens.
        optional "human_input" human_input: Tried<Spanned<HumanInputMap>>,
    }
}

document! {
    /// Values that a person gives a node.
    pub(crate) struct HumanInputMap {
        /// The values by name; they become the node's output.
        required "schema" schema: Table<SchemaDoc>,
        /// What is asked, with `${…}` references.
        optional "summary" summary: Spanned<Template>,
        /// Users or roles who may answer.
        optional "approvers" approvers: Vec<String>,
        /// The one who started the run may not answer.
        optional "not_initiator" not_initiator: bool,
        /// How long the question stays open.
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
    /// The lens it applies.
    pub(crate) fn lens(&self) -> Option<&Spanned<String>> {
        self.lens_id.as_ref()?.0.as_ref()
    }

    /// The workflow it runs.
    pub(crate) fn workflow(&self) -> Option<&Spanned<String>> {
        self.config.as_ref()?.workflow_ref.as_ref()?.0.as_ref()
    }

    /// The values it asks a person for.
    pub(crate) fn human_input(&self) -> Option<&Spanned<HumanInputMap>> {
        self.config.as_ref()?.human_input.as_ref()?.0.as_ref()
    }

    /// How a person is asked before its work is done, or instead of any.
    pub(crate) fn approval(&self) -> Option<&ApprovalMap> {
        let written = &self.config.as_ref()?.approval.as_ref()?.0.as_ref()?.0;
        Some(written).filter(|map| map.required.unwrap_or(true))
    }

    /// Whether it says what it does, readably or not.
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
    /// A value on its way from one node to another.
    pub(crate) struct EdgeDoc {
        /// Unique in the document.
        optional "id" id: Spanned<String>,
        /// The node it starts at.
        required "source_node_id" source_node_id: Spanned<String>,
        /// The node it ends at.
        required "target_node_id" target_node_id: Spanned<String>,
        /// Which part of the source's output it carries (output).
        optional "source_output_key" source_output_key: String,
        /// The label it binds; none for an edge that only orders.
        optional "target_param_label" target_param_label: String,
        /// How it meets other edges of the same label.
        optional "merge_strategy" merge_strategy: Strategy,
        /// When it counts.
        optional "condition" condition: Spanned<ConditionDoc>,
    }
}

crate::choice::choices! {
    /// What an edge's condition looks at.
    pub(crate) enum ConditionType, "a condition type" {
        /// Text forms are equal.
        Equals = "equals",
        /// One text contains the other.
        Contains = "contains",
        /// Neither null nor empty.
        Present = "present",
        /// True as in JSON.
        Truthy = "truthy",
        /// An expression holds.
        Expression = "expression",
    }
}

/// Something that was written, whether or not it could be read.
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
    /// When an edge counts.
    pub(crate) struct ConditionDoc {
        /// What it looks at.
        required "type" kind: Spanned<ConditionType>,
        /// What `equals` and `contains` compare with.
        optional "value" value: Spanned<Value>,
        /// The expression of an `expression` condition.
        optional "expr" expr: Spanned<Tried<Expr>>,
    }
}
