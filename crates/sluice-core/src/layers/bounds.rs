//! What a layer bounds and wants, and where one contradicts another.

use super::name;
use crate::violation::{Reason, Violation};
use serde_json::Value;
use std::collections::BTreeMap;

/// What one layer says that can be checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sheet {
    /// From 1 to 9.
    pub number: u8,
    /// What it comes from.
    pub source: String,
    /// What looser layers must keep to.
    pub bounds: Bounds,
    /// What it asks for.
    pub wants: Wants,
}

/// What looser layers must keep to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bounds {
    /// Only these tools.
    pub allow_tools: Option<Vec<String>>,
    /// Never these tools.
    pub deny_tools: Vec<String>,
    /// Only these models; none named means any.
    pub models: Vec<String>,
    /// Only this tier, if one is wanted.
    pub tier: Option<String>,
    /// Only lenses of these kinds; none named means any.
    pub output_kinds: Vec<String>,
    /// No memory.
    pub no_memory: bool,
    /// Values that are fixed, by label.
    pub pins: BTreeMap<String, Value>,
}

/// What a layer asks for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wants {
    /// Tools.
    pub tools: Vec<String>,
    /// A model.
    pub model: Option<String>,
    /// A tier.
    pub tier: Option<String>,
    /// The kind of a lens.
    pub output_kind: Option<String>,
    /// A memory profile.
    pub memory: Option<String>,
    /// Values, by label.
    pub sets: BTreeMap<String, Value>,
}

/// Every want of a looser layer that a stricter one forbids. Each names both.
pub fn contradictions(sheets: &[Sheet]) -> Vec<Violation> {
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
    if let Some(model) = wants.model.as_ref().filter(|model| bars(&bounds.models, model)) {
        let says = format!("allows only {}", list(&bounds.models));
        add("model".to_owned(), format!("asks for the model `{model}`"), says);
    }
    if let (Some(tier), Some(level)) = (&wants.tier, &bounds.tier)
        && tier != level
    {
        let says = format!("supports `{level}`");
        add("tier".to_owned(), format!("asks for the tier `{tier}`"), says);
    }
    if let Some(kind) = wants.output_kind.as_ref().filter(|kind| bars(&bounds.output_kinds, kind)) {
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

fn bars(only: &[String], one: &str) -> bool {
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

/// A value on a line.
fn short(value: &Value) -> String {
    crate::visible::shorten_to(&value.to_string(), 80).into_owned()
}
