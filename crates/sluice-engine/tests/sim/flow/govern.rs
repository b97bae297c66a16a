//! Governance of the workflows of a seed.

use crate::random::SeededRandom;
use serde_json::{Value, json};

/// Adds budgets, recovery, ceilings, moderation, and approvals with more than one
/// approver.
pub(super) fn govern(chance: &mut SeededRandom, document: &mut Value) {
    if chance.permille(300) {
        document["budget"] = json!({"max_cost_cents": chance.between(2, 60)});
    }
    if chance.permille(250) {
        let after = format!("{}s", chance.between(1, 30));
        document["recovery"] = json!({"max": chance.between(1, 3), "after": after});
    }
    let Some(steps) = document.get_mut("steps").and_then(Value::as_array_mut) else { return };
    for step in steps {
        if step.get("command").is_some() && chance.permille(150) {
            step["max_cost_cents"] = json!(chance.between(1, 4));
        }
        if chance.permille(200) {
            step["moderation"] = json!(*chance.pick(&["input", "output", "both"]));
        }
        let Some(approval) = step.get_mut("approval") else { continue };
        if !approval.is_object() {
            *approval = json!({"required": true});
        }
        match chance.below(4) {
            0 => approval["quorum"] = json!(2),
            1 => {
                approval["approvers"] = json!(["lead"]);
                approval["quorum"] = json!(chance.between(1, 2));
            }
            2 => {
                approval["approvers"] = json!(["lead"]);
                approval["not_initiator"] = json!(true);
            }
            _ => {}
        }
    }
}

/// Makes every approval cover the retries of its step.
pub(super) fn cover_retries(document: &mut Value) {
    let Some(steps) = document.get_mut("steps").and_then(Value::as_array_mut) else { return };
    for approval in steps.iter_mut().filter_map(|step| step.get_mut("approval")) {
        if !approval.is_object() {
            *approval = json!({"required": true});
        }
        approval["covers_retries"] = json!(true);
    }
}
