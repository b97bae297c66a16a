//! What a failure does to the rest of the run.
//!
//! A step whose policy halts stops the run: its dependents fail, steps in flight
//! drain or are stopped, everything else is cancelled. A dependent that skips or
//! substitutes keeps its branch alive, and the steps after it still run. A lens
//! node without a policy stops nothing; its dependents decide when they are ready.

use super::cancel::{fail_dependent, stop, undispatched};
use crate::code::Code;
use crate::journal::event::{Skip, SkipCause, StepAt, StepEvent};
use crate::plan::policy::{OnParentFailure, ParallelFailure};
use crate::run::decide::draft::Draft;
use crate::run::state::Run;
use crate::status::StepStatus;
use std::sync::Arc;

/// Applies the policies of a step or instance that has failed.
pub(crate) fn spread(draft: &mut Draft<'_>, at: StepAt) {
    let fail_fast = draft.run.step(at).parallel_failure_policy == ParallelFailure::FailFast;
    if draft.run.halts(at) && fail_fast {
        let reason = format!("stopped because `{}` failed", draft.run.name(at));
        for one in draft.run.index.in_flight.keys().copied().collect::<Vec<_>>() {
            stop(draft, one, Code::ConditionFailed, &reason);
        }
    }
    cut_off_rest(draft, at);
}

/// Settles every step that can no longer run because this one failed.
pub(crate) fn cut_off_rest(draft: &mut Draft<'_>, at: StepAt) {
    if !draft.run.halts(at) {
        return;
    }
    fail_dependents(draft, at);
    let alive = alive(draft.run, at.step);
    let reason = format!("the run was halted by `{}`", draft.run.name(at));
    for one in undispatched(draft.run) {
        if !alive[one.step as usize] {
            stop(draft, one, Code::RunHalted, &reason);
        }
    }
}

/// Whether the run was halted, and no surviving branch leads to this step.
pub(crate) fn is_cut_off(run: &Run, at: StepAt) -> bool {
    run.halted_by.is_some_and(|by| !alive(run, by.step)[at.step as usize])
}

/// Fails or skips the pending steps that depend on a failed one, directly or not.
fn fail_dependents(draft: &mut Draft<'_>, at: StepAt) {
    let definition = Arc::clone(&draft.run.definition);
    let name = draft.run.name(at);
    let mut front = vec![at.step];
    while let Some(step) = front.pop() {
        for dependent in definition.plan.graph.dependents(step as usize) {
            let one = StepAt::whole(*dependent);
            if draft.run.state(one).status() != StepStatus::Pending {
                continue;
            }
            match definition.plan.steps[*dependent as usize].on_parent_failure {
                OnParentFailure::Propagate => {
                    fail_dependent(draft, one);
                    front.push(*dependent);
                }
                OnParentFailure::Skip => {
                    let reason = format!("`{name}` failed");
                    let skip = Skip::new(SkipCause::ParentFailure, reason);
                    draft.record(one, StepEvent::Skipped(skip));
                }
                OnParentFailure::SubstituteDefault => {}
            }
        }
    }
}

/// For each step, whether a branch that survives the failures leads to it.
fn alive(run: &Run, failing: u32) -> Vec<bool> {
    let plan = &run.definition.plan;
    let failed = |dep: &u32| *dep == failing || run.counts_as_failed(*dep);
    let mut alive = vec![false; run.steps.len()];
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
