//! The texts that a moderator checks: all texts of the inputs and of the outputs of a step.

use super::command::Command;
use super::state::Run;
use crate::canonical;
use crate::journal::event::{Path, Prepared, StepAt};
use crate::plan::policy::ModerationPhase;
use crate::port::adapter::Answer;
use crate::port::moderator::Subject;
use crate::status::RunStatus;
use crate::value::text;
use serde_json::Value;

impl Run {
    /// The inputs of a step that the moderator must check, and their digest.
    pub fn input_subject(&self, at: StepAt) -> Option<(String, Subject)> {
        let state = self.get(at)?;
        let digest = state.phase.moderated()?.to_owned();
        let text = state.prepared.as_deref().map(input_text).unwrap_or_default();
        Some((digest, self.subject(at, ModerationPhase::Input, text)))
    }

    /// The outputs in a result that the moderator must check before the run takes the result;
    /// `None` if the step is not in flight or its outputs are not moderated.
    pub fn output_subject(&self, command: &Command) -> Option<Subject> {
        let (at, text) = match command {
            Command::Complete { at, dispatch_no, answer } if answer.error.is_none() => {
                let current = self.index.in_flight.get(at) == Some(dispatch_no);
                current.then(|| (*at, output_text(answer)))?
            }
            Command::ChildEnded { child, status: RunStatus::Completed, outputs, .. } => {
                let mut in_flight = self.index.in_flight.keys();
                let is_child = |at: &&StepAt| self.state(**at).path() == Some(Path::Child(*child));
                let at = *in_flight.find(is_child)?;
                (at, outputs.as_ref().map(texts).unwrap_or_default())
            }
            _ => return None,
        };
        let moderated = self.step(at).moderation.covers(ModerationPhase::Output);
        moderated.then(|| self.subject(at, ModerationPhase::Output, text))
    }

    /// A text of the inputs or outputs of a step, for the moderator.
    pub fn subject(&self, at: StepAt, phase: ModerationPhase, text: String) -> Subject {
        Subject { phase, run: self.id, step: self.name(at), text }
    }

    /// The number of steps that are in flight or whose inputs the moderator checks.
    pub(crate) fn under_way(&self) -> usize {
        self.index.in_flight.len() + self.index.checking.len()
    }
}

/// All texts that a step receives: prompt, standard input, environment, prompt layers and
/// inputs.
pub(crate) fn input_text(prepared: &Prepared) -> String {
    let Prepared { inputs, prompt, stdin, env, layers, labels: _, field_labels: _ } = prepared;
    let mut texts = vec![prompt.clone()];
    texts.extend(stdin.clone());
    texts.extend(env.iter().map(|(_, value)| value.clone()));
    texts.extend(layers.iter().map(|layer| layer.text.clone()));
    for (name, value) in inputs {
        texts.push(name.clone());
        gather(value, &mut texts);
    }
    texts.join("\n")
}

/// All texts of an answer, one per line: what the moderator checks.
pub fn output_text(answer: &Answer) -> String {
    let mut texts: Vec<String> = answer.text.iter().cloned().collect();
    for (name, value) in answer.outputs.iter().flatten() {
        texts.push(name.clone());
        gather(value, &mut texts);
    }
    answer.media.iter().for_each(|media| gather(media, &mut texts));
    for (name, value) in answer.metadata.iter().flatten() {
        texts.push(name.clone());
        gather(value, &mut texts);
    }
    texts.join("\n")
}

/// All texts in a value, keys included, one per line.
pub fn texts(value: &Value) -> String {
    let mut texts = Vec::new();
    gather(value, &mut texts);
    texts.join("\n")
}

/// SHA-256 of a text, by which a verdict refers to it.
pub(crate) fn digest(text: &str) -> String {
    canonical::sha256_hex(&text, text.len() + 2)
}

/// Collects all texts in a value, unescaped: in JSON, an escaped line break or quotation mark
/// could hide a phrase from the moderator.
fn gather(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Array(items) => items.iter().for_each(|item| gather(item, texts)),
        Value::Object(fields) => {
            for (name, value) in fields {
                texts.push(name.clone());
                gather(value, texts);
            }
        }
        plain => texts.push(text(plain).into_owned()),
    }
}
