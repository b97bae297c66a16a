//! An adapter with one fault.

use super::super::adapter::Count;
use super::echo::Echo;
use serde_json::json;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, CallErrorCode, Capabilities, Emission, Execution, Health, Request,
    ToolUse, ToolVerdict,
};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Which case detects which fault.
pub(super) const FAULTS: [(&str, &str); 26] = [
    ("it answers within its timeout", "hangs"),
    ("it answers within its timeout", "fails always"),
    ("it answers within its timeout", "says something else"),
    ("it answers within its timeout", "leaves it to others"),
    ("the text of the answer is what was streamed", "streams too much"),
    ("the text of the answer is what was streamed", "streams nothing"),
    ("what is emitted is handed over before the answer", "does not wait for emissions"),
    (
        "nothing is emitted once the engine stops listening, and the call ends",
        "emits after the engine left",
    ),
    ("a cancelled call ends within a second and says so", "is deaf"),
    ("a cancelled call ends within a second and says so", "is done when cancelled"),
    ("a cancelled call ends within a second and says so", "blames the provider"),
    ("a call that is dropped does not go on", "leaves a task behind"),
    ("a call that is dropped does not go on", "works in secret"),
    ("a call that takes too long says timeout", "fails when late"),
    ("a call that takes too long says timeout", "is early"),
    ("a failure has a code and a message", "fails without a word"),
    ("a failure has a code and a message", "never fails"),
    ("calls at once do not mix", "remembers the last call"),
    ("a tool is asked for before it is called", "asks afterwards"),
    ("a tool is asked for before it is called", "asks once for two"),
    ("a tool that is denied is not called", "does not listen"),
    ("health is answered within five seconds", "is slow to say how it is"),
    ("what it says of itself does not change", "changes its mind"),
    ("a request with nothing optional is answered", "needs a session"),
    ("a message of 1 MiB is answered or refused", "cannot take much"),
    ("odd texts do not break it", "breaks off"),
];

pub(super) struct Broken {
    fault: &'static str,
    echo: Echo,
    /// Counters of calls and tool calls.
    calls: AtomicUsize,
    underway: Arc<AtomicUsize>,
    called: Arc<AtomicUsize>,
    last: std::sync::Mutex<String>,
}

/// Work that is visible from outside.
struct RecordedCall(Arc<AtomicUsize>);

impl RecordedCall {
    fn new(count: &Arc<AtomicUsize>) -> RecordedCall {
        count.fetch_add(1, Ordering::SeqCst);
        RecordedCall(Arc::clone(count))
    }
}

impl Drop for RecordedCall {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn count(of: &Arc<AtomicUsize>) -> Count {
    let of = Arc::clone(of);
    Arc::new(move || of.load(Ordering::SeqCst))
}

fn cannot(code: CallErrorCode) -> Answer {
    Answer::failed(code, "it cannot")
}

impl Broken {
    pub(super) fn new(fault: Option<&'static str>) -> Broken {
        Broken {
            fault: fault.unwrap_or("nothing"),
            echo: Echo { pause: Duration::from_millis(1) },
            calls: AtomicUsize::new(0),
            underway: Arc::default(),
            called: Arc::default(),
            last: std::sync::Mutex::default(),
        }
    }

    pub(super) fn underway(&self) -> Count {
        count(&self.underway)
    }

    pub(super) fn called(&self) -> Count {
        count(&self.called)
    }

    async fn echo(&self, request: &Request, call: &dyn Call) -> Answer {
        match self.echo.execute(request, call).await {
            Execution::Done(answer) => *answer,
            Execution::Accepted => panic!("an echo comes at once"),
        }
    }

