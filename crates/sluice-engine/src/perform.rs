//! Calls in flight: executes the dispatches that `due` lists.
//!
//! A call is a future that the task of its run polls. Dropping that task therefore stops
//! everything the run has in flight.

use crate::mailbox::Mail;
use crate::moderation::ask::ModeratorClient;
use crate::moderation::stream::ModeratedStream;
use crate::stream::Stream;
use futures_util::FutureExt as _;
use sluice_core::journal::event::StepAt;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, CallErrorCode, Closed, Emission, Execution, Request, ToolUse,
    ToolVerdict, Usage,
};
use sluice_core::port::moderator::{Subject, Verdict};
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(crate) struct FinishedCall {
    pub(crate) at: StepAt,
    pub(crate) dispatch_no: u32,
    pub(crate) execution: Execution,
    /// The moderator's verdict on the result, if it was checked.
    pub(crate) verdict: Option<Verdict>,
}

/// Receives what a call emits and forwards it to the run.
pub(crate) struct CallOutput {
    pub(crate) at: StepAt,
    pub(crate) dispatch_no: u32,
    pub(crate) mailbox: mpsc::Sender<Mail>,
    pub(crate) stream: Arc<Stream>,
}

impl CallOutput {
    async fn send(&self, mail: Mail) -> Result<(), Closed> {
        self.mailbox.send(mail).await.map_err(|_| Closed)
    }

    /// Forwards an emission to the run.
    pub(crate) async fn forward(&self, emission: Emission) -> Result<(), Closed> {
        let (at, dispatch_no) = (self.at, self.dispatch_no);
        match emission {
            Emission::Text(text) => self.stream.text(&text).await,
            Emission::Media { url, mime } => self.stream.media(url, mime).await,
            Emission::ToolEnded(ended) => {
                self.send(Mail::ToolEnded { at, dispatch_no, ended }).await
            }
            Emission::Log(text) => self.send(Mail::Log { at, dispatch_no, text }).await,
            Emission::Process(process) => {
                let (reply, journalled) = oneshot::channel();
                self.send(Mail::Process { at, dispatch_no, process, reply }).await?;
                match journalled.await {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(_)) | Err(_) => Err(Closed),
                }
            }
        }
    }
}

/// The engine's side of one adapter call.
struct AdapterCall {
    output: CallOutput,
    cancel: CancellationToken,
    /// Withholds the output until it is cleared; `None` if the step is not moderated.
    moderated: Option<ModeratedStream>,
}

impl Call for AdapterCall {
    fn emit(&self, emission: Emission) -> Later<'_, Result<(), Closed>> {
        match &self.moderated {
            Some(moderated) => Box::pin(moderated.emit(emission, &self.output)),
            None => Box::pin(self.output.forward(emission)),
        }
    }

    fn tool(&self, wanted: ToolUse) -> Later<'_, Result<ToolVerdict, Closed>> {
        Box::pin(async move {
            // The input of a tool leaves a moderated step as well.
            if let Some(moderated) = &self.moderated
                && !moderated.clears(&wanted.input).await
            {
                return Ok(ToolVerdict::Denied("the moderator did not clear the input".to_owned()));
            }
            let (reply, verdict) = oneshot::channel();
            let (at, dispatch_no) = (self.output.at, self.output.dispatch_no);
            self.output.send(Mail::Tool { at, dispatch_no, wanted, reply }).await?;
            verdict.await.map_err(|_| Closed)
        })
    }

    fn cancelled(&self) -> Later<'_, ()> {
        Box::pin(self.cancel.cancelled())
    }
}

/// Everything a call needs.
pub(crate) struct CallContext {
    pub(crate) adapter: Arc<dyn Adapter>,
    pub(crate) output: CallOutput,
    /// The moderator and the checked step, if the output is moderated.
    pub(crate) moderation: Option<(Arc<ModeratorClient>, Subject)>,
    pub(crate) cancel: CancellationToken,
    pub(crate) grace_ms: u64,
}

/// Calls an adapter. Returns when the adapter does, or a grace period after
/// cancellation; a moderated output is checked first.
pub(crate) async fn call(context: CallContext, request: Request) -> FinishedCall {
    let CallContext { adapter, output, moderation, cancel, grace_ms } = context;
    // A finding cancels this call only.
    let stop = cancel.child_token();
    let moderated = moderation
        .map(|(moderation, subject)| ModeratedStream::new(moderation, subject, stop.clone()));
    let call = AdapterCall { output, cancel: stop.clone(), moderated };
    let (at, dispatch_no) = (call.output.at, call.output.dispatch_no);
    let patience = async {
        stop.cancelled().await;
        tokio::time::sleep(Duration::from_millis(grace_ms)).await;
    };
    // Polled to the end: a release in progress must not be dropped half-way.
    let mut ticks = pin!(async {
        match &call.moderated {
            Some(moderated) => moderated.release_on_timeout(&call.output).await,
            None => pending().await,
        }
    });
    let execution = {
        let work = AssertUnwindSafe(adapter.execute(&request, &call)).catch_unwind();
        tokio::select! {
            biased;
            worked = work => worked.unwrap_or_else(|_| {
                let message = "the adapter panicked";
                Execution::Done(Box::new(abandoned(CallErrorCode::AdapterCrash, message)))
            }),
            () = patience => {
                let message = "the cancelled call did not stop in time and was dropped";
                Execution::Done(Box::new(abandoned(CallErrorCode::Cancelled, message)))
            }
            () = &mut ticks => unreachable!("the timeout loop never ends"),
        }
    };
    let (execution, verdict) = match &call.moderated {
        None => (execution, None),
        Some(moderated) => tokio::select! {
            biased;
            concluded = moderated.conclude(execution, &call.output) => concluded,
            () = &mut ticks => unreachable!("the timeout loop never ends"),
        },
    };
    FinishedCall { at, dispatch_no, execution, verdict }
}

/// The result of a call with unknown cost.
fn abandoned(code: CallErrorCode, message: &str) -> Answer {
    Answer { usage: Usage::unknown(), ..Answer::failed(code, message) }
}
