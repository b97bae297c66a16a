//! Builds the planned form of a step without errors.

use super::step::StepDraft;
use super::written::{ApprovalMap, ForEachMap, ItemsDoc, StepDoc};
use crate::doc::leaf::WholeNumber;
use crate::doc::{shared, team};
use crate::limits::{MAX_ITEMS_DEFAULT, STEP_TIMEOUT_MS_DEFAULT};
use crate::outputs::schema::FieldSchema;
use crate::path::Path;
use crate::plan::Team;
use crate::plan::policy::{Moderation, OnFailure, OnParentFailure, ParallelFailure, Sought};
use crate::plan::step::{Approval, ForEach, Input, Items, Step, Work, WorkflowWork};
use crate::span::Spanned;
use indexmap::IndexMap;

impl StepDraft<'_> {
    /// The planned step. Call it only for drafts without errors.
    pub(super) fn into_step(self, shared: Option<&Team>) -> Step {
        let asks = self.needs_approval();
        let mut doc = self.doc;
        let work = work(&mut doc, self.unresolved);
        let for_each = for_each(&mut doc, self.items);
        let on_failure = doc.on_failure.map(|policy| policy.value);
        let on_failure = team::on_failure(on_failure, shared, Some(OnFailure::Halt));
        let retry = team::retry(doc.retry.map(|retry| retry.value), on_failure, shared);
        Step {
            id: doc.id.map(|id| id.value).unwrap_or_default(),
            label: None,
            ordinal: None,
            work,
            role: doc.role.map(|role| role.value),
            agent: doc.agent,
            depends_on: Vec::new(),
            edges: Vec::new(),
            stdin: self.stdin,
            condition: doc.condition.map(|condition| condition.value),
            inputs: doc.inputs.unwrap_or_default().into_map(|input| Input {
                from: paths(input.0.from.map(|from| from.0).unwrap_or_default()),
                schema: input
                    .0
                    .kind
                    .map(|kind| FieldSchema { kind: Some(kind), ..FieldSchema::default() }),
                default: input.0.default,
            }),
            outputs: doc.outputs.unwrap_or_default().into_map(|schema| schema.0),
            success_criteria: doc
                .success_criteria
                .into_iter()
                .flatten()
                .map(|one| one.value)
                .collect(),
            timeout_ms: doc.timeout.map_or(STEP_TIMEOUT_MS_DEFAULT, |timeout| timeout.0),
            on_failure,
            retry,
            parallel_failure_policy: doc
                .parallel_failure_policy
                .unwrap_or(ParallelFailure::WaitAll),
            approval: doc.approval.filter(|_| asks).map(|approval| Box::new(approval.0.into())),
            for_each,
            phase: doc.phase.map(|phase| phase.value),
            model: doc.model,
            tools: doc.tools.unwrap_or_default(),
            capabilities: doc.capabilities.unwrap_or_default(),
            required_tier: None,
            max_output_tokens: doc.max_output_tokens.map(|tokens| tokens.0),
            max_cost: doc.max_cost_cents,
            moderation: doc.moderation.unwrap_or(Moderation::Off),
            on_parent_failure: doc.on_parent_failure.unwrap_or(OnParentFailure::Propagate),
            merge: doc.merge,
            reask: doc.repair.and_then(|repair| repair.reask).map_or(0, WholeNumber::small),
            cwd: doc.cwd.map(|cwd| cwd.value),
            env: doc.env.unwrap_or_default().into_map(|value| value.0),
            memory: doc.memory,
            idempotent: doc.idempotent.unwrap_or(true),
        }
    }
}

/// What the step does. Moves those fields out of the document.
fn work(doc: &mut StepDoc, unresolved: Option<String>) -> Work {
    if let Some(reference) = doc.workflow_ref.take() {
        let (name, version) = shared::split_workflow_ref(&reference.value);
        let args = doc.args.take().map(|args| args.value).unwrap_or_default();
        let args = args.into_map(|tree| tree);
        let label_args = IndexMap::new();
        let name = name.to_owned();
        return Work::Workflow(Box::new(WorkflowWork { args, label_args, name, version }));
    }
    match (doc.command.take(), unresolved) {
        (Some(command), _) => Work::Command { command: command.value },
        (None, Some(name)) => Work::Unresolved { what: Sought::LibraryStep, name },
        (None, None) => Work::Approval,
    }
}

fn paths(written: Vec<Spanned<String>>) -> Vec<Path> {
    written.into_iter().filter_map(|one| Path::parse(&one.value).ok()).collect()
}

impl From<ApprovalMap> for Approval {
    fn from(map: ApprovalMap) -> Approval {
        Approval {
            approvers: map.approvers.unwrap_or_default(),
            quorum: map.quorum.map_or(1, WholeNumber::small),
            not_initiator: map.not_initiator.unwrap_or(false),
            expires_in_ms: map.expires_in.map(|time| time.0),
            summary: map.summary.map(|summary| summary.value),
            covers_retries: map.covers_retries.unwrap_or(false),
        }
    }
}

/// The items of the step, with bounds from inside `for_each` or next to it.
fn for_each(doc: &mut StepDoc, path: Option<Path>) -> Option<Box<ForEach>> {
    let ForEachMap { items, max_parallel, max_items } = doc.for_each.take()?.value.0;
    let max_parallel = doc.max_parallel.map(|max| max.value).or(max_parallel);
    let max_items = doc.max_items.map(|max| max.value).or(max_items);
    Some(Box::new(ForEach {
        items: match (items, path) {
            (Some(ItemsDoc::List(items)), _) => Items::List(items),
            (_, path) => Items::From(path.expect("a step without errors has its items")),
        },
        max_parallel: max_parallel.map(WholeNumber::small),
        max_items: max_items.map_or(MAX_ITEMS_DEFAULT, WholeNumber::small),
    }))
}
