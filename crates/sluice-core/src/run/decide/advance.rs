//! What follows by itself: ready steps are queued or skipped, queued ones are
//! dispatched, fan-outs are gathered, the run ends.

use super::Turn;
use super::govern::Ready;
use crate::code::Code;
use crate::failure::Failure;
use crate::journal::event::{Event, Skip, SkipCause, StepAt, StepEvent};
use crate::plan::policy::{Family, OnParentFailure};
use crate::plan::step::Work;
use crate::run::command::Dispatching;
use crate::run::scope::RunScope;
use crate::run::seat::Seated;
use crate::run::state::Pause;
use crate::status::REASON_APPROVAL;
use crate::status::{RunStatus, StepStatus};
use crate::value::Membership;
use sluice_govern::registry::Posture;
use std::sync::Arc;

/// What becomes of a step whose dependencies are settled.
enum Fate {
    Run,
    Skip(SkipCause, String),
    Fail,
}

impl Turn<'_> {
    pub(super) fn advance(&mut self) {
        if self.run.status.is_terminal() {
            self.settle_overdue();
            self.recover();
        }
        if self.run.status.is_terminal() {
            return;
        }
        self.fire_timers();
        while !self.run.status.is_terminal() && self.round() {}
        if !self.run.status.is_terminal() {
            self.end_if_done();
        }
        if !self.run.status.is_terminal() {
            self.pause_if_only_people();
        }
    }

    /// One pass over what can be done; whether anything was.
    fn round(&mut self) -> bool {
        let before = self.events.len();
        if self.may_start() {
            while let Some(step) = self.run.next_ready() {
                self.ready(step);
            }
            while let Some(place) = self.run.index.asks.first().copied() {
                let at = self.run.at_place(place);
                self.start(at);
            }
            self.look_again();
            while self.has_room()
                && let Some(at) = self.run.next_queued()
            {
                self.start(at);
            }
        }
        self.gather_fan_outs();
        self.events.len() > before
    }

    /// Whether anything new may happen by itself.
    pub(super) fn may_start(&self) -> bool {
        self.run.status != RunStatus::Cancelling && self.run.pause != Some(Pause::Operator)
    }

    /// Whether a step that comes out of a wait can be dispatched at once.
    pub(super) fn has_room_for(&self, at: StepAt) -> bool {
        self.has_room() && self.run.fan_out_has_room(at)
    }

    fn has_room(&self) -> bool {
        self.given.dispatching == Dispatching::Allowed
            && self.run.under_way() < self.run.definition.plan.max_parallel as usize
    }

    /// A step's dependencies are settled: it is queued, or settled at once.
    fn ready(&mut self, step: u32) {
        let at = StepAt::whole(step);
        match self.fate(step) {
            Fate::Skip(cause, reason) => {
                let skip = Skip::new(cause, reason);
                self.node(at, StepEvent::Skipped(skip));
            }
            Fate::Fail => self.fail_upstream(at),
            Fate::Run => match self.condition(at) {
                Ok(true) if self.run.step(at).for_each.is_some() => self.fan_out(at),
                Ok(true) => self.node(at, StepEvent::Queued { items: None }),
                Ok(false) => {
                    let reason = "its condition is false".to_owned();
                    let cause = SkipCause::Condition;
                    let skip = Skip::new(cause, reason);
                    self.node(at, StepEvent::Skipped(skip));
                }
                Err(failure) => self.fail(at, failure),
            },
        }
    }

    fn fate(&self, step: u32) -> Fate {
        let plan = &self.run.definition.plan;
        let dependencies = plan.graph.dependencies(step as usize);
        let failed = dependencies.iter().find(|dep| self.run.counts_as_failed(**dep));
        if let Some(failed) = failed {
            let name = &plan.steps[*failed as usize].id;
            match plan.steps[step as usize].on_parent_failure {
                OnParentFailure::Propagate => {
                    return Fate::Fail;
                }
                OnParentFailure::Skip => {
                    let skipped = self.run.steps[*failed as usize].status() == StepStatus::Skipped;
                    let what = if skipped { "was skipped because of a failure" } else { "failed" };
                    let reason = format!("`{name}` {what}");
                    return Fate::Skip(SkipCause::ParentFailure, reason);
                }
                OnParentFailure::SubstituteDefault => return Fate::Run,
            }
        }
        let status = |dep: &u32| self.run.steps[*dep as usize].status();
        // A run that only looks skips what it looked at, and looks on.
        let looks = self.run.started.posture == Posture::Advisory;
        let all_skipped = !looks
            && !dependencies.is_empty()
            && dependencies.iter().all(|dep| status(dep) == StepStatus::Skipped);
        if all_skipped {
            let reason = "everything it depends on was skipped".to_owned();
            return Fate::Skip(SkipCause::Dependencies, reason);
        }
        Fate::Run
    }

    /// Whether the step's own condition, or one of its edges, lets it run.
    fn condition(&self, at: StepAt) -> Result<bool, Failure> {
        let step = self.run.step(at);
        let scope = RunScope::of_step(self.run, &self.args, at);
        if let Some(condition) = &step.condition {
            return Ok(condition.holds(&scope, Membership::Tolerant)?);
        }
        if step.edges.iter().all(|edge| edge.condition.is_none()) {
            return Ok(true);
        }
        for edge in &step.edges {
            if self.edge_value(edge, &scope)?.is_some() {
                return Ok(true);
            }
        }
        // What is substituted for a failed parent satisfies its edge.
        let substitutes = step.on_parent_failure == OnParentFailure::SubstituteDefault;
        let failed = |id: &str| {
            let position = self.run.definition.plan.graph.position(id);
            position
                .and_then(|at| u32::try_from(at).ok())
                .is_some_and(|at| self.run.counts_as_failed(at))
        };
        Ok(substitutes && step.edges.iter().any(|edge| failed(&edge.source)))
    }

    /// Takes the next step towards an attempt: gives it what it needs, asks the
    /// gates, or the people if there is nothing but a question.
    pub(super) fn start(&mut self, at: StepAt) {
        self.require_rows_to_wait();
        if self.run.seated(at.step) == Seated::Unassigned {
            return self.wait_for_somebody(at);
        }
        let state = self.run.state(at);
        let attempt = state.attempt + u32::from(!self.flies(at));
        let kept = state.prepared.clone().filter(|_| !state.reask);
        let known = kept.is_some();
        // Asked again, a step reads what it read before.
        let told = state.decided || state.reask;
        let prepared = match kept {
            Some(prepared) => match self.agree(at) {
                Ok(()) => prepared,
                Err(unfit) => return self.unfit(at, unfit),
            },
            None => match self.prepare(at) {
                Ok((prepared, provenance)) => {
                    for one in provenance.into_iter().filter(|_| !told) {
                        self.node(at, StepEvent::Provenance(Box::new(one)));
                    }
                    self.tell_missing_memory(at);
                    Arc::new(prepared)
                }
                Err(unfit) => return self.unfit(at, unfit),
            },
        };
        let ready = Ready { at, attempt, prepared, known };
        if self.awaits_moderator(&ready) {
            return;
        }
        if matches!(self.run.step(at).work, Work::Approval) {
            return self.ask(&ready);
        }
        self.govern(ready);
    }

    /// The run's end, if everything is settled, or if nothing can be any more.
    pub(super) fn end_if_done(&mut self) {
        let index = &self.run.index;
        if index.unsettled == 0 && index.in_flight.is_empty() {
            return self.end();
        }
        let waits = !index.in_flight.is_empty()
            || !index.queue.is_empty()
            || !index.asks.is_empty()
            || !index.ready.is_empty()
            || !index.retrying.is_empty()
            || !index.gated.is_empty()
            || !index.checking.is_empty()
            || !index.awaiting.is_empty()
            || !index.blocked.is_empty()
            || self.run.steps.iter().any(|step| step.status() == StepStatus::Running);
        if !waits && self.may_start() {
            let stuck: Vec<&str> = (self.run.steps.iter().zip(&self.run.definition.plan.steps))
                .filter(|(state, _)| !state.is_settled())
                .map(|(_, step)| step.id.as_str())
                .collect();
            let message = format!(
                "Workflow stalled: {} step(s) have unmet dependencies: {}",
                stuck.len(),
                stuck.join(", ")
            );
            self.emit(Event::RunFailed { code: Code::WorkflowStalled.to_string(), message });
            self.tell_parent();
        }
    }

    fn end(&mut self) {
        let event = match self.verdict() {
            RunStatus::Cancelled => {
                let reason = self.run.cancel_reason.clone();
                Event::RunCancelled { reason: reason.unwrap_or_else(|| "cancelled".to_owned()) }
            }
            RunStatus::Completed => {
                if self.run.reopened > 0 {
                    self.emit(Event::RunRecovered);
                }
                Event::RunCompleted { outputs: Arc::new(self.result()) }
            }
            _ => {
                let (code, mut message) = self.first_failure();
                if let Some(reason) = &self.run.cancel_reason {
                    message.push_str(&format!("; then the run was cancelled: {reason}"));
                }
                Event::RunFailed { code, message }
            }
        };
        self.emit(event);
        self.tell_parent();
    }

    /// How a run whose steps are all settled has ended.
    fn verdict(&self) -> RunStatus {
        let index = &self.run.index;
        // A cancel does not hide a failure that came before it.
        if self.run.status == RunStatus::Cancelling {
            return if index.failed > 0 { RunStatus::Failed } else { RunStatus::Cancelled };
        }
        let plan = &self.run.definition.plan;
        let good = match plan.family {
            Family::Lobsterx => index.failed == 0 && index.cancelled == 0,
            Family::Lens => {
                self.run.halted_by.is_none()
                    && (0..self.run.steps.len()).all(|step| {
                        let done = matches!(
                            self.run.steps[step].status(),
                            StepStatus::Completed | StepStatus::Skipped
                        );
                        done || !plan.graph.dependents(step).is_empty()
                    })
            }
        };
        match plan.family {
            _ if good => RunStatus::Completed,
            Family::Lens if index.cancelled > 0 && index.failed == 0 => RunStatus::Cancelled,
            _ => RunStatus::Failed,
        }
    }

    /// The failure that a failed run is told by: the one that halted it, else the first.
    fn first_failure(&self) -> (String, String) {
        let bad = |status| {
            matches!(status, StepStatus::Failed | StepStatus::TimedOut | StepStatus::Blocked)
        };
        let first = (0u32..).zip(&self.run.steps).filter(|(_, state)| bad(state.status()));
        let first = first.min_by_key(|(step, state)| {
            let upstream = state
                .failure
                .as_ref()
                .is_some_and(|ending| ending.code == Code::UpstreamFailure.as_str());
            (upstream, state.phase.ended_at_ms(), *step)
        });
        let at = self.run.halted_by.or(first.map(|(step, _)| StepAt::whole(step)));
        let told = at.and_then(|at| Some((at, self.run.state(at).failure.as_ref()?)));
        told.map_or_else(
            || (Code::ProviderError.to_string(), "a step failed".to_owned()),
            |(at, ending)| {
                let message = format!("`{}` failed: {}", self.run.name(at), ending.message);
                (ending.code.clone(), message)
            },
        )
    }

    /// Only people are left to wait for: the run says so, and its clock stops.
    pub(super) fn pause_if_only_people(&mut self) {
        let only_people = self.run.has_only_people();
        if only_people && matches!(self.run.status, RunStatus::Running | RunStatus::Queued) {
            self.emit(Event::RunStatusChanged {
                status: RunStatus::Paused,
                reason: REASON_APPROVAL.to_owned(),
                by: None,
            });
        }
        let resumes = self.run.pause == Some(Pause::Approval) && !only_people;
        if resumes {
            self.emit(Event::RunStatusChanged {
                status: RunStatus::Running,
                reason: REASON_APPROVAL.to_owned(),
                by: None,
            });
        }
    }
}
