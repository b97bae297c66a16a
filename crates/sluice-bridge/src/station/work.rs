//! Life cycle of one dispatch: recorded, executed, recorded with its result, delivered.

use super::Inner;
use super::book::{Phase, Work};
use super::deliver;
use super::line::Line;
use super::outbox::Outbox;
use super::spool::kept::{Kept, State};
use crate::limits::PARTS_FLUSH_MS;
use crate::protocol::callback::{CallbackBody, Worked};
use crate::protocol::dispatch::DispatchBody;
use crate::protocol::parts::PartsBody;
use futures_util::FutureExt as _;
use sluice_core::port::adapter::{
    Adapter, Answer, CallError, CallErrorCode, Execution, Request, Usage,
};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// An admitted dispatch with everything that is needed to execute it.
pub(super) struct Begun {
    pub(super) body: DispatchBody,
    pub(super) adapter: Arc<dyn Adapter>,
    pub(super) work: Work,
    /// Its permit among the running dispatches.
    pub(super) place: OwnedSemaphorePermit,
}

/// Executes the dispatch, or drops it when the drain time is over.
pub(super) async fn live(inner: Arc<Inner>, begun: Begun) {
    let gone = inner.gone.clone();
    tokio::select! {
        biased;
        () = gone.cancelled() => {}
        () = to_its_end(inner, begun) => {}
    }
}

async fn to_its_end(inner: Arc<Inner>, begun: Begun) {
    let Begun { body, adapter, work, place } = begun;
    let key = body.key();
    let begun_ms = inner.clock.now_ms();
    let kept = Kept::accepted(&body, begun_ms);
    if let Err(error) = inner.spool.write(key, &kept).await {
        tracing::error!(%error, "refused a dispatch: cannot write it to the spool");
        inner.book.forget(key);
        work.phase.send_replace(Phase::Refused);
        return;
    }
    // The spool and the adapter's request have the body; the record in memory does not need
    // it.
    let kept = Kept { dispatch: None, ..kept };
    work.phase.send_replace(Phase::Running);
    let request = body.request(&inner.settings.gateway);
    let outbox = Outbox::new(&body).map(Arc::new);
    let line = Line::new(Arc::clone(&inner), &body, work.cancel.clone(), outbox.clone());
    drop(body);
    let performed = perform(&inner, &*adapter, &request, &line, &work);
    let (answer, parts) = match &outbox {
        Some(outbox) => telling(&inner, outbox, performed).await,
        None => (performed.await, Vec::new()),
    };
    drop(place);
    let worked = Worked {
        run: request.run,
        step: &request.step,
        dispatch_no: request.dispatch_no,
        from_ms: begun_ms,
        to_ms: inner.clock.now_ms(),
    };
    let result = CallbackBody::new(worked, answer);
    let kept = kept.finished(result.clone(), parts, worked.to_ms);
    if let Err(error) = inner.spool.write(key, &kept).await {
        // The result is delivered all the same, but only by this process.
        tracing::error!(%error, "cannot write a result to the spool");
    }
    inner.book.keep(key, State::Finished, worked.to_ms);
    inner.hub.end(line.whose());
    work.phase.send_replace(Phase::Done(Arc::new(result)));
    deliver::hand_over(inner, kept, work.taken).await;
}

/// Executes the work while the outbox sends parts of its answer. Also returns the parts that
/// the engine does not have when the work ends.
async fn telling(
    inner: &Inner,
    outbox: &Outbox,
    work: impl Future<Output = Answer>,
) -> (Answer, Vec<PartsBody>) {
    let (mut work, mut sending) = (pin!(work), pin!(outbox.run(inner)));
    let mut ended = false;
    let answer = loop {
        tokio::select! {
            biased;
            answer = &mut work => break answer,
            () = &mut sending, if !ended => ended = true,
        }
    };
    outbox.close();
    if !ended {
        let patience = Duration::from_millis(PARTS_FLUSH_MS);
        let _ = tokio::time::timeout(patience, sending).await;
    }
    (answer, outbox.rest())
}

/// Executes the work until it ends, times out or is cancelled.
async fn perform(
    inner: &Inner,
    adapter: &dyn Adapter,
    request: &Request,
    line: &Line,
    work: &Work,
) -> Answer {
    let mut doing = pin!(AssertUnwindSafe(adapter.execute(request, line)).catch_unwind());
    let stop = tokio::select! {
        biased;
        done = &mut doing => return said(done.ok()),
        () = work.cancel.cancelled() => None,
        () = tokio::time::sleep(Duration::from_millis(request.timeout_ms)) => {
            Some(timeout(request.timeout_ms))
        }
    };
    work.cancel.cancel();
    let stopped = tokio::time::timeout(inner.settings.grace, doing).await;
    let answer = match stopped {
        Ok(done) => said(done.ok()),
        Err(_) => {
            let message = "the adapter did not stop when cancelled and was dropped";
            unpaid(Answer::failed(CallErrorCode::Cancelled, message))
        }
    };
    match stop {
        // The answer came after the timeout and is discarded, but its cost is real.
        Some(late) => Answer { error: Some(late), usage: answer.usage, ..Answer::default() },
        None => answer,
    }
}

fn timeout(ms: u64) -> CallError {
    let message = format!("the adapter took longer than {ms} ms");
    CallError { code: CallErrorCode::Timeout, message, retry_after_ms: None }
}

/// The adapter's answer; `None` means that it panicked.
fn said(execution: Option<Execution>) -> Answer {
    match execution {
        Some(Execution::Done(answer)) => *answer,
        Some(Execution::Accepted) => {
            let message = "the adapter deferred the work, which a bridge does not support";
            unpaid(Answer::failed(CallErrorCode::ProviderError, message))
        }
        None => unpaid(Answer::failed(CallErrorCode::AdapterCrash, "the adapter panicked")),
    }
}

/// Marks the cost of an answer as unknown.
fn unpaid(answer: Answer) -> Answer {
    Answer { usage: Usage::unknown(), ..answer }
}
