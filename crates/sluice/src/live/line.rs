//! What happened to a step, in one line.

use crate::amount;
use serde_json::Value;
use sluice_core::money::Money;
use sluice_core::visible;

/// How wide the word before the step is.
const WORD: usize = 11;

/// The line of an event, if it is one that people want to read.
pub(super) fn of(kind: &str, json: &str) -> Option<String> {
    let word = match kind {
        "node.completed" => "completed",
        "node.failed" => "failed",
        "node.timed_out" => "timed out",
        "node.skipped" => "skipped",
        "node.cancelled" => "cancelled",
        "node.blocked" => "blocked",
        "node.retried" => "retrying",
        "node.invalidated" => "again",
        "approval.requested" => "held",
        "approval.resolved" => "answered",
        "run.status.changed" => "run",
        _ => return None,
    };
    let envelope: Value = serde_json::from_str(json).ok()?;
    let payload = &envelope["payload"];
    let text = |name: &str| payload[name].as_str().filter(|text| !text.is_empty());
    let about = match word {
        "completed" => completed(payload),
        "failed" | "timed out" | "blocked" => error(payload),
        "skipped" => text("reason").or(text("errorMessage")).unwrap_or_default().to_owned(),
        "cancelled" => text("reason").or(text("code")).unwrap_or_default().to_owned(),
        "retrying" => {
            let why = text("errorMessage").or(text("cause")).unwrap_or_default();
            let delay = amount::time(payload["delayMs"].as_u64().unwrap_or(0));
            format!("attempt {} failed: {why}; again after {delay}", payload["attempt"])
        }
        "held" => {
            let id = text("approvalId").unwrap_or_default();
            format!("{id}: {}", text("summary").or(text("errorMessage")).unwrap_or_default())
        }
        "answered" => answered(payload),
        "run" => status(payload)?,
        _ => String::new(),
    };
    let step = text("nodeId").map(|id| format!("{}  ", visible::brief(id))).unwrap_or_default();
    Some(format!("{word:WORD$}{step}{}", visible::brief(&about)).trim_end().to_owned())
}

fn completed(payload: &Value) -> String {
    if let Some(source) = payload["carriedFrom"].as_str() {
        return format!("taken over from {source}");
    }
    let number = |name: &str| payload[name].as_u64().unwrap_or(0);
    let cost = payload["cost"].as_number().and_then(|cost| Money::from_usd(cost).ok());
    let tokens = number("inputTokens").saturating_add(number("outputTokens"));
    let mut parts = vec![amount::time(number("durationMs"))];
    parts.extend(amount::spent(number("attempts"), tokens, cost.unwrap_or(Money::ZERO)));
    parts.join(", ")
}

fn error(payload: &Value) -> String {
    let text = |name: &str| payload[name].as_str().unwrap_or_default();
    format!("{}: {}", text("errorCode"), text("errorMessage"))
}

fn answered(payload: &Value) -> String {
    let mut text = payload["resolution"].as_str().unwrap_or_default().to_owned();
    if let Some(by) = payload["by"].as_str() {
        text = format!("{text} by {by}");
    }
    match payload["comment"].as_str().filter(|comment| !comment.is_empty()) {
        Some(comment) => format!("{text}: {comment}"),
        None => text,
    }
}

/// A change that people have not seen coming.
fn status(payload: &Value) -> Option<String> {
    let (status, reason) = (payload["status"].as_str()?, payload["reason"].as_str()?);
    // The questions themselves are told.
    if reason == "approval" {
        return None;
    }
    Some(format!("{status} ({})", reason.replace('_', " ")))
}
