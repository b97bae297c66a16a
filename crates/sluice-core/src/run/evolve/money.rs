//! What a dispatch has taken, when it comes to its end.
//!
//! A dispatch takes a slot, and reserves money where a budget applies. When it ends,
//! its slot is free; its money is settled if its cost is known. If not, the reservation
//! is kept, and the dispatch stays open for a day, so that a cost that is reported late
//! is booked.

use super::add;
use crate::journal::event::{ApprovalSource, StepAt, StepEvent, Terms};
use crate::limits::RESERVATION_MS;
use crate::port::adapter::Usage;
use crate::run::index::Timer;
use crate::run::state::{Open, Run};
use std::sync::Arc;

/// A dispatch that has come to its end.
#[derive(Debug, Clone)]
pub(crate) struct Landing {
    pub(crate) at: StepAt,
    pub(crate) dispatch_no: u32,
    /// What it had taken.
    pub(crate) terms: Arc<Terms>,
    /// What it cost; none if nobody knows.
    pub(crate) usage: Option<Usage>,
}

impl Run {
    /// The dispatches that an event, not yet folded, brings to their end.
    pub(crate) fn landings(&self, at: StepAt, event: &StepEvent) -> Vec<Landing> {
        let unknown = Usage::unknown();
        let usage = match event {
            StepEvent::Completed(completed) => &completed.usage,
            StepEvent::Failed(ending) | StepEvent::TimedOut(ending) => &ending.usage,
            StepEvent::Cancelled { usage, .. } => usage,
            StepEvent::Skipped(skip) => &skip.usage,
            StepEvent::Retried(retried) => &retried.usage,
            StepEvent::ApprovalRequested(asked) if asked.source == ApprovalSource::Tool => {
                return Vec::new();
            }
            StepEvent::ApprovalRequested(asked) => &asked.usage,
            // A gate said no to sending it again after a crash.
            StepEvent::Waiting(_) | StepEvent::Blocked { .. } => &unknown,
            // Nothing may be sent again for now.
            StepEvent::Queued { .. } => &unknown,
            StepEvent::Invalidated => return self.all_landings(at.step),
            _ => return Vec::new(),
        };
        // Work that goes on elsewhere is still in flight.
        if let StepEvent::Waiting(wait) = event
            && wait.reason == crate::status::Waiting::ExternalCallback
        {
            return Vec::new();
        }
        self.landing(at, usage).into_iter().collect()
    }

    /// What the dispatch of a step that is in flight has taken.
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
        let flying = self.index.in_flight.range(from..).map(|(at, _)| *at);
        let flying = flying.take_while(|at| at.step == step);
        flying.filter_map(|at| self.landing(at, &Usage::unknown())).collect()
    }

    /// What it had taken is given back, or held on to.
    pub(super) fn land(&mut self, landing: Landing, at_ms: u64) {
        let Landing { at, dispatch_no, terms, usage } = landing;
        let state = self.state_mut(at);
        if let Some(dispatch) = &mut state.dispatch {
            dispatch.terms = None;
        }
        state.calls.clear();
        if usage.is_none() {
            // No timer ends those that have nothing reserved, so they are dropped here.
            self.open.retain(|_, open| open.is_reserved() || open.until_ms > at_ms);
            let open = Open { terms, until_ms: at_ms.saturating_add(RESERVATION_MS) };
            if open.is_reserved() {
                self.index.timers.insert((open.until_ms, Timer::Settle(at, dispatch_no)));
            }
            self.open.insert((at, dispatch_no), open);
        }
    }

    /// What a dispatch that was given up has cost is known now.
    pub(super) fn reconciled(&mut self, at: StepAt, dispatch_no: u32, usage: &Usage) {
        if let Some(open) = self.open.remove(&(at, dispatch_no)) {
            self.index.timers.remove(&(open.until_ms, Timer::Settle(at, dispatch_no)));
        }
        // The instance may be gone; its step is not.
        let at = if self.get(at).is_some() { at } else { StepAt::whole(at.step) };
        add(&mut self.state_mut(at).usage, usage);
    }
}
