//! What is left of a payload when it is erased.
//!
//! The declaration of an event says what is kept of each field. Fields that are not declared
//! are removed.

use super::fields::{Fields, Text};
use super::object::json;
use crate::journal::declare::Keep;
use crate::journal::event::{StepEvent, declarations};
use crate::status::{
    REASON_APPROVAL, REASON_OPERATOR, REASON_RECOVERY, REASON_RETRY, REASON_REWIND,
};
use serde_json::value::RawValue;

/// What erasure leaves of each field of an event.
fn kept(kind: &str) -> Vec<(&'static str, Keep)> {
    let mut kept = Vec::new();
    if StepEvent::DECLARED.iter().any(|declared| declared.name == kind) {
        kept.push(("nodeId", Keep::Whole));
    }
    for declared in declarations().filter(|declared| declared.name == kind) {
        (declared.kept)(&mut |name, keep| {
            if !kept.iter().any(|(found, _)| *found == name) {
                kept.push((name, keep));
            }
        });
    }
    kept.retain(|(_, keep)| *keep != Keep::Gone);
    kept
}

/// What is left of a payload, as JSON.
pub(super) fn residue(kind: &str, payload: &Fields<'_>) -> String {
    let mut out = vec![b'{'];
    for (name, keep) in kept(kind) {
        let Some(raw) = payload.raw(name) else { continue };
        if out.len() > 1 {
            out.push(b',');
        }
        json(&mut out, name);
        out.push(b':');
        out.extend_from_slice(left(keep, raw).as_bytes());
    }
    out.push(b'}');
    String::from_utf8(out).expect("JSON is text")
}

fn left(keep: Keep, raw: &RawValue) -> String {
    let text = || serde_json::from_str::<Text<'_>>(raw.get()).ok();
    let stays = match keep {
        Keep::Whole => true,
        Keep::Word => text().is_some_and(|text| is_word(&text.0)),
        Keep::Reason => text().is_some_and(|text| is_known_reason(&text.0)),
        Keep::Blank | Keep::Gone => false,
        Keep::Count => return nulls(raw),
    };
    if stays { raw.get().to_owned() } else { "\"\"".to_owned() }
}

/// Whether a text is one short word, as codes, model names and hashes are.
fn is_word(text: &str) -> bool {
    /// Longer than any code, model or hash.
    const WORD_BYTES_MAX: usize = 80;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/@".contains(&byte);
    text.len() <= WORD_BYTES_MAX && text.bytes().all(plain)
}

/// Whether the fold acts on this reason.
fn is_known_reason(reason: &str) -> bool {
    [REASON_APPROVAL, REASON_OPERATOR, REASON_RECOVERY, REASON_RETRY, REASON_REWIND]
        .contains(&reason)
}

fn nulls(raw: &RawValue) -> String {
    let items: Vec<serde::de::IgnoredAny> = serde_json::from_str(raw.get()).unwrap_or_default();
    format!("[{}]", vec!["null"; items.len()].join(","))
}
