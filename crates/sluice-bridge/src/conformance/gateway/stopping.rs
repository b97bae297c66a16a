//! Cases about cancellation and timeouts.

use super::super::{CaseResult, failed};
use super::requests::Workload;
use super::results::read;
use super::{CaseContext, QUIET, RESULT};
use crate::limits::CONFORMANCE_TIMEOUT_MS;
use crate::protocol::callback::Status;
use crate::protocol::dispatch::DispatchBody;
use crate::protocol::{CANCEL_PATH, CancelBody};
use serde_json::Value;
use sluice_core::port::adapter::CallErrorCode;
use std::time::Duration;
use tokio::time::{Instant, sleep};

fn cancel(body: &DispatchBody) -> Value {
    let (run_id, step_id) = (body.run_id, body.step_id.clone());
    let cancel = CancelBody { run_id, step_id, dispatch_no: body.dispatch_no };
    serde_json::to_value(cancel).unwrap_or_default()
}

pub(super) async fn cancelled(context: &CaseContext<'_>) -> CaseResult {
    let unknown = context.dispatch(Workload::Slow);
    let status = context.post(CANCEL_PATH, &cancel(&unknown)).await?.status;
    if status != 404 {
        return failed(format!(
            "cancelling an unknown dispatch got status {status} instead of 404"
        ));
    }
    let body = context.dispatch(Workload::Slow);
    context.submit(&body).await?;
    sleep(QUIET / 2).await;
    if !context.receiver.received(body.run_id).is_empty() {
        return failed("the slow work ended before it could be cancelled");
    }
    let answered = context.post(CANCEL_PATH, &cancel(&body)).await?;
    if answered.status != 200 || answered.body["status"] != "cancelling" {
        let (status, said) = (answered.status, &answered.body["status"]);
        return failed(format!(
            "cancelling got status {status}, {said} instead of 200, \"cancelling\""
        ));
    }
    let received = context.receiver.wait(body.run_id, 1, RESULT).await;
    let Some(first) = received.first() else { return failed("no result arrived") };
    let result = read(context, &body, first)?;
    let code = result.error_code.as_deref().unwrap_or_default();
    if result.status != Status::Failed || code != CallErrorCode::Cancelled.as_str() {
        return failed(format!(
            "the result is {}, `{code}` instead of \"failed\", `cancelled`",
            first.body["status"]
        ));
    }
    let answered = context.post(CANCEL_PATH, &cancel(&body)).await?;
    if answered.status != 200 {
        return failed(format!(
            "cancelling an ended dispatch got status {} instead of 200",
            answered.status
        ));
    }
    Ok(())
}

pub(super) async fn timed_out(context: &CaseContext<'_>) -> CaseResult {
    let (body, began) =
        (context.dispatch_for(Workload::Slow, CONFORMANCE_TIMEOUT_MS), Instant::now());
    context.submit(&body).await?;
    let received = context.receiver.wait(body.run_id, 1, RESULT).await;
    let Some(first) = received.first() else { return failed("no result arrived") };
    let result = read(context, &body, first)?;
    if result.status != Status::TimedOut {
        return failed(format!("the result is {} instead of \"timed_out\"", first.body["status"]));
    }
    if began.elapsed() < Duration::from_millis(CONFORMANCE_TIMEOUT_MS) {
        return failed("the timeout has not passed yet");
    }
    Ok(())
}
