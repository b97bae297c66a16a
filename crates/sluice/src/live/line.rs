//! Events as lines of text.

use crate::amount;
use crate::values;
use serde_json::Value;
use sluice_core::money::Money;
use sluice_core::visible;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Width of the word before the step.
const WORD: usize = 11;
/// Most lines of a message or an answer.
const LINES_MAX: usize = 10;

#[derive(Debug, Default)]
pub(super) struct EventLines {
    /// What each step at a gate waits for: gates are evaluated repeatedly, and an unchanged reason
    /// is printed once.
    waits: BTreeMap<String, String>,
    /// What steps wait for in their child runs.
    child_waits: BTreeMap<String, String>,
}

impl EventLines {
    /// The lines of an event; none of an event that is not printed.
    pub(super) fn draw(&mut self, kind: &str, json: &str) -> Option<String> {
        let line = event_text(kind, json)?;
        if kind != "node.waiting" {
            self.waits.remove(&line.step);
        } else if self.waits.insert(line.step, line.text.clone()).as_ref() == Some(&line.text) {
            return None;
        }
        Some(line.text)
    }

    /// The lines of waits in child runs that are new or have changed.
    pub(super) fn draw_child_waits(&mut self, waits: &BTreeMap<String, String>) -> Vec<String> {
        let new = waits.iter().filter(|(step, wait)| self.child_waits.get(*step) != Some(wait));
        let lines = new.map(|(step, wait)| drawn("waiting", step, wait)).collect();
        self.child_waits.clone_from(waits);
        lines
    }
}

struct EventText {
    /// Empty for an event of the run.
    step: String,
    text: String,
}

fn event_text(kind: &str, json: &str) -> Option<EventText> {
    let word = match kind {
        "node.waiting" => "waiting",
        "node.completed" => "completed",
        "node.failed" => "failed",
        "node.timed_out" => "timed out",
        "node.skipped" => "skipped",
        "node.cancelled" => "cancelled",
        "node.blocked" => "blocked",
        "contract.violated" => "violated",
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
        "violated" => values::violations(&payload["errors"]).join("\n"),
        "skipped" => text("reason").or(text("errorMessage")).unwrap_or_default().to_owned(),
        "cancelled" => text("reason").or(text("code")).unwrap_or_default().to_owned(),
        "retrying" => {
            let why = text("errorMessage").or(text("cause")).unwrap_or_default();
            let delay = amount::time(payload["delayMs"].as_u64().unwrap_or(0));
            format!("attempt {} failed: {why}; again after {delay}", payload["attempt"])
        }
        "waiting" => gate(payload)?,
        "held" => {
            let id = text("approvalId").unwrap_or_default();
            let summary = text("summary").or(text("errorMessage")).unwrap_or_default();
            // `approvals show` prints the rest.
            format!("{id}: {}", summary.lines().next().unwrap_or_default())
        }
        "answered" => answered(payload),
        "run" => status(payload)?,
        _ => String::new(),
    };
    let answer = values::answered(&payload["answer"]);
    let step = text("nodeId").unwrap_or_default().to_owned();
    let mut text = drawn(word, &step, &about);
    if !answer.is_empty() {
        let _ = write!(text, "\n{}", drawn("", "", &format!("answered: {answer}")));
    }
    Some(EventText { step, text })
}

/// The word, the step and the message: its first line after them, the rest indented below.
fn drawn(word: &str, step: &str, about: &str) -> String {
    let mut text = format!("{word:WORD$}");
    if !step.is_empty() {
        let _ = write!(text, "{}  ", visible::brief(step));
    }
    let mut lines = about.trim_end().lines();
    text.push_str(&visible::brief(lines.next().unwrap_or_default()));
    let mut text = text.trim_end().to_owned();
    for line in lines.by_ref().take(LINES_MAX - 1) {
        let line = format!("\n{:WORD$}{}", "", visible::brief(line));
        text.push_str(line.trim_end());
    }
    if lines.next().is_some() {
        let _ = write!(text, "\n{:WORD$}…", "");
    }
    text
}

