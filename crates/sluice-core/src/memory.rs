//! Memory of a step: notes written by people, and the last outputs of an agent.
//!
//! Outputs are remembered outside the journals, a bounded number for each agent that a profile
//! names, in the append that completes the step. They keep the labels of their origin.
//!
//! INVARIANT: memory is bounded in count and bytes, and a cut is visible in the text.

#[cfg(test)]
mod tests;

use crate::id::RunId;
use crate::journal::event::StepOutcome;
use crate::limits::{MEMORY_BYTES_DEFAULT, REMEMBERED_OUTPUT_BYTES_MAX};
use crate::origin::{FlowLabels, Labels, SourceClass, WrittenLabels};
use crate::port::remembered_output::RememberedOutput;
use serde::{Deserialize, Serialize};
use sluice_govern::limits::{MEMORY_BYTES_MAX, MEMORY_OUTPUTS_MAX};
use sluice_govern::registry::{Fabric, MemoryProfile, Note};
use std::borrow::Cow;
use std::fmt::Write as _;

/// The memory that a profile loads.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loaded {
    /// The text; empty if there is nothing yet.
    pub text: String,
    /// The origin labels of the text.
    pub labels: Labels,
    /// Notes that do not exist. Memory is the loosest layer: the step runs without them,
    /// and its log says so.
    pub missing: Vec<String>,
}

/// A remembered output.
#[derive(Debug, Clone, PartialEq)]
struct Remembered {
    step: String,
    text: String,
    labels: Labels,
}

/// Loads a profile. `remembered_outputs` are the remembered outputs of its agent, newest first.
pub fn load(
    fabric: &Fabric,
    profile: &MemoryProfile,
    remembered_outputs: &[RememberedOutput],
) -> Loaded {
    let mut text = String::new();
    let mut labels = Labels::default();
    labels.flow.join(&FlowLabels::declared(&profile.origin, &profile.sensitive));
    let mut missing = Vec::new();
    for name in &profile.notes {
        let Some(note) = fabric.notes.get(name) else {
            missing.push(name.clone());
            continue;
        };
        let _ = writeln!(text, "note {name}:\n{}", note.text.trim_end());
        labels.join(&of_note(note));
    }
    if let Some(last) = &profile.last_outputs {
        let count = usize::try_from(last.count).unwrap_or(usize::MAX).min(MEMORY_OUTPUTS_MAX);
        let known = remembered_outputs
            .iter()
            .filter(|remembered_output| remembered_output.agent == last.agent);
        for remembered_output in known.take(count) {
            // An unreadable output is skipped.
            let Some(one) = read(&remembered_output.body) else { continue };
            let at = crate::journal::envelope::timestamp(remembered_output.at_ms);
            let RememberedOutput { agent, run, .. } = remembered_output;
            let Remembered { step, text: said, labels: own } = one;
            let _ = writeln!(text, "{agent} in {run}, step {step}, at {at}:\n{}", said.trim_end());
            labels.join(&own);
        }
    }
    let most = profile.max_bytes.map_or(MEMORY_BYTES_DEFAULT, |bytes| bytes as usize);
    let text = cut(text.trim_end(), most.min(MEMORY_BYTES_MAX));
    Loaded { text, labels, missing }
}

/// Encodes an output to remember.
pub fn remembered_output(
    agent: &str,
    run: RunId,
    step: &str,
    outcome: &StepOutcome,
    at_ms: u64,
) -> RememberedOutput {
    let output = outcome.envelope.as_ref().map(|envelope| &envelope.output);
    let output = output.map(|output| crate::value::text(output).into_owned());
    let text = output.or_else(|| outcome.stdout.clone());
    let text = text.unwrap_or_else(|| outcome.outputs.to_string());
    let text = cut(&text, REMEMBERED_OUTPUT_BYTES_MAX);
    let labels = WrittenLabels::from(&outcome.labels);
    let body = serde_json::to_vec(&StoredOutput { step: step.into(), text: text.into(), labels });
    let body = body.expect("plain data is always written to memory");
    RememberedOutput { agent: agent.to_owned(), run, at_ms, body }
}

/// A remembered output as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredOutput<'a> {
    step: Cow<'a, str>,
    text: Cow<'a, str>,
    #[serde(flatten)]
    labels: WrittenLabels<'a>,
}

fn read(body: &[u8]) -> Option<Remembered> {
    let StoredOutput { step, text, labels } = serde_json::from_slice(body).ok()?;
    Some(Remembered { step: step.into_owned(), text: text.into_owned(), labels: labels.read()? })
}

/// The labels of a note. What came from outside has the worst origin.
fn of_note(note: &Note) -> Labels {
    let mut labels: Labels = [SourceClass::Human].into_iter().collect();
    (labels.untrusted, labels.private) = (note.untrusted, note.private);
    labels.flow.join(&FlowLabels::declared(&note.origin, &note.sensitive));
    if note.untrusted && note.origin.is_empty() {
        labels.flow.join(&FlowLabels::unknown());
    }
    labels
}

/// Cuts a text to `most` bytes, with a note at its end if it was longer.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}\n[cut: {} bytes left out]", &text[..end], text.len() - end)
}
