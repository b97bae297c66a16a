//! Counters about the history of an agent across runs.
//!
//! Something in flight holds its amount in a plain counter. When it ends, the amount is
//! returned; unless it failed, it counts in a counter over the window from then on. So a
//! limit on the sum of both is never passed, and what failed never counts against it.
//!
//! INVARIANT: what is taken is recorded with the event that takes it, and returned once,
//! with the event that ends it.

use super::has_failed;
use crate::journal::event::{HistoryTaken, LogLine, StepAt, StepEvent};
use crate::port::ledger::Counter;
use crate::run::evolve::money::Landing;
use crate::run::state::{Run, ToolCall};
use sluice_govern::canonical;
use sluice_govern::policy::history::HistoryFact;
use std::sync::Arc;

/// The counter of a fact for one agent: a digest of the fact, and the agent.
pub(crate) fn counter_of(fact: &HistoryFact, agent: &str) -> Arc<str> {
    let digest = canonical::sha256_hex(&fact.name, 64);
    [&digest[..16], ":", agent].concat().into()
}

/// The counters of a fact for one agent: what is in flight, and what has happened.
pub fn counters(fact: &HistoryFact, agent: &str) -> [Counter; 2] {
    let counter = counter_of(fact, agent);
    let window_ms = Some(fact.window_ms());
    [Counter::plain(open_name(&counter)), Counter { name: window_name(&counter), window_ms }]
}

/// The plain counter of what is in flight.
pub(crate) fn open_name(counter: &str) -> String {
    ["history-open:", counter].concat()
}

/// The counter over a window of what has happened.
pub(crate) fn window_name(counter: &str) -> String {
    ["history:", counter].concat()
}

/// The end of something that holds an amount.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HistoryEnd {
    pub(crate) taken: HistoryTaken,
    /// Whether the amount counts from now on: it succeeded, or nothing is known.
    pub(crate) counts: bool,
}

/// What an event takes.
pub(crate) fn takes(event: &StepEvent) -> &[HistoryTaken] {
    match event {
        StepEvent::Started(dispatch) => &dispatch.terms.history,
        StepEvent::Log { line: LogLine::Tool(request), .. } => &request.record.taken,
        _ => &[],
    }
}

/// What an event ends. Must be called before the event is folded.
pub(crate) fn ends(
    run: &Run,
    at: StepAt,
    event: &StepEvent,
    landings: &[Landing],
) -> Vec<HistoryEnd> {
    let mut ends = Vec::new();
    match event {
        StepEvent::Log { line: LogLine::ToolEnded(call), .. } => {
            let ended = &call.ended;
            let call = run.get(at).and_then(|state| state.calls.get(&ended.id));
            ends.extend(call.into_iter().flat_map(|call| end_of(call, !ended.failed)));
        }
        StepEvent::Started(_) => {
            ends.extend(calls(run, at));
            // The dispatch that is sent again takes the amount again.
            let terms = run.in_flight_terms(at).into_iter().flat_map(|terms| &terms.history);
            ends.extend(terms.map(|taken| HistoryEnd { taken: taken.clone(), counts: false }));
        }
        _ => {
            let failed = has_failed(event);
            for landing in landings {
                ends.extend(calls(run, landing.at));
                let taken = landing.terms.history.iter();
                ends.extend(taken.map(|one| HistoryEnd { taken: one.clone(), counts: !failed }));
            }
        }
    }
    ends
}

/// The calls of an attempt that did not end before it: they may have happened.
fn calls(run: &Run, at: StepAt) -> impl Iterator<Item = HistoryEnd> {
    let calls = run.get(at).into_iter().flat_map(|state| state.calls.values());
    calls.flat_map(|call| end_of(call, true))
}

fn end_of(call: &ToolCall, counts: bool) -> impl Iterator<Item = HistoryEnd> {
    call.taken.iter().map(move |taken| HistoryEnd { taken: taken.clone(), counts })
}
