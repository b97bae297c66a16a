//! What the engine relies on in every gateway elsewhere, case by case, over HTTP.
//!
//! The suite is the engine's end: it sends dispatches, and `receiver` takes what comes
//! back. `taking` tries what is asked of a gateway, `results` what it brings,
//! `stopping` how work ends early.
//!
//! The steps of its dispatches are called `quick` and `slow`, so that a scripted
//! adapter can tell them apart; each has a run of its own.

mod ask;
pub mod receiver;
mod results;
mod stopping;
mod taking;
#[cfg(test)]
mod tests;

use super::{Case, Report, Stop, Tried};
use crate::limits::{CONFORMANCE_QUIET_MS, CONFORMANCE_RESULT_MS};
use crate::outbound::Outbound;
use crate::secret::Secret;
use crate::secret::scrub::Scrub;
use receiver::Receiver;
use sluice_core::port::Later;
use sluice_core::run::id::RunId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A gateway, and how to make it do what a case needs.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where it is, without the path of the protocol.
    pub url: String,
    /// What it must be shown.
    pub key: Secret,
    /// What it must show; where that is not known, anything will do.
    pub token: Option<Secret>,
    /// Which of its adapters is meant.
    pub provider: String,
    /// An instruction that is soon done.
    pub quick: String,
    /// One that takes at least ten seconds.
    pub slow: String,
    /// Whether it says that it answers with results.
    pub replies: Replies,
    /// The first of the runs that dispatches belong to, which nobody has used: a
    /// gateway remembers dispatches.
    pub first_run: RunId,
}

/// Whether a gateway answers with results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Replies {
    /// It does not say so.
    #[default]
    ByCallback,
    /// It does: its row has the capability `sync`.
    AtOnce,
}

/// What a case has at hand.
struct Bench<'a> {
    target: &'a Target,
    out: &'a Outbound,
    receiver: &'a Receiver,
    runs: &'a AtomicU64,
}

impl Bench<'_> {
    fn run(&self) -> RunId {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        RunId(self.target.first_run.0.wrapping_add(number.into()))
    }
}

type Check = for<'a> fn(&'a Bench<'a>) -> Later<'a, Tried>;

/// Every case. The names are part of what users see: they stay as they are.
const CASES: [(&str, Check); 12] = [
    ("health is answered within five seconds", |b| Box::pin(taking::health(b))),
    ("a dispatch is answered with 202 and its ids", |b| Box::pin(taking::accepted(b))),
    ("the result comes once, with its ids and both tokens", |b| Box::pin(results::once(b))),
    ("fields that are not known are passed over", |b| Box::pin(taking::unknown_fields(b))),
    ("a constraint that is not known refuses the dispatch", |b| Box::pin(taking::constraint(b))),
    ("without the key nothing runs", |b| Box::pin(taking::stranger(b))),
    ("rubbish is refused and the gateway lives on", |b| Box::pin(taking::rubbish(b))),
    ("the same dispatch runs once", |b| Box::pin(results::same(b))),
    ("a result that is not taken comes again", |b| Box::pin(results::again(b))),
    ("a cancelled dispatch stops and says so", |b| Box::pin(stopping::cancelled(b))),
    ("a dispatch that takes too long is timed_out", |b| Box::pin(stopping::timed_out(b))),
    ("a request that waits is answered with the result", |b| Box::pin(results::reply(b))),
];

/// The names of all cases.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|(name, _)| *name)
}

/// A suite: a gateway, the way to it, and who takes what it brings.
pub struct Suite {
    target: Target,
    out: Arc<Outbound>,
    receiver: Receiver,
    runs: AtomicU64,
}

impl Suite {
    /// For a gateway that brings its results to this receiver.
    pub fn new(target: Target, out: Arc<Outbound>, receiver: Receiver) -> Suite {
        Suite { target, out, receiver, runs: AtomicU64::new(0) }
    }

    /// Tries every case, one after the other.
    pub async fn check(&self) -> Report {
        let mut cases = Vec::new();
        for name in names() {
            cases.extend(self.check_case(name).await);
        }
        Report { cases }
    }

    /// Tries one case, by its name; nothing if there is none of that name.
    pub async fn check_case(&self, name: &str) -> Option<Case> {
        let (case, check) = CASES.iter().find(|(case, _)| *case == name)?;
        let Suite { target, out, receiver, runs } = self;
        let bench = Bench { target, out, receiver, runs };
        let tried = check(&bench).await.map_err(|stop| match stop {
            Stop::Failed(why) => Stop::Failed(self.clean(&why)),
            skipped @ Stop::Skipped(_) => skipped,
        });
        Some(Case { case, verdict: tried.into() })
    }
}

impl Suite {
    /// What is wrong, without secrets: a gateway may repeat what it was shown.
    fn clean(&self, why: &str) -> String {
        let secrets = [&self.target.key].into_iter().chain(&self.target.token);
        match Scrub::new(secrets) {
            Ok(scrub) => scrub.text(why).into_owned(),
            Err(_) => "it is not so, and why cannot be shown".to_owned(),
        }
    }
}

const RESULT: Duration = Duration::from_millis(CONFORMANCE_RESULT_MS);
const QUIET: Duration = Duration::from_millis(CONFORMANCE_QUIET_MS);
