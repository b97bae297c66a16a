//! The public state of a step or instance.

use super::hint::hint;
use super::prompt::{PromptLayer, layers};
use super::{Time, as_dollars, skipped_by_failure, total};
use crate::journal::event::StepAt;
use crate::money::Money;
use crate::plan::step::Work;
use crate::run::state::{Run, StepState};
use crate::status::{StepStatus, Waiting};
use crate::violation::Reason;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The public state of a step or instance.
#[derive(Debug, Serialize)]
pub struct NodeResult<'a> {
    /// Its id; `step[3]` for an instance.
    pub node_id: Cow<'a, str>,
    /// The label that the console shows instead of the id.
    pub label: Option<&'a str>,
    /// The phase it belongs to, by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<&'a str>,
    /// The status after the last event.
    pub status: StepStatus,
    /// How often it was invalidated.
    pub generation: u32,
    /// Why it waits; why it was skipped, if by a condition.
    pub waiting_reason: Option<Waiting>,
    /// What would end the wait.
    pub unblock_hint: Option<String>,
    /// Attempts in this generation.
    pub attempts: u32,
    /// Dispatches in all generations.
    pub dispatches: u32,
    /// Its layer in the graph: the number of steps before it on the longest path.
    pub wave: u32,
    /// The agent that executes it.
    pub agent: Option<&'a str>,
    /// The member of the team that executes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<&'a str>,
    /// The gateway of the last dispatch.
    pub gateway: Option<&'a str>,
    /// The provider and the model of the last dispatch.
    pub provider_route: ProviderRoute<'a>,
    /// Its bound inputs.
    pub inputs: Option<&'a Map<String, Value>>,
    /// The instruction, rendered.
    pub prompt: Option<&'a str>,
    /// The prompt layer by layer; left out if it has only the instruction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompt_layers: Vec<PromptLayer<'a>>,
    /// The text of its answer, unchanged.
    pub stdout: Option<&'a str>,
    /// The text of its answer, or the output of its envelope.
    pub output: Option<Cow<'a, Value>>,
    /// Its outputs by name, or the data of its envelope.
    pub outputs: Option<Cow<'a, Value>>,
    /// Pictures, sound and other files of its envelope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<&'a Value>,
    /// The metadata of its envelope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<&'a Value>,
    /// The code of the failure of the step, or of its last attempt.
    pub error_code: Option<&'a str>,
    /// The message of that failure.
    pub error_message: Option<&'a str>,
    /// The values that violate the contract.
    pub contract_errors: Vec<ContractError<'a>>,
    /// The label without a value that blocks it.
    pub placeholder: Option<&'a str>,
    /// Why it was skipped, for people.
    pub skip_reason: Option<&'a str>,
    /// When it was first dispatched in this generation.
    pub started_at: Option<Time>,
    /// When it was settled.
    pub completed_at: Option<Time>,
    /// From the first dispatch to the end.
    pub duration_ms: Option<u64>,
    /// From the first dispatch to the first part of an answer.
    pub first_byte_ms: Option<u64>,
    /// Input tokens of all attempts and instances.
    pub input_tokens: u64,
    /// Tokens of the answer, without thinking.
    pub output_tokens: u64,
    /// Tokens that the model used before it answered.
    pub thinking_tokens: u64,
    /// The cost, in dollars.
    #[serde(serialize_with = "as_dollars")]
    pub cost: Money,
}

/// The provider and the model of a dispatch.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ProviderRoute<'a> {
    /// The provider of the gateway's row.
    pub provider: Option<&'a str>,
    /// The model that answered, or the one that was requested.
    pub model: Option<&'a str>,
}

/// A value that violates a contract.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ContractError<'a> {
    /// Its path: `a.b[0]`.
    pub field: &'a str,
    /// The violation.
    pub reason: Reason,
}

/// Every step and instance, in the order of `node_results`.
pub(super) fn results(run: &Run) -> Vec<NodeResult<'_>> {
    let steps = &run.definition.plan.steps;
    let mut order: Vec<u32> = (0u32..).take(steps.len()).collect();
    // By id, and not by rank: a team may order its queue by lane.
    order.sort_by(|a, b| {
        let key = |at: u32| {
            let step = &steps[at as usize];
            (step.ordinal.unwrap_or(i64::from(at)), step.id.as_bytes())
        };
        key(*a).cmp(&key(*b))
    });
    let mut results = Vec::with_capacity(steps.len());
    for step in order {
        results.push(result(run, StepAt::whole(step)));
        let fan_out = run.steps[step as usize].fan_out.as_ref();
        let instances = (0u32..).take(fan_out.map_or(0, |one| one.instances.len()));
        results.extend(instances.map(|item| result(run, StepAt::instance(step, item))));
    }
    results
}

