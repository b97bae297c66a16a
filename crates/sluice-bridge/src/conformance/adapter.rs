//! Suite for adapters.
//!
//! The caller provides a `AdapterUnderTest`: the adapter and requests that make it answer, take long or
//! fail. `endings` tests how calls end, `streams` what is emitted before the end, `inputs`
//! unusual inputs, `tool_calls` tool calls, `identity` provider name, capabilities and health.
//!
//! Every case has a time limit: an adapter that hangs fails its case and is dropped.

mod endings;
mod identity;
mod inputs;
mod streams;
mod tool_calls;

use super::recording_call::RecordingCall;
use super::{Case, CaseResult, CaseStop, Report, failed};
use crate::limits::{CONFORMANCE_CALL_MS, CONFORMANCE_STOP_MS};
use futures_util::FutureExt as _;
use sluice_core::id::RunId;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, CallErrorCode, Execution, OutputStrategy, Request,
};
use sluice_govern::decision::Constraints;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// Creates a request that is answered with the given text.
pub type MakeRequest = Arc<dyn Fn(&str) -> Request + Send + Sync>;

/// Returns how often something has happened, or how much of it is in progress.
pub type Count = Arc<dyn Fn() -> usize + Send + Sync>;

/// The adapter under test, and requests for the cases.
pub struct AdapterUnderTest {
    /// Adapter under test.
    pub adapter: Arc<dyn Adapter>,
    /// Creates requests that it answers soon.
    pub says: MakeRequest,
    /// A request that it answers in several pieces of text.
    pub streams: Option<Request>,
    /// A request that takes at least ten seconds.
    pub slow: Request,
    /// A request that the adapter must answer with an error, if it can fail on request.
    pub fails: Option<Request>,
    /// A request that needs a tool.
    pub tools: Option<Tooling>,
    /// How much work is in progress, if the caller can observe it from outside: processes,
    /// open connections, tasks. Zero while no call runs.
    pub(crate) underway: Option<Count>,
}

/// How to make an adapter call a tool.
pub struct Tooling {
    /// A request that leads to a tool call.
    pub request: Request,
    /// Number of tool calls made so far.
    pub called: Count,
}

impl AdapterUnderTest {
    /// A subject that can only answer and take long.
    pub fn new(adapter: Arc<dyn Adapter>, says: MakeRequest, slow: Request) -> AdapterUnderTest {
        let (streams, fails, tools, underway) = (None, None, None, None);
        AdapterUnderTest { adapter, says, streams, slow, fails, tools, underway }
    }
}

/// A minimal request of a first dispatch.
pub fn request(message: &str) -> Request {
    Request {
        run: RunId(1),
        step: "step".to_owned(),
        workflow: "conformance".to_owned(),
        gateway: "gateway".to_owned(),
        attempt: 1,
        dispatch_no: 1,
        idempotency_key: "conformance".to_owned(),
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
        max_output_tokens: None,
        price: None,
        ceiling: None,
        timeout_ms: CONFORMANCE_CALL_MS,
        constraints: Constraints::default(),
        action_digest: String::new(),
        trace: None,
    }
}

type AdapterCheck = for<'a> fn(&'a AdapterUnderTest) -> Later<'a, CaseResult>;

/// All cases. The names are a public interface and stay unchanged.
const CASES: [(&str, AdapterCheck); 16] = [
    ("it answers within its timeout", |s| Box::pin(endings::answers(s))),
    ("the text of the answer is what was streamed", |s| Box::pin(streams::whole(s))),
    ("what is emitted is handed over before the answer", |s| Box::pin(streams::before(s))),
    ("nothing is emitted once the engine stops listening, and the call ends", |s| {
        Box::pin(streams::closed(s))
    }),
    ("a cancelled call ends within a second and says so", |s| Box::pin(endings::cancelled(s))),
    ("a call that is dropped does not go on", |s| Box::pin(endings::dropped(s))),
    ("a call that takes too long says timeout", |s| Box::pin(endings::timeout(s))),
    ("a failure has a code and a message", |s| Box::pin(endings::fails(s))),
    ("calls at once do not mix", |s| Box::pin(streams::at_once(s))),
    ("a tool is asked for before it is called", |s| Box::pin(tool_calls::asked(s))),
    ("a tool that is denied is not called", |s| Box::pin(tool_calls::denied(s))),
    ("health is answered within five seconds", |s| Box::pin(identity::health(s))),
    ("what it says of itself does not change", |s| Box::pin(identity::stable(s))),
    ("a request with nothing optional is answered", |s| Box::pin(inputs::bare(s))),
    ("a message of 1 MiB is answered or refused", |s| Box::pin(inputs::long(s))),
    ("odd texts do not break it", |s| Box::pin(inputs::odd(s))),
];

/// The names of all cases.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|(name, _)| *name)
}

/// Runs all cases in order.
pub async fn check(subject: &AdapterUnderTest) -> Report {
    let mut cases = Vec::new();
    for (case, _) in CASES {
        cases.extend(check_case(subject, case).await);
    }
    Report { cases }
}

/// Runs one case by name; `None` if there is no such case.
pub async fn check_case(subject: &AdapterUnderTest, name: &str) -> Option<Case> {
    let (case, check) = CASES.iter().find(|(case, _)| *case == name)?;
    Some(Case { case, verdict: check(subject).await.into() })
}

const STOP: Duration = Duration::from_millis(CONFORMANCE_STOP_MS);

/// Makes a call with the request's own time limit.
async fn call(
    subject: &AdapterUnderTest,
    request: &Request,
    watch: &RecordingCall<'_>,
) -> Result<Answer, CaseStop> {
    call_within(subject, request, watch, Duration::from_millis(request.timeout_ms)).await
}

async fn call_within(
    subject: &AdapterUnderTest,
    request: &Request,
    watch: &RecordingCall<'_>,
    patience: Duration,
) -> Result<Answer, CaseStop> {
    // An adapter may already panic before it returns the future.
    let doing = AssertUnwindSafe(async { subject.adapter.execute(request, watch).await });
    match tokio::time::timeout(patience, doing.catch_unwind()).await {
        Ok(Ok(Execution::Done(answer))) => Ok(*answer),
        Ok(Ok(Execution::Accepted)) => {
            failed("it deferred the work to a remote gateway; check that gateway instead")
        }
        Ok(Err(_)) => failed("it panicked"),
        Err(_) => failed(format!("it did not end within {} ms", patience.as_millis())),
    }
}

fn code(answer: &Answer) -> Option<CallErrorCode> {
    answer.error.as_ref().map(|error| error.code)
}

/// The text of a successful answer.
fn text(answer: Answer) -> Result<String, CaseStop> {
    match answer.error {
        None => Ok(answer.text.unwrap_or_default()),
        Some(error) => {
            failed(format!("it failed with `{}`: {}", error.code.as_str(), error.message))
        }
    }
}
