//! What an event does to a run: total, and the same live and in recovery.

mod back;
mod gate;
mod moderate;
pub(super) mod money;
mod question;
pub(crate) mod tool;

use super::index::{Timer, first_open};
use super::state::{End, FanOut, Grant, Pause, Run, StepState, args_of};
use super::status::{
    REASON_APPROVAL, REASON_OPERATOR, REASON_RECOVERY, REASON_RETRY, REASON_REWIND, RunStatus,
    StepStatus, Waiting,
};
use super::transition::allowed;
use crate::journal::event::{
    Assigned, ChildPace, Completed, Dispatch, Ending, Event, Line, NodeEvent, Path, Retried, Skip,
    StepAt, Wait,
};
use crate::plan::policy::Scheduling;
use crate::port::adapter::Usage;
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
            Event::Node(at, event) => {
                if self.status == RunStatus::Queued {
                    self.status = RunStatus::Running;
                }
                self.evolve_node(*at, event, at_ms);
            }
        }
    }

    fn evolve_node(&mut self, at: StepAt, event: &NodeEvent, at_ms: u64) {
        for landing in self.landings(at, event) {
            self.land(landing, at_ms);
        }
        match event {
            NodeEvent::Queued { items } => self.queued(at, items.as_ref()),
            NodeEvent::Assigned(assigned) => self.assigned(at, assigned),
            NodeEvent::Waiting(wait) => self.waits(at, wait, at_ms),
            NodeEvent::Started(dispatch) => self.dispatched(at, dispatch, at_ms),
            NodeEvent::Delta(_) => self.streams(at, at_ms),
            NodeEvent::Log { line, .. } => self.logged(at, line),
            NodeEvent::Retried(retried) => self.retried(at, retried),
            NodeEvent::Completed(completed) => self.completed(at, completed, at_ms),
            NodeEvent::Failed(ending) => self.failed(at, StepStatus::Failed, ending, at_ms),
            NodeEvent::TimedOut(ending) => self.failed(at, StepStatus::TimedOut, ending, at_ms),
            NodeEvent::Cancelled { code, reason, usage } => {
                add(&mut self.state_mut(at).usage, usage);
                let ending = Ending {
                    code: code.clone(),
                    message: reason.clone(),
                    violations: Arc::default(),
                    attempts: self.state(at).attempt,
                    usage: Usage::default(),
                    answer: None,
                };
                self.state_mut(at).ending = Some(Arc::new(ending));
                self.settle(at, StepStatus::Cancelled, at_ms);
            }
            NodeEvent::Skipped(skip) => self.skipped(at, skip, at_ms),
            NodeEvent::Blocked { code, message, placeholder, waits } => {
                let state = self.state_mut(at);
                state.placeholder.clone_from(placeholder);
                state.block_waits = *waits;
                state.ending = Some(Arc::new(Ending {
                    code: code.clone(),
                    message: message.clone(),
                    violations: Arc::default(),
                    attempts: state.attempt,
                    usage: Usage::default(),
                    answer: None,
                }));
                if *waits {
                    self.awaits_somebody(at);
                } else {
                    self.settle(at, StepStatus::Blocked, at_ms);
                    self.halt_by(at);
                }
            }
            NodeEvent::Invalidated => self.invalidated(at),
            NodeEvent::Provenance(from) => self.took(at, from),
            NodeEvent::ApprovalRequested(asked) => self.asked(at, asked, at_ms),
            NodeEvent::ApprovalReminded { approval, .. } => self.reminded(*approval),
            NodeEvent::ApprovalResolved(resolved) => self.resolved(at, resolved, at_ms),
            NodeEvent::GovernanceDecided(_) => self.state_mut(at).decided = true,
            NodeEvent::Reconciled { dispatch_no, usage } => {
                self.reconciled(at, *dispatch_no, usage);
            }
            NodeEvent::ModerationFlagged { .. } | NodeEvent::ContractViolated { .. } => {}
        }
    }

    fn logged(&mut self, at: StepAt, line: &Line) {
        match line {
            Line::Text(_) | Line::ToolEnded(_) => {}
            Line::Tool(asked) => self.tool_asked(at, asked),
            Line::Process(process) => self.state_mut(at).process = Some(process.clone()),
            Line::Asked { digest, prepared } => self.asks_moderator(at, digest, prepared.as_ref()),
            Line::Cleared { phase, digest } => self.cleared(at, *phase, digest),
            Line::Child { pace, at_ms, .. } => self.child_paced(at, *pace, *at_ms),
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
        // The reason of a cancel is whatever a person wrote.
        let why = if status == RunStatus::Running { reason } else { "" };
        if reopens || matches!(why, REASON_REWIND | REASON_RETRY | REASON_RECOVERY) {
            self.halted_by = None;
            self.cancel_reason = None;
            self.reopened += u32::from(matches!(why, REASON_RETRY | REASON_RECOVERY));
            self.recoveries += u32::from(why == REASON_RECOVERY);
        }
        // A second owner of a run that is being cancelled is no reason to cancel it.
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
            // An operator's pause counts, unless only people were waited for.
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

    /// Takes a step out of every list that its status put it in.
    fn unlist(&mut self, at: StepAt) {
        let place = self.place(at);
        let (status, wake, deadline, flies) = {
            let state = self.state(at);
            let flies = state.path != Some(Path::FanOut);
            (state.status, state.wake_at_ms, state.deadline_ms, flies)
        };
        match status {
            StepStatus::Pending => drop(self.index.ready.remove(&place.0)),
            StepStatus::Queued => {
                self.index.asks.remove(&place);
                self.index.queue.remove(&place);
                self.index.gated.remove(&at);
                self.index.checking.remove(&at);
            }
            StepStatus::AwaitingApproval => drop(self.index.awaiting.remove(&at)),
            StepStatus::Blocked => drop(self.index.blocked.remove(&at)),
            StepStatus::Retrying => drop(self.index.retrying.remove(&at)),
            StepStatus::Running | StepStatus::Streaming if flies => {
                self.index.in_flight.remove(&at);
                if let Some(fan_out) = self.fan_out_of(at) {
                    fan_out.in_flight -= 1;
                }
            }
            _ => {}
        }
        if let Some(at_ms) = wake {
            self.index.timers.remove(&(at_ms, Timer::Retry(at)));
        }
        if let Some(at_ms) = deadline {
            self.index.timers.remove(&(at_ms, Timer::Attempt(at)));
        }
        let state = self.state_mut(at);
        state.wake_at_ms = None;
        state.deadline_ms = None;
        state.left_ms = None;
        state.waiting = None;
        state.asked = None;
        if let Some(gate) = &mut state.gate {
            gate.active = false;
        }
    }

    /// The fan-out an instance belongs to.
    fn fan_out_of(&mut self, at: StepAt) -> Option<&mut FanOut> {
        at.item?;
        self.steps[at.step as usize].fan_out.as_deref_mut()
    }

    fn queued(&mut self, at: StepAt, items: Option<&Arc<Vec<Value>>>) {
        self.sent_again_later(at);
        self.unlist(at);
        let state = self.state_mut(at);
        // One that waited at a gate goes back into the queue.
        if state.status != StepStatus::Queued {
            state.change(StepStatus::Queued);
        }
        state.waiting = Some(Waiting::Queued);
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
        self.list_queued(at);
    }

    fn assigned(&mut self, at: StepAt, assigned: &Assigned) {
        self.steps[at.step as usize].assigned = Some(assigned.whom.clone());
        self.state_mut(at).ending = None;
        self.queued(at, None);
        self.state_mut(at).block_waits = false;
    }

    fn list_queued(&mut self, at: StepAt) {
        let place = self.place(at);
        if self.must_ask(at) {
            self.index.asks.insert(place);
        } else {
            self.index.queue.insert(place);
        }
    }

    fn waits(&mut self, at: StepAt, wait: &Wait, at_ms: u64) {
        if wait.reason == Waiting::ExternalCallback {
            let state = self.state_mut(at);
            state.path = Some(Path::Bridge);
            state.waiting = Some(Waiting::ExternalCallback);
            return;
        }
        if matches!(wait.reason, Waiting::Queued | Waiting::Gate) {
            return self.waits_at_gate(at, wait, at_ms);
        }
        self.unlist(at);
        let state = self.state_mut(at);
        state.change(StepStatus::Retrying);
        state.waiting = Some(wait.reason);
        state.wake_at_ms = Some(wait.until_ms);
        self.index.retrying.insert(at);
        self.index.timers.insert((wait.until_ms, Timer::Retry(at)));
    }

    fn dispatched(&mut self, at: StepAt, dispatch: &Dispatch, at_ms: u64) {
        self.unlist(at);
        let state = self.state_mut(at);
        state.change(StepStatus::Running);
        state.forget_calls(dispatch.attempt);
        state.attempt = dispatch.attempt;
        state.dispatch_no = dispatch.dispatch_no;
        state.path = Some(dispatch.path);
        state.agent.clone_from(&dispatch.agent);
        state.gateway = Some(dispatch.gateway.clone());
        state.terms = Some(Arc::clone(&dispatch.terms));
        state.digest.clone_from(&dispatch.digest);
        state.continues.clone_from(&dispatch.session);
        state.gate = None;
        if let Some(prepared) = &dispatch.prepared {
            state.prepared = Some(Arc::clone(prepared));
        }
        state.deadline_ms = dispatch.deadline_ms;
        state.started_at_ms.get_or_insert(at_ms);
        state.attempt_at_ms = Some(at_ms);
        state.process = None;
        state.reask = false;
        if dispatch.path != Path::FanOut {
            self.index.in_flight.insert(at, dispatch.dispatch_no);
            if let Some(fan_out) = self.fan_out_of(at) {
                fan_out.in_flight += 1;
            }
        }
        let deadline = dispatch.deadline_ms;
        self.index.timers.extend(deadline.map(|at_ms| (at_ms, Timer::Attempt(at))));
    }

    /// The time of an attempt stands still while its child waits only for people.
    fn child_paced(&mut self, at: StepAt, pace: ChildPace, at_ms: u64) {
        let state = self.state_mut(at);
        let begun_ms = state.attempt_at_ms.unwrap_or(0);
        match pace {
            ChildPace::Paused => {
                let deadline = state.deadline_ms.take();
                state.left_ms = deadline.map(|until| until.saturating_sub(at_ms.max(begun_ms)));
                state.waiting = Some(Waiting::HumanInput);
                if let Some(until_ms) = deadline {
                    self.index.timers.remove(&(until_ms, Timer::Attempt(at)));
                }
                // The child may have waited for long before this run read its letter.
                if self.has_only_people() {
                    self.stop_clock(at_ms);
                }
            }
            ChildPace::Resumed => {
                let deadline = state.left_ms.take().map(|left| at_ms.saturating_add(left));
                state.deadline_ms = deadline;
                state.waiting = None;
                self.index.timers.extend(deadline.map(|until_ms| (until_ms, Timer::Attempt(at))));
                self.start_clock(at_ms);
            }
        }
    }

    fn streams(&mut self, at: StepAt, at_ms: u64) {
        let state = self.state_mut(at);
        state.deltas += 1;
        state.first_byte_at_ms.get_or_insert(at_ms);
        if state.status == StepStatus::Running {
            state.change(StepStatus::Streaming);
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
        state.ending = Some(Arc::new(Ending {
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
        state.outcome = Some(Arc::clone(&completed.outcome));
        state.ending = None;
        state.session.clone_from(&completed.session);
        state.attempt = state.attempt.max(completed.attempts);
        add(&mut state.usage, &completed.usage);
        self.settle(at, StepStatus::Completed, at_ms);
        if at.item.is_none() {
            self.checkpoints += 1;
            self.writers.push(at.step);
            let names: Vec<String> = self.written_by(at.step).cloned().collect();
            self.index.variables.extend(names.into_iter().map(|name| (name, at.step)));
        }
    }

    fn failed(&mut self, at: StepAt, status: StepStatus, ending: &Ending, at_ms: u64) {
        let state = self.state_mut(at);
        // No decision reads a refused answer, so it does not stay in memory.
        state.ending = Some(Arc::new(Ending { answer: None, ..ending.clone() }));
        add(&mut state.usage, &ending.usage);
        self.settle(at, status, at_ms);
        self.halt_by(at);
    }

    /// The first failure that halts is the one the run is told by.
    fn halt_by(&mut self, at: StepAt) {
        if self.halts(at) && self.halted_by.is_none() {
            self.halted_by = Some(at);
        }
    }

    fn skipped(&mut self, at: StepAt, skip: &Skip, at_ms: u64) {
        let state = self.state_mut(at);
        add(&mut state.usage, &skip.usage);
        state.skip = Some(Box::new(Skip { answer: None, ..skip.clone() }));
        self.settle(at, StepStatus::Skipped, at_ms);
        if skip.cause == crate::journal::event::SkipCause::Condition {
            self.state_mut(at).waiting = Some(Waiting::ConditionFalse);
        }
        self.checkpoints += u64::from(at.item.is_none());
    }

    /// Blocked, but not at its end: nothing that depends on it moves.
    fn awaits_somebody(&mut self, at: StepAt) {
        self.unlist(at);
        let state = self.state_mut(at);
        state.change(StepStatus::Blocked);
        state.waiting = Some(Waiting::HumanInput);
        state.gate = None;
        self.index.blocked.insert(at);
    }

    fn settle(&mut self, at: StepAt, status: StepStatus, at_ms: u64) {
        let was_settled = self.state(at).is_settled();
        self.unlist(at);
        let state = self.state_mut(at);
        state.change(status);
        state.ended_at_ms = Some(at_ms);
        state.process = None;
        state.gate = None;
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
            let pending = self.steps[*dependent as usize].status == StepStatus::Pending;
            if *missing == 0 && pending {
                self.index.ready.insert(definition.rank(*dependent));
            }
        }
    }

    /// The first step that is ready and that the scheduling lets start.
    pub(crate) fn next_ready(&self) -> Option<u32> {
        let step = |rank: &u32| self.definition.at_rank(*rank);
        self.index.ready.iter().map(step).find(|step| self.wave_is_open(*step))
    }

    /// Whether the scheduling lets a step start.
    fn wave_is_open(&self, step: u32) -> bool {
        let plan = &self.definition.plan;
        plan.scheduling == Scheduling::Eager
            || plan.graph.layer_of(step as usize) <= self.index.open_layer
    }
}

impl StepState {
    fn change(&mut self, to: StepStatus) {
        debug_assert!(allowed(self.status, to), "a step went from {} to {to}", self.status);
        debug_assert!(
            !self.is_settled() || to == StepStatus::Pending,
            "a settled step went from {} to {to}",
            self.status
        );
        self.status = to;
    }
}

/// Adds what an attempt cost to what all attempts cost.
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
