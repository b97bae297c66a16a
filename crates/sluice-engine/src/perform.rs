//! Calls in flight: what `due` says is to be done, done.
//!
//! A call is a future that its run's own task polls. Dropping the run's task
//! therefore stops everything the run has under way.

use crate::mail::Mail;
use crate::stream::Stream;
use futures_util::FutureExt as _;
use sluice_core::journal::event::StepAt;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, CallErrorCode, Closed, Emission, Execution, Request, Usage,
};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// A call that is over.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) at: StepAt,
    pub(crate) dispatch_no: u32,
    pub(crate) execution: Execution,
}

/// The engine's end of one call.
struct Line {
    at: StepAt,
    dispatch_no: u32,
    mailbox: mpsc::Sender<Mail>,
    stream: Arc<Stream>,
    cancel: CancellationToken,
}

impl Line {
    async fn send(&self, mail: Mail) -> Result<(), Closed> {
        self.mailbox.send(mail).await.map_err(|_| Closed)
    }
}

impl Call for Line {
    fn emit(&self, emission: Emission) -> Later<'_, Result<(), Closed>> {
        let (at, dispatch_no) = (self.at, self.dispatch_no);
        Box::pin(async move {
            match emission {
                Emission::Text(text) => self.stream.text(&text).await,
                Emission::Media { url, mime } => self.stream.media(url, mime).await,
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
        })
    }

    fn cancelled(&self) -> Later<'_, ()> {
        Box::pin(self.cancel.cancelled())
    }
}

/// What ties a call to its run.
pub(crate) struct Ends {
    pub(crate) mailbox: mpsc::Sender<Mail>,
    pub(crate) stream: Arc<Stream>,
    pub(crate) cancel: CancellationToken,
}

/// Calls an adapter. Ends when the adapter does, or a grace after `cancel`.
pub(crate) async fn call(
    adapter: Arc<dyn Adapter>,
    at: StepAt,
    request: Request,
    ends: Ends,
    grace_ms: u64,
) -> Done {
    let Ends { mailbox, stream, cancel } = ends;
    let dispatch_no = request.dispatch_no;
    let line = Line { at, dispatch_no, mailbox, stream, cancel: cancel.clone() };
    let work = AssertUnwindSafe(adapter.execute(&request, &line)).catch_unwind();
    let patience = async {
        cancel.cancelled().await;
        tokio::time::sleep(Duration::from_millis(grace_ms)).await;
    };
    let execution = tokio::select! {
        biased;
        worked = work => worked.unwrap_or_else(|_| {
            let message = "the adapter broke off";
            Execution::Done(Box::new(abandoned(CallErrorCode::AdapterCrash, message)))
        }),
        () = patience => {
            let message = "it did not stop when asked and was dropped";
            Execution::Done(Box::new(abandoned(CallErrorCode::Cancelled, message)))
        }
    };
    Done { at, dispatch_no, execution }
}

/// The end of a call that did not say what it cost.
fn abandoned(code: CallErrorCode, message: &str) -> Answer {
    Answer { usage: Usage::unknown(), ..Answer::failed(code, message) }
}
