//! Cases about emissions before the end of a call, and about concurrent calls.

use super::super::recording_call::{CallBehaviour, RecordingCall};
use super::super::{CaseResult, CaseStop, failed, skipped};
use super::{AdapterUnderTest, STOP, call, call_within, text};
use crate::limits::CONFORMANCE_AT_ONCE;
use futures_util::future::join_all;
use sluice_core::port::adapter::Request;

fn streaming(subject: &AdapterUnderTest) -> Result<&Request, CaseStop> {
    match &subject.streams {
        Some(request) => Ok(request),
        None => skipped("the subject has no request with a streamed answer"),
    }
}

pub(super) async fn whole(subject: &AdapterUnderTest) -> CaseResult {
    let request = streaming(subject)?;
    let watch = RecordingCall::new(CallBehaviour::Allows);
    let answered = text(call(subject, request, &watch).await?)?;
    let streamed = watch.seen().text();
    if streamed.is_empty() {
        return failed("no text was emitted");
    }
    if !subject.adapter.capabilities().streaming {
        return failed("it streams, but its capabilities do not include `streaming`");
    }
    if streamed == answered {
        return Ok(());
    }
    failed(format!(
        "{} bytes were streamed and {} answered, and they differ",
        streamed.len(),
        answered.len()
    ))
}

pub(super) async fn before(subject: &AdapterUnderTest) -> CaseResult {
    let request = streaming(subject)?;
    let watch = RecordingCall::new(CallBehaviour::Allows);
    call(subject, request, &watch).await?;
    let seen = watch.seen();
    match seen.emitted - seen.accepted.len() {
        0 if seen.emitted == 0 => failed("nothing was emitted"),
        0 => Ok(()),
        left => failed(format!("it answered before {left} of its emissions were accepted")),
    }
}

pub(super) async fn closed(subject: &AdapterUnderTest) -> CaseResult {
    let request = streaming(subject)?;
    let watch = RecordingCall::new(CallBehaviour::Closed);
    let answer = call_within(subject, request, &watch, STOP).await?;
    let emitted = watch.seen().emitted;
    if emitted == 0 {
        return failed("nothing was emitted");
    }
    if emitted > 1 {
        return failed(format!("it emitted {} more times after the call was closed", emitted - 1));
    }
    if answer.error.is_none() {
        return failed("it answered without an error after the call was closed");
    }
    Ok(())
}

pub(super) async fn at_once(subject: &AdapterUnderTest) -> CaseResult {
    let marks: Vec<String> = (0..CONFORMANCE_AT_ONCE).map(|at| format!("mark-{at}-end")).collect();
    let calls = marks.iter().map(|mark| async move {
        let watch = RecordingCall::new(CallBehaviour::Allows);
        let answered = text(call(subject, &(subject.says)(mark), &watch).await?)?;
        Ok((answered, watch.seen().text()))
    });
    for (mark, ended) in marks.iter().zip(join_all(calls).await) {
        let (answered, streamed) = ended?;
        if !answered.contains(mark) {
            return failed("the answer of one call belongs to another");
        }
        let strange = |text: &str| marks.iter().any(|other| other != mark && text.contains(other));
        if strange(&answered) || strange(&streamed) {
            return failed("the text of one call appeared in another");
        }
    }
    Ok(())
}
