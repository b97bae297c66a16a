//! From an answer to the outcome of a step.

use super::labels::{Producer, output_labels};
use crate::code::Code;
use crate::contract::check_output;
use crate::contract::envelope::Envelope;
use crate::failure::Failure;
use crate::journal::envelope::timestamp;
use crate::journal::event::{
    ApprovalSource, Completed, Endorsed, Resolution, StepAt, StepEvent, StepOutcome,
};
use crate::limits::ANSWER_BYTES_MAX;
use crate::outputs::Settled;
use crate::outputs::coerce::Coercion;
use crate::outputs::complete::complete;
use crate::plan::policy::Family;
use crate::plan::step::{LensWork, Work};
use crate::port::adapter::{Answer, Usage};
use crate::run::command::{Refusal, Resolve};
use crate::run::decide::draft::Draft;
use crate::run::scope::RunScope;
use crate::run::state::{Approval, Run};
use crate::value::text;
use crate::violation::{Reason, Violation};
use serde_json::{Map, Value};
use sluice_govern::registry::LensKind;
use std::sync::Arc;

/// Kinds of output of a lens node that a person answers.
const KIND_APPROVAL: &str = "approval";
const KIND_HUMAN_INPUT: &str = "human_input";
/// The output of a lens node that requests an approval without values.
const APPROVED: &str = "approved";

/// A valid outcome, and what was done to get it.
pub(crate) struct SettledOutcome {
    pub(super) outcome: StepOutcome,
    pub(super) coercions: Vec<Coercion>,
    pub(super) endorsed: Vec<Endorsed>,
}

/// A valid outcome, or why the answer is not valid.
type Outcome = Result<SettledOutcome, Failure>;

/// Records that a step is complete. `answer` is what the outcome was made from.
pub(super) fn complete_step(
    draft: &mut Draft<'_>,
    at: StepAt,
    settled: SettledOutcome,
    answer: Answer,
) {
    let SettledOutcome { outcome, coercions, endorsed } = settled;
    let state = draft.run.state(at);
    let begun = state.attempt_at_ms().unwrap_or(draft.given.now_ms);
    let completed = Completed {
        outcome: Arc::new(outcome),
        attempts: state.attempt,
        duration_ms: draft.given.now_ms.saturating_sub(begun),
        usage: answer.usage,
        coercions,
        session: answer.session,
        conversation: answer.conversation,
        artefacts: answer.artefacts,
        carried: None,
    };
    record_completed(draft, at, endorsed, completed);
}

/// Records the success of a step, after the endorsements that its labels take into account.
pub(crate) fn record_completed(
    draft: &mut Draft<'_>,
    at: StepAt,
    endorsed: Vec<Endorsed>,
    completed: Completed,
) {
    for one in endorsed {
        draft.record(at, StepEvent::Endorsed(Box::new(one)));
    }
    draft.record(at, StepEvent::Completed(Box::new(completed)));
}

/// Coerces and validates an answer. Moves the values of the outcome out of the answer; a
/// refused answer stays as it came.
pub(super) fn outcome(draft: &Draft<'_>, at: StepAt, answer: &mut Answer) -> Outcome {
    let bytes = answer.text.as_ref().map_or(0, String::len);
    if bytes > ANSWER_BYTES_MAX {
        let message = format!("the answer is {bytes} bytes, over {ANSWER_BYTES_MAX}");
        return Err(Failure::new(Code::OutputValidationFailed, message));
    }
    match &draft.run.step(at).work {
        Work::Lens(work) => lens_outcome(draft, at, work, answer),
        _ => {
            let step = draft.run.step(at);
            let judged = !step.outputs.is_empty() || !step.success_criteria.is_empty();
            let outputs = if judged { answer.outputs.clone() } else { answer.outputs.take() };
            let outputs = outputs.unwrap_or_default();
            let mut settled = work_outcome(draft, at, outputs, Producer::Agent)?;
            settled.outcome.stdout = answer.text.take();
            Ok(settled)
        }
    }
}

/// The outcome of a command or a child run.
pub(super) fn work_outcome(
    draft: &Draft<'_>,
    at: StepAt,
    answer: Map<String, Value>,
    producer: Producer<'_>,
) -> Outcome {
    let mut settled = step_outcome(draft, at, answer, producer)?;
    let grant = grant_of(draft.run, at);
    if draft.run.definition.plan.family == Family::Lens {
        let kind = LensKind::Orchestration.as_str();
        settled.outcome = in_envelope(kind, settled.outcome, grant);
    } else if let Value::Object(outputs) = &mut settled.outcome.outputs {
        add_missing(outputs, grant);
    }
    Ok(settled)
}

