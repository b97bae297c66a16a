//! What follows by itself: ready steps are queued or skipped, queued ones are
//! dispatched, fan-outs are gathered, the run ends.

use super::dispatch::start;
use super::end::end_if_done;
use super::fan_out::{fan_out, gather_fan_outs};
use super::queue::{has_room, has_room_for, may_start};
use super::rewind::recover;
use super::timer::{fire_timers, settle_overdue};
use crate::failure::Failure;
use crate::journal::event::{Skip, SkipCause, StepAt, StepEvent};
use crate::plan::policy::OnParentFailure;
use crate::run::decide::admit::gate::is_still_blocked;
use crate::run::decide::admit::lens::edge_value;
use crate::run::decide::draft::Draft;
use crate::run::decide::draft::pause::pause_if_only_people;
use crate::run::decide::settle::fail::{fail, fail_upstream};
use crate::run::scope::RunScope;
use crate::run::state::Run;
use crate::status::StepStatus;
use crate::value::Membership;
use sluice_govern::registry::Posture;
use std::collections::BTreeSet;

/// What happens to a step whose dependencies are settled.
enum Readiness {
    Run,
    Skip(SkipCause, String),
    Fail,
}

/// Starts and settles everything that can be.
pub(crate) fn advance(draft: &mut Draft<'_>) {
    if draft.run.status.is_terminal() {
        settle_overdue(draft);
        recover(draft);
    }
    if draft.run.status.is_terminal() {
        return;
    }
    fire_timers(draft);
    let mut looked = BTreeSet::new();
    while !draft.run.status.is_terminal() && round(draft, &mut looked) {}
    if !draft.run.status.is_terminal() {
        end_if_done(draft);
    }
    if !draft.run.status.is_terminal() {
        pause_if_only_people(draft);
    }
}

/// Starts and settles steps once. Returns whether anything happened.
fn round(draft: &mut Draft<'_>, looked: &mut BTreeSet<StepAt>) -> bool {
    let before = draft.event_count();
    if may_start(draft.run) {
        while let Some(step) = draft.run.next_ready() {
            ready(draft, step);
        }
        while let Some(place) = draft.run.index.asks.first().copied() {
            let at = draft.run.at_place(place);
            start(draft, at);
        }
        look_again(draft, looked);
        while has_room(draft)
            && let Some(at) = draft.run.next_queued()
        {
            start(draft, at);
        }
    }
    gather_fan_outs(draft);
    draft.event_count() > before
}

/// Starts steps at a gate that may no longer block them, each once in a turn.
fn look_again(draft: &mut Draft<'_>, looked: &mut BTreeSet<StepAt>) {
    for at in draft.run.index.gated.iter().copied().collect::<Vec<_>>() {
        let free = !is_still_blocked(draft, at) && has_room_for(draft, at);
        if free && draft.run.index.gated.contains(&at) && looked.insert(at) {
            start(draft, at);
        }
    }
}

/// Queues a step whose dependencies are settled, or settles it at once.
fn ready(draft: &mut Draft<'_>, step: u32) {
    let at = StepAt::whole(step);
    match readiness(draft.run, step) {
        Readiness::Skip(cause, reason) => {
            skip(draft, at, cause, reason);
        }
        Readiness::Fail => fail_upstream(draft, at),
        Readiness::Run => match condition(draft.run, at) {
            Ok(true) if draft.run.step(at).for_each.is_some() => fan_out(draft, at),
            Ok(true) => draft.record(at, StepEvent::Queued { items: None }),
            Ok(false) => {
                skip(draft, at, SkipCause::Condition, "its condition is false".to_owned());
            }
            Err(failure) => fail(draft, at, failure),
        },
    }
}

fn skip(draft: &mut Draft<'_>, at: StepAt, cause: SkipCause, reason: String) {
    let control = draft.run.skip_is_controlled(at.step, cause);
    let skip = Skip { control, ..Skip::new(cause, reason) };
    draft.record(at, StepEvent::Skipped(skip));
}

fn readiness(run: &Run, step: u32) -> Readiness {
    let plan = &run.definition.plan;
    let dependencies = plan.graph.dependencies(step as usize);
    let failed = dependencies.iter().find(|dep| run.counts_as_failed(**dep));
    if let Some(failed) = failed {
        let name = &plan.steps[*failed as usize].id;
        match plan.steps[step as usize].on_parent_failure {
            OnParentFailure::Propagate => return Readiness::Fail,
            OnParentFailure::Skip => {
                let skipped = run.steps[*failed as usize].status() == StepStatus::Skipped;
                let what = if skipped { "was skipped because of a failure" } else { "failed" };
                let reason = format!("`{name}` {what}");
                return Readiness::Skip(SkipCause::ParentFailure, reason);
            }
            OnParentFailure::SubstituteDefault => return Readiness::Run,
        }
    }
    let status = |dep: &u32| run.steps[*dep as usize].status();
    // A dry run skips every step, and continues.
    let dry_run = run.started.posture == Posture::Advisory;
    let all_skipped = !dry_run
        && !dependencies.is_empty()
        && dependencies.iter().all(|dep| status(dep) == StepStatus::Skipped);
    if all_skipped {
        let reason = "everything it depends on was skipped".to_owned();
        return Readiness::Skip(SkipCause::Dependencies, reason);
    }
    Readiness::Run
}

/// Whether the condition of a step, or of one of its edges, holds.
fn condition(run: &Run, at: StepAt) -> Result<bool, Failure> {
    let step = run.step(at);
    let scope = RunScope::of_step(run, at);
    if let Some(condition) = &step.condition {
        return Ok(condition.holds(&scope, Membership::Tolerant)?);
    }
    if step.edges.iter().all(|edge| edge.condition.is_none()) {
        return Ok(true);
    }
    for edge in &step.edges {
        if edge_value(run, edge, &scope)?.is_some() {
            return Ok(true);
        }
    }
    // The substitute for a failed parent satisfies its edge.
    let substitutes = step.on_parent_failure == OnParentFailure::SubstituteDefault;
    let failed = |id: &str| {
        let position = run.definition.plan.graph.position(id);
        position.and_then(|at| u32::try_from(at).ok()).is_some_and(|at| run.counts_as_failed(at))
    };
    Ok(substitutes && step.edges.iter().any(|edge| failed(&edge.source)))
}
