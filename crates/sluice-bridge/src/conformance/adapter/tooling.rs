//! Who may call tools.

use super::super::watch::{Manner, Seen, Watch};
use super::super::{Stop, Tried, failed, skipped};
use super::{Subject, call};

/// Does what needs a tool. Answers with what was seen, and how often a tool was called.
async fn work(subject: &Subject, manner: Manner) -> Result<(Seen, usize), Stop> {
    let Some(tools) = &subject.tools else {
        return skipped("no request is known that needs a tool");
    };
    let before = (tools.called)();
    let since = || (tools.called)() - before;
    let watch = Watch::counting(manner, &since);
    // A model that may not use a tool may well fail: that is no matter here.
    call(subject, &tools.request, &watch).await?;
    Ok((watch.seen(), since()))
}

pub(super) async fn asked(subject: &Subject) -> Tried {
    let (seen, called) = work(subject, Manner::Takes).await?;
    if called == 0 {
        return failed("no tool was called");
    }
    // The first is asked for before any is called, the second before two are, …
    for (at, (tool, before)) in seen.asked.iter().enumerate() {
        if *before > at {
            return failed(format!("`{tool}` was asked for after a call that nobody asked about"));
        }
    }
    if seen.asked.len() < called {
        let times = seen.asked.len();
        return failed(format!("tools were called {called} times and asked for {times} times"));
    }
    Ok(())
}

pub(super) async fn denied(subject: &Subject) -> Tried {
    let (seen, called) = work(subject, Manner::Denies).await?;
    if called > 0 {
        return failed(format!("tools were called {called} times though all were denied"));
    }
    if seen.asked.is_empty() {
        return failed("nobody was asked");
    }
    Ok(())
}
