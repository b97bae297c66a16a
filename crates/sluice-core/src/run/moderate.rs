//! The texts that a moderator judges: all there is of what goes into a step,
//! and of what comes out.

use super::command::Command;
use super::state::Run;
use super::status::RunStatus;
use crate::canonical;
use crate::journal::event::{Path, Prepared, StepAt};
use crate::port::adapter::Answer;
use crate::port::moderator::{Phase, Subject};
use crate::value::text;
use serde_json::Value;

impl Run {
    /// What the moderator is being asked about a step, and the digest of it.
    pub fn input_subject(&self, at: StepAt) -> Option<(String, Subject)> {
        let state = self.get(at)?;
        let digest = state.phase.moderated()?.to_owned();
        let text = state.prepared.as_deref().map(input_text).unwrap_or_default();
        Some((digest, self.subject(at, Phase::Input, text)))
    }

    /// What the moderator must be asked before a result is decided: a result of
    /// a step in flight whose output is moderated.
    pub fn output_subject(&self, command: &Command) -> Option<Subject> {
        let (at, text) = match command {
            Command::Complete { at, dispatch_no, answer } if answer.error.is_none() => {
                let current = self.index.in_flight.get(at) == Some(dispatch_no);
                current.then(|| (*at, output_text(answer)))?
            }
            Command::ChildEnded { child, status: RunStatus::Completed, outputs, .. } => {
                let mut flying = self.index.in_flight.keys();
                let its = |at: &&StepAt| self.state(**at).path() == Some(Path::Child(*child));
                let at = *flying.find(its)?;
                (at, outputs.as_ref().map(texts).unwrap_or_default())
            }
            _ => return None,
        };
        let moderated = self.step(at).moderation.covers(Phase::Output);
        moderated.then(|| self.subject(at, Phase::Output, text))
    }

    /// A text on one side of a step.
    pub fn subject(&self, at: StepAt, phase: Phase, text: String) -> Subject {
        Subject { phase, run: self.id, step: self.name(at), text }
    }

    /// Steps in flight, and those about which the moderator is asked.
    pub(crate) fn under_way(&self) -> usize {
        self.index.in_flight.len() + self.index.checking.len()
    }
}

/// Everything a step is given: the prompt, what is piped in, the values that a
/// shell finds in its environment, instructions and memory, and the inputs.
pub(crate) fn input_text(prepared: &Prepared) -> String {
    let Prepared { inputs, prompt, stdin, env, layers, labels: _ } = prepared;
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

/// Everything an answer says.
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

/// All texts in a value.
pub fn texts(value: &Value) -> String {
    let mut texts = Vec::new();
    gather(value, &mut texts);
    texts.join("\n")
}

/// What identifies a text.
pub(crate) fn digest(text: &str) -> String {
    canonical::sha256_hex(&text, text.len() + 2)
}

/// All texts in a value, as they are: written as JSON, a line break or a
/// quotation mark would hide a phrase.
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
