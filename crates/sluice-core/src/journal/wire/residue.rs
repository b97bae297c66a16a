//! What is left of a payload when it is erased.
//!
//! The fold needs ids, statuses, codes and figures; people's words it does not
//! need. Everything named here is kept, everything else goes: arguments, inputs,
//! prompts, outputs, logs, messages, reasons, comments, and who said so. What is
//! added to an event later goes too, until it is named here.

use super::fields::{Fields, Text};
use super::object::json;
use crate::status::{
    REASON_APPROVAL, REASON_OPERATOR, REASON_RECOVERY, REASON_RETRY, REASON_REWIND,
};
use serde_json::value::RawValue;

/// What becomes of a field.
#[derive(Clone, Copy)]
enum Keep {
    /// Stays as it is: an id, a number, a hash, a flag.
    Whole,
    /// Stays if it is a plain word, as codes are; else it becomes empty.
    Word,
    /// Stays if it is a reason that means something to the fold.
    Reason,
    /// Becomes an empty text: that it was there matters.
    Blank,
    /// Becomes a list of as many nulls.
    Count,
}

use Keep::{Blank, Count, Reason, Whole, Word};

type KeptFields = &'static [(&'static str, Keep)];

const NODE: KeptFields = &[("nodeId", Whole)];
const ERROR: KeptFields = &[("errorCode", Word), ("errorMessage", Blank)];
const USAGE: KeptFields = &[
    ("model", Word),
    ("inputTokens", Whole),
    ("outputTokens", Whole),
    ("thinkingTokens", Whole),
    ("cachedTokens", Whole),
    ("cost", Whole),
    ("costUnknown", Whole),
];
const PREPARED: KeptFields = &[("prompt", Blank), ("labels", Whole)];
const RUN_STARTED: KeptFields = &[
    ("workflow", Whole),
    ("version", Whole),
    ("source", Whole),
    ("definitionHash", Whole),
    ("definition", Whole),
    ("children", Whole),
    ("roleBindings", Whole),
    ("defaultAgent", Whole),
    ("defaultModel", Whole),
    ("fallbackModel", Whole),
    ("recursionDepthMax", Whole),
    ("gateway", Whole),
    ("traceId", Whole),
    ("rootSpanId", Whole),
    ("parentSpanId", Whole),
    ("parentRunId", Whole),
    ("parentNodeId", Whole),
    ("rootRunId", Whole),
    ("depth", Whole),
    ("originKind", Word),
    ("originRunId", Whole),
    ("originEventId", Whole),
    ("deployment", Whole),
    ("posture", Whole),
    ("trustCeiling", Whole),
    ("pins", Whole),
    ("caps", Whole),
];
const QUEUED: KeptFields = &[("items", Count), ("assignedMember", Whole), ("assignedAgent", Whole)];
const WAITING: KeptFields = &[
    ("waitingReason", Whole),
    ("attempt", Whole),
    ("cause", Word),
    ("delayMs", Whole),
    ("until", Whole),
    ("code", Word),
];
const STARTED: KeptFields = &[
    ("attempt", Whole),
    ("dispatchNo", Whole),
    ("wave", Whole),
    ("agent", Whole),
    ("gateway", Whole),
    ("executionPath", Whole),
    ("childRunId", Whole),
    ("deadline", Whole),
    ("actionDigest", Word),
    ("slot", Whole),
    ("reserved", Whole),
    ("accounts", Whole),
    ("constraints", Whole),
    ("termsModel", Word),
    ("maxOutputTokens", Whole),
    ("price", Whole),
];
const DELTA: KeptFields = &[
    ("deltaIndex", Whole),
    ("attempt", Whole),
    ("dispatchNo", Whole),
    ("kind", Whole),
    ("text", Blank),
    ("url", Blank),
    ("mime", Blank),
];
const LOG: KeptFields = &[
    ("dispatchNo", Whole),
    ("text", Blank),
    ("processGroup", Whole),
    ("processStarted", Word),
    ("moderation", Word),
    ("phase", Word),
    ("digest", Word),
    ("tool", Whole),
    ("callId", Whole),
    ("ruling", Word),
    ("reason", Blank),
    ("approvalId", Whole),
    ("ended", Word),
    ("childRunId", Whole),
    ("child", Word),
    ("childAt", Whole),
    ("bytes", Whole),
    ("durationMs", Whole),
];
const RETRIED: KeptFields =
    &[("attempt", Whole), ("cause", Word), ("delayMs", Whole), ("reask", Whole)];
const COMPLETED: KeptFields =
    &[("labels", Whole), ("attempts", Whole), ("durationMs", Whole), ("carriedFrom", Whole)];
