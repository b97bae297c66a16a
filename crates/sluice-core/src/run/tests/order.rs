//! Checks of the order of events, and of invariants of a run after each event.

use super::super::moderate::{digest, input_text};
use super::super::state::{Pause, Run, ToolCall};
use super::super::transition::allowed;
use crate::id::ApprovalId;
use crate::journal::event::{ApprovalSource, Event, Path, Ruling, StepAt, StepEvent};
use crate::plan::policy::ModerationPhase;
use crate::status::{RunStatus, StepStatus};

fn is_tools(run: &Run, approval: ApprovalId) -> bool {
    run.approvals.get(&approval).is_some_and(|one| one.source == ApprovalSource::Tool)
}

/// Checks the events of a journal one by one.
#[derive(Default)]
pub(super) struct Order {
    count: u64,
    status: Option<StepStatus>,
    /// The previous event, if the next one must be of the same step.
    pending: Option<(StepAt, &'static str)>,
    run_status: Option<RunStatus>,
}

impl Order {
    /// Checks an event before it is folded.
    pub(super) fn before(&mut self, run: &Run, event: &Event) {
        assert_eq!(matches!(event, Event::RunStarted(_)), self.count == 0, "run.started is first");
        self.run_status = Some(run.status);
        let reopens = matches!(event, Event::RunStatusChanged { .. });
        // A cost may be reported later.
        let money =
            matches!(event, Event::BudgetAlert(_) | Event::Step(_, StepEvent::Reconciled { .. }));
        assert!(!run.status.is_terminal() || reopens || money, "{} after the end", event.name());
        if let Event::RunStatusChanged { status, .. } = event {
            assert!(!status.is_terminal(), "run.status.changed to {status}");
        }
        self.follows(event);
        let Event::Step(at, node) = event else { return };
        if let StepEvent::Reconciled { dispatch_no, .. } = node {
            assert!(run.open.contains_key(&(*at, *dispatch_no)), "only open sums are closed");
            return;
        }
        let state = run.state(*at);
        self.status = Some(state.status());
        match node {
            StepEvent::Started(dispatch) => {
                assert_ne!(run.status, RunStatus::Cancelling, "nothing starts while cancelling");
                let again = state.status().is_dispatched();
                assert!(again || run.pause != Some(Pause::Operator), "nothing starts in a pause");
                assert_eq!(dispatch.dispatch_no, state.dispatch_no + 1);
                let attempt = state.attempt + u32::from(!again);
                assert_eq!(dispatch.attempt, attempt, "attempts are counted");
                assert!(!run.needs_approval(*at), "nothing starts without the grant it needs");
                let prepared = dispatch.prepared.as_ref().or(state.prepared.as_ref());
                let child = matches!(dispatch.path, Path::FanOut);
                let checked = run.step(*at).moderation.covers(ModerationPhase::Input) && !child;
                let digest = prepared.map(|prepared| digest(&input_text(prepared)));
                assert!(!checked || state.cleared == digest, "nothing starts unchecked");
            }
            StepEvent::Delta(delta) => {
                assert_eq!(delta.index, state.deltas);
                assert_eq!(delta.attempt, state.attempt);
            }
            StepEvent::Provenance(row) => {
                let ready = matches!(state.status(), StepStatus::Queued | StepStatus::Retrying);
                // A child run may return an argument unchanged.
                let not_here = row.source_run.is_some() || row.source_node == run.name(*at);
                let from_child = not_here && state.status().is_dispatched();
                let carried = row.source_run.is_some() && state.status() == StepStatus::Pending;
                assert!(
                    ready || from_child || carried,
                    "provenance of a step that is {}",
                    state.status()
                );
            }
            StepEvent::ApprovalResolved(resolved) if is_tools(run, resolved.approval) => {
                assert!(state.status().is_dispatched(), "a call is of an attempt in flight");
            }
            StepEvent::ApprovalResolved(resolved) => {
                assert_eq!(
                    run.open_approval(*at),
                    Some(resolved.approval),
                    "an open question is closed"
                );
            }
            StepEvent::Log { dispatch_no, .. } => assert_eq!(*dispatch_no, state.dispatch_no),
            StepEvent::Invalidated => {
                assert_eq!(run.open_approval(*at), None, "no question about nothing");
            }
            _ => assert!(!state.is_settled(), "{} after the end of a step", node.name()),
        }
    }

