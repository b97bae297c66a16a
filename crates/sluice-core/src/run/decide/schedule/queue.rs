//! Which queued step is next, and whether there is room for it.

use crate::journal::event::StepAt;
use crate::plan::step::Work;
use crate::run::command::Dispatching;
use crate::run::decide::draft::Draft;
use crate::run::state::{Pause, Run};
use crate::status::RunStatus;

/// Whether the run may start steps at all.
pub(super) fn may_start(run: &Run) -> bool {
    run.status != RunStatus::Cancelling && run.pause != Some(Pause::Operator)
}

/// Whether a step that ends its wait can be dispatched at once.
pub(super) fn has_room_for(draft: &Draft<'_>, at: StepAt) -> bool {
    has_room(draft) && draft.run.fan_out_has_room(at)
}

/// Whether another step can be dispatched now.
pub(super) fn has_room(draft: &Draft<'_>) -> bool {
    draft.given.dispatching == Dispatching::Allowed
        && draft.run.under_way() < draft.run.definition.plan.max_parallel as usize
}

impl Run {
    /// The first queued step that can start: its `for_each` has room, and it is not behind
    /// a step of the same agent that waits at a gate.
    pub(crate) fn next_queued(&self) -> Option<StepAt> {
        let mut from = (0, None);
        loop {
            let place = *self.index.queue.range(from..).next()?;
            let at = self.at_place(place);
            if self.fan_out_has_room(at) && self.stands_behind(at).is_none() {
                return Some(at);
            }
            from = (place.0 + 1, None);
        }
    }

    /// The step at a gate that this one is queued behind: of the same agent, and with the
    /// same capabilities. A child run has no agent.
    pub(crate) fn stands_behind(&self, at: StepAt) -> Option<StepAt> {
        let step = self.step(at);
        if matches!(step.work, Work::Workflow(_)) {
            return None;
        }
        let agent = self.agent_of(at.step);
        let same = |one: &StepAt| {
            self.agent_of(one.step) == agent && self.step(*one).capabilities == step.capabilities
        };
        self.index.gated.iter().copied().find(same)
    }

    fn fan_out_has_room(&self, at: StepAt) -> bool {
        let bound = self.step(at).for_each.as_ref().and_then(|one| one.max_parallel);
        match (at.item, bound, &self.steps[at.step as usize].fan_out) {
            (Some(_), Some(max), Some(fan_out)) => fan_out.in_flight < max,
            _ => true,
        }
    }

    /// The agents and gateways that steps of this run wait for at a gate.
    pub fn gated(&self) -> impl Iterator<Item = (&str, &str)> {
        self.index.gated.iter().filter_map(|at| {
            let gate = self.state(*at).gate.as_ref()?;
            Some((self.agent_of(at.step)?, gate.gateway.as_str()))
        })
    }
}
