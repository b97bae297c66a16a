//! How an event changes the state of a run.
//!
//! Every event can be folded, and live execution and recovery use the same function.

mod approval;
mod gate;
mod invalidate;
mod moderate;
pub(super) mod money;
pub(crate) mod tool;

use super::index::{Timer, first_open};
use super::phase::{Progress, StepEnd, StepPhase};
use super::state::{End, FanOut, Grant, LastDispatch, Pause, Run, StepState, args_of};
use super::transition::allowed;
use crate::journal::event::{
    Assigned, ChildPace, Completed, Dispatch, Ending, Event, LogLine, Path, Retried, Skip, StepAt,
    StepEvent, Wait,
};
use crate::plan::policy::Scheduling;
use crate::port::adapter::Usage;
use crate::status::{
    REASON_APPROVAL, REASON_OPERATOR, REASON_RECOVERY, REASON_RETRY, REASON_REWIND, RunStatus,
    StepStatus, Waiting,
};
use serde_json::Value;
use std::sync::Arc;

impl Run {
    /// Folds one event, the next after the last, into the run.
    pub fn evolve(&mut self, event: &Event, at_ms: u64) {
        self.version += 1;
        match event {
            Event::RunStarted(started) => {
                self.args = args_of(started);
                self.started = Arc::new((**started).clone());
                self.started_at_ms = at_ms;
                self.start_clock(at_ms);
            }
            Event::RunStatusChanged { status, reason, by: _ } => {
                self.change_status(*status, reason, at_ms);
            }
            Event::RunCompleted { outputs } => {
                let end = End { outputs: Some(Arc::clone(outputs)), error: None };
                self.end_with(RunStatus::Completed, end, at_ms);
            }
            Event::RunFailed { code, message } => {
                let end = End { outputs: None, error: Some((code.clone(), message.clone())) };
                self.end_with(RunStatus::Failed, end, at_ms);
            }
            Event::RunCancelled { reason } => {
                let error = Some(("cancelled".to_owned(), reason.clone()));
                self.end_with(RunStatus::Cancelled, End { outputs: None, error }, at_ms);
            }
            Event::RunTimedOut { timeout_ms } => {
                let took = crate::duration::format(*timeout_ms);
                let error = ("timeout".to_owned(), format!("the run took longer than {took}"));
                let end = End { outputs: None, error: Some(error) };
                self.end_with(RunStatus::TimedOut, end, at_ms);
            }
            Event::RunRecovered => {
                self.status = RunStatus::Recovered;
                self.pause = None;
            }
            Event::BudgetAlert(_) => {}
            Event::Step(at, event) => {
                if self.status == RunStatus::Queued {
                    self.status = RunStatus::Running;
                }
                self.evolve_step(*at, event, at_ms);
            }
        }
    }

