//! From an answer to a step's result, and from results to the run's.

use super::Turn;
use super::origins::Origins;
use crate::code::Code;
use crate::contract::check_output;
use crate::contract::envelope::Envelope;
use crate::failure::Failure;
use crate::journal::event::{Provenance, StepAt, StepOutcome};
use crate::limits::ANSWER_BYTES_MAX;
use crate::outputs::coerce::Coercion;
use crate::outputs::complete::complete;
use crate::plan::policy::{Family, LensKind};
use crate::plan::step::{LensWork, Work};
use crate::port::adapter::Answer;
use crate::run::label::{Labels, SourceClass};
use crate::run::scope::RunScope;
use crate::status::StepStatus;
use crate::value::text;
use serde_json::{Map, Value};

/// What sort of output a lens node has that asks a person.
pub(super) const KIND_APPROVAL: &str = "approval";
pub(super) const KIND_HUMAN_INPUT: &str = "human_input";
/// The output of a node that asks for consent alone.
const APPROVED: &str = "approved";

impl Turn<'_> {
    /// Coerced, validated, judged: what an answer comes to. Takes out of the answer
    /// what became the outcome; an answer that is refused stays as it came.
    pub(super) fn outcome(
        &self,
        at: StepAt,
        answer: &mut Answer,
    ) -> Result<(StepOutcome, Vec<Coercion>), Failure> {
        let bytes = answer.text.as_ref().map_or(0, String::len);
        if bytes > ANSWER_BYTES_MAX {
            let message = format!("the answer is {bytes} bytes, over {ANSWER_BYTES_MAX}");
            return Err(Failure::new(Code::OutputValidationFailed, message));
        }
        match &self.run.step(at).work {
            Work::Lens(work) => self.lens_outcome(at, work, answer),
            _ => {
                let step = self.run.step(at);
                let judged = !step.outputs.is_empty() || !step.success_criteria.is_empty();
                let outputs = if judged { answer.outputs.clone() } else { answer.outputs.take() };
                let (mut outcome, coercions) =
                    self.work_outcome(at, outputs.unwrap_or_default(), None)?;
                outcome.stdout = answer.text.take();
                Ok((outcome, coercions))
            }
        }
    }

    /// What work that was dispatched comes to.
    pub(super) fn work_outcome(
        &self,
        at: StepAt,
        answer: Map<String, Value>,
        stdout: Option<String>,
    ) -> Result<(StepOutcome, Vec<Coercion>), Failure> {
        let (mut outcome, coercions) = self.step_outcome(at, answer, stdout, SourceClass::Agent)?;
        let grant = self.grant_of(at);
        if self.run.definition.plan.family == Family::Lens {
            return Ok((in_envelope(LensKind::Orchestration.as_str(), outcome, grant), coercions));
        }
        if let Value::Object(outputs) = &mut outcome.outputs {
            add_missing(outputs, grant);
        }
        Ok((outcome, coercions))
    }

    pub(super) fn step_outcome(
        &self,
        at: StepAt,
        answer: Map<String, Value>,
        stdout: Option<String>,
        class: SourceClass,
    ) -> Result<(StepOutcome, Vec<Coercion>), Failure> {
        let step = self.run.step(at);
        let none = Map::new();
        let prepared = self.run.state(at).prepared.as_deref();
        let child = matches!(step.work, Work::Workflow(_));
        // What is wired to a lens node is not what the node makes.
        let passes = !child && self.run.definition.plan.family == Family::Lobsterx;
        let inputs = prepared.filter(|_| passes).map_or(&none, |prepared| &prepared.inputs);
        let settled =
            if step.success_criteria.is_empty() && inputs.is_empty() && step.outputs.is_empty() {
                crate::outputs::Settled { outputs: answer, coercions: Vec::new() }
            } else {
                let scope = RunScope::of_step(self.run, &self.args, at).with_locals(inputs);
                complete(step.output_rules(), inputs, answer, &scope)?
            };
        let outcome = StepOutcome {
            outputs: Value::Object(settled.outputs),
            stdout,
            envelope: None,
            labels: self.labels_of(at, class),
        };
        Ok((outcome, settled.coercions))
    }

    /// What a step makes is as old, as private and as doubtful as what it read.
    fn labels_of(&self, at: StepAt, class: SourceClass) -> Labels {
        Labels::of(class, self.given.now_ms).with(self.run.labels_read(at))
    }

    fn lens_outcome(
        &self,
        at: StepAt,
        work: &LensWork,
        answer: &mut Answer,
    ) -> Result<(StepOutcome, Vec<Coercion>), Failure> {
        let contract = work.output_contract.as_ref();
        let (mut envelope, said) = envelope(work, answer);
        let violations = check_output(contract, &envelope);
        if let Some(failure) = Failure::of(Code::OutputContractViolation, violations) {
            give_back(envelope, said, answer);
            return Err(failure);
        }
        let grant = self.grant_of(at);
        if !grant.is_empty()
            && let Value::Object(data) = envelope.data.get_or_insert_with(|| Map::new().into())
        {
            add_missing(data, grant);
        }
        let outcome = StepOutcome::from_envelope(envelope, self.labels_of(at, SourceClass::Agent));
        Ok((outcome, Vec::new()))
    }

    /// The run's result: what the workflow names, else its variables, else
    /// what its last nodes made. What has no value is null: the run is done.
    pub(super) fn result(&self) -> Value {
        let plan = &self.run.definition.plan;
        if !plan.outputs.is_empty() {
            let scope = RunScope::of_run(self.run, &self.args);
            let value = |template: &crate::template::Template| {
                template.value(&scope).unwrap_or(Value::Null)
            };
            let named = plan.outputs.iter();
            return Value::Object(named.map(|(name, one)| (name.clone(), value(one))).collect());
        }
        let mut result: Map<String, Value> =
            self.run.variables().map(|(name, value)| (name.clone(), value.clone())).collect();
        for (at, state) in self.run.steps.iter().enumerate() {
            let last = plan.graph.dependents(at).is_empty();
            let envelope = state.outcome().and_then(|outcome| outcome.envelope.as_ref());
            if let (true, StepStatus::Completed, Some(envelope)) = (last, state.status(), envelope)
            {
                result.insert(plan.steps[at].id.clone(), envelope.output.clone());
            }
        }
        Value::Object(result)
    }

    /// Where the parts of the run's result come from.
    pub(super) fn result_origins(&self) -> Vec<Provenance> {
        let plan = &self.run.definition.plan;
        let mut origins = Origins::new(self.run);
        for (name, template) in &plan.outputs {
            origins.note_each(template, &format!("outputs.{name}"));
        }
        if !plan.outputs.is_empty() {
            return origins.found;
        }
        for (name, writer) in &self.run.index.variables {
            origins.note_step(*writer, name, &format!("outputs.{name}"), None);
        }
        for (at, state) in (0u32..).zip(&self.run.steps) {
            let last = plan.graph.dependents(at as usize).is_empty();
            let envelope = state.outcome().and_then(|outcome| outcome.envelope.as_ref());
            if last && state.status() == StepStatus::Completed && envelope.is_some() {
                let target = format!("outputs.{}", plan.steps[at as usize].id);
                origins.note_step(at, "output", &target, None);
            }
        }
        origins.found
    }
}

/// Whether an answer of a lens node had a text of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Text,
    DataAlone,
}

/// The envelope of a lens node, out of its answer.
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

/// The text that stands for an answer of pictures or sound alone: the first address, or
/// what it is where that address holds the file itself.
fn of_media(media: &Value) -> Value {
    let first = media.get(0).unwrap_or(media);
    match first.get("url").and_then(Value::as_str) {
        Some(url) if !url.starts_with("data:") => url.into(),
        Some(_) => format!("[{}]", first["mime"].as_str().unwrap_or("media")).into(),
        None => Value::Null,
    }
}

/// Puts back what an envelope that is refused was made of.
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

/// Adds what is not there yet.
fn add_missing(outputs: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        outputs.entry(name).or_insert(value);
    }
}

/// The result of a lens node that applies no lens: its values, and who agreed to them,
/// are the data. One value is the output, as text; several are, as JSON.
pub(super) fn in_envelope(
    kind: &str,
    outcome: StepOutcome,
    grant: Map<String, Value>,
) -> StepOutcome {
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
    StepOutcome::from_envelope(envelope, outcome.labels)
}
