//! What a failure does to the rest of the run.
//!
//! A step whose policy halts stops the run: its dependents fail, what is in
//! flight drains or is stopped, everything else is cancelled. A dependent that
//! skips or substitutes keeps its branch alive: what it frees still runs. A
//! lens node without a policy stops nothing; its dependents decide when ready.

use super::Turn;
use crate::code::Code;
use crate::journal::event::{Skip, SkipCause, StepAt, StepEvent};
use crate::plan::policy::{OnParentFailure, ParallelFailure};
use crate::run::state::StepState;
use crate::status::StepStatus;

impl Turn<'_> {
    /// A step or instance has failed for good.
    pub(super) fn spread(&mut self, at: StepAt) {
        let fail_fast = self.run.step(at).parallel_failure_policy == ParallelFailure::FailFast;
        if self.run.halts(at) && fail_fast {
            let reason = format!("stopped because `{}` failed", self.run.name(at));
            for one in self.run.index.in_flight.keys().copied().collect::<Vec<_>>() {
                self.stop(one, Code::ConditionFailed, &reason);
            }
        }
        self.cut_off_rest(at);
    }

    /// Settles everything that the failure of a step leaves without a way to go on.
    pub(super) fn cut_off_rest(&mut self, at: StepAt) {
        if !self.run.halts(at) {
            return;
        }
        self.fail_dependents(at);
        let alive = self.alive(at.step);
        let reason = format!("the run was halted by `{}`", self.run.name(at));
        for one in self.undispatched() {
            if !alive[one.step as usize] {
                self.stop(one, Code::RunHalted, &reason);
            }
        }
    }

    /// Whether the run was halted, and no surviving branch leads to this step.
    pub(super) fn is_cut_off(&self, at: StepAt) -> bool {
        self.run.halted_by.is_some_and(|by| !self.alive(by.step)[at.step as usize])
    }

    /// Everything not settled and not sent.
    pub(super) fn undispatched(&self) -> Vec<StepAt> {
        let waits = |state: &StepState| !state.is_settled() && !state.status().is_dispatched();
        self.run.all().filter(|(_, state)| waits(state)).map(|(at, _)| at).collect()
    }

    /// Fails or skips what depends on a failed step, as far as that goes.
    fn fail_dependents(&mut self, at: StepAt) {
        let definition = std::sync::Arc::clone(&self.run.definition);
        let name = self.run.name(at);
        let mut front = vec![at.step];
        while let Some(step) = front.pop() {
            for dependent in definition.plan.graph.dependents(step as usize) {
                let one = StepAt::whole(*dependent);
                if self.run.state(one).status() != StepStatus::Pending {
                    continue;
                }
                match definition.plan.steps[*dependent as usize].on_parent_failure {
                    OnParentFailure::Propagate => {
                        self.fail_upstream_quietly(one);
                        front.push(*dependent);
                    }
                    OnParentFailure::Skip => {
                        let reason = format!("`{name}` failed");
                        let cause = SkipCause::ParentFailure;
                        let skip = Skip::new(cause, reason);
                        self.node(one, StepEvent::Skipped(skip));
                    }
                    OnParentFailure::SubstituteDefault => {}
                }
            }
        }
    }

    /// For each step, whether a branch that survives the failures leads to it.
    fn alive(&self, failing: u32) -> Vec<bool> {
        let plan = &self.run.definition.plan;
        let failed = |dep: &u32| *dep == failing || self.run.counts_as_failed(*dep);
        let mut alive = vec![false; self.run.steps.len()];
        let mut front: Vec<u32> = Vec::new();
        for (step, one) in (0u32..).zip(&plan.steps) {
            let survives = one.on_parent_failure != OnParentFailure::Propagate
                && plan.graph.dependencies(step as usize).iter().any(failed);
            if survives {
                front.push(step);
            }
        }
        while let Some(step) = front.pop() {
            if !std::mem::replace(&mut alive[step as usize], true) {
                front.extend(plan.graph.dependents(step as usize));
            }
        }
        alive
    }
}
