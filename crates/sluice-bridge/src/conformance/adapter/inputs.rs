//! Cases about unusual inputs: minimal, long and odd ones.

use super::super::recording_call::{CallBehaviour, RecordingCall};
use super::super::{CaseResult, CaseStop, failed};
use super::{AdapterUnderTest, call, code, request};
use crate::limits::CONFORMANCE_MESSAGE_BYTES;
use sluice_core::port::adapter::{CallErrorCode, Request};

/// Texts that often break programs.
const ODD: [&str; 12] = [
    "",
    "\0",
    "before\0after",
    "\u{301}",
    "a\u{301}\u{301}\u{301}",
    "\u{202e}right to left\u{202c}",
    "שלום עליכם",
    "👩‍👩‍👧‍👦",
    "\u{feff}\u{200b}",
    "\r\n\t\u{7f}\u{1b}[2J",
    "'\"`$(echo x)${x}\\",
    "data: x\n\ndata: [DONE]\n\n",
];

/// Succeeds, or fails with `invalid_request`.
async fn check_accepted(subject: &AdapterUnderTest, request: &Request) -> CaseResult {
    let answer = call(subject, request, &RecordingCall::new(CallBehaviour::Allows)).await?;
    match code(&answer) {
        None | Some(CallErrorCode::InvalidRequest) => Ok(()),
        Some(other) => {
            failed(format!("its error is `{}` instead of `invalid_request`", other.as_str()))
        }
    }
}

pub(super) async fn bare(subject: &AdapterUnderTest) -> CaseResult {
    let whole = (subject.says)("conformance");
    let (run, step) = (whole.run, whole.step);
    let bare = Request { run, step, timeout_ms: whole.timeout_ms, ..request(&whole.message) };
    check_accepted(subject, &bare).await
}

pub(super) async fn long(subject: &AdapterUnderTest) -> CaseResult {
    let long = "0123456789abcdef".repeat(CONFORMANCE_MESSAGE_BYTES / 16);
    check_accepted(subject, &(subject.says)(&long)).await
}

pub(super) async fn odd(subject: &AdapterUnderTest) -> CaseResult {
    for text in ODD {
        let named = |stop| match stop {
            CaseStop::Failed(why) => CaseStop::Failed(format!("given {text:?}: {why}")),
            skipped @ CaseStop::Skipped(_) => skipped,
        };
        // Any answer is accepted, also an error: only a panic or a hang fails.
        let made = (subject.says)(text);
        call(subject, &made, &RecordingCall::new(CallBehaviour::Allows)).await.map_err(named)?;
    }
    Ok(())
}
