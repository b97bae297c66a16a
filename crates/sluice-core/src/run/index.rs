//! The index of a run's steps, so that no decision has to look at every step.
//!
//! INVARIANT: after every event the index equals [`Run::reindex`].

use super::phase::StepPhase;
use super::state::{Run, StepState};
use crate::id::ApprovalId;
use crate::journal::event::{Path, StepAt};
use crate::status::StepStatus;
use std::collections::{BTreeMap, BTreeSet};

/// Lists and counts of steps, which `evolve` updates with every event.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Index {
    /// For each step, how many of its dependencies are not settled.
    pub(crate) missing: Vec<u32>,
    /// The number of steps that are not settled.
    pub(crate) unsettled: u32,
    /// The same number for each layer.
    pub(crate) layer_unsettled: Vec<u32>,
    /// The first layer with a step that is not settled.
    pub(crate) open_layer: u32,
    /// Ranks of pending steps whose dependencies are settled.
    pub(crate) ready: BTreeSet<u32>,
    /// Queued steps that need an approval first, by rank.
    pub(crate) asks: BTreeSet<(u32, Option<u32>)>,
    /// Queued steps that can be dispatched, by rank.
    pub(crate) queue: BTreeSet<(u32, Option<u32>)>,
    /// Dispatched steps with their dispatch numbers, without fan-outs as a whole.
    pub(crate) in_flight: BTreeMap<StepAt, u32>,
    /// Steps that wait for an approval.
    pub(crate) awaiting: BTreeSet<StepAt>,
    /// Queued steps whose inputs the moderator checks.
    pub(crate) checking: BTreeSet<StepAt>,
    /// Steps that are blocked until a person assigns them.
    pub(crate) blocked: BTreeSet<StepAt>,
    /// Queued steps that a gate refused for now.
    pub(crate) gated: BTreeSet<StepAt>,
    /// Steps that wait for their next attempt.
    pub(crate) retrying: BTreeSet<StepAt>,
    /// The number of whole steps that failed, timed out or are blocked.
    pub(crate) failed: u32,
    /// The number of whole steps that were cancelled.
    pub(crate) cancelled: u32,
    /// The step that last wrote each variable.
    pub(crate) variables: BTreeMap<String, u32>,
    /// When each timer fires.
    pub(crate) timers: BTreeSet<(u64, Timer)>,
}

/// What happens when a timer fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The next attempt starts.
    Retry(StepAt),
    /// An attempt times out.
    Attempt(StepAt),
    /// The approvers are reminded, or the approval expires.
    Approval(ApprovalId),
    /// No cost was reported for a dispatch: its reservation is booked as the cost.
    Settle(StepAt, u32),
    /// The run times out.
    Run,
}

impl Run {
    /// Builds the index from the state of all steps.
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
            match whole.status() {
                _ if !whole.is_settled() => {}
                StepStatus::Failed | StepStatus::TimedOut | StepStatus::Blocked => {
                    index.failed += 1;
                }
                StepStatus::Cancelled => index.cancelled += 1,
                _ => {}
            }
        }
        index.open_layer = first_open(&index.layer_unsettled, 0);
        for (at, state) in self.all() {
            index.insert(at, self.listing(at, state));
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

    /// The entry of a step in the index, which follows from its phase.
    pub(crate) fn listing(&self, at: StepAt, state: &StepState) -> Listing {
        let list = match state.phase {
            StepPhase::Pending if at.item.is_none() => {
                let rank = self.definition.rank(at.step);
                IndexList::Pending(rank)
            }
            StepPhase::Queued => IndexList::Queued(self.place(at), self.needs_approval(at)),
            StepPhase::Moderating { .. } => IndexList::Moderating,
            StepPhase::AtGate { .. } => IndexList::AtGate,
            StepPhase::AwaitingApproval { .. } => IndexList::AwaitingApproval,
            StepPhase::AwaitingAssignment => IndexList::AwaitingAssignment,
            StepPhase::InFlight { .. } if state.path() != Some(Path::FanOut) => {
                IndexList::InFlight(state.dispatch_no)
            }
            StepPhase::Retrying { .. } => IndexList::Retrying,
            StepPhase::Pending | StepPhase::InFlight { .. } | StepPhase::Settled { .. } => {
                IndexList::Nowhere
            }
        };
        let wakes = state.phase.wakes_at_ms().map(|at_ms| (at_ms, Timer::Retry(at)));
        let expires = state.phase.deadline_ms().map(|at_ms| (at_ms, Timer::Attempt(at)));
        Listing { list, timer: wakes.or(expires) }
    }
}

/// The entry of a step in the index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listing {
    list: IndexList,
    timer: Option<(u64, Timer)>,
}

/// The list of the index that a step is in.
#[derive(Debug, Clone, Copy)]
enum IndexList {
    /// The rank of a pending step, which is ready once its dependencies are settled.
    Pending(u32),
    /// Its position in the order of dispatch, and whether it needs an approval first.
    Queued((u32, Option<u32>), bool),
    Moderating,
    AtGate,
    AwaitingApproval,
    AwaitingAssignment,
    Retrying,
    /// The number of the dispatch.
    InFlight(u32),
    Nowhere,
}

impl Listing {
    pub(crate) const fn is_in_flight(&self) -> bool {
        matches!(self.list, IndexList::InFlight(_))
    }
}

impl Index {
    pub(crate) fn insert(&mut self, at: StepAt, listing: Listing) {
        match listing.list {
            IndexList::Pending(rank) => {
                if self.missing[at.step as usize] == 0 {
                    self.ready.insert(rank);
                }
            }
            IndexList::Queued(place, true) => drop(self.asks.insert(place)),
            IndexList::Queued(place, false) => drop(self.queue.insert(place)),
            IndexList::Moderating => drop(self.checking.insert(at)),
            IndexList::AtGate => drop(self.gated.insert(at)),
            IndexList::AwaitingApproval => drop(self.awaiting.insert(at)),
            IndexList::AwaitingAssignment => drop(self.blocked.insert(at)),
            IndexList::Retrying => drop(self.retrying.insert(at)),
            IndexList::InFlight(dispatch_no) => drop(self.in_flight.insert(at, dispatch_no)),
            IndexList::Nowhere => {}
        }
        self.timers.extend(listing.timer);
    }

    pub(crate) fn remove(&mut self, at: StepAt, listing: Listing) {
        match listing.list {
            IndexList::Pending(rank) => drop(self.ready.remove(&rank)),
            // The grant may have changed while the step was queued.
            IndexList::Queued(place, _) => {
                self.asks.remove(&place);
                self.queue.remove(&place);
            }
            IndexList::Moderating => drop(self.checking.remove(&at)),
            IndexList::AtGate => drop(self.gated.remove(&at)),
            IndexList::AwaitingApproval => drop(self.awaiting.remove(&at)),
            IndexList::AwaitingAssignment => drop(self.blocked.remove(&at)),
            IndexList::Retrying => drop(self.retrying.remove(&at)),
            IndexList::InFlight(_) => drop(self.in_flight.remove(&at)),
            IndexList::Nowhere => {}
        }
        if let Some(timer) = &listing.timer {
            self.timers.remove(timer);
        }
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