    fn evolve_step(&mut self, at: StepAt, event: &StepEvent, at_ms: u64) {
        for landing in self.landings(at, event) {
            self.land(landing, at_ms);
        }
        self.remember(at, event, at_ms);
        match event {
            StepEvent::Queued { items } => self.queued(at, items.as_ref()),
            StepEvent::Assigned(assigned) => self.assigned(at, assigned),
            StepEvent::Waiting(wait) => self.waits(at, wait, at_ms),
            StepEvent::Started(dispatch) => self.dispatched(at, dispatch, at_ms),
            StepEvent::Delta(_) => self.streams(at, at_ms),
            StepEvent::Log { line, .. } => self.logged(at, line),
            StepEvent::Retried(retried) => self.retried(at, retried),
            StepEvent::Completed(completed) => self.completed(at, completed, at_ms),
            StepEvent::Failed(ending) => self.failed(at, StepEnd::Failed, ending, at_ms),
            StepEvent::TimedOut(ending) => self.failed(at, StepEnd::TimedOut, ending, at_ms),
            StepEvent::Cancelled { code, reason, usage } => {
                add(&mut self.state_mut(at).usage, usage);
                let ending = Ending {
                    code: code.clone(),
                    message: reason.clone(),
                    violations: Arc::default(),
                    attempts: self.state(at).attempt,
                    usage: Usage::default(),
                    answer: None,
                };
                self.state_mut(at).failure = Some(Arc::new(ending));
                self.settle(at, StepEnd::Cancelled, at_ms);
            }
            StepEvent::Skipped(skip) => self.skipped(at, skip, at_ms),
            StepEvent::Blocked { code, message, placeholder, waits } => {
                let state = self.state_mut(at);
                state.failure = Some(Arc::new(Ending {
                    code: code.clone(),
                    message: message.clone(),
                    violations: Arc::default(),
                    attempts: state.attempt,
                    usage: Usage::default(),
                    answer: None,
                }));
                state.gate = None;
                if *waits {
                    self.enter(at, StepPhase::AwaitingAssignment);
                } else {
                    let placeholder = placeholder.clone();
                    self.settle(at, StepEnd::Blocked { placeholder }, at_ms);
                    self.halt_by(at);
                }
            }
            StepEvent::Invalidated => self.invalidated(at),
            StepEvent::Provenance(from) => self.count_value(at, from),
            StepEvent::ApprovalRequested(request) => self.approval_requested(at, request, at_ms),
            StepEvent::ApprovalReminded { approval, .. } => self.approval_reminded(*approval),
            StepEvent::ApprovalResolved(resolved) => self.approval_resolved(at, resolved, at_ms),
            StepEvent::GovernanceDecided(_) => self.state_mut(at).decided = true,
            StepEvent::Reconciled { dispatch_no, usage } => {
                self.reconciled(at, *dispatch_no, usage);
            }
            // The labels of the result take it into account.
            StepEvent::Endorsed(_)
            | StepEvent::ModerationFlagged { .. }
            | StepEvent::ContractViolated { .. } => {}
        }
    }

    fn logged(&mut self, at: StepAt, line: &LogLine) {
        match line {
            LogLine::Text(_) => {}
            LogLine::ToolEnded(call) => self.tool_answered(at, call),
            LogLine::Tool(request) => self.tool_requested(at, request),
            LogLine::Process(process) => {
                if let Some(dispatch) = &mut self.state_mut(at).dispatch {
                    dispatch.process = Some(process.clone());
                }
            }
            LogLine::ModerationAsked { digest, prepared } => {
                self.moderation_requested(at, digest, prepared.as_ref());
            }
            LogLine::ModerationCleared { phase, digest } => {
                self.moderation_cleared(at, *phase, digest);
            }
            LogLine::Child { pace, at_ms, .. } => self.child_paced(at, *pace, *at_ms),
        }
    }

    fn end_with(&mut self, status: RunStatus, end: End, at_ms: u64) {
        self.stop_clock(at_ms);
        self.status = status;
        self.pause = None;
        self.end = Some(end);
        self.ended_at_ms = Some(at_ms);
    }

    fn change_status(&mut self, status: RunStatus, reason: &str, at_ms: u64) {
        let reopens = self.status.is_terminal() && !status.is_terminal();
        if reopens {
            self.end = None;
            self.ended_at_ms = None;
            self.clock.used_ms = 0;
        }
        // The reason of a cancellation is free text, which must not match a reason of ours.
        let why = if status == RunStatus::Running { reason } else { "" };
        if reopens || matches!(why, REASON_REWIND | REASON_RETRY | REASON_RECOVERY) {
            self.halted_by = None;
            self.cancel_reason = None;
            self.reopened += u32::from(matches!(why, REASON_RETRY | REASON_RECOVERY));
            self.recoveries += u32::from(why == REASON_RECOVERY);
        }
        // When a new owner continues a cancellation, the original reason stays.
        if status == RunStatus::Cancelling && self.status != RunStatus::Cancelling {
            self.cancel_reason = Some(reason.to_owned());
        }
        self.status = status;
        self.pause = match (status, reason) {
            (RunStatus::Paused, REASON_OPERATOR) => Some(Pause::Operator),
            (RunStatus::Paused, REASON_APPROVAL) => Some(Pause::Approval),
            (RunStatus::Paused, _) => self.pause,
            _ => None,
        };
        match self.pause {
            Some(Pause::Approval) => self.stop_clock(at_ms),
            // A pause by an operator counts against the timeout, unless the clock was stopped.
            Some(Pause::Operator) => {}
            None => self.start_clock(at_ms),
        }
    }

