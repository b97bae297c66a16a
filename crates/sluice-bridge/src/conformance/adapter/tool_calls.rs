//! Cases about tool calls.

use super::super::recording_call::{CallBehaviour, RecordedCall, RecordingCall};
use super::super::{CaseResult, CaseStop, failed, skipped};
use super::{AdapterUnderTest, call};

/// Runs the request that needs a tool. Returns what was recorded, and the number of tool calls.
async fn work(
    subject: &AdapterUnderTest,
    manner: CallBehaviour,
) -> Result<(RecordedCall, usize), CaseStop> {
    let Some(tools) = &subject.tools else {
        return skipped("the subject has no request that needs a tool");
    };
    let before = (tools.called)();
    let since = || (tools.called)() - before;
    let watch = RecordingCall::counting(manner, &since);
    // A model without its tool may fail, which does not matter here.
    call(subject, &tools.request, &watch).await?;
    Ok((watch.seen(), since()))
}

pub(super) async fn asked(subject: &AdapterUnderTest) -> CaseResult {
    let (seen, called) = work(subject, CallBehaviour::Allows).await?;
    if called == 0 {
        return failed("no tool was called");
    }
    // The n-th request must come before the n-th call.
    for (at, (tool, before)) in seen.requested.iter().enumerate() {
        if *before > at {
            return failed(format!(
                "`{tool}` was requested after a tool call that was not requested"
            ));
        }
    }
    if seen.requested.len() < called {
        let times = seen.requested.len();
        return failed(format!("tools were called {called} times but requested {times} times"));
    }
    Ok(())
}

pub(super) async fn denied(subject: &AdapterUnderTest) -> CaseResult {
    let (seen, called) = work(subject, CallBehaviour::Denies).await?;
    if called > 0 {
        return failed(format!("tools were called {called} times though all were denied"));
    }
    if seen.requested.is_empty() {
        return failed("no tool was requested");
    }
    Ok(())
}
