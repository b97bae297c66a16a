//! The smallest complete adapter: it echoes a message, line by line. Use it as a
//! template: replace `echo_lines` with a call to your provider and keep the rest.
//!
//! It passes the suite `sluice_bridge::conformance::adapter`;
//! `docs/guide/adapters.md` explains each case.

use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, CallErrorCode, Capabilities, Closed, Emission, Execution, Health,
    Request,
};
use std::time::Duration;

/// Echoes messages.
pub struct Echo {
    /// Delay before each line.
    pub pause: Duration,
}

impl Echo {
    /// Returns the whole text and emits each line as soon as it is available. It awaits
    /// `emit`, so that a slow engine slows the work down. `Closed` means that the engine
    /// abandoned the call.
    async fn echo_lines(&self, request: &Request, call: &dyn Call) -> Result<String, Closed> {
        let mut text = String::new();
        for line in request.message.split_inclusive('\n') {
            tokio::time::sleep(self.pause).await;
            call.emit(Emission::Text(line.to_owned())).await?;
            text.push_str(line);
        }
        Ok(text)
    }

    /// Does the work until it is cancelled or times out. It spawns nothing: when
    /// the engine drops this future, the work stops.
    async fn perform(&self, request: &Request, call: &dyn Call) -> Answer {
        // Refuse an invalid request before it costs money.
        if request.message.is_empty() {
            return Answer::failed(CallErrorCode::InvalidRequest, "the message is empty");
        }
        let timeout = Duration::from_millis(request.timeout_ms);
        let echoed = tokio::select! {
            biased;
            () = call.cancelled() => return Answer::failed(CallErrorCode::Cancelled, "cancelled"),
            echoed = tokio::time::timeout(timeout, self.echo_lines(request, call)) => echoed,
        };
        match echoed {
            Ok(Ok(text)) => Answer { text: Some(text), ..Answer::default() },
            Ok(Err(Closed)) => Answer::failed(CallErrorCode::Cancelled, "the call was abandoned"),
            Err(_) => Answer::failed(CallErrorCode::Timeout, "the call timed out"),
        }
    }
}

impl Adapter for Echo {
    fn provider(&self) -> &'static str {
        "echo"
    }

    /// The engine relies on these values.
    fn capabilities(&self) -> Capabilities {
        Capabilities { streaming: true, tools: false, structured_output: false, cancel: true }
    }

    /// An adapter with a provider checks it here, within five seconds.
    fn health(&self) -> Later<'_, Health> {
        Box::pin(std::future::ready(Health::Healthy))
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(async move { Execution::Done(Box::new(self.perform(request, call).await)) })
    }
}