    fn start_clock(&mut self, at_ms: u64) {
        if self.clock.since_ms.is_none() {
            self.clock.since_ms = Some(at_ms);
            let deadline = self.deadline_ms();
            self.index.timers.extend(deadline.map(|at_ms| (at_ms, Timer::Run)));
        }
    }

    fn stop_clock(&mut self, at_ms: u64) {
        if let Some(at_ms) = self.deadline_ms() {
            self.index.timers.remove(&(at_ms, Timer::Run));
        }
        if let Some(since_ms) = self.clock.since_ms.take() {
            self.clock.used_ms += at_ms.saturating_sub(since_ms);
        }
    }

    /// Moves a step to another phase and updates its entry in the index.
    fn enter(&mut self, at: StepAt, phase: StepPhase) {
        self.unlist(at);
        let state = self.state_mut(at);
        state.check_transition(&phase);
        state.phase = phase;
        self.list(at);
    }

    /// Removes a step from the index, before its phase changes.
    fn unlist(&mut self, at: StepAt) {
        let listing = self.listing(at, self.state(at));
        self.index.remove(at, listing);
        if listing.is_in_flight()
            && let Some(fan_out) = self.fan_out_of(at)
        {
            fan_out.in_flight -= 1;
        }
    }

    /// Adds a step to the index, after its phase changed.
    fn list(&mut self, at: StepAt) {
        let listing = self.listing(at, self.state(at));
        self.index.insert(at, listing);
        if listing.is_in_flight()
            && let Some(fan_out) = self.fan_out_of(at)
        {
            fan_out.in_flight += 1;
        }
    }

    /// The fan-out that an instance belongs to.
    fn fan_out_of(&mut self, at: StepAt) -> Option<&mut FanOut> {
        at.item?;
        self.steps[at.step as usize].fan_out.as_deref_mut()
    }

    fn queued(&mut self, at: StepAt, items: Option<&Arc<Vec<Value>>>) {
        self.return_attempt(at);
        self.enter(at, StepPhase::Queued);
        let state = self.state_mut(at);
        if let Some(items) = items {
            let count = u32::try_from(items.len()).expect("items are bounded");
            let instance = |item: usize| {
                let past = state.past.get(item).copied().unwrap_or_default();
                StepState {
                    generation: state.generation,
                    dispatch_no: past.dispatch_no,
                    deltas: past.deltas,
                    ..StepState::default()
                }
            };
            state.fan_out = Some(Box::new(FanOut {
                items: Arc::clone(items),
                instances: (0..items.len()).map(instance).collect(),
                unsettled: count,
                in_flight: 0,
            }));
        }
    }

    fn assigned(&mut self, at: StepAt, assigned: &Assigned) {
        self.steps[at.step as usize].assigned = Some(assigned.assignee.clone());
        self.state_mut(at).failure = None;
        self.queued(at, None);
    }

    fn waits(&mut self, at: StepAt, wait: &Wait, at_ms: u64) {
        if wait.reason == Waiting::ExternalCallback {
            let state = self.state_mut(at);
            if let Some(dispatch) = &mut state.dispatch {
                dispatch.path = Path::Bridge;
            }
            let deadline_ms = state.phase.deadline_ms();
            return self.proceed(at, Progress::AwaitingCallback { deadline_ms });
        }
        if matches!(wait.reason, Waiting::Queued | Waiting::Gate) {
            return self.wait_at_gate(at, wait, at_ms);
        }
        self.enter(at, StepPhase::Retrying { reason: wait.reason, at_ms: wait.until_ms });
    }

