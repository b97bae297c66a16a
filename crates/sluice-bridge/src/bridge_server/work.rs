//! Life cycle of one dispatch: recorded, executed, recorded with its result, delivered.

use super::Inner;
use super::deliver;
use super::dispatch_call::DispatchCall;
use super::dispatch_table::{DispatchPhase, DispatchWork};
use super::outbox::Outbox;
use super::spool::record::{SpoolRecord, SpoolState};
use crate::limits::PARTS_FLUSH_MS;
use crate::protocol::callback::{CallbackBody, ExecutedDispatch};
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
pub(super) struct AdmittedDispatch {
    pub(super) body: DispatchBody,
    pub(super) adapter: Arc<dyn Adapter>,
    pub(super) work: DispatchWork,
    /// Its permit among the running dispatches.
    pub(super) permit: OwnedSemaphorePermit,
}

/// Executes the dispatch, or drops it when the drain time is over.
pub(super) async fn run(inner: Arc<Inner>, admitted: AdmittedDispatch) {
    let gone = inner.gone.clone();
    tokio::select! {
        biased;
        () = gone.cancelled() => {}
        () = execute_dispatch(inner, admitted) => {}
    }
}

async fn execute_dispatch(inner: Arc<Inner>, admitted: AdmittedDispatch) {
    let AdmittedDispatch { body, adapter, work, permit } = admitted;
    let key = body.key();
    let begun_ms = inner.clock.now_ms();
    let record = SpoolRecord::accepted(&body, begun_ms);
    if let Err(error) = inner.spool.write(key, &record).await {
        tracing::error!(%error, "refused a dispatch: cannot write it to the spool");
        inner.dispatches.remove(key);
        work.phase.send_replace(DispatchPhase::Refused);
        return;
    }
    // The spool and the adapter's request have the body; the record in memory does not need
    // it.
    let record = SpoolRecord { dispatch: None, ..record };
    work.phase.send_replace(DispatchPhase::Running);
    let request = body.request(&inner.settings.gateway);
    let outbox = Outbox::new(&body).map(Arc::new);
    let call = DispatchCall::new(Arc::clone(&inner), &body, work.cancel.clone(), outbox.clone());
    drop(body);
    let performed = perform(&inner, &*adapter, &request, &call, &work);
    let (answer, parts) = match &outbox {
        Some(outbox) => execute_and_stream(&inner, outbox, performed).await,
        None => (performed.await, Vec::new()),
    };
    drop(permit);
    let worked = ExecutedDispatch {
        run: request.run,
        step: &request.step,
        dispatch_no: request.dispatch_no,
        from_ms: begun_ms,
        to_ms: inner.clock.now_ms(),
    };
    let result = CallbackBody::new(worked, answer);
    let record = record.finished(result.clone(), parts, worked.to_ms);
    if let Err(error) = inner.spool.write(key, &record).await {
        // The result is delivered all the same, but only by this process.
        tracing::error!(%error, "cannot write a result to the spool");
    }
    inner.dispatches.record(key, SpoolState::Finished, worked.to_ms);
    inner.hub.publish_last(call.dispatch());
    work.phase.send_replace(DispatchPhase::Ended(Arc::new(result)));
    deliver::return_or_deliver(inner, record, work.received).await;
}

/// Executes the work while the outbox sends parts of its answer. Also returns the parts that
/// the engine does not have when the work ends.
async fn execute_and_stream(
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
    (answer, outbox.drain())
}

/// Executes the work until it ends, times out or is cancelled.
async fn perform(
    inner: &Inner,
    adapter: &dyn Adapter,
    request: &Request,
    call: &DispatchCall,
    work: &DispatchWork,
) -> Answer {
    let mut doing = pin!(AssertUnwindSafe(adapter.execute(request, call)).catch_unwind());
    let stop = tokio::select! {
        biased;
        done = &mut doing => return into_answer(done.ok()),
        () = work.cancel.cancelled() => None,
        () = tokio::time::sleep(Duration::from_millis(request.timeout_ms)) => {
            Some(timeout_error(request.timeout_ms))
        }
    };
    work.cancel.cancel();
    let stopped = tokio::time::timeout(inner.settings.grace, doing).await;
    let answer = match stopped {
        Ok(done) => into_answer(done.ok()),
        Err(_) => {
            let message = "the adapter did not stop when cancelled and was dropped";
            with_unknown_cost(Answer::failed(CallErrorCode::Cancelled, message))
        }
    };
    match stop {
        // The answer came after the timeout and is discarded, but its cost is real.
        Some(late) => Answer { error: Some(late), usage: answer.usage, ..Answer::default() },
        None => answer,
    }
}

fn timeout_error(ms: u64) -> CallError {
    let message = format!("the adapter took longer than {ms} ms");
    CallError { code: CallErrorCode::Timeout, message, retry_after_ms: None }
}

/// The adapter's answer; `None` means that it panicked.
fn into_answer(execution: Option<Execution>) -> Answer {
    match execution {
        Some(Execution::Done(answer)) => *answer,
        Some(Execution::Accepted) => {
            let message = "the adapter deferred the work, which a bridge does not support";
            with_unknown_cost(Answer::failed(CallErrorCode::ProviderError, message))
        }
        None => {
            with_unknown_cost(Answer::failed(CallErrorCode::AdapterCrash, "the adapter panicked"))
        }
    }
}

/// Marks the cost of an answer as unknown.
fn with_unknown_cost(answer: Answer) -> Answer {
    Answer { usage: Usage::unknown(), ..answer }
}
