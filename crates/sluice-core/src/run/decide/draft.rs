//! The draft of an append: the run as the turn has changed it so far, with
//! everything that is written together.
//!
//! [`Draft::record`] is the only way to change a step. It folds the event at once,
//! so that the next decision sees it, and books what an ended dispatch had taken.

pub(crate) mod costs;
pub(crate) mod guards;
pub(crate) mod history;
pub(crate) mod pause;

use super::Decided;
use crate::id::{ApprovalId, RunId};
use crate::journal::event::{
    ApprovalResolved, Event, LogLine, Path, Prepared, Resolution, Ruling, StepAt, StepEvent, Terms,
};
use crate::memory;
use crate::port::adapter::{Quote, Usage};
use crate::port::remembered_output::RememberedOutput;
use crate::run::command::{Command, Dispatching, Given};
use crate::run::evolve::money::Landing;
use crate::run::history::counters::ends;
use crate::run::message::RunMessage;
use crate::run::state::{Run, StepState};
use costs::settle_cost;
use guards::Guards;
use history::{note_end, settle_history};
use sluice_govern::account::Name;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A run with the decisions of a turn.
pub(crate) struct Draft<'a> {
    pub(crate) run: &'a mut Run,
    pub(crate) given: Given<'a>,
    /// Bounds that must hold when the append becomes durable.
    pub(crate) guards: Guards,
    /// `for_each` steps with an instance that was settled in this turn.
    pub(crate) fan_outs: Vec<u32>,
    /// Dispatches of this turn: they have certainly not begun.
    pub(crate) sent: BTreeSet<(StepAt, u32)>,
    /// Outputs to remember, oldest first.
    pub(crate) remembered_outputs: Vec<RememberedOutput>,
    events: Vec<Event>,
    messages: Vec<RunMessage>,
}

/// A step whose inputs are bound and whose prompt is rendered.
pub(crate) struct PreparedStep {
    pub(crate) at: StepAt,
    pub(crate) attempt: u32,
    pub(crate) prepared: Arc<Prepared>,
    /// Whether the journal already has `prepared`.
    pub(crate) recorded: bool,
}

impl PreparedStep {
    /// The attempt in flight, as it was sent.
    pub(crate) fn sent(run: &Run, at: StepAt) -> PreparedStep {
        let state = run.state(at);
        let prepared = state.prepared.as_ref().map(Arc::clone).unwrap_or_default();
        PreparedStep { at, attempt: state.attempt, prepared, recorded: true }
    }
}