    fn dispatched(&mut self, at: StepAt, dispatch: &Dispatch, at_ms: u64) {
        self.prompt_seen(at);
        // Before the dispatch number changes, because the index has the old one.
        self.unlist(at);
        let state = self.state_mut(at);
        state.forget_calls(dispatch.attempt);
        state.attempt = dispatch.attempt;
        state.dispatch_no = dispatch.dispatch_no;
        state.dispatch = Some(Box::new(LastDispatch {
            path: dispatch.path,
            at_ms,
            agent: dispatch.agent.clone(),
            gateway: dispatch.gateway.clone(),
            terms: Some(Arc::clone(&dispatch.terms)),
            digest: dispatch.digest.clone(),
            session: dispatch.session.clone(),
            process: None,
        }));
        state.gate = None;
        if let Some(prepared) = &dispatch.prepared {
            state.prepared = Some(Arc::clone(prepared));
        }
        state.started_at_ms.get_or_insert(at_ms);
        state.reask = false;
        let progress = Progress::Executing { deadline_ms: dispatch.deadline_ms };
        let phase = StepPhase::InFlight { progress, streaming: false };
        state.check_transition(&phase);
        state.phase = phase;
        self.list(at);
    }

    /// Changes the progress of the attempt in flight.
    fn proceed(&mut self, at: StepAt, progress: Progress) {
        let streaming = self.state(at).status() == StepStatus::Streaming;
        self.unlist(at);
        self.state_mut(at).phase = StepPhase::InFlight { progress, streaming };
        self.list(at);
    }

    /// Stops the time of an attempt while its child run waits only for people.
    fn child_paced(&mut self, at: StepAt, pace: ChildPace, at_ms: u64) {
        let state = self.state(at);
        let begun_ms = state.dispatch.as_ref().map_or(0, |dispatch| dispatch.at_ms);
        match (pace, &state.phase) {
            (ChildPace::Paused, phase) => {
                let deadline_ms = phase.deadline_ms();
                let left_ms = deadline_ms.map(|until| until.saturating_sub(at_ms.max(begun_ms)));
                self.proceed(at, Progress::ChildPaused { left_ms });
                // From the time of the child's message: this run may read it much later.
                if self.waits_only_for_people() {
                    self.stop_clock(at_ms);
                }
            }
            (
                ChildPace::Resumed,
                StepPhase::InFlight { progress: Progress::ChildPaused { left_ms }, .. },
            ) => {
                let deadline_ms = left_ms.map(|left| at_ms.saturating_add(left));
                self.proceed(at, Progress::Executing { deadline_ms });
                self.start_clock(at_ms);
            }
            (ChildPace::Resumed, _) => self.start_clock(at_ms),
        }
    }

    fn streams(&mut self, at: StepAt, at_ms: u64) {
        let state = self.state_mut(at);
        state.deltas += 1;
        state.first_byte_at_ms.get_or_insert(at_ms);
        if let StepPhase::InFlight { streaming, .. } = &mut state.phase {
            *streaming = true;
        }
    }

    fn retried(&mut self, at: StepAt, retried: &Retried) {
        let state = self.state_mut(at);
        state.reasks += u32::from(retried.reask);
        state.reask = retried.reask;
        state.session.clone_from(&retried.session);
        if state.grant == Grant::Attempt {
            state.grant = Grant::None;
        }
        add(&mut state.usage, &retried.usage);
        state.failure = Some(Arc::new(Ending {
            code: retried.cause.clone(),
            message: retried.message.clone(),
            violations: Arc::default(),
            attempts: retried.attempt,
            usage: Usage::default(),
            answer: None,
        }));
    }

    fn completed(&mut self, at: StepAt, completed: &Completed, at_ms: u64) {
        let state = self.state_mut(at);
        state.failure = None;
        state.session.clone_from(&completed.session);
        state.attempt = state.attempt.max(completed.attempts);
        add(&mut state.usage, &completed.usage);
        self.output_seen(at, completed);
        self.settle(at, StepEnd::Completed(Arc::clone(&completed.outcome)), at_ms);
        if at.item.is_none() {
            self.checkpoints += 1;
            self.writers.push(at.step);
            let names: Vec<String> = self.written_by(at.step).cloned().collect();
            self.index.variables.extend(names.into_iter().map(|name| (name, at.step)));
        }
    }

    fn failed(&mut self, at: StepAt, end: StepEnd, ending: &Ending, at_ms: u64) {
        let state = self.state_mut(at);
        // No decision reads a refused answer, so it does not stay in memory.
        state.failure = Some(Arc::new(Ending { answer: None, ..ending.clone() }));
        add(&mut state.usage, &ending.usage);
        self.settle(at, end, at_ms);
        self.halt_by(at);
    }