/// Why a gate makes a step wait, and what would end the wait. Other waits follow from the
/// events before them.
fn gate(payload: &Value) -> Option<String> {
    let code = payload["code"].as_str()?;
    Some(match payload["hint"].as_str() {
        Some(hint) => format!("{code}: {hint}"),
        None => code.to_owned(),
    })
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
    values::failure(text("errorCode"), text("errorMessage"))
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

/// A change of the run's status that no other line explains.
fn status(payload: &Value) -> Option<String> {
    let (status, reason) = (payload["status"].as_str()?, payload["reason"].as_str()?);
    // The approvals have their own lines.
    if reason == "approval" {
        return None;
    }
    Some(format!("{status} ({})", reason.replace('_', " ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(lines: &mut EventLines, kind: &str, payload: &Value) -> Option<String> {
        lines.draw(kind, &json!({ "payload": payload }).to_string())
    }

    #[test]
    fn a_wait_at_a_gate_is_told_once_until_something_happens() {
        let lines = &mut EventLines::default();
        let gate =
            |hint: &str| json!({"nodeId": "a", "waitingReason": "gate", "code": "x", "hint": hint});
        let wait = |lines: &mut EventLines, hint| told(lines, "node.waiting", &gate(hint));
        assert_eq!(wait(lines, "do").as_deref(), Some("waiting    a  x: do"));
        assert_eq!(wait(lines, "do"), None);
        assert_eq!(wait(lines, "else").as_deref(), Some("waiting    a  x: else"));
        let backoff = json!({"nodeId": "a", "waitingReason": "retry_backoff"});
        assert_eq!(told(lines, "node.waiting", &backoff), None, "the retry was told");
        let failed = json!({"nodeId": "a", "errorCode": "x", "errorMessage": "no"});
        assert_eq!(told(lines, "node.failed", &failed).as_deref(), Some("failed     a  x: no"));
        assert_eq!(wait(lines, "else").as_deref(), Some("waiting    a  x: else"));
    }

    #[test]
    fn a_wait_in_a_child_run_is_told_once_until_it_ends() {
        let lines = &mut EventLines::default();
        let waits = BTreeMap::from([("a".to_owned(), "x: do".to_owned())]);
        assert_eq!(lines.draw_child_waits(&waits), ["waiting    a  x: do"]);
        assert_eq!(lines.draw_child_waits(&waits), Vec::<String>::new());
        assert_eq!(lines.draw_child_waits(&BTreeMap::new()), Vec::<String>::new());
        assert_eq!(lines.draw_child_waits(&waits), ["waiting    a  x: do"]);
    }

    #[test]
    fn a_violated_contract_is_shown_with_its_violations_and_its_code_once() {
        let lines = &mut EventLines::default();
        let errors = json!([
            {"field": "score", "reason": "above_max", "message": "is 12, above the maximum 10"},
            {"field": "topic", "reason": "too_short"},
        ]);
        let violated = json!({"nodeId": "a", "phase": "output", "errors": errors});
        assert_eq!(
            told(lines, "contract.violated", &violated).as_deref(),
            Some("violated   a  score is 12, above the maximum 10\n           topic too_short")
        );
        let code = "output_contract_violation";
        let failed = json!({"nodeId": "a", "errorCode": code, "errorMessage": code});
        assert_eq!(
            told(lines, "node.failed", &failed).as_deref(),
            Some("failed     a  output_contract_violation")
        );
    }

    #[test]
    fn several_lines_are_shown_as_lines() {
        let lines = &mut EventLines::default();
        let held = json!({"nodeId": "a", "approvalId": "apr_1", "summary": "Pay?\n\nIt is much."});
        let held = told(lines, "approval.requested", &held);
        assert_eq!(held.as_deref(), Some("held       a  apr_1: Pay?"));
        let message = "exit status 1\nno such\u{1b} file";
        let failed = json!({"nodeId": "a", "errorCode": "x", "errorMessage": message});
        let failed = told(lines, "node.failed", &failed);
        assert_eq!(
            failed.as_deref(),
            Some("failed     a  x: exit status 1\n           no such␛ file")
        );
        let long = json!({"nodeId": "a", "reason": "line\n".repeat(LINES_MAX + 1)});
        let long = told(lines, "node.skipped", &long).unwrap();
        assert_eq!(long.lines().count(), LINES_MAX + 1);
        assert!(long.ends_with("line\n           …"), "{long}");
    }

    #[test]
    fn what_a_failed_attempt_answered_is_told() {
        let lines = &mut EventLines::default();
        let error = json!({"nodeId": "a", "errorCode": "x", "errorMessage": "n is required"});
        let with = |answer: Value| {
            let mut error = error.clone();
            error["answer"] = answer;
            error
        };
        let said = told(lines, "node.failed", &with(json!({"text": "I would\nsay 3.\n"})));
        let expected =
            "failed     a  x: n is required\n           answered: I would\n           say 3.";
        assert_eq!(said.as_deref(), Some(expected));
        let said = told(lines, "node.failed", &with(json!({"text": "", "outputs": {"m": 1}})));
        let expected = "failed     a  x: n is required\n           answered: {\"m\":1}";
        assert_eq!(said.as_deref(), Some(expected));
        let said = told(lines, "node.failed", &with(json!({"outputs": {}})));
        assert_eq!(said.as_deref(), Some("failed     a  x: n is required"));
    }
}