    /// Checks that some events are directly followed by an event of the same step.
    fn follows(&mut self, event: &Event) {
        if let Some((at, was)) = self.pending.take() {
            if let Event::BudgetAlert(_) = event {
                self.pending = Some((at, was));
                return;
            }
            let Event::Step(then_at, then) = event else { panic!("{was}, then {}", event.name()) };
            let expected: &[&str] = match was {
                "node.retried" => &["node.waiting"],
                "moderation.flagged" => &["node.failed", "node.skipped"],
                _ => &["node.retried", "node.failed", "node.skipped", "approval.requested"],
            };
            assert!(*then_at == at && expected.contains(&then.name()), "{was}, {}", then.name());
        }
        if let Event::Step(
            at,
            StepEvent::Retried(_)
            | StepEvent::ContractViolated { .. }
            | StepEvent::ModerationFlagged { .. },
        ) = event
        {
            self.pending = Some((*at, event.name()));
        }
    }

    /// Checks the run after an event was folded.
    pub(super) fn after(&mut self, run: &Run, event: &Event) {
        self.count += 1;
        assert_eq!(run.version, self.count, "events are numbered without gaps");
        assert_eq!(run.pause.is_some(), run.status == RunStatus::Paused);
        assert_eq!(run.end.is_some(), run.status.is_terminal());
        let reconciled = matches!(event, Event::Step(_, StepEvent::Reconciled { .. }));
        if let Event::Step(at, node) = event
            && !reconciled
        {
            let (from, to) = (self.status.expect("a status was noted"), run.state(*at).status());
            let stays = from == to && !matches!(node, StepEvent::Started(_));
            assert!(stays || allowed(from, to), "{}: {from} to {to}", node.name());
        }
        assert!(run.index.in_flight.len() <= run.definition.plan.max_parallel as usize);
        for (at, state) in run.all() {
            self.waits(run, at);
            let bound = run.step(at).for_each.as_ref().and_then(|each| each.max_parallel);
            let flying = state.fan_out.as_ref().map_or(0, |fan_out| fan_out.in_flight);
            assert!(flying <= bound.unwrap_or(u32::MAX), "no more instances than allowed");
            match state.status() {
                StepStatus::Retrying => assert!(state.phase.wakes_at_ms().is_some()),
                StepStatus::Queued if run.index.gated.contains(&at) => {}
                _ => assert_eq!(state.phase.wakes_at_ms(), None),
            }
            let open = run.approvals.iter().filter(|(_, one)| one.at == at);
            let open = open.filter(|(_, one)| one.resolution.is_none());
            let (tools, open): (Vec<_>, Vec<_>) =
                open.partition(|(_, one)| one.source == ApprovalSource::Tool);
            let flies = run.index.in_flight.contains_key(&at);
            assert!(tools.is_empty() || flies, "calls are of attempts in flight");
            assert_eq!(open.first().map(|(id, _)| **id), run.open_approval(at));
            assert!(open.len() < 2, "one question at a time");
        }
    }

    /// A step has a waiting reason exactly while it waits.
    fn waits(&self, run: &Run, at: StepAt) {
        use StepStatus as S;
        let state = run.state(at);
        let waits = state.phase.waiting().is_some();
        match state.status() {
            S::Queued | S::AwaitingApproval | S::Retrying => assert!(waits),
            // A running step may wait for a callback; a skipped one shows the false condition.
            S::Running | S::Streaming | S::Skipped | S::Blocked => {}
            S::Pending | S::AwaitingDependency => assert!(!waits),
            S::Completed | S::Failed | S::Cancelled | S::TimedOut => assert!(!waits),
        }
    }

    /// Checks the end of an append.
    pub(super) fn end(&self, run: &Run) {
        assert_eq!(self.pending, None, "something must follow");
        for (id, one) in &run.approvals {
            let open = one.source == ApprovalSource::Tool && one.resolution.is_none();
            let held = |call: &ToolCall| call.ruling == Ruling::Held(*id);
            assert!(!open || run.state(one.at).calls.values().any(held), "a call waits for it");
        }
        let mut flying = run.index.in_flight.keys();
        assert!(flying.all(|at| run.state(*at).terms().is_some()), "what flies has its terms");
        if run.status.is_terminal() {
            assert!(run.due().next().is_none(), "nothing is due of a run that has ended");
            let open = run.open.values().filter(|open| open.is_reserved());
            let open_ms = open.map(|open| open.until_ms);
            let due_ms = open_ms.chain(run.recovers_at_ms()).min();
            assert_eq!(run.next_due_ms(), due_ms, "only money and recovery outlive the run");
            let open = run.approvals.values().filter(|one| one.resolution.is_none());
            assert_eq!(open.count(), 0, "no question outlives the run");
            let stalled = run.end.as_ref().and_then(|end| end.error.as_ref());
            if stalled.is_none_or(|(code, _)| code != "workflow_stalled") {
                assert!(run.all().all(|(_, state)| state.is_settled()));
            }
        }
        let waits = run.status.is_terminal()
            || !run.index.in_flight.is_empty()
            || run.next_due_ms().is_some()
            || run.pause.is_some()
            || run.gated().next().is_some()
            || !run.is_parked();
        assert!(waits, "the run waits for nothing that has a name");
    }
}