    /// Records the first failure that halts the run: the run fails with its error.
    fn halt_by(&mut self, at: StepAt) {
        if self.halts(at) && self.halted_by.is_none() {
            self.halted_by = Some(at);
        }
    }

    fn skipped(&mut self, at: StepAt, skip: &Skip, at_ms: u64) {
        let state = self.state_mut(at);
        add(&mut state.usage, &skip.usage);
        let skip = Box::new(Skip { answer: None, ..skip.clone() });
        self.settle(at, StepEnd::Skipped(skip), at_ms);
        self.checkpoints += u64::from(at.item.is_none());
    }

    fn settle(&mut self, at: StepAt, end: StepEnd, at_ms: u64) {
        let was_settled = self.state(at).is_settled();
        let status = end.status();
        self.enter(at, StepPhase::Settled { end, at_ms });
        let state = self.state_mut(at);
        state.gate = None;
        if let Some(dispatch) = &mut state.dispatch {
            dispatch.process = None;
        }
        if was_settled {
            return;
        }
        match at.item {
            Some(_) => {
                let fan_out = self.fan_out_of(at).expect("an instance has a fan-out");
                fan_out.unsettled -= 1;
            }
            None => self.settled_whole(at.step, status),
        }
    }

    fn settled_whole(&mut self, step: u32, status: StepStatus) {
        match status {
            StepStatus::Failed | StepStatus::TimedOut | StepStatus::Blocked => {
                self.index.failed += 1;
            }
            StepStatus::Cancelled => self.index.cancelled += 1,
            _ => {}
        }
        self.index.unsettled -= 1;
        let definition = Arc::clone(&self.definition);
        let graph = &definition.plan.graph;
        let layer = graph.layer_of(step as usize) as usize;
        self.index.layer_unsettled[layer] -= 1;
        self.index.open_layer = first_open(&self.index.layer_unsettled, self.index.open_layer);
        for dependent in graph.dependents(step as usize) {
            let missing = &mut self.index.missing[*dependent as usize];
            *missing -= 1;
            let pending = self.steps[*dependent as usize].phase == StepPhase::Pending;
            if *missing == 0 && pending {
                self.index.ready.insert(definition.rank(*dependent));
            }
        }
    }

    /// The first ready step that the scheduling allows to start.
    pub(crate) fn next_ready(&self) -> Option<u32> {
        let step = |rank: &u32| self.definition.at_rank(*rank);
        self.index.ready.iter().map(step).find(|step| self.wave_is_open(*step))
    }

    /// Whether the scheduling allows a step to start.
    fn wave_is_open(&self, step: u32) -> bool {
        let plan = &self.definition.plan;
        plan.scheduling == Scheduling::Eager
            || plan.graph.layer_of(step as usize) <= self.index.open_layer
    }
}

impl StepState {
    /// Asserts that the status may change like this. A queued step may stay queued, because
    /// several phases have this status.
    fn check_transition(&self, to: &StepPhase) {
        let (from, to) = (self.status(), to.status());
        debug_assert!(
            allowed(from, to) || (from, to) == (StepStatus::Queued, StepStatus::Queued),
            "a step went from {from} to {to}"
        );
        debug_assert!(
            !self.is_settled() || to == StepStatus::Pending,
            "a settled step went from {from} to {to}"
        );
    }
}

/// Adds the usage of an attempt to the total of its step.
fn add(total: &mut Usage, one: &Usage) {
    if one.model.is_some() {
        total.model.clone_from(&one.model);
    }
    total.input_tokens = total.input_tokens.saturating_add(one.input_tokens);
    total.output_tokens = total.output_tokens.saturating_add(one.output_tokens);
    total.thinking_tokens = total.thinking_tokens.saturating_add(one.thinking_tokens);
    total.cached_tokens = total.cached_tokens.saturating_add(one.cached_tokens);
    total.cost = total.cost.checked_add(one.cost).unwrap_or(total.cost);
}
