//! PastKind happened in a run, for policies about history.
//!
//! The fold keeps a short record of each tool call and of each attempt of a step. Which
//! policies exist does not matter to it, so a policy that is put in force while a run
//! works sees all of the run.
//!
//! INVARIANT: the record follows from the journal, also from an erased one, and is bounded.

pub mod counters;
pub(crate) mod view;

use crate::journal::event::{
    CallRecord, LogLine, Path, Ruling, SkipCause, StepAt, StepEvent, ToolRequest,
};
use crate::limits::{HISTORY_EVENTS_MAX, HISTORY_SESSIONS_MAX};
use crate::port::adapter::ToolEnded;
use serde::{Deserialize, Serialize};
use sluice_govern::policy::history::Postings;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// PastKind happened in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunHistory {
    /// Oldest first.
    events: Vec<PastEvent>,
    /// The number of events that were dropped before the first one.
    dropped: u64,
    /// When the last dropped event happened.
    dropped_at_ms: Option<u64>,
    /// Attempts in flight.
    attempts: BTreeMap<StepAt, Attempt>,
    /// Calls in flight: the numbers of the events that allowed them.
    calls: BTreeMap<(StepAt, String), u64>,
    /// The conversations of sessions that answers left.
    sessions: BTreeMap<String, u32>,
    /// The number of conversations so far.
    conversations: u32,
    #[serde(skip)]
    cache: Cache,
}

/// Lists of matching events. They follow from the events, so they are not part of the
/// state: copies begin without them, and two states with different ones are equal.
#[derive(Debug, Default)]
struct Cache(Mutex<Postings>);

impl Clone for Cache {
    fn clone(&self) -> Cache {
        Cache::default()
    }
}

impl PartialEq for Cache {
    fn eq(&self, _: &Cache) -> bool {
        true
    }
}

/// An attempt of a step in flight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Attempt {
    conversation: u32,
    /// The number of the event that started it.
    started: u64,
}

