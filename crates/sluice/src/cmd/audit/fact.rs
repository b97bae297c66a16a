//! Audit facts as table cells.

use crate::amount;
use serde_json::Value;

pub(super) fn cells(fact: &Value) -> [String; 6] {
    let word = |name: &str| fact[name].as_str().unwrap_or_default().to_owned();
    let (kind, id) = (word("resource_type"), word("resource_id"));
    let resource = if kind == "run" { id } else { format!("{kind} {id}") };
    let event = fact["event_id"].as_u64().map(|event| format!(" event {event}"));
    let event = event.unwrap_or_default();
    [
        amount::ms(&word("at")).map(amount::moment).unwrap_or_default(),
        word("category"),
        word("type"),
        word("step"),
        format!("{resource}{event}"),
        word("actor"),
    ]
}