const SKIPPED: KeptFields = &[("cause", Whole), ("waitingReason", Whole), ("carriedFrom", Whole)];
const PROVENANCE: KeptFields = &[
    ("sourceRunId", Whole),
    ("sourceNodeId", Whole),
    ("sourceOutputPath", Blank),
    ("targetInputPath", Blank),
];
const DECIDED: KeptFields =
    &[("disposition", Word), ("policyHash", Word), ("factsDigest", Word), ("actionDigest", Word)];
const ALERT: KeptFields = &[
    ("kind", Word),
    ("account", Word),
    ("percent", Whole),
    ("spent", Whole),
    ("cap", Whole),
    ("reserved", Whole),
    ("dispatchNo", Whole),
];
const REQUESTED: KeptFields = &[
    ("approvalId", Whole),
    ("source", Whole),
    ("expiresAt", Whole),
    ("quorum", Whole),
    ("notInitiator", Whole),
    ("reminders", Whole),
    ("actionDigest", Word),
];

const RESOLVED: KeptFields =
    &[("approvalId", Whole), ("resolution", Whole), ("constraints", Whole), ("actionDigest", Word)];

/// The fields of an event that stay.
fn kept(kind: &str) -> &'static [KeptFields] {
    match kind {
        "run.started" => &[RUN_STARTED],
        "run.status.changed" => &[&[("status", Whole), ("reason", Reason)]],
        "run.failed" => &[ERROR],
        "run.timed_out" => &[&[("timeoutMs", Whole)]],
        "budget.alert" => &[NODE, ALERT, USAGE],
        "node.queued" => &[NODE, QUEUED],
        "node.waiting" => &[NODE, WAITING],
        "node.started" => &[NODE, STARTED, PREPARED],
        "node.stream.delta" => &[NODE, DELTA],
        "node.log" => &[NODE, LOG, PREPARED],
        "node.retried" => &[NODE, RETRIED, USAGE],
        "node.completed" => &[NODE, COMPLETED, USAGE],
        "node.failed" | "node.timed_out" => &[NODE, ERROR, &[("attempts", Whole)], USAGE],
        "node.cancelled" => &[NODE, &[("code", Word)], USAGE],
        "node.skipped" => &[NODE, SKIPPED, ERROR, USAGE],
        "node.blocked" => &[NODE, ERROR, &[("waits", Whole)]],
        "node.provenance" => &[NODE, PROVENANCE],
        "node.invalidated" => &[NODE],
        "moderation.flagged" | "contract.violated" => &[NODE, &[("phase", Word)]],
        "governance.decided" => &[NODE, DECIDED],
        "approval.requested" => &[NODE, REQUESTED, ERROR, PREPARED, USAGE],
        "approval.reminded" => &[NODE, &[("approvalId", Whole), ("level", Word)]],
        "approval.resolved" => &[NODE, RESOLVED],
        // `run.completed`, `run.cancelled` and `run.recovered` say enough by their names.
        _ => &[],
    }
}

/// What is left of a payload, as JSON.
pub(super) fn residue(kind: &str, payload: &Fields<'_>) -> String {
    let mut out = vec![b'{'];
    for (name, keep) in kept(kind).iter().flat_map(|group| group.iter()) {
        let Some(raw) = payload.raw(name) else { continue };
        if out.len() > 1 {
            out.push(b',');
        }
        json(&mut out, name);
        out.push(b':');
        out.extend_from_slice(left(*keep, raw).as_bytes());
    }
    out.push(b'}');
    String::from_utf8(out).expect("JSON is text")
}

fn left(keep: Keep, raw: &RawValue) -> String {
    let text = || serde_json::from_str::<Text<'_>>(raw.get()).ok();
    let stays = match keep {
        Whole => true,
        Word => text().is_some_and(|text| is_word(&text.0)),
        Reason => text().is_some_and(|text| means_something(&text.0)),
        Blank => false,
        Count => return nulls(raw),
    };
    if stays { raw.get().to_owned() } else { "\"\"".to_owned() }
}

/// As codes, models and hashes are: short, and no sentence.
fn is_word(text: &str) -> bool {
    /// Longer than any code, model or hash.
    const WORD_BYTES_MAX: usize = 80;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/@".contains(&byte);
    text.len() <= WORD_BYTES_MAX && text.bytes().all(plain)
}

fn means_something(reason: &str) -> bool {
    [REASON_APPROVAL, REASON_OPERATOR, REASON_RECOVERY, REASON_RETRY, REASON_REWIND]
        .contains(&reason)
}

fn nulls(raw: &RawValue) -> String {
    let items: Vec<serde::de::IgnoredAny> = serde_json::from_str(raw.get()).unwrap_or_default();
    format!("[{}]", vec!["null"; items.len()].join(","))
}
