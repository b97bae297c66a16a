//! The prompt of a step, layer by layer.

use crate::journal::event::{Prepared, StepAt};
use crate::layers::{name, number};
use crate::origin::SourceClass;
use crate::plan::step::Work;
use crate::run::state::Run;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// A part of a prompt, and what may override it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptLayer<'a> {
    /// From 1, the strictest, to 9.
    pub layer: u8,
    /// The word for this number, such as `organisation`.
    pub name: &'static str,
    /// The document, row or step that it comes from.
    pub source: Cow<'a, str>,
    /// The text as it was sent.
    pub text: Cow<'a, str>,
}

/// The layers of a step's prompt; empty if it has only the instruction.
pub(super) fn layers<'a>(run: &'a Run, at: StepAt, prepared: &'a Prepared) -> Vec<PromptLayer<'a>> {
    if prepared.layers.is_empty() {
        return Vec::new();
    }
    let kept = prepared.layers.iter().map(|layer| PromptLayer {
        layer: layer.number,
        name: layer.name(),
        source: Cow::Borrowed(&layer.source),
        text: Cow::Borrowed(&layer.text),
    });
    let mut layers: Vec<PromptLayer<'a>> = kept.collect();
    let mut add = |layer: u8, source: Cow<'a, str>, text: Cow<'a, str>| {
        layers.push(PromptLayer { layer, name: name(layer), source, text });
    };
    let step = run.step(at);
    let source = match &step.work {
        Work::Lens(work) => Cow::Owned(format!("{}@{}", work.lens_id, work.version_id)),
        _ => Cow::Borrowed("command"),
    };
    add(number::LENS, source, Cow::Borrowed(&prepared.prompt));
    let settings = settings(run, at);
    if !settings.is_empty() {
        let text = Value::Object(settings).to_string();
        add(number::NODE, Cow::Borrowed(&step.id), Cow::Owned(text));
    }
    if prepared.labels.has(SourceClass::Caller) {
        let text = Cow::Owned(run.args.to_string());
        add(number::CALLER, Cow::Borrowed(&run.started.initiator), text);
    }
    layers.sort_by_key(|layer| layer.layer);
    layers
}

/// The settings of a step, apart from its instruction.
fn settings(run: &Run, at: StepAt) -> Map<String, Value> {
    let step = run.step(at);
    let mut set = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        set.extend(value.map(|value| (name.to_owned(), value)));
    };
    put("model", run.model_of(at.step).map(|model| json!(model)));
    put("tools", (!step.tools.is_empty()).then(|| json!(step.tools)));
    put("required_tier", step.required_tier.as_ref().map(|tier| json!(tier)));
    put("memory", step.memory.as_ref().map(|memory| json!(memory)));
    if let Work::Lens(work) = &step.work {
        let overrides = &work.param_overrides;
        put("param_overrides", (!overrides.is_empty()).then(|| json!(overrides)));
    }
    set
}
