//! Calls in flight: what `due` says is to be done, done.
//!
//! A call is a future that its run's own task polls. Dropping the run's task
//! therefore stops everything the run has under way.

use crate::hold_back::HoldBack;
use crate::judge::Judge;
use crate::mail::Mail;
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

/// A call that is over.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) at: StepAt,
    pub(crate) dispatch_no: u32,
    pub(crate) execution: Execution,
    /// What the moderator says of it, where it was asked.
    pub(crate) verdict: Option<Verdict>,
}

/// Where what a call says goes.
pub(crate) struct Outlet {
    pub(crate) at: StepAt,
    pub(crate) dispatch_no: u32,
    pub(crate) mailbox: mpsc::Sender<Mail>,
    pub(crate) stream: Arc<Stream>,
}

impl Outlet {
    async fn send(&self, mail: Mail) -> Result<(), Closed> {
        self.mailbox.send(mail).await.map_err(|_| Closed)
    }

    /// Hands something to the run.
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

/// The engine's end of one call.
struct Line {
    outlet: Outlet,
    cancel: CancellationToken,
    /// Where what it says waits for the moderator, if it must.
    hold: Option<HoldBack>,
}

impl Call for Line {
    fn emit(&self, emission: Emission) -> Later<'_, Result<(), Closed>> {
        match &self.hold {
            Some(hold) => Box::pin(hold.take(emission, &self.outlet)),
            None => Box::pin(self.outlet.forward(emission)),
        }
    }

    fn tool(&self, wanted: ToolUse) -> Later<'_, Result<ToolVerdict, Closed>> {
        Box::pin(async move {
            // What a moderated step says to a tool leaves it too.
            if let Some(hold) = &self.hold
                && !hold.clears(&wanted.input).await
            {
                return Ok(ToolVerdict::Denied("the moderator has not cleared it".to_owned()));
            }
            let (reply, verdict) = oneshot::channel();
            let (at, dispatch_no) = (self.outlet.at, self.outlet.dispatch_no);
            self.outlet.send(Mail::Tool { at, dispatch_no, wanted, reply }).await?;
            verdict.await.map_err(|_| Closed)
        })
    }

    fn cancelled(&self) -> Later<'_, ()> {
        Box::pin(self.cancel.cancelled())
    }
}

/// What a call is made with.
pub(crate) struct Calling {
    pub(crate) adapter: Arc<dyn Adapter>,
    pub(crate) outlet: Outlet,
    /// Who judges what comes out, and of which step, if somebody must.
    pub(crate) judge: Option<(Arc<Judge>, Subject)>,
    pub(crate) cancel: CancellationToken,
    pub(crate) grace_ms: u64,
}

/// Calls an adapter. Ends when the adapter does, or a grace after it was
/// cancelled; where its output is moderated, when that was judged.
pub(crate) async fn call(calling: Calling, request: Request) -> Done {
    let Calling { adapter, outlet, judge, cancel, grace_ms } = calling;
    // What is found ends this call, and nothing else.
    let stop = cancel.child_token();
    let hold = judge.map(|(judge, subject)| HoldBack::new(judge, subject, stop.clone()));
    let line = Line { outlet, cancel: stop.clone(), hold };
    let (at, dispatch_no) = (line.outlet.at, line.outlet.dispatch_no);
    let patience = async {
        stop.cancelled().await;
        tokio::time::sleep(Duration::from_millis(grace_ms)).await;
    };
    // To the end: what it has begun to let go must not be dropped half-way.
    let mut ticks = pin!(async {
        match &line.hold {
            Some(hold) => hold.tick(&line.outlet).await,
            None => pending().await,
        }
    });
    let execution = {
        let work = AssertUnwindSafe(adapter.execute(&request, &line)).catch_unwind();
        tokio::select! {
            biased;
            worked = work => worked.unwrap_or_else(|_| {
                let message = "the adapter broke off";
                Execution::Done(Box::new(abandoned(CallErrorCode::AdapterCrash, message)))
            }),
            () = patience => {
                let message = "it did not stop when asked and was dropped";
                Execution::Done(Box::new(abandoned(CallErrorCode::Cancelled, message)))
            }
            () = &mut ticks => unreachable!("windows are looked after without end"),
        }
    };
    let (execution, verdict) = match &line.hold {
        None => (execution, None),
        Some(hold) => tokio::select! {
            biased;
            concluded = hold.conclude(execution, &line.outlet) => concluded,
            () = &mut ticks => unreachable!("windows are looked after without end"),
        },
    };
    Done { at, dispatch_no, execution, verdict }
}

/// The end of a call that did not say what it cost.
fn abandoned(code: CallErrorCode, message: &str) -> Answer {
    Answer { usage: Usage::unknown(), ..Answer::failed(code, message) }
}
