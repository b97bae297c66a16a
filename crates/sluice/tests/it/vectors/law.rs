//! What holds for every run: the fields of a projection, the shape of events.

use super::matching;
use super::through::Seen;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The fields of a projection.
pub(super) const RUN: &str = "run_id workflow version status pause_reason degraded outputs error_code \
    error_message started_at completed_at duration_ms cost input_tokens output_tokens active_node_id \
    pending_count waiting_count in_flight_count executed_count failed_count is_running parent_run_id \
    recursion_depth provenance node_results approvals";

/// The fields of a node in it.
pub(super) const NODE: &str = "node_id label status generation waiting_reason unblock_hint attempts dispatches \
    wave agent gateway provider_route inputs prompt stdout output outputs error_code error_message \
    contract_errors placeholder skip_reason started_at completed_at duration_ms first_byte_ms input_tokens \
    output_tokens thinking_tokens cost";

/// What a run or a node shows only where there is something to show.
const SOMETIMES: &[&str] =
    &["failure_snapshot", "media", "member", "metadata", "phase", "phases", "prompt_layers"];

/// Every event a journal can hold: its name, what its payload always has beside
/// `runId` and `nodeId`, and what it may have.
const EVENTS: &[(&str, &str, &str)] = &[
    (
        "run.started",
        "workflow definitionHash gateway initiator traceId rootSpanId",
        "version definition children args roleBindings defaultAgent parentRunId parentNodeId rootRunId depth \
         originKind originRunId originEventId deployment posture trustCeiling pins caps agreed labels \
         fieldLabels",
    ),
    ("run.status.changed", "status", "reason by"),
    ("run.completed", "", "outputs"),
    ("run.failed", "errorCode errorMessage", ""),
    ("run.cancelled", "", "reason"),
    ("run.timed_out", "timeoutMs", ""),
    ("run.recovered", "", ""),
    ("node.queued", "", "items"),
    ("node.waiting", "waitingReason", "attempt cause delayMs until code hint"),
    (
        "node.started",
        "attempt wave gateway executionPath",
        "dispatchNo agent childRunId deadline actionDigest slot reserved accounts constraints termsModel \
         maxOutputTokens inputs prompt stdin env labels fieldLabels layers",
    ),
    ("node.stream.delta", "deltaIndex attempt kind", "text url mime"),
    (
        "node.log",
        "",
        "dispatchNo text processGroup processStarted moderation phase digest inputs prompt stdin env \
         labels fieldLabels answerLabels layers",
    ),
    ("node.retried", "attempt cause delayMs", "errorMessage reask +usage"),
    (
        "node.completed",
        "attempts durationMs model inputTokens outputTokens thinkingTokens cost coercions",
        "envelope outputs stdout labels fieldLabels costUnknown session carriedFrom",
    ),
    ("node.failed", "errorCode errorMessage attempts", "errors +usage"),
    ("node.timed_out", "errorCode errorMessage attempts", "errors +usage"),
    ("node.cancelled", "code", "reason +usage"),
    (
        "node.skipped",
        "reason waitingReason",
        "cause errorCode errorMessage carriedFrom control errors +usage",
    ),
    ("node.blocked", "errorCode errorMessage", "placeholder waits"),
    ("node.invalidated", "", ""),
    ("node.provenance", "sourceRunId sourceNodeId sourceOutputPath targetInputPath transform", ""),
    ("node.endorsed", "output", "origins approvalId"),
    ("moderation.flagged", "phase decision", ""),
    ("contract.violated", "phase errors", ""),
    (
        "governance.decided",
        "disposition gates blockedBy policyHash actionDigest",
        "route registry facts factsDigest worst constraints",
    ),
    (
        "approval.requested",
        "approvalId source",
        "summary approvers expiresAt errorCode errorMessage inputs prompt stdin env labels fieldLabels groups \
         quorum notInitiator reminders actionDigest action reasons changes +usage",
    ),
    ("approval.reminded", "approvalId", "level"),
    ("approval.resolved", "approvalId resolution", "by comment roles constraints actionDigest"),
    ("budget.alert", "", "kind dispatchNo account level threshold cap spent reserved"),
];

