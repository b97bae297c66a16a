//! Cases about the end of calls: answered, cancelled, dropped, timed out, failed.

use super::super::recording_call::{CallBehaviour, RecordingCall};
use super::super::{CaseResult, failed, skipped};
use super::{AdapterUnderTest, Count, STOP, call, call_within, code, text};
use crate::limits::{
    CONFORMANCE_BEGIN_MS, CONFORMANCE_LOOK_MS, CONFORMANCE_SEEN_MS, CONFORMANCE_TIMEOUT_MS,
};
use sluice_core::port::adapter::{CallErrorCode, Request};
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout as within};

const BEGIN: Duration = Duration::from_millis(CONFORMANCE_BEGIN_MS);
const SEEN: Duration = Duration::from_millis(CONFORMANCE_SEEN_MS);

pub(super) async fn answers(subject: &AdapterUnderTest) -> CaseResult {
    let said = "conformance";
    let answer =
        call(subject, &(subject.says)(said), &RecordingCall::new(CallBehaviour::Allows)).await?;
    let text = text(answer)?;
    if text.contains(said) {
        return Ok(());
    }
    failed("its answer does not contain the requested text")
}

pub(super) async fn cancelled(subject: &AdapterUnderTest) -> CaseResult {
    if !subject.adapter.capabilities().cancel {
        return skipped("its capabilities do not include `cancel`");
    }
    let watch = RecordingCall::new(CallBehaviour::Allows);
    let mut doing = pin!(call_within(subject, &subject.slow, &watch, BEGIN + STOP + STOP));
    if let Ok(ended) = within(BEGIN, &mut doing).await {
        ended?;
        return failed("the slow request ended before it could be cancelled");
    }
    watch.cancel.cancel();
    let Ok(answer) = within(STOP, doing).await else {
        let ms = STOP.as_millis();
        return failed(format!("it did not end within {ms} ms of being cancelled"));
    };
    let answer = answer?;
    match code(&answer) {
        Some(CallErrorCode::Cancelled) => Ok(()),
        Some(other) => failed(format!("its error is `{}` instead of `cancelled`", other.as_str())),
        None => failed("it answered without an error"),
    }
}

pub(super) async fn dropped(subject: &AdapterUnderTest) -> CaseResult {
    let Some(underway) = &subject.underway else {
        return skipped("the subject has no `underway` to observe its work");
    };
    if !rests(underway).await {
        return failed("the work of an earlier call continues");
    }
    let watch = RecordingCall::new(CallBehaviour::Allows);
    tokio::select! {
        ended = call(subject, &subject.slow, &watch) => {
            ended?;
            return failed("the slow request ended before it could be dropped");
        }
        seen = becomes(underway, |count| count > 0, SEEN) => {
            if !seen {
                return failed("`underway` does not show its work");
            }
        }
    }
    if rests(underway).await {
        return Ok(());
    }
    failed(format!("its work continues {} ms after the call was dropped", STOP.as_millis()))
}

/// Whether no work is in progress, or soon none is.
async fn rests(underway: &Count) -> bool {
    becomes(underway, |count| count == 0, STOP).await
}

/// Whether a count reaches the wanted state in time.
async fn becomes(underway: &Count, wanted: fn(usize) -> bool, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    while !wanted(underway()) {
        if Instant::now() >= until {
            return false;
        }
        sleep(Duration::from_millis(CONFORMANCE_LOOK_MS)).await;
    }
    true
}

pub(super) async fn timeout(subject: &AdapterUnderTest) -> CaseResult {
    let request = Request { timeout_ms: CONFORMANCE_TIMEOUT_MS, ..subject.slow.clone() };
    let given = Duration::from_millis(CONFORMANCE_TIMEOUT_MS);
    let (watch, began) = (RecordingCall::new(CallBehaviour::Allows), Instant::now());
    let doing = call_within(subject, &request, &watch, given + STOP + STOP);
    let Ok(answer) = within(given + STOP, doing).await else {
        return skipped("it has no timeout of its own; the engine drops the call");
    };
    let answer = answer?;
    match code(&answer) {
        Some(CallErrorCode::Timeout) if began.elapsed() < given => {
            failed("its error is `timeout` before the timeout has passed")
        }
        Some(CallErrorCode::Timeout) => Ok(()),
        Some(other) => failed(format!("its error is `{}` instead of `timeout`", other.as_str())),
        None => failed("it answered without an error"),
    }
}

pub(super) async fn fails(subject: &AdapterUnderTest) -> CaseResult {
    let Some(request) = &subject.fails else {
        return skipped("the subject has no request that fails");
    };
    let answer = call(subject, request, &RecordingCall::new(CallBehaviour::Allows)).await?;
    match answer.error {
        None => failed("the request that should fail was answered without an error"),
        Some(error) if error.message.trim().is_empty() => failed("the error message is empty"),
        Some(_) => Ok(()),
    }
}
