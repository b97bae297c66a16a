//! The smallest adapter that does everything right: it says a message again, line by
//! line. A template: put your provider where `say` is, and keep what is around it.
//!
//! The suite `sluice_bridge::conformance::adapter` passes; `docs/guide/adapters.md`
//! says what each of its cases is for.

use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, CallErrorCode, Capabilities, Closed, Emission, Execution, Health,
    Request,
};
use std::time::Duration;

/// Says messages again.
pub struct Echo {
    /// How long each line takes.
    pub pause: Duration,
}

impl Echo {
    /// The work itself. It answers with the whole text, and hands over each piece as
    /// it comes: `emit` is awaited, so that a slow reader slows the work down.
    /// `Closed` means that nobody wants the rest.
    async fn say(&self, request: &Request, call: &dyn Call) -> Result<String, Closed> {
        let mut said = String::new();
        for line in request.message.split_inclusive('\n') {
            tokio::time::sleep(self.pause).await;
            call.emit(Emission::Text(line.to_owned())).await?;
            said.push_str(line);
        }
        Ok(said)
    }

    /// The work, for as long as it is wanted and may take. Nothing is spawned: when
    /// the engine drops this future, the work is dropped with it.
    async fn perform(&self, request: &Request, call: &dyn Call) -> Answer {
        // What cannot be asked is refused before anything costs money.
        if request.message.is_empty() {
            return Answer::failed(CallErrorCode::InvalidRequest, "there is nothing to say");
        }
        let patience = Duration::from_millis(request.timeout_ms);
        let said = tokio::select! {
            biased;
            () = call.cancelled() => return Answer::failed(CallErrorCode::Cancelled, "cancelled"),
            said = tokio::time::timeout(patience, self.say(request, call)) => said,
        };
        match said {
            Ok(Ok(text)) => Answer { text: Some(text), ..Answer::default() },
            Ok(Err(Closed)) => Answer::failed(CallErrorCode::Cancelled, "nobody listens any more"),
            Err(_) => Answer::failed(CallErrorCode::Timeout, "it took too long"),
        }
    }
}

impl Adapter for Echo {
    fn provider(&self) -> &'static str {
        "echo"
    }

    /// Only what is true: the engine relies on it.
    fn capabilities(&self) -> Capabilities {
        Capabilities { streaming: true, tools: false, structured_output: false, cancel: true }
    }

    /// Asks the provider, where there is one; within five seconds.
    fn health(&self) -> Later<'_, Health> {
        Box::pin(std::future::ready(Health::Healthy))
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(async move { Execution::Done(Box::new(self.perform(request, call).await)) })
    }
}