/// What an attempt that is over has cost; `+usage` stands for it above.
const USAGE: &str = "model inputTokens outputTokens thinkingTokens cost costUnknown";

/// Whether there is such an event.
pub(super) fn kind(name: &str) -> Result<(), String> {
    fields(name).map(|_| ()).ok_or(format!("`{name}` is no event"))
}

fn fields(name: &str) -> Option<(&'static str, &'static str)> {
    EVENTS.iter().find(|(kind, ..)| *kind == name).map(|(_, always, maybe)| (*always, *maybe))
}

/// An event that is looked for: `node.completed a`, or
/// `{type, nodeId, payload, correlation}`. As something to compare envelopes with.
pub(super) fn pattern(said: &Value) -> Result<Value, String> {
    let said = match said {
        Value::String(text) => match text.split_once(' ') {
            Some((kind, node)) => json!({"type": kind, "nodeId": node}),
            None => json!({"type": text}),
        },
        other => other.clone(),
    };
    let Value::Object(mut said) = said else {
        return Err("an event is a text or an object".into());
    };
    let words = ["type", "nodeId", "payload", "correlation"];
    if let Some(unknown) = said.keys().find(|key| !words.contains(&key.as_str())) {
        return Err(format!("`{unknown}` is no field of an event"));
    }
    let name = said.get("type").and_then(Value::as_str).ok_or("an event has a type")?;
    let (always, maybe) = fields(name).ok_or(format!("`{name}` is no event"))?;
    let payload = said.get("payload").cloned().unwrap_or_else(|| json!({}));
    let Value::Object(mut payload) = payload else { return Err("a payload is an object".into()) };
    let usage = if maybe.contains("+usage") { USAGE } else { "" };
    let known = |field: &str| {
        let all = [always, maybe, usage].into_iter().flat_map(str::split_whitespace);
        all.into_iter().any(|one| one == field)
    };
    if let Some(unknown) = payload.keys().find(|field| !known(field)) {
        return Err(format!("`{name}` has no `{unknown}`"));
    }
    if let Some(node) = said.remove("nodeId") {
        payload.insert("nodeId".to_owned(), node);
    }
    said.insert("payload".to_owned(), payload.into());
    let pattern = Value::Object(said);
    matching::check(&pattern)?;
    Ok(pattern)
}

/// Everything about a run that is not as every run is.
pub(super) fn faults(seen: &Seen) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(shown) = &seen.shown {
        projection(shown, &mut faults);
    }
    for (at, envelope) in seen.events.iter().enumerate() {
        let mut found = Vec::new();
        event(at, envelope, seen, &mut found);
        let kind = envelope["type"].as_str().unwrap_or_default();
        faults.extend(found.into_iter().map(|fault| format!("event {} {kind}: {fault}", at + 1)));
    }
    deltas(seen, &mut faults);
    let last = seen.events.last().and_then(|event| event["type"].as_str()).unwrap_or_default();
    let ended = ["run.completed", "run.failed", "run.cancelled", "run.timed_out"].contains(&last);
    let running = seen.shown.as_ref().is_some_and(|shown| shown["is_running"] == true);
    if seen.shown.is_some() && ended == running {
        faults.push(format!("the last event is `{last}`"));
    }
    faults
}

/// Whether the parts of each answer have indexes from 0 and come to the answer.
fn deltas(seen: &Seen, faults: &mut Vec<String>) {
    let of = |kind: &'static str| seen.events.iter().filter(move |event| event["type"] == kind);
    let mut next: BTreeMap<&str, u64> = BTreeMap::new();
    for delta in of("node.stream.delta").map(|event| &event["payload"]) {
        let node = delta["nodeId"].as_str().unwrap_or_default();
        let index = next.entry(node).or_default();
        if delta["deltaIndex"] != *index {
            faults.push(format!("part {index} of `{node}` has index {}", delta["deltaIndex"]));
        }
        *index += 1;
    }
    for done in of("node.completed").map(|event| &event["payload"]) {
        let parts = of("node.stream.delta").map(|event| &event["payload"]).filter(|delta| {
            delta["nodeId"] == done["nodeId"] && delta["attempt"] == done["attempts"]
        });
        let parts: Vec<&str> = parts.filter_map(|delta| delta["text"].as_str()).collect();
        let whole = done["envelope"]["output"].as_str().or(done["stdout"].as_str());
        if !parts.is_empty() && Some(parts.concat().as_str()) != whole {
            faults.push(format!("{} said {whole:?}, in parts {parts:?}", done["nodeId"]));
        }
    }
}

