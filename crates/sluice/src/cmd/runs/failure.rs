//! Draws the failure snapshot of a run: where it stopped, what completed, and its variables.

use crate::table::Table;
use serde_json::Value;
use sluice_core::visible;

/// Most steps named in a line.
const NAMED_MAX: usize = 12;
/// Longest value of a variable, in characters.
const VALUE_CHARS_MAX: usize = 120;

/// Draws `failure_snapshot` of a projection; an empty text if the run has no snapshot.
pub(super) fn draw(snapshot: &Value) -> String {
    if !snapshot.is_object() {
        return String::new();
    }
    let mut facts = Table::plain();
    if let Some(step) = snapshot["failed_node_id"].as_str() {
        facts.row(["stopped at".to_owned(), step.to_owned()]);
    }
    for (name, field) in [
        ("failed", "failed"),
        ("completed", "completed"),
        ("skipped", "skipped"),
        ("cancelled", "cancelled"),
        ("writer order", "writer_order"),
    ] {
        if let Some(ids) = named(&snapshot[field]) {
            facts.row([name.to_owned(), ids]);
        }
    }
    let mut text = format!("\n{}", facts.draw());
    let variables = snapshot["variables"].as_object().filter(|all| !all.is_empty());
    if let Some(variables) = variables {
        let mut table = Table::new(&["VARIABLE", "VALUE"]);
        for (name, value) in variables {
            let shown = match value.as_str() {
                Some(text) => text.to_owned(),
                None => value.to_string(),
            };
            let shown = visible::clipped(&shown, VALUE_CHARS_MAX).into_owned();
            table.row([name.clone(), shown]);
        }
        text.push_str(&format!("\n{}", table.draw()));
    }
    text
}

/// The first ids of a list; none if it is empty.
fn named(list: &Value) -> Option<String> {
    let ids: Vec<&str> = list.as_array()?.iter().filter_map(Value::as_str).collect();
    let shown = ids[..ids.len().min(NAMED_MAX)].join(", ");
    match ids.len().saturating_sub(NAMED_MAX) {
        _ if ids.is_empty() => None,
        0 => Some(shown),
        more => Some(format!("{shown} and {more} more")),
    }
}
