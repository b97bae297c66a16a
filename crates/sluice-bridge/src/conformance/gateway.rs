//! Suite for remote gateways, over HTTP.
//!
//! The suite acts as the engine: it sends dispatches, and `receiver` receives the results.
//! `acceptance` tests which requests a gateway accepts, `results` its results, `stopping`
//! cancellation and timeouts.
//!
//! The steps of its dispatches are named `quick` and `slow`, so that a scripted adapter can
//! distinguish them; each dispatch has its own run.

mod acceptance;
pub mod receiver;
mod requests;
mod results;
mod stopping;
#[cfg(test)]
mod tests;

use super::{Case, CaseResult, CaseStop, Report};
use crate::limits::{CONFORMANCE_QUIET_MS, CONFORMANCE_RESULT_MS};
use crate::outbound::Outbound;
use crate::secret::Secret;
use crate::secret::scrub::Scrub;
use receiver::Receiver;
use sluice_core::id::RunId;
use sluice_core::port::Later;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The gateway under test, and inputs for the cases.
#[derive(Debug, Clone)]
pub struct Target {
    /// Base URL, without the path of the protocol.
    pub url: String,
    /// Key that the suite sends to the gateway.
    pub key: Secret,
    /// Token that the gateway must send; `None` accepts any.
    pub token: Option<Secret>,
    /// Name of the gateway's adapter to use.
    pub provider: String,
    /// An instruction that is done quickly.
    pub quick: String,
    /// An instruction that takes at least ten seconds.
    pub slow: String,
    /// Whether the gateway returns results synchronously.
    pub replies: Replies,
    /// First of the run ids that the suite uses. They must be unused, because a gateway
    /// remembers dispatches.
    pub first_run: RunId,
}

/// How a gateway returns results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Replies {
    /// By callback only.
    #[default]
    ByCallback,
    /// Synchronously: its row has the capability `sync`.
    AtOnce,
}

/// What a case uses.
struct CaseContext<'a> {
    target: &'a Target,
    out: &'a Outbound,
    receiver: &'a Receiver,
    runs: &'a AtomicU64,
}

impl CaseContext<'_> {
    fn run(&self) -> RunId {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        RunId(self.target.first_run.0.wrapping_add(number.into()))
    }
}

type GatewayCheck = for<'a> fn(&'a CaseContext<'a>) -> Later<'a, CaseResult>;

/// All cases. The names are a public interface and stay unchanged.
const CASES: [(&str, GatewayCheck); 12] = [
    ("health is answered within five seconds", |b| Box::pin(acceptance::health(b))),
    ("a dispatch is answered with 202 and its ids", |b| Box::pin(acceptance::accepted(b))),
    ("the result comes once, with its ids and both tokens", |b| Box::pin(results::once(b))),
    ("fields that are not known are passed over", |b| Box::pin(acceptance::unknown_fields(b))),
    ("a constraint that is not known refuses the dispatch", |b| {
        Box::pin(acceptance::constraint(b))
    }),
    ("without the key nothing runs", |b| Box::pin(acceptance::without_key(b))),
    ("rubbish is refused and the gateway lives on", |b| Box::pin(acceptance::malformed(b))),
    ("the same dispatch runs once", |b| Box::pin(results::same(b))),
    ("a result that is not taken comes again", |b| Box::pin(results::redelivered(b))),
    ("a cancelled dispatch stops and says so", |b| Box::pin(stopping::cancelled(b))),
    ("a dispatch that takes too long is timed_out", |b| Box::pin(stopping::timed_out(b))),
    ("a request that waits is answered with the result", |b| Box::pin(results::reply(b))),
];

/// The names of all cases.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|(name, _)| *name)
}

/// A suite for one gateway.
pub struct Suite {
    target: Target,
    out: Arc<Outbound>,
    receiver: Receiver,
    runs: AtomicU64,
}

impl Suite {
    /// The gateway must be able to reach `receiver`.
    pub fn new(target: Target, out: Arc<Outbound>, receiver: Receiver) -> Suite {
        Suite { target, out, receiver, runs: AtomicU64::new(0) }
    }

    /// Runs all cases in order.
    pub async fn check(&self) -> Report {
        let mut cases = Vec::new();
        for name in names() {
            cases.extend(self.check_case(name).await);
        }
        Report { cases }
    }

    /// Runs one case by name; `None` if there is no such case.
    pub async fn check_case(&self, name: &str) -> Option<Case> {
        let (case, check) = CASES.iter().find(|(case, _)| *case == name)?;
        let Suite { target, out, receiver, runs } = self;
        let context = CaseContext { target, out, receiver, runs };
        let tried = check(&context).await.map_err(|stop| match stop {
            CaseStop::Failed(why) => CaseStop::Failed(self.redacted(&why)),
            skipped @ CaseStop::Skipped(_) => skipped,
        });
        Some(Case { case, verdict: tried.into() })
    }
}

impl Suite {
    /// Redacts an explanation, because a gateway may repeat the secrets it received.
    fn redacted(&self, why: &str) -> String {
        let secrets = [&self.target.key].into_iter().chain(&self.target.token);
        match Scrub::new(secrets) {
            Ok(scrub) => scrub.text(why).into_owned(),
            Err(_) => "the case failed; the reason cannot be shown because it may contain a secret"
                .to_owned(),
        }
    }
}

const RESULT: Duration = Duration::from_millis(CONFORMANCE_RESULT_MS);
const QUIET: Duration = Duration::from_millis(CONFORMANCE_QUIET_MS);