fn projection(shown: &Value, faults: &mut Vec<String>) {
    names("projection", shown, RUN, faults);
    let nodes = shown["node_results"].as_array().cloned().unwrap_or_default();
    for node in &nodes {
        names("node", node, NODE, faults);
    }
    let counts =
        ["pending_count", "waiting_count", "in_flight_count", "executed_count", "failed_count"];
    let counted: u64 = counts.iter().filter_map(|name| shown[name].as_u64()).sum();
    if counted != nodes.len() as u64 {
        faults.push(format!("{counted} of {} nodes are counted", nodes.len()));
    }
}

/// Adds what an object lacks of these fields, and what it has beside them.
fn names(what: &str, seen: &Value, wanted: &str, faults: &mut Vec<String>) {
    let wanted: Vec<&str> = wanted.split_whitespace().collect();
    for name in wanted.iter().filter(|name| seen.get(**name).is_none()) {
        faults.push(format!("a {what} has no `{name}`"));
    }
    let known = |name: &str| wanted.contains(&name) || SOMETIMES.contains(&name);
    for name in seen.as_object().map(Map::keys).into_iter().flatten() {
        if !known(name) {
            faults.push(format!("a {what} has a `{name}`"));
        }
    }
}

fn event(at: usize, envelope: &Value, seen: &Seen, faults: &mut Vec<String>) {
    let id = at as u64 + 1;
    if envelope["eventId"] != id || envelope["sequence"] != id {
        faults.push(format!("its id is {}", envelope["eventId"]));
    }
    let run = seen.shown.as_ref().map(|shown| &shown["run_id"]);
    let payload = &envelope["payload"];
    if run.is_some_and(|run| envelope["runId"] != *run || payload["runId"] != *run) {
        faults.push("it is of another run".to_owned());
    }
    for field in ["workflowId", "timestamp"] {
        if !envelope[field].is_string() {
            faults.push(format!("it has no {field}"));
        }
    }
    if !envelope["correlation"]["traceId"].is_string() {
        faults.push("it has no trace id".to_owned());
    }
    let kind = envelope["type"].as_str().unwrap_or_default();
    let Some((always, _)) = fields(kind) else {
        faults.push("it is no event".to_owned());
        return;
    };
    let is_node = !kind.starts_with("run.") && kind != "budget.alert";
    let always = always.split_whitespace().chain(is_node.then_some("nodeId"));
    for field in always {
        if payload.get(field).is_none() {
            faults.push(format!("its payload has no `{field}`"));
        }
    }
    together(kind, payload, faults);
}

/// Fields of which one needs another.
fn together(kind: &str, payload: &Value, faults: &mut Vec<String>) {
    let has = |field: &str| payload.get(field).is_some_and(|value| !value.is_null());
    let right = match kind {
        "node.completed" => has("envelope") != has("outputs"),
        "node.waiting" => match payload["waitingReason"].as_str() {
            Some("retry_backoff" | "rate_limit") => {
                ["attempt", "cause", "delayMs"].into_iter().all(has)
            }
            Some("gate") => has("code"),
            _ => true,
        },
        "node.stream.delta" => has("text") || (has("url") && has("mime")),
        "contract.violated" => payload["errors"].as_array().is_some_and(|errors| {
            !errors.is_empty()
                && errors.iter().all(|one| one["field"].is_string() && one["reason"].is_string())
        }),
        _ => true,
    };
    if !right {
        faults.push(format!("its payload does not go together: {payload}"));
    }
}
