//! A fake of the engine's `Call`, for tests.

use sluice_core::id::RunId;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, CallErrorCode, Closed, Emission, Execution, OutputStrategy, Process,
    Request, ToolUse, ToolVerdict,
};
use std::future::{pending, ready};
use std::sync::Mutex;
use tokio::sync::Notify;

/// How the fake engine responds to a reported process.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FakeJournal {
    /// Accepts it.
    #[default]
    Works,
    /// Never responds.
    Stalls,
    /// Refuses every report, as after the end of a run.
    Closed,
}

/// Records emissions and requested tools; can be cancelled.
#[derive(Default)]
pub(crate) struct FakeCall {
    journal: FakeJournal,
    emitted: Mutex<Vec<Emission>>,
    changed: Notify,
    cancel: Notify,
    /// Tools that are denied.
    denied: Vec<String>,
    requested: Mutex<Vec<ToolUse>>,
}

impl FakeCall {
    pub(crate) fn with(journal: FakeJournal) -> FakeCall {
        FakeCall { journal, ..FakeCall::default() }
    }

    /// A fake that allows every tool except these.
    pub(crate) fn denying(denied: &[&str]) -> FakeCall {
        let denied = denied.iter().map(|tool| (*tool).to_owned()).collect();
        FakeCall { denied, ..FakeCall::default() }
    }

    pub(crate) fn requested(&self) -> Vec<ToolUse> {
        self.requested.lock().unwrap().clone()
    }

    pub(crate) fn cancel(&self) {
        self.cancel.notify_one();
    }

    pub(crate) fn emitted(&self) -> Vec<Emission> {
        self.emitted.lock().unwrap().clone()
    }

    pub(crate) fn text(&self) -> String {
        let text = |one| if let Emission::Text(text) = one { Some(text) } else { None };
        self.emitted().into_iter().filter_map(text).collect()
    }

    pub(crate) fn log(&self) -> Vec<String> {
        let line = |one| if let Emission::Log(line) = one { Some(line) } else { None };
        self.emitted().into_iter().filter_map(line).collect()
    }

    pub(crate) fn process(&self) -> Option<Process> {
        let process = |one| if let Emission::Process(process) = one { Some(process) } else { None };
        self.emitted().into_iter().find_map(process)
    }

    /// Completes when the text so far contains `part`.
    pub(crate) async fn wait_for_text(&self, part: &str) {
        while !self.text().contains(part) {
            self.changed.notified().await;
        }
    }
}

impl Call for FakeCall {
    fn emit(&self, emission: Emission) -> Later<'_, Result<(), Closed>> {
        let process = matches!(emission, Emission::Process(_));
        self.emitted.lock().unwrap().push(emission);
        self.changed.notify_one();
        match self.journal {
            FakeJournal::Stalls if process => Box::pin(pending()),
            FakeJournal::Closed => Box::pin(ready(Err(Closed))),
            FakeJournal::Works | FakeJournal::Stalls => Box::pin(ready(Ok(()))),
        }
    }

    fn tool(&self, wanted: ToolUse) -> Later<'_, Result<ToolVerdict, Closed>> {
        let denied = self.denied.contains(&wanted.tool);
        self.requested.lock().unwrap().push(wanted);
        Box::pin(ready(Ok(if denied {
            ToolVerdict::Denied("a policy denies it".to_owned())
        } else {
            ToolVerdict::Allowed
        })))
    }

    fn cancelled(&self) -> Later<'_, ()> {
        Box::pin(self.cancel.notified())
    }
}

/// A request of a step's first dispatch.
pub(crate) fn request(step: &str, message: &str) -> Request {
    Request {
        run: RunId(1),
        step: step.to_owned(),
        workflow: "flow".to_owned(),
        gateway: "here".to_owned(),
        attempt: 1,
        dispatch_no: 1,
        idempotency_key: "key".to_owned(),
        session: None,
        agent: "agent".to_owned(),
        system_prompt: None,
        message: message.to_owned(),
        stdin: None,
        env: Vec::new(),
        cwd: None,
        model: None,
        tools: Vec::new(),
        output_schema: None,
        output_strategy: OutputStrategy::Text,
        price: None,
        ceiling: None,
        max_output_tokens: None,
        timeout_ms: 60_000,
        constraints: sluice_govern::decision::Constraints::default(),
        action_digest: String::new(),
        trace: None,
    }
}

pub(crate) async fn answer(adapter: &dyn Adapter, request: &Request, call: &dyn Call) -> Answer {
    match adapter.execute(request, call).await {
        Execution::Done(answer) => *answer,
        Execution::Accepted => panic!("expected a synchronous result"),
    }
}

/// The code and message of a failed answer.
pub(crate) fn error(answer: &Answer) -> (CallErrorCode, &str) {
    let error = answer.error.as_ref().expect("an error was answered");
    (error.code, &error.message)
}