impl<'a> Draft<'a> {
    pub(super) fn new(run: &'a mut Run, given: Given<'a>) -> Draft<'a> {
        Draft {
            run,
            given,
            guards: Guards::default(),
            fan_outs: Vec::new(),
            sent: BTreeSet::new(),
            remembered_outputs: Vec::new(),
            events: Vec::new(),
            messages: Vec::new(),
        }
    }

    pub(super) fn finish(self) -> Decided {
        let guards = self.guards.into_list(self.given.authority);
        Decided {
            events: self.events,
            messages: self.messages,
            guards,
            remembered_outputs: self.remembered_outputs,
        }
    }

    /// How many events the turn has so far.
    pub(crate) fn event_count(&self) -> usize {
        self.events.len()
    }

    /// Refuses the append if the registry has changed since the turn read it, because a
    /// step waits or fails by its rows. A turn that may not dispatch does not require
    /// this: its rows may be unreadable, and every step that it leaves waiting is
    /// decided again before it is dispatched.
    pub(crate) fn require_rows_to_wait(&mut self) {
        if self.given.dispatching == Dispatching::Allowed {
            self.guards.require_rows();
        }
    }

    /// Records an event and folds it into the run.
    pub(crate) fn emit(&mut self, event: Event) {
        self.run.evolve(&event, self.given.now_ms);
        self.events.push(event);
    }

    /// Records an event of a step, with everything that the end of a dispatch entails.
    pub(crate) fn record(&mut self, at: StepAt, event: StepEvent) {
        let landings = self.run.landings(at, &event);
        let ends = ends(self.run, at, &event, &landings);
        note_end(self, at, &event);
        self.close_tool_approvals(at, &event, &landings);
        self.remember(at, &event);
        self.emit(Event::Step(at, event));
        for Landing { at, dispatch_no, terms, usage } in landings {
            if let Some(agent) = &terms.slot {
                self.guards.add(Name::busy(agent), -1);
            }
            if let Some(usage) = usage {
                self.book(at, dispatch_no, &terms, &usage);
            }
        }
        for end in ends {
            settle_history(self, &end);
        }
        // A cost that is reported late may be of an instance that no longer exists.
        let settled = self.run.get(at).is_some_and(StepState::is_settled);
        if at.item.is_some() && settled {
            self.fan_outs.push(at.step);
        }
    }

    /// Records a line in the log of a step, for its last dispatch.
    pub(crate) fn log(&mut self, at: StepAt, line: LogLine) {
        let dispatch_no = self.run.state(at).dispatch_no;
        self.record(at, StepEvent::Log { dispatch_no, line });
    }

    /// Books the known cost of a dispatch that has ended.
    pub(crate) fn book(&mut self, at: StepAt, dispatch_no: u32, terms: &Terms, usage: &Usage) {
        for alert in settle_cost(self, at, dispatch_no, terms, usage) {
            self.emit(alert);
        }
    }

    /// Sends a command to another run, with the append.
    pub(crate) fn post(&mut self, run: RunId, key: String, command: Command) {
        self.messages.push(RunMessage { run, key, command });
    }

    /// Closes the open approval of a step.
    pub(crate) fn close_approval(&mut self, at: StepAt) {
        if let Some(approval) = self.run.open_approval(at) {
            let resolved = ApprovalResolved::new(approval, Resolution::Cancelled);
            self.record(at, StepEvent::ApprovalResolved(Box::new(resolved)));
        }
    }

    /// The usage to record for an attempt that is abandoned now: unknown if the attempt
    /// may have begun and may cost something.
    pub(crate) fn abandoned_usage(&self, at: StepAt) -> Usage {
        let number = self.run.state(at).dispatch_no;
        let unsure = !self.sent.contains(&(at, number))
            && self
                .run
                .in_flight_terms(at)
                .is_some_and(|terms| !terms.accounts.is_empty() || self.may_cost(at));
        if unsure { Usage::unknown() } else { Usage::default() }
    }

    /// Whether a dispatch in flight may cost something, with a budget or without. A child
    /// run counts its own costs.
    fn may_cost(&self, at: StepAt) -> bool {
        let state = self.run.state(at);
        let works = matches!(state.path(), Some(Path::Edge | Path::Bridge | Path::Sync));
        let (agent, gateway) = (state.agent(), state.gateway());
        let (agent, gateway) = (agent.unwrap_or_default(), gateway.unwrap_or_default());
        works
            && match self.given.authority.quote(agent, gateway, &self.run.name(at)) {
                Quote::Free => false,
                Quote::AtMost(most) => !most.is_zero(),
                Quote::Priced => true,
            }
    }

    /// Remembers an output, if a memory profile loads the outputs of its agent.
    fn remember(&mut self, at: StepAt, event: &StepEvent) {
        let remembered = &self.given.authority.fabric().remembered;
        let StepEvent::Completed(done) = event else { return };
        if remembered.is_empty() || done.carried.is_some() {
            return;
        }
        let agent = self.run.state(at).agent();
        if let Some(agent) = agent.filter(|agent| remembered.contains(*agent)) {
            let (run, step) = (self.run.id, self.run.name(at));
            let output =
                memory::remembered_output(agent, run, &step, &done.outcome, self.given.now_ms);
            self.remembered_outputs.push(output);
        }
    }

    /// Closes the approvals of tool calls of the attempts that an event ends.
    fn close_tool_approvals(&mut self, at: StepAt, event: &StepEvent, landings: &[Landing]) {
        // These two precede the end of the attempt.
        if matches!(event, StepEvent::ContractViolated { .. } | StepEvent::ModerationFlagged { .. })
        {
            self.close_tool_approvals_of(at);
        }
        for landing in landings {
            self.close_tool_approvals_of(landing.at);
        }
    }

    fn close_tool_approvals_of(&mut self, at: StepAt) {
        let calls = self.run.get(at).map(|state| &state.calls).filter(|calls| !calls.is_empty());
        let held = calls.into_iter().flatten().filter_map(|(_, call)| match call.ruling {
            Ruling::Held(approval) => Some(approval),
            Ruling::Allowed(_) | Ruling::Denied(_) => None,
        });
        let open = |id: &ApprovalId| {
            self.run.approvals.get(id).is_some_and(|one| one.resolution.is_none())
        };
        let open: BTreeSet<ApprovalId> = held.filter(open).collect();
        for id in open {
            let resolved = ApprovalResolved::new(id, Resolution::Cancelled);
            self.emit(Event::Step(at, StepEvent::ApprovalResolved(Box::new(resolved))));
        }
    }
}
