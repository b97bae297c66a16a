//! Where the values of a call were seen before.
//!
//! The index holds every text that a run has seen, with the class that the operator gives to
//! it: the prompt, a record, a private text, a stranger's text. For each argument of a call it
//! answers in which class this very value was seen. Policies then allow by class, because an
//! attacker cannot make a value that the caller wrote.
//!
//! The rules are those of `tools/agentdojo/NOTES.md`, which were measured on a prototype:
//! trust is strict, suspicion is loose, and a record counts only as a whole.
//!
//! INVARIANT: the index is a pure function of what was added. Beyond every bound a value may be
//! anything: `private`, `stranger` and `nowhere`, never `prompt` or `records`.

mod answer;
mod call;
mod layer;
mod letters;
mod lookup;
mod mark;
mod mention;
mod moment;
mod normal;
mod number;
mod snapshot;
#[cfg(test)]
mod tests;
mod words;

pub use answer::AnswerSeen;
pub use call::{ArgumentSources, SeenCall, facts_of_caller};

use crate::limits::{
    SEEN_LEAVES_MAX, SEEN_RECORD_CHARS_MAX, SEEN_RUN_CHARS_MAX, SEEN_TEXT_CHARS_MAX,
};
use layer::{Classes, IndexLayer};
use normal::normal;
use serde_json::Value;
use sluice_govern::catalog::AnswerFields;
use sluice_govern::facts::SeenIn;
use std::sync::Arc;

/// A layer is merged with the one before it unless that is larger by this factor.
const LAYER_GROWTH: usize = 4;

/// The texts that a run has seen. A copy is cheap: both share what they have in common.
#[derive(Clone, Default)]
pub struct SeenIndex {
    /// From the oldest and largest to the newest.
    layers: Vec<Arc<IndexLayer>>,
    /// Texts of answers, whether they fitted or not.
    leaves: usize,
    /// Characters of all normal forms.
    chars: usize,
    /// Whether the run has read a stranger's text.
    exposed: bool,
    /// Whether a text did not fit.
    full: bool,
}

impl std::fmt::Debug for SeenIndex {
    /// Without the texts: they are long, and may be private.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SeenIndex { layers: _, leaves, chars, exposed, full } = self;
        let mut out = f.debug_struct("SeenIndex");
        out.field("leaves", leaves).field("chars", chars);
        out.field("exposed", exposed).field("full", full).finish()
    }
}

impl SeenIndex {
    /// Adds what the caller or a person wrote. Of a long text only the start counts.
    ///
    /// `source` is a number of the caller's choice: [`SeenCall::sources`] tells in which
    /// sources the values of an argument were seen.
    pub fn add_prompt(&mut self, source: u32, text: &str) {
        self.add(|layer| layer.prompt(source, text));
    }

    /// Adds a value of one class, such as an argument of the run (`Prompt`) or the output of a
    /// step outside (`Stranger`). What a model made up (`Nowhere`) is not added.
    pub fn add_value(&mut self, source: u32, value: &Value, class: SeenIn) {
        self.add(|layer| layer.value(source, value, class));
    }

    /// Adds the answer of a tool, whose fields the operator declared.
    pub fn add_answer(&mut self, source: u32, answer: &AnswerSeen, fields: &AnswerFields) {
        self.add(|layer| layer.answer(source, answer, fields));
    }

    /// Notes that the run has read texts that the index does not have: what is not in the prompt
    /// or in a record may be anything from now on.
    pub(crate) fn add_unknown(&mut self) {
        self.full = true;
        self.exposed = true;
    }

    /// Adds texts as a new layer, and merges small layers.
    fn add(&mut self, fill: impl FnOnce(&mut Filling<'_>)) {
        let mut filling = Filling { index: self, layer: IndexLayer::default() };
        fill(&mut filling);
        let mut layer = filling.layer;
        if layer.size() == 0 {
            return;
        }
        layer.sort();
        while let Some(last) = self.layers.last()
            && last.size() < LAYER_GROWTH * layer.size()
        {
            layer = last.merge(&layer);
            self.layers.pop();
        }
        self.layers.push(Arc::new(layer));
    }
}

/// A new layer while texts are added to it.
struct Filling<'a> {
    index: &'a mut SeenIndex,
    layer: IndexLayer,
}

impl Filling<'_> {
    fn prompt(&mut self, source: u32, text: &str) {
        // A word that was cut could be another word.
        let text = match text.char_indices().nth(SEEN_TEXT_CHARS_MAX) {
            Some((end, _)) => text[..end].trim_end_matches(|c| !letters::is_space(c)),
            None => text,
        };
        self.push(source, &[(text, Classes::new(&[SeenIn::Prompt]))]);
    }

    /// A leaf of an answer: a text with its classes, or the parts of it that count.
    fn leaf(&mut self, source: u32, text: &str, parts: &[(&str, Classes)]) {
        self.index.leaves += 1;
        let fits = self.index.leaves <= SEEN_LEAVES_MAX
            && text.chars().nth(SEEN_TEXT_CHARS_MAX).is_none()
            && self.push(source, parts);
        if !fits {
            self.index.add_unknown();
        }
    }

    /// Adds the normal forms of texts, all or none. A record is a short value: a long one can
    /// carry a stranger's words.
    fn push(&mut self, source: u32, texts: &[(&str, Classes)]) -> bool {
        let forms: Vec<String> = texts.iter().map(|(text, _)| normal(text)).collect();
        let chars: usize = forms.iter().map(|form| form.chars().count()).sum();
        if self.index.chars + chars > SEEN_RUN_CHARS_MAX {
            return false;
        }
        self.index.chars += chars;
        for (form, (text, classes)) in forms.iter().zip(texts).filter(|(form, _)| !form.is_empty())
        {
            let is_long = text.chars().nth(SEEN_RECORD_CHARS_MAX).is_some();
            let words = classes.has(SeenIn::Records) && is_long;
            let more = if words { Classes::new(&[SeenIn::Stranger]) } else { Classes::default() };
            self.layer.push(form, classes.with(more), source);
        }
        true
    }
}
