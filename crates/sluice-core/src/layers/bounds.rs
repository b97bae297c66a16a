//! The bounds and requests of layers, and the contradictions between them.

use super::name;
use crate::violation::{Reason, Violation};
use serde_json::Value;
use std::collections::BTreeMap;

/// The part of a layer that can be checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sheet {
    /// The number of the layer, from 1 to 9.
    pub number: u8,
    /// The source of the layer.
    pub source: String,
    /// Bounds on looser layers.
    pub bounds: Bounds,
    /// What it requests.
    pub wants: Wants,
}

/// Bounds on looser layers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bounds {
    /// Only these tools.
    pub allow_tools: Option<Vec<String>>,
    /// Never these tools.
    pub deny_tools: Vec<String>,
    /// Only these models; empty means any.
    pub models: Vec<String>,
    /// Only this model tier, if one is requested.
    pub(crate) tier: Option<String>,
    /// Only lenses of these kinds; empty means any.
    pub output_kinds: Vec<String>,
    /// Whether memory is forbidden.
    pub(crate) no_memory: bool,
    /// Fixed values, by label.
    pub pins: BTreeMap<String, Value>,
}

/// What a layer requests.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wants {
    /// The requested tools.
    pub tools: Vec<String>,
    /// The requested model.
    pub model: Option<String>,
    /// The requested model tier.
    pub(crate) tier: Option<String>,
    /// The kind of the lens.
    pub(crate) output_kind: Option<String>,
    /// The requested memory profile.
    pub memory: Option<String>,
    /// Values that it sets, by label.
    pub sets: BTreeMap<String, Value>,
}

/// Every request of a looser layer that a stricter one forbids. Each violation names both.
pub(crate) fn contradictions(sheets: &[Sheet]) -> Vec<Violation> {
    let mut found = Vec::new();
    for loose in sheets {
        for strict in sheets.iter().filter(|strict| strict.number < loose.number) {
            compare(strict, loose, &mut found);
        }
    }
    found
}

fn compare(strict: &Sheet, loose: &Sheet, found: &mut Vec<Violation>) {
    let Sheet { bounds, .. } = strict;
    let Sheet { wants, .. } = loose;
    let mut add = |field: String, asks: String, says: String| {
        let message = format!("{} {asks}, but {} {says}", shown(loose), shown(strict));
        found.push(Violation::new(field, Reason::ContradictsLayer, message));
    };
    for tool in &wants.tools {
        let field = format!("tools.{tool}");
        let asks = format!("asks for the tool `{tool}`");
        if bounds.deny_tools.contains(tool) {
            add(field, asks, "denies it".to_owned());
        } else if let Some(only) = bounds.allow_tools.as_ref().filter(|only| !only.contains(tool)) {
            add(field, asks, format!("allows only {}", list(only)));
        }
    }
    if let Some(model) = wants.model.as_ref().filter(|model| excludes(&bounds.models, model)) {
        let says = format!("allows only {}", list(&bounds.models));
        add("model".to_owned(), format!("asks for the model `{model}`"), says);
    }
    if let (Some(tier), Some(level)) = (&wants.tier, &bounds.tier)
        && tier != level
    {
        let says = format!("supports `{level}`");
        add("tier".to_owned(), format!("asks for the tier `{tier}`"), says);
    }
    if let Some(kind) =
        wants.output_kind.as_ref().filter(|kind| excludes(&bounds.output_kinds, kind))
    {
        let says = format!("allows only {}", list(&bounds.output_kinds));
        add("output.kind".to_owned(), format!("makes `{kind}`"), says);
    }
    if let Some(profile) = wants.memory.as_ref().filter(|_| bounds.no_memory) {
        let asks = format!("loads the memory `{profile}`");
        add("memory".to_owned(), asks, "allows none".to_owned());
    }
    for (label, value) in &wants.sets {
        if let Some(pin) = bounds.pins.get(label).filter(|pin| *pin != value) {
            let says = format!("fixes it at {}", short(pin));
            add(format!("inputs.{label}"), format!("sets `{label}` to {}", short(value)), says);
        }
    }
}

fn excludes(only: &[String], one: &str) -> bool {
    !only.is_empty() && !only.iter().any(|other| other == one)
}

fn shown(sheet: &Sheet) -> String {
    format!("layer {} ({}: {})", sheet.number, name(sheet.number), sheet.source)
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A value on one line.
fn short(value: &Value) -> String {
    crate::visible::shorten_to(&value.to_string(), 80).into_owned()
}