fn result(run: &Run, at: StepAt) -> NodeResult<'_> {
    let (step, state) = (run.step(at), run.state(at));
    let (status, waiting) = shown_status(run, at);
    let prepared = state.prepared.as_deref();
    let outcome = state.outcome().map(|outcome| &**outcome);
    let envelope = outcome.and_then(|outcome| outcome.envelope.as_ref());
    let instances = state.fan_out.iter().flat_map(|fan_out| &fan_out.instances);
    let spent = total(std::iter::once(&state.usage).chain(instances.map(|one| &one.usage)));
    let error = error(state);
    // A command and a lens always have a prompt, even if it is empty.
    let has_prompt =
        matches!(step.work, Work::Command { .. } | Work::Lens(_)) && state.fan_out.is_none();
    let since_start = |end_ms: Option<u64>| Some(end_ms?.saturating_sub(state.started_at_ms?));
    NodeResult {
        node_id: match at.item {
            None => Cow::Borrowed(step.id.as_str()),
            Some(_) => Cow::Owned(run.name(at)),
        },
        label: step.label.as_deref(),
        phase: step.phase.as_deref(),
        status,
        generation: state.generation,
        waiting_reason: waiting,
        unblock_hint: waiting.and_then(|waiting| hint(run, at, waiting)),
        attempts: state.attempt,
        dispatches: state.dispatch_no,
        wave: run.definition.plan.graph.layer_of(at.step as usize),
        agent: agent(run, at),
        member: run.member_of(at.step).map(|member| member.id.as_str()),
        gateway: state.gateway(),
        provider_route: ProviderRoute {
            provider: state.agent(),
            model: state
                .usage
                .model
                .as_deref()
                .or_else(|| state.terms()?.model.as_deref())
                .or_else(|| run.model_of(at.step)),
        },
        inputs: prepared.map(|prepared| &prepared.inputs),
        prompt: prepared.map(|one| one.prompt.as_str()).filter(|one| has_prompt || !one.is_empty()),
        prompt_layers: prepared.map(|prepared| layers(run, at, prepared)).unwrap_or_default(),
        stdout: outcome.and_then(|outcome| outcome.stdout.as_deref()),
        output: output(state),
        outputs: outputs(state),
        media: envelope.and_then(|envelope| envelope.media.as_ref()),
        metadata: envelope.and_then(|envelope| envelope.metadata.as_ref()),
        error_code: error.map(|(code, _)| code),
        error_message: error.map(|(_, message)| message),
        contract_errors: contract_errors(state),
        placeholder: state.phase.placeholder(),
        skip_reason: state.phase.skip().map(|skip| skip.reason.as_str()),
        started_at: state.started_at_ms.map(Time),
        completed_at: state.phase.ended_at_ms().map(Time),
        duration_ms: since_start(state.phase.ended_at_ms()),
        first_byte_ms: since_start(state.first_byte_at_ms),
        input_tokens: spent.input_tokens,
        output_tokens: spent.output_tokens,
        thinking_tokens: spent.thinking_tokens,
        cost: spent.cost,
    }
}

/// The status and the waiting reason of a step. `awaiting_dependency` is not journalled: it
/// follows from the graph while the run has not ended.
fn shown_status(run: &Run, at: StepAt) -> (StepStatus, Option<Waiting>) {
    let state = run.state(at);
    let waits = state.status() == StepStatus::Pending
        && at.item.is_none()
        && run.index.missing[at.step as usize] > 0
        && !run.status.is_terminal();
    if waits {
        return (StepStatus::AwaitingDependency, Some(Waiting::Dependency));
    }
    (state.status(), state.phase.waiting())
}

/// The agent of the last dispatch, or the agent that will execute the step.
fn agent(run: &Run, at: StepAt) -> Option<&str> {
    let state = run.state(at);
    let is_ahead = state.dispatch_no == 0 && !state.is_settled();
    let by_agent = matches!(run.step(at).work, Work::Command { .. } | Work::Lens(_));
    let planned = || run.agent_of(at.step).filter(|_| is_ahead && by_agent);
    state.agent().or_else(planned)
}

fn output(state: &StepState) -> Option<Cow<'_, Value>> {
    let outcome = state.outcome().map(|outcome| &**outcome)?;
    match &outcome.envelope {
        Some(envelope) => Some(Cow::Borrowed(&envelope.output)),
        None => outcome.stdout.as_deref().map(|text| Cow::Owned(text.into())),
    }
}

fn outputs(state: &StepState) -> Option<Cow<'_, Value>> {
    if skipped_by_failure(state) {
        return Some(Cow::Owned(json!({"_skipped": true})));
    }
    let outcome = state.outcome().map(|outcome| &**outcome)?;
    match &outcome.envelope {
        Some(envelope) => envelope.data.as_ref().map(Cow::Borrowed),
        None => Some(Cow::Borrowed(&outcome.outputs)),
    }
}

/// Code and message of the failure of a step, or of its last attempt.
fn error(state: &StepState) -> Option<(&str, &str)> {
    // While an attempt is in flight, the failure of an earlier one is not shown.
    let ending = state.failure.as_deref().filter(|_| !state.status().is_dispatched());
    let skip = state.phase.skip().and_then(|skip| skip.error.as_ref());
    match (skip, ending) {
        (Some((code, message)), _) => Some((code, message)),
        (None, Some(ending)) => Some((&ending.code, &ending.message)),
        (None, None) => None,
    }
}

fn contract_errors(state: &StepState) -> Vec<ContractError<'_>> {
    // While an attempt is in flight, the failure of an earlier one is not shown.
    let ending = state.failure.as_deref().filter(|_| !state.status().is_dispatched());
    let violations = match (state.phase.skip(), ending) {
        (Some(skip), _) => skip.violations.iter(),
        (None, Some(ending)) => ending.violations.iter(),
        (None, None) => [].iter(),
    };
    violations.map(|one| ContractError { field: &one.field, reason: one.reason }).collect()
}
