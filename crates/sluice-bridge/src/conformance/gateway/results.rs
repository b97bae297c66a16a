//! Cases about results.

use super::super::{Stop, Tried, failed, skipped};
use super::ask::{Pace, json};
use super::receiver::Result as Came;
use super::{Bench, QUIET, RESULT, Replies};
use crate::limits::CONFORMANCE_ONCE_MS;
use crate::protocol::callback::{CallbackBody, Status, Worked};
use crate::protocol::dispatch::DispatchBody;
use crate::protocol::{DISPATCH_TOKEN, GATEWAY_TOKEN, SYNC_PATH};
use std::time::Duration;
use tokio::time::sleep;

/// Parses a result, and checks its dispatch and both tokens.
pub(super) fn read(
    bench: &Bench<'_>,
    of: &DispatchBody,
    came: &Came,
) -> Result<CallbackBody, Stop> {
    let body = match CallbackBody::read(&came.bytes) {
        Ok(body) => body,
        Err(bad) => return failed(format!("the result is malformed: {bad}")),
    };
    if body.dispatch_no.is_none() {
        return failed("the result has no `dispatch_no`");
    }
    if body.key(0) != of.key() {
        return failed("the result belongs to another dispatch");
    }
    if came.header(DISPATCH_TOKEN) != of.dispatch_token.as_deref().unwrap_or_default() {
        return failed(format!("`{DISPATCH_TOKEN}` is not the token of the dispatch"));
    }
    let shown = came.header(GATEWAY_TOKEN);
    match &bench.target.token {
        _ if shown.is_empty() => failed(format!("`{GATEWAY_TOKEN}` is missing")),
        Some(token) if token.expose() != shown => {
            failed(format!("`{GATEWAY_TOKEN}` is not the token of the gateway"))
        }
        _ => Ok(body),
    }
}

/// Checks that the work was completed.
fn done(body: &CallbackBody) -> Tried {
    if body.status == Status::Completed {
        return Ok(());
    }
    let said = body.error.as_deref().unwrap_or("no reason given");
    failed(format!("the quick work was not completed: {said}"))
}

pub(super) async fn once(bench: &Bench<'_>) -> Tried {
    let body = bench.dispatch(Pace::Quick);
    bench.leave(&body).await?;
    let came = bench.receiver.wait(body.run_id, 1, RESULT).await;
    let Some(first) = came.first() else { return failed("no result arrived") };
    done(&read(bench, &body, first)?)?;
    sleep(QUIET).await;
    match bench.receiver.came(body.run_id).len() {
        1 => Ok(()),
        times => failed(format!("the result was accepted, but arrived {times} times")),
    }
}

pub(super) async fn same(bench: &Bench<'_>) -> Tried {
    let body = bench.dispatch_for(Pace::Slow, CONFORMANCE_ONCE_MS);
    let (first, second) = tokio::join!(bench.leave(&body), bench.leave(&body));
    first?;
    second?;
    let came = bench.receiver.wait(body.run_id, 1, RESULT).await;
    let Some(result) = came.first() else { return failed("no result arrived") };
    read(bench, &body, result)?;
    sleep(QUIET).await;
    let times = bench.receiver.came(body.run_id).len();
    if times > 1 {
        return failed(format!(
            "the dispatch was sent twice concurrently, and {times} results arrived"
        ));
    }
    // A dispatch is resent when its result may be lost: the result may be delivered again,
    // but the work must not be executed again.
    bench.leave(&body).await?;
    sleep(Duration::from_millis(CONFORMANCE_ONCE_MS) + QUIET).await;
    let came = bench.receiver.came(body.run_id);
    if came.iter().any(|other| other.body != result.body) {
        return failed("the dispatch was sent again after its end, and was executed again");
    }
    Ok(())
}

pub(super) async fn again(bench: &Bench<'_>) -> Tried {
    let body = bench.dispatch(Pace::Quick);
    bench.receiver.refuse_once(body.run_id);
    bench.leave(&body).await?;
    let came = bench.receiver.wait(body.run_id, 2, RESULT).await;
    let [first, second, ..] = &*came else {
        return failed(match came.len() {
            0 => "no result arrived",
            _ => "the result was answered with 503, and was not sent again",
        });
    };
    read(bench, &body, second)?;
    if first.body != second.body {
        return failed("the repeated result differs from the first");
    }
    Ok(())
}

pub(super) async fn reply(bench: &Bench<'_>) -> Tried {
    if bench.target.replies == Replies::ByCallback {
        return skipped("the gateway does not have the capability `sync`");
    }
    let body = bench.dispatch(Pace::Quick);
    let answered = bench.post(SYNC_PATH, &json(&body)).await?;
    if answered.status != 200 {
        return failed(format!("the request got status {} instead of 200", answered.status));
    }
    let (run, step, dispatch_no) = (body.run_id, body.step_id.as_str(), body.dispatch_no);
    let worked = Worked { run, step, dispatch_no, from_ms: 0, to_ms: 0 };
    match CallbackBody::read_reply(&answered.bytes, worked) {
        Ok(result) => done(&result)?,
        Err(bad) => return failed(format!("the result is malformed: {bad}")),
    }
    sleep(QUIET).await;
    match bench.receiver.came(run).len() {
        0 => Ok(()),
        _ => failed("the result was returned synchronously and also by callback"),
    }
}
