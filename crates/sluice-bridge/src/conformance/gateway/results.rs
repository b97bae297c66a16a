//! Cases about results.

use super::super::{CaseResult, CaseStop, failed, skipped};
use super::receiver::ReceivedResult;
use super::requests::{Workload, json};
use super::{CaseContext, QUIET, RESULT, Replies};
use crate::limits::CONFORMANCE_ONCE_MS;
use crate::protocol::callback::{CallbackBody, ExecutedDispatch, Status};
use crate::protocol::dispatch::DispatchBody;
use crate::protocol::{DISPATCH_TOKEN, GATEWAY_TOKEN, SYNC_PATH};
use std::time::Duration;
use tokio::time::sleep;

/// Parses a result, and checks its dispatch and both tokens.
pub(super) fn read(
    context: &CaseContext<'_>,
    of: &DispatchBody,
    received: &ReceivedResult,
) -> Result<CallbackBody, CaseStop> {
    let body = match CallbackBody::read(&received.bytes) {
        Ok(body) => body,
        Err(bad) => return failed(format!("the result is malformed: {bad}")),
    };
    if body.dispatch_no.is_none() {
        return failed("the result has no `dispatch_no`");
    }
    if body.key(0) != of.key() {
        return failed("the result belongs to another dispatch");
    }
    if received.header(DISPATCH_TOKEN) != of.dispatch_token.as_deref().unwrap_or_default() {
        return failed(format!("`{DISPATCH_TOKEN}` is not the token of the dispatch"));
    }
    let shown = received.header(GATEWAY_TOKEN);
    match &context.target.token {
        _ if shown.is_empty() => failed(format!("`{GATEWAY_TOKEN}` is missing")),
        Some(token) if token.expose() != shown => {
            failed(format!("`{GATEWAY_TOKEN}` is not the token of the gateway"))
        }
        _ => Ok(body),
    }
}

/// Checks that the work was completed.
fn check_completed(body: &CallbackBody) -> CaseResult {
    if body.status == Status::Completed {
        return Ok(());
    }
    let said = body.error.as_deref().unwrap_or("no reason given");
    failed(format!("the quick work was not completed: {said}"))
}

pub(super) async fn once(context: &CaseContext<'_>) -> CaseResult {
    let body = context.dispatch(Workload::Quick);
    context.submit(&body).await?;
    let received = context.receiver.wait(body.run_id, 1, RESULT).await;
    let Some(first) = received.first() else { return failed("no result arrived") };
    check_completed(&read(context, &body, first)?)?;
    sleep(QUIET).await;
    match context.receiver.received(body.run_id).len() {
        1 => Ok(()),
        times => failed(format!("the result was accepted, but arrived {times} times")),
    }
}

pub(super) async fn same(context: &CaseContext<'_>) -> CaseResult {
    let body = context.dispatch_for(Workload::Slow, CONFORMANCE_ONCE_MS);
    let (first, second) = tokio::join!(context.submit(&body), context.submit(&body));
    first?;
    second?;
    let received = context.receiver.wait(body.run_id, 1, RESULT).await;
    let Some(result) = received.first() else { return failed("no result arrived") };
    read(context, &body, result)?;
    sleep(QUIET).await;
    let times = context.receiver.received(body.run_id).len();
    if times > 1 {
        return failed(format!(
            "the dispatch was sent twice concurrently, and {times} results arrived"
        ));
    }
    // A dispatch is resent when its result may be lost: the result may be delivered again,
    // but the work must not be executed again.
    context.submit(&body).await?;
    sleep(Duration::from_millis(CONFORMANCE_ONCE_MS) + QUIET).await;
    let received = context.receiver.received(body.run_id);
    if received.iter().any(|other| other.body != result.body) {
        return failed("the dispatch was sent again after its end, and was executed again");
    }
    Ok(())
}

pub(super) async fn redelivered(context: &CaseContext<'_>) -> CaseResult {
    let body = context.dispatch(Workload::Quick);
    context.receiver.refuse_once(body.run_id);
    context.submit(&body).await?;
    let received = context.receiver.wait(body.run_id, 2, RESULT).await;
    let [first, second, ..] = &*received else {
        return failed(match received.len() {
            0 => "no result arrived",
            _ => "the result was answered with 503, and was not sent again",
        });
    };
    read(context, &body, second)?;
    if first.body != second.body {
        return failed("the repeated result differs from the first");
    }
    Ok(())
}

pub(super) async fn reply(context: &CaseContext<'_>) -> CaseResult {
    if context.target.replies == Replies::ByCallback {
        return skipped("the gateway does not have the capability `sync`");
    }
    let body = context.dispatch(Workload::Quick);
    let answered = context.post(SYNC_PATH, &json(&body)).await?;
    if answered.status != 200 {
        return failed(format!("the request got status {} instead of 200", answered.status));
    }
    let (run, step, dispatch_no) = (body.run_id, body.step_id.as_str(), body.dispatch_no);
    let worked = ExecutedDispatch { run, step, dispatch_no, from_ms: 0, to_ms: 0 };
    match CallbackBody::read_reply(&answered.bytes, worked) {
        Ok(result) => check_completed(&result)?,
        Err(bad) => return failed(format!("the result is malformed: {bad}")),
    }
    sleep(QUIET).await;
    match context.receiver.received(run).len() {
        0 => Ok(()),
        _ => failed("the result was returned synchronously and also by callback"),
    }
}