fn step_outcome(
    draft: &Draft<'_>,
    at: StepAt,
    answer: Map<String, Value>,
    producer: Producer<'_>,
) -> Outcome {
    let step = draft.run.step(at);
    let none = Map::new();
    let prepared = draft.run.state(at).prepared.as_deref();
    let child = matches!(step.work, Work::Workflow(_));
    // The inputs of a lens node are not outputs of it.
    let passes = !child && draft.run.definition.plan.family == Family::Lobsterx;
    let inputs = prepared.filter(|_| passes).map_or(&none, |prepared| &prepared.inputs);
    let settled =
        if step.success_criteria.is_empty() && inputs.is_empty() && step.outputs.is_empty() {
            Settled { outputs: answer, coercions: Vec::new() }
        } else {
            let scope = RunScope::of_step(draft.run, at).with_locals(inputs);
            complete(step.output_rules(), inputs, answer, &scope)?
        };
    let labels = output_labels(draft, at, producer, &settled.outputs);
    let outcome = StepOutcome {
        outputs: Value::Object(settled.outputs),
        stdout: None,
        envelope: None,
        labels: labels.whole,
        field_labels: labels.fields,
    };
    let endorsed = labels.endorsed;
    Ok(SettledOutcome { outcome, coercions: settled.coercions, endorsed })
}

fn lens_outcome(draft: &Draft<'_>, at: StepAt, work: &LensWork, answer: &mut Answer) -> Outcome {
    let contract = work.output_contract.as_ref();
    let (mut envelope, said) = envelope(work, answer);
    let violations = check_output(contract, &envelope);
    if let Some(failure) = Failure::of(Code::OutputContractViolation, violations) {
        give_back(envelope, said, answer);
        return Err(failure);
    }
    let grant = grant_of(draft.run, at);
    if !grant.is_empty()
        && let Value::Object(data) = envelope.data.get_or_insert_with(|| Map::new().into())
    {
        add_missing(data, grant);
    }
    let none = Map::new();
    let data = envelope.data.as_ref().and_then(Value::as_object).unwrap_or(&none);
    let labels = output_labels(draft, at, Producer::Agent, data);
    let outcome = StepOutcome {
        field_labels: labels.fields,
        ..StepOutcome::from_envelope(envelope, labels.whole)
    };
    Ok(SettledOutcome { outcome, coercions: Vec::new(), endorsed: labels.endorsed })
}

/// Whether the answer to a lens node had a text of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Text,
    DataAlone,
}

/// Makes the envelope of a lens node from its answer.
fn envelope(work: &LensWork, answer: &mut Answer) -> (Envelope, Said) {
    let expected = work.output_contract.as_ref().and_then(|one| one.artifact_kind.clone());
    let data = answer.outputs.take().map(Value::Object);
    let said = if answer.text.is_some() { Said::Text } else { Said::DataAlone };
    let output = match (answer.text.take(), &data) {
        (Some(text), _) => Value::String(text),
        (None, Some(data)) => Value::String(data.to_string()),
        (None, None) => answer.media.as_ref().map_or(Value::Null, of_media),
    };
    let envelope = Envelope {
        kind: Some(answer.kind.clone().unwrap_or_else(|| work.lens_kind.to_string())),
        artifact_kind: answer.artifact_kind.clone().or(expected),
        output,
        data,
        media: answer.media.take(),
        metadata: answer.metadata.take().map(Value::Object),
    };
    (envelope, said)
}

/// The text of an answer that has only media: the first URL, or the media type if the URL
/// contains the file itself.
fn of_media(media: &Value) -> Value {
    let first = media.get(0).unwrap_or(media);
    match first.get("url").and_then(Value::as_str) {
        Some(url) if !url.starts_with("data:") => url.into(),
        Some(_) => format!("[{}]", first["mime"].as_str().unwrap_or("media")).into(),
        None => Value::Null,
    }
}