/// An event of a run, as policies about history see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PastEvent {
    at_ms: u64,
    at: StepAt,
    conversation: u32,
    what: PastKind,
    /// Whether it started something that has failed since.
    failed: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum PastKind {
    /// A call was decided. `first` unless it waited for an approval before.
    Called { call: Arc<PastCall>, ruling: CallRuling, first: bool },
    /// A call ended. `allowed` is the number of the event that allowed it.
    Ended { call: Arc<PastCall>, failed: bool, allowed: u64 },
    /// An attempt of a step was sent.
    StepStarted,
    /// It ended. `started` is the number of the event that sent it.
    StepEnded { failed: bool, started: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum CallRuling {
    Allowed,
    Denied,
    Held,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PastCall {
    pub(crate) tool: Arc<str>,
    pub(crate) agent: Arc<str>,
    pub(crate) record: CallRecord,
}

/// Whether an event says that an attempt has failed.
pub(crate) fn has_failed(event: &StepEvent) -> bool {
    match event {
        StepEvent::Failed(_) | StepEvent::TimedOut(_) | StepEvent::Retried(_) => true,
        StepEvent::Skipped(skip) => skip.cause == SkipCause::Failure,
        _ => false,
    }
}

/// Whether a dispatch is sent to a gateway.
const fn is_attempt(path: Path) -> bool {
    matches!(path, Path::Edge | Path::Bridge | Path::Sync)
}

impl RunHistory {
    /// Records an event of a step. `agent` is the agent of the step.
    pub(super) fn evolve(&mut self, at: StepAt, event: &StepEvent, agent: &str, at_ms: u64) {
        match event {
            // A child run and the instances of a step have histories of their own.
            StepEvent::Started(dispatch) if is_attempt(dispatch.path) => {
                self.forget_calls(at);
                self.started(at, dispatch.session.as_deref(), at_ms);
            }
            StepEvent::Log { line: LogLine::Tool(request), .. } => {
                self.called(at, request, agent, at_ms);
            }
            StepEvent::Log { line: LogLine::ToolEnded(call), .. } => {
                self.call_ended(at, &call.ended, at_ms);
            }
            StepEvent::Completed(done) => self.ended(at, Some(false), done.session.as_ref(), at_ms),
            StepEvent::Retried(retried) => {
                self.ended(at, Some(true), retried.session.as_ref(), at_ms);
            }
            event if has_failed(event) => self.ended(at, Some(true), None, at_ms),
            StepEvent::Cancelled { .. } | StepEvent::Skipped(_) => {
                self.ended(at, None, None, at_ms);
            }
            StepEvent::Invalidated => {
                let of_step = |one: &StepAt| one.step == at.step;
                self.attempts.retain(|one, _| !of_step(one));
                self.calls.retain(|(one, _), _| !of_step(one));
            }
            _ => {}
        }
    }

    fn push(&mut self, (at_ms, at): (u64, StepAt), conversation: u32, what: PastKind) -> u64 {
        if self.events.len() >= HISTORY_EVENTS_MAX {
            // In halves, so that the rest is moved rarely.
            let mut dropped = self.events.drain(..HISTORY_EVENTS_MAX / 2);
            self.dropped_at_ms = dropped.next_back().map(|event| event.at_ms);
            drop(dropped);
            self.dropped += HISTORY_EVENTS_MAX as u64 / 2;
            self.cache = Cache::default();
        }
        // A clock may go back; windows need events in order.
        let at_ms = self.events.last().map_or(at_ms, |last| at_ms.max(last.at_ms));
        self.events.push(PastEvent { at_ms, at, conversation, what, failed: false });
        self.dropped + self.events.len() as u64 - 1
    }

    fn position(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.dropped)?).ok()
    }

    fn event_mut(&mut self, number: u64) -> Option<&mut PastEvent> {
        let position = self.position(number)?;
        self.events.get_mut(position)
    }

    fn started(&mut self, at: StepAt, session: Option<&str>, at_ms: u64) {
        let known = session.and_then(|session| self.sessions.get(session).copied());
        let conversation = known.unwrap_or_else(|| {
            self.conversations += 1;
            self.conversations
        });
        if let Some(attempt) = self.attempts.get_mut(&at) {
            // Sent again after a crash: the same attempt, perhaps in a new conversation.
            attempt.conversation = conversation;
            return;
        }
        let started = self.push((at_ms, at), conversation, PastKind::StepStarted);
        self.attempts.insert(at, Attempt { conversation, started });
    }

    /// `failed` is `None` if it is not known how the attempt ended.
    fn ended(&mut self, at: StepAt, failed: Option<bool>, session: Option<&String>, at_ms: u64) {
        self.forget_calls(at);
        let Some(Attempt { conversation, started }) = self.attempts.get(&at).copied() else {
            return;
        };
        if let Some(session) = session {
            if self.sessions.len() >= HISTORY_SESSIONS_MAX {
                self.sessions.pop_first();
            }
            self.sessions.insert(session.clone(), conversation);
        }
        if let Some(failed) = failed {
            self.push((at_ms, at), conversation, PastKind::StepEnded { failed, started });
            if let Some(event) = self.event_mut(started).filter(|_| failed) {
                event.failed = true;
            }
        }
        self.attempts.remove(&at);
    }

    fn called(&mut self, at: StepAt, request: &ToolRequest, agent: &str, at_ms: u64) {
        let key = (at, request.id.clone());
        let call = PastCall {
            tool: request.tool.as_str().into(),
            agent: agent.into(),
            record: request.record.clone(),
        };
        let held = self.calls.remove(&key).is_some();
        let ruling = match request.ruling {
            Ruling::Allowed(_) => CallRuling::Allowed,
            Ruling::Denied(_) => CallRuling::Denied,
            Ruling::Held(_) => CallRuling::Held,
        };
        let what = PastKind::Called { call: Arc::new(call), ruling, first: !held };
        let number = self.push((at_ms, at), self.conversation(at), what);
        if ruling != CallRuling::Denied {
            self.calls.insert(key, number);
        }
    }

    fn call_ended(&mut self, at: StepAt, ended: &ToolEnded, at_ms: u64) {
        let Some(allowed) = self.calls.remove(&(at, ended.id.clone())) else { return };
        let Some(event) = self.event_mut(allowed) else { return };
        let PastKind::Called { call, ruling: CallRuling::Allowed, .. } = &event.what else {
            return;
        };
        let (call, failed) = (Arc::clone(call), ended.failed);
        event.failed |= failed;
        self.push((at_ms, at), self.conversation(at), PastKind::Ended { call, failed, allowed });
    }

    /// The conversation of a step in flight.
    fn conversation(&self, at: StepAt) -> u32 {
        self.attempts.get(&at).map_or(0, |attempt| attempt.conversation)
    }

    /// Nothing more is heard of the calls of an attempt that ended.
    fn forget_calls(&mut self, at: StepAt) {
        if !self.calls.is_empty() {
            self.calls.retain(|(one, _), _| *one != at);
        }
    }

    /// A call in flight.
    pub(crate) fn call(&self, at: StepAt, id: &str) -> Option<Arc<PastCall>> {
        let number = self.calls.get(&(at, id.to_owned()))?;
        match &self.events.get(self.position(*number)?)?.what {
            PastKind::Called { call, ruling: CallRuling::Allowed, .. } => Some(Arc::clone(call)),
            _ => None,
        }
    }

    /// Whether an attempt of a step is in flight.
    pub(crate) fn is_in_flight(&self, at: StepAt) -> bool {
        self.attempts.contains_key(&at)
    }

    /// Whether a call waits for an approval, so that it was requested before.
    pub(crate) fn is_held(&self, at: StepAt, call: &str) -> bool {
        self.calls.contains_key(&(at, call.to_owned()))
    }
}
