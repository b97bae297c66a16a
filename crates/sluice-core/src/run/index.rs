//! What follows from a run's steps and is kept, so that no decision looks at
//! every step.
//!
//! INVARIANT: after every event the kept index equals [`Run::reindex`].

use super::id::ApprovalId;
use super::state::{Run, StepState};
use super::status::StepStatus;
use crate::journal::event::{Path, StepAt};
use std::collections::{BTreeMap, BTreeSet};

/// What follows from the steps, kept as they change.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Index {
    /// For each step, how many of its dependencies are not settled.
    pub(crate) missing: Vec<u32>,
    /// Steps not settled.
    pub(crate) unsettled: u32,
    /// The same for each layer.
    pub(crate) layer_unsettled: Vec<u32>,
    /// The first layer with a step that is not settled.
    pub(crate) open_layer: u32,
    /// Ranks of pending steps whose dependencies are settled.
    pub(crate) ready: BTreeSet<u32>,
    /// Queued, and a person must be asked first: by rank.
    pub(crate) asks: BTreeSet<(u32, Option<u32>)>,
    /// Queued for a place: by rank.
    pub(crate) queue: BTreeSet<(u32, Option<u32>)>,
    /// Dispatched, with the number of the dispatch. Not fan-outs as a whole.
    pub(crate) in_flight: BTreeMap<StepAt, u32>,
    /// Awaiting a person's decision.
    pub(crate) awaiting: BTreeSet<StepAt>,
    /// Queued, and the moderator is being asked.
    pub(crate) checking: BTreeSet<StepAt>,
    /// Blocked until somebody sees to it.
    pub(crate) blocked: BTreeSet<StepAt>,
    /// Queued, but a gate said: not now.
    pub(crate) gated: BTreeSet<StepAt>,
    /// Waiting for the next attempt.
    pub(crate) retrying: BTreeSet<StepAt>,
    /// Whole steps that failed, timed out or are blocked.
    pub(crate) failed: u32,
    /// Whole steps that were cancelled.
    pub(crate) cancelled: u32,
    /// Which step last wrote each variable.
    pub(crate) variables: BTreeMap<String, u32>,
    /// When something is to happen by itself.
    pub(crate) timers: BTreeSet<(u64, Timer)>,
}

/// What happens by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The next attempt starts.
    Retry(StepAt),
    /// An attempt has taken too long.
    Attempt(StepAt),
    /// A person is reminded, or the question expires.
    Approval(ApprovalId),
    /// Nobody said what a dispatch cost: what was reserved is taken for it.
    Settle(StepAt, u32),
    /// The run has taken too long.
    Run,
}

impl Run {
    /// Everything that follows from the steps, made anew.
    pub(crate) fn reindex(&self) -> Index {
        let plan = &self.definition.plan;
        let mut index = Index {
            missing: vec![0; self.steps.len()],
            layer_unsettled: vec![0; plan.graph.layers().len()],
            ..Index::default()
        };
        for (step, whole) in (0u32..).zip(&self.steps) {
            let open = |dep: &&u32| !self.steps[**dep as usize].is_settled();
            let missing = plan.graph.dependencies(step as usize).iter().filter(open).count();
            index.missing[step as usize] = u32::try_from(missing).expect("fewer than 2^32 steps");
            if !whole.is_settled() {
                index.unsettled += 1;
                index.layer_unsettled[plan.graph.layer_of(step as usize) as usize] += 1;
            }
            if whole.status == StepStatus::Pending && missing == 0 {
                index.ready.insert(self.definition.rank(step));
            }
            match whole.status {
                StepStatus::Blocked if whole.waits_for_somebody() => {}
                StepStatus::Failed | StepStatus::TimedOut | StepStatus::Blocked => {
                    index.failed += 1;
                }
                StepStatus::Cancelled => index.cancelled += 1,
                _ => {}
            }
        }
        index.open_layer = first_open(&index.layer_unsettled, 0);
        for (at, state) in self.all() {
            self.index_one(&mut index, at, state);
        }
        for (id, approval) in &self.approvals {
            if approval.resolution.is_none() {
                index.timers.insert((approval.due_at_ms(), Timer::Approval(*id)));
            }
        }
        for ((at, dispatch_no), open) in self.open.iter().filter(|(_, open)| open.is_reserved()) {
            index.timers.insert((open.until_ms, Timer::Settle(*at, *dispatch_no)));
        }
        index.timers.extend(self.deadline_ms().map(|at_ms| (at_ms, Timer::Run)));
        for step in &self.writers {
            let names = self.written_by(*step);
            index.variables.extend(names.map(|name| (name.clone(), *step)));
        }
        index
    }

    fn index_one(&self, index: &mut Index, at: StepAt, state: &StepState) {
        match state.status {
            StepStatus::Queued if state.asked.is_some() => drop(index.checking.insert(at)),
            StepStatus::Queued if state.gate.as_ref().is_some_and(|gate| gate.active) => {
                index.gated.insert(at);
            }
            StepStatus::Queued if self.must_ask(at) => drop(index.asks.insert(self.place(at))),
            StepStatus::Queued => drop(index.queue.insert(self.place(at))),
            StepStatus::AwaitingApproval => drop(index.awaiting.insert(at)),
            StepStatus::Blocked if state.waits_for_somebody() => drop(index.blocked.insert(at)),
            StepStatus::Retrying => drop(index.retrying.insert(at)),
            StepStatus::Running | StepStatus::Streaming if state.path != Some(Path::FanOut) => {
                index.in_flight.insert(at, state.dispatch_no);
            }
            _ => {}
        }
        index.timers.extend(state.wake_at_ms.map(|at_ms| (at_ms, Timer::Retry(at))));
        index.timers.extend(state.deadline_ms.map(|at_ms| (at_ms, Timer::Attempt(at))));
    }
}

/// The first layer from `from` on that has an unsettled step.
pub(crate) fn first_open(layer_unsettled: &[u32], from: u32) -> u32 {
    let mut layer = from;
    while layer_unsettled.get(layer as usize).is_some_and(|open| *open == 0) {
        layer += 1;
    }
    layer
}
