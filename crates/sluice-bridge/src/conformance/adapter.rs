//! What the engine relies on in every adapter, case by case.
//!
//! The caller knows how to make its adapter say something, take long or fail, and
//! says so in a `Subject`. `endings` tries how calls end, `streams` what comes before
//! the end, `texts` what goes in, `tooling` who may call tools, `standing` the rest.
//!
//! Nothing here waits for longer than a case allows: an adapter that hangs fails its
//! case and is dropped.

mod endings;
mod standing;
mod streams;
mod texts;
mod tooling;

use super::watch::Watch;
use super::{Case, Report, Stop, Tried, failed};
use crate::limits::{CONFORMANCE_CALL_MS, CONFORMANCE_STOP_MS};
use futures_util::FutureExt as _;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, CallErrorCode, Execution, OutputStrategy, Request,
};
use sluice_core::run::id::RunId;
use sluice_govern::decision::Constraints;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// Makes a request whose answer has this text in it.
pub type Says = Arc<dyn Fn(&str) -> Request + Send + Sync>;

/// Says how often something has happened, or how much of it is under way.
pub type Count = Arc<dyn Fn() -> usize + Send + Sync>;

/// An adapter, and how to make it do what a case needs.
pub struct Subject {
    /// The adapter.
    pub adapter: Arc<dyn Adapter>,
    /// Requests that it answers soon.
    pub says: Says,
    /// One that it answers in several pieces of text.
    pub streams: Option<Request>,
    /// One that takes at least ten seconds.
    pub slow: Request,
    /// One that fails.
    pub fails: Option<Request>,
    /// One that needs a tool.
    pub tools: Option<Tooling>,
    /// How much of its work goes on, where the caller can see that from outside:
    /// processes, open connections, tasks. Nothing, where nobody calls it.
    pub underway: Option<Count>,
}

/// How an adapter is made to call a tool.
pub struct Tooling {
    /// A request whose work calls a tool.
    pub request: Request,
    /// How often tools were really called so far.
    pub called: Count,
}

impl Subject {
    /// An adapter that is only known to answer and to take long.
    pub fn new(adapter: Arc<dyn Adapter>, says: Says, slow: Request) -> Subject {
        let (streams, fails, tools, underway) = (None, None, None, None);
        Subject { adapter, says, streams, slow, fails, tools, underway }
    }
}

/// A request for a first dispatch with nothing in it but a message, to start from.
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

type Check = for<'a> fn(&'a Subject) -> Later<'a, Tried>;

/// Every case. The names are part of what users see: they stay as they are.
const CASES: [(&str, Check); 16] = [
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
    ("a tool is asked for before it is called", |s| Box::pin(tooling::asked(s))),
    ("a tool that is denied is not called", |s| Box::pin(tooling::denied(s))),
    ("health is answered within five seconds", |s| Box::pin(standing::health(s))),
    ("what it says of itself does not change", |s| Box::pin(standing::stable(s))),
    ("a request with nothing optional is answered", |s| Box::pin(texts::bare(s))),
    ("a message of 1 MiB is answered or refused", |s| Box::pin(texts::long(s))),
    ("odd texts do not break it", |s| Box::pin(texts::odd(s))),
];

/// The names of all cases.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|(name, _)| *name)
}

/// Tries every case, one after the other.
pub async fn check(subject: &Subject) -> Report {
    let mut cases = Vec::new();
    for (case, _) in CASES {
        cases.extend(check_case(subject, case).await);
    }
    Report { cases }
}

/// Tries one case, by its name; nothing if there is none of that name.
pub async fn check_case(subject: &Subject, name: &str) -> Option<Case> {
    let (case, check) = CASES.iter().find(|(case, _)| *case == name)?;
    Some(Case { case, verdict: check(subject).await.into() })
}

const STOP: Duration = Duration::from_millis(CONFORMANCE_STOP_MS);

/// Makes a call and waits for its answer, no longer than it may take.
async fn call(subject: &Subject, request: &Request, watch: &Watch<'_>) -> Result<Answer, Stop> {
    call_within(subject, request, watch, Duration::from_millis(request.timeout_ms)).await
}

async fn call_within(
    subject: &Subject,
    request: &Request,
    watch: &Watch<'_>,
    patience: Duration,
) -> Result<Answer, Stop> {
    // An adapter may do its work before it answers with a future, and break there.
    let doing = AssertUnwindSafe(async { subject.adapter.execute(request, watch).await });
    match tokio::time::timeout(patience, doing.catch_unwind()).await {
        Ok(Ok(Execution::Done(answer))) => Ok(*answer),
        Ok(Ok(Execution::Accepted)) => {
            failed("it left the work to somebody elsewhere; check that gateway instead")
        }
        Ok(Err(_)) => failed("it panicked"),
        Err(_) => failed(format!("it did not end within {} ms", patience.as_millis())),
    }
}

/// The code of an answer's error.
fn code(answer: &Answer) -> Option<CallErrorCode> {
    answer.error.as_ref().map(|error| error.code)
}

/// The text of an answer that is no error.
fn text(answer: Answer) -> Result<String, Stop> {
    match answer.error {
        None => Ok(answer.text.unwrap_or_default()),
        Some(error) => {
            failed(format!("it failed with `{}`: {}", error.code.as_str(), error.message))
        }
    }
}