    /// Uses a tool, with or without a fault.
    async fn use_tool(&self, call: &dyn Call) -> Answer {
        let used = || self.called.fetch_add(1, Ordering::SeqCst);
        if self.fault == "asks afterwards" {
            used();
        }
        let (id, tool) = ("c1".to_owned(), "box.read".to_owned());
        let verdict = call.tool(ToolUse { id, tool, input: json!({}) }).await;
        match verdict {
            Ok(ToolVerdict::Denied(_)) if self.fault != "does not listen" => {}
            Err(_) => return cannot(CallErrorCode::Cancelled),
            Ok(_) if self.fault == "asks afterwards" => {}
            Ok(_) => {
                used();
                if self.fault == "asks once for two" {
                    used();
                }
            }
        }
        Answer { text: Some("used".to_owned()), ..Answer::default() }
    }

    async fn perform(&self, request: &Request, call: &dyn Call) -> Answer {
        let _seen = (self.fault != "works in secret").then(|| RecordedCall::new(&self.underway));
        self.calls.fetch_add(1, Ordering::SeqCst);
        if request.message == "tool" {
            return self.use_tool(call).await;
        }
        match self.fault {
            "hangs" => pending().await,
            "fails always" => cannot(CallErrorCode::ProviderError),
            "says something else" => Answer { text: Some("no".to_owned()), ..Answer::default() },
            "streams nothing"
            | "is deaf"
            | "does not wait for emissions"
            | "emits after the engine left" => self.streams(request, call).await,
            "streams too much" => {
                let _ = call.emit(Emission::Text("more".to_owned())).await;
                self.echo(request, call).await
            }
            "leaves a task behind" => {
                let seen = RecordedCall::new(&self.underway);
                tokio::spawn(async move {
                    let _seen = seen;
                    tokio::time::sleep(Duration::from_secs(3)).await;
                });
                self.echo(request, call).await
            }
            "is done when cancelled" | "blames the provider" | "fails when late" => {
                let mut answer = self.echo(request, call).await;
                if let Some(error) = &mut answer.error {
                    error.code = CallErrorCode::ProviderError;
                }
                answer.error = answer.error.filter(|_| self.fault != "is done when cancelled");
                answer
            }
            "is early" => cannot(CallErrorCode::Timeout),
            "fails without a word" => Answer::failed(CallErrorCode::ProviderError, " "),
            "never fails" => Answer { text: Some(String::new()), ..Answer::default() },
            "remembers the last call" => {
                self.last.lock().unwrap().clone_from(&request.message);
                tokio::time::sleep(Duration::from_millis(5)).await;
                let text = self.last.lock().unwrap().clone();
                Answer { text: Some(text), ..Answer::default() }
            }
            "needs a session" => cannot(CallErrorCode::AdapterCrash),
            "cannot take much" if request.message.len() > 100_000 => {
                cannot(CallErrorCode::AdapterCrash)
            }
            "breaks off" if request.message.contains('\0') => panic!("a zero byte"),
            _ => self.echo(request, call).await,
        }
    }

    /// Repeats a message, and ignores a closed call.
    async fn streams(&self, request: &Request, call: &dyn Call) -> Answer {
        for line in request.message.split_inclusive('\n') {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let line = Emission::Text(line.to_owned());
            match self.fault {
                "streams nothing" => {}
                "does not wait for emissions" => drop(call.emit(line)),
                // Continues after the call was closed.
                _ => drop(call.emit(line).await),
            }
        }
        Answer { text: Some(request.message.clone()), ..Answer::default() }
    }
}

impl Adapter for Broken {
    fn provider(&self) -> &'static str {
        "broken"
    }

    fn capabilities(&self) -> Capabilities {
        let changed = self.fault == "changes its mind" && self.calls.load(Ordering::SeqCst) > 0;
        Capabilities { tools: !changed, ..self.echo.capabilities() }
    }

    fn health(&self) -> Later<'_, Health> {
        if self.fault == "is slow to say how it is" {
            return Box::pin(pending());
        }
        self.echo.health()
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        if self.fault == "leaves it to others" {
            return Box::pin(std::future::ready(Execution::Accepted));
        }
        Box::pin(async move { Execution::Done(Box::new(self.perform(request, call).await)) })
    }
}
