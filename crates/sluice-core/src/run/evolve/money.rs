//! Settlement of a dispatch that has ended.
//!
//! A dispatch holds a slot of its agent, and reserves money if a budget applies. When the
//! dispatch ends, its slot is free. If its cost is known, the reservation is settled. If not,
//! the reservation is kept for a day, so that a cost that is reported late is booked.

use super::add;
use crate::journal::event::{ApprovalSource, StepAt, StepEvent, Terms};
use crate::limits::RESERVATION_MS;
use crate::port::adapter::Usage;
use crate::run::index::Timer;
use crate::run::state::{Open, Run};
use std::sync::Arc;

/// A dispatch that has ended.
#[derive(Debug, Clone)]
pub(crate) struct Landing {
    pub(crate) at: StepAt,
    pub(crate) dispatch_no: u32,
    /// Its slot and reservation.
    pub(crate) terms: Arc<Terms>,
    /// Its cost; `None` if it is unknown.
    pub(crate) usage: Option<Usage>,
}

impl Run {
    /// The dispatches that an event ends. Must be called before the event is folded.
    pub(crate) fn landings(&self, at: StepAt, event: &StepEvent) -> Vec<Landing> {
        let unknown = Usage::unknown();
        let usage = match event {
            StepEvent::Completed(completed) => &completed.usage,
            StepEvent::Failed(ending) | StepEvent::TimedOut(ending) => &ending.usage,
            StepEvent::Cancelled { usage, .. } => usage,
            StepEvent::Skipped(skip) => &skip.usage,
            StepEvent::Retried(retried) => &retried.usage,
            StepEvent::ApprovalRequested(request) if request.source == ApprovalSource::Tool => {
                return Vec::new();
            }
            StepEvent::ApprovalRequested(request) => &request.usage,
            // After a crash, a gate refused to send the attempt again, or nothing may be sent.
            StepEvent::Waiting(_) | StepEvent::Blocked { .. } | StepEvent::Queued { .. } => {
                &unknown
            }
            StepEvent::Invalidated => return self.all_landings(at.step),
            _ => return Vec::new(),
        };
        // A dispatch that a remote worker accepted is still in flight.
        if let StepEvent::Waiting(wait) = event
            && wait.reason == crate::status::Waiting::ExternalCallback
        {
            return Vec::new();
        }
        self.landing(at, usage).into_iter().collect()
    }

    /// Slot and reservation of the dispatch of a step that is in flight.
    pub(crate) fn in_flight_terms(&self, at: StepAt) -> Option<&Arc<Terms>> {
        self.index.in_flight.get(&at)?;
        self.state(at).terms()
    }

    fn landing(&self, at: StepAt, usage: &Usage) -> Option<Landing> {
        let dispatch_no = *self.index.in_flight.get(&at)?;
        let terms = self.state(at).terms().cloned()?;
        let usage = (!usage.unknown).then(|| usage.clone());
        Some(Landing { at, dispatch_no, terms, usage })
    }

    fn all_landings(&self, step: u32) -> Vec<Landing> {
        let from = StepAt::whole(step);
        let in_flight = self.index.in_flight.range(from..).map(|(at, _)| *at);
        let in_flight = in_flight.take_while(|at| at.step == step);
        in_flight.filter_map(|at| self.landing(at, &Usage::unknown())).collect()
    }

    /// Ends a dispatch. If its cost is unknown, its reservation is kept.
    pub(super) fn land(&mut self, landing: Landing, at_ms: u64) {
        let Landing { at, dispatch_no, terms, usage } = landing;
        let state = self.state_mut(at);
        if let Some(dispatch) = &mut state.dispatch {
            dispatch.terms = None;
        }
        state.calls.clear();
        if usage.is_none() {
            // Dispatches without a reservation have no timer, so they are dropped here.
            self.open.retain(|_, open| open.is_reserved() || open.until_ms > at_ms);
            let open = Open { terms, until_ms: at_ms.saturating_add(RESERVATION_MS) };
            if open.is_reserved() {
                self.index.timers.insert((open.until_ms, Timer::Settle(at, dispatch_no)));
            }
            self.open.insert((at, dispatch_no), open);
        }
    }

    /// Books the cost of an aborted dispatch, which is known now.
    pub(super) fn reconciled(&mut self, at: StepAt, dispatch_no: u32, usage: &Usage) {
        if let Some(open) = self.open.remove(&(at, dispatch_no)) {
            self.index.timers.remove(&(open.until_ms, Timer::Settle(at, dispatch_no)));
        }
        // If the instance was invalidated, its step gets the cost.
        let at = if self.get(at).is_some() { at } else { StepAt::whole(at.step) };
        add(&mut self.state_mut(at).usage, usage);
    }
}
