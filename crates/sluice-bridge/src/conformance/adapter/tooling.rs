//! Cases about tool calls.

use super::super::watch::{Manner, Seen, Watch};
use super::super::{Stop, Tried, failed, skipped};
use super::{Subject, call};

/// Runs the request that needs a tool. Returns what was recorded, and the number of tool calls.
async fn work(subject: &Subject, manner: Manner) -> Result<(Seen, usize), Stop> {
    let Some(tools) = &subject.tools else {
        return skipped("the subject has no request that needs a tool");
    };
    let before = (tools.called)();
    let since = || (tools.called)() - before;
    let watch = Watch::counting(manner, &since);
    // A model without its tool may fail, which does not matter here.
    call(subject, &tools.request, &watch).await?;
    Ok((watch.seen(), since()))
}

pub(super) async fn asked(subject: &Subject) -> Tried {
    let (seen, called) = work(subject, Manner::Takes).await?;
    if called == 0 {
        return failed("no tool was called");
    }
    // The n-th request must come before the n-th call.
    for (at, (tool, before)) in seen.asked.iter().enumerate() {
        if *before > at {
            return failed(format!(
                "`{tool}` was requested after a tool call that was not requested"
            ));
        }
    }
    if seen.asked.len() < called {
        let times = seen.asked.len();
        return failed(format!("tools were called {called} times but requested {times} times"));
    }
    Ok(())
}

pub(super) async fn denied(subject: &Subject) -> Tried {
    let (seen, called) = work(subject, Manner::Denies).await?;
    if called > 0 {
        return failed(format!("tools were called {called} times though all were denied"));
    }
    if seen.asked.is_empty() {
        return failed("no tool was requested");
    }
    Ok(())
}