/// Moves the values of a refused envelope back into the answer.
fn give_back(envelope: Envelope, said: Said, answer: &mut Answer) {
    let object = |value: Option<Value>| match value {
        Some(Value::Object(fields)) => Some(fields),
        _ => None,
    };
    answer.text = match envelope.output {
        Value::String(text) if said == Said::Text => Some(text),
        _ => None,
    };
    answer.outputs = object(envelope.data);
    answer.media = envelope.media;
    answer.metadata = object(envelope.metadata);
}

/// Adds the values whose names are not taken.
fn add_missing(outputs: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        outputs.entry(name).or_insert(value);
    }
}

/// The outcome of a lens node that applies no lens. Its values and its approval are the
/// data. One value is the output as text; several are the output as JSON.
fn in_envelope(kind: &str, outcome: StepOutcome, grant: Map<String, Value>) -> StepOutcome {
    let Value::Object(mut data) = outcome.outputs else { return outcome };
    let output = match (data.len(), data.values().next()) {
        (1, Some(value)) => text(value).into_owned(),
        (0, _) if kind == KIND_APPROVAL => APPROVED.to_owned(),
        (0, _) => String::new(),
        _ => Value::Object(data.clone()).to_string(),
    };
    add_missing(&mut data, grant);
    let envelope = Envelope {
        kind: Some(kind.to_owned()),
        output: Value::String(output),
        data: Some(Value::Object(data)),
        ..Envelope::default()
    };
    let field_labels = outcome.field_labels;
    StepOutcome { field_labels, ..StepOutcome::from_envelope(envelope, outcome.labels) }
}

/// The completion of an approval step that a person approves with these values.
pub(crate) fn approved(
    draft: &Draft<'_>,
    at: StepAt,
    resolve: &Resolve,
) -> Result<(Vec<Endorsed>, Completed), Refusal> {
    let unfit = |Failure { message, violations, .. }: Failure| {
        let none = violations.is_empty();
        let whole = none.then(|| Violation::new("values", Reason::SchemaViolation, message));
        Refusal::BadValues(violations.into_iter().chain(whole).collect())
    };
    let values = resolve.values.clone();
    let producer = Producer::Person(resolve.approval, resolve.comment.as_deref());
    let settled = step_outcome(draft, at, values, producer).map_err(unfit)?;
    let SettledOutcome { mut outcome, coercions, endorsed } = settled;
    let now_ms = draft.given.now_ms;
    let grant = grant(&resolve.by, resolve.comment.as_ref(), now_ms);
    if draft.run.definition.plan.family == Family::Lens {
        let has_values = !draft.run.step(at).outputs.is_empty();
        let kind = if has_values { KIND_HUMAN_INPUT } else { KIND_APPROVAL };
        outcome = in_envelope(kind, outcome, grant);
    } else if let Value::Object(outputs) = &mut outcome.outputs {
        outputs.extend(grant);
    }
    let requested = draft.run.approvals.get(&resolve.approval).map(|one| one.requested_at_ms);
    let completed = Completed {
        outcome: Arc::new(outcome),
        attempts: draft.run.state(at).attempt,
        duration_ms: now_ms.saturating_sub(requested.unwrap_or(now_ms)),
        usage: Usage::default(),
        coercions,
        session: None,
        conversation: Vec::new(),
        artefacts: Vec::new(),
        carried: None,
    };
    Ok((endorsed, completed))
}

/// The approval of a step that was then executed, as later steps read it; empty if the
/// step requires none.
fn grant_of(run: &Run, at: StepAt) -> Map<String, Value> {
    if run.step(at).approval.is_none() {
        return Map::new();
    }
    let of_step = |one: &&Approval| {
        one.at == at
            && one.source == ApprovalSource::Step
            && one.resolution == Some(Resolution::Approved)
    };
    let granted = run.approvals.values().filter(of_step);
    let granted = granted.max_by_key(|one| one.resolved_at_ms);
    let Some(granted) = granted else { return Map::new() };
    let by = granted.by.as_deref().unwrap_or_default();
    grant(by, granted.comment.as_ref(), granted.resolved_at_ms.unwrap_or_default())
}

fn grant(by: &str, comment: Option<&String>, at_ms: u64) -> Map<String, Value> {
    let mut grant = Map::new();
    grant.insert("approved".to_owned(), true.into());
    grant.insert("by".to_owned(), by.into());
    grant.insert("at".to_owned(), timestamp(at_ms).into());
    let comment = comment.cloned().map_or(Value::Null, Value::from);
    grant.insert("comment".to_owned(), comment);
    grant
}
