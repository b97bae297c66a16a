//! The effects that a run waits for, read from its state.

use super::seat::SHELL;
use super::state::Run;
use crate::canonical;
use crate::id::RunId;
use crate::journal::event::{Path, StepAt, Terms};
use crate::layers::{self, Layer};
use crate::money::Money;
use crate::plan::step::Work;
use crate::port::adapter::{OutputStrategy, Process, Request};
use crate::status::{RunStatus, Waiting};
use crate::trace::{self, TraceParent};

/// An effect that the engine must perform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// An adapter must execute a dispatch.
    Dispatch {
        /// The step or instance to execute.
        at: StepAt,
        /// The number of the dispatch.
        dispatch_no: u32,
    },
    /// The moderator must check the inputs of a step.
    Moderate {
        /// The step whose inputs wait for a verdict.
        at: StepAt,
    },
    /// A child run must exist.
    Child {
        /// The step that starts it.
        at: StepAt,
        /// The id that the child run gets or has.
        child: RunId,
    },
}

impl Run {
    /// All effects that the run waits for, in order. Timers are separate: see
    /// [`Run::next_due_ms`].
    pub fn due(&self) -> impl Iterator<Item = Effect> {
        let in_flight = self.index.in_flight.iter();
        let in_flight = in_flight.filter_map(|(at, dispatch_no)| match self.state(*at).path() {
            Some(Path::Edge | Path::Sync) => {
                Some(Effect::Dispatch { at: *at, dispatch_no: *dispatch_no })
            }
            // Sent again until the bridge has acknowledged it.
            Some(Path::Bridge) => (!self.is_accepted(*at))
                .then_some(Effect::Dispatch { at: *at, dispatch_no: *dispatch_no }),
            Some(Path::Child(child)) => Some(Effect::Child { at: *at, child }),
            Some(Path::FanOut) | None => None,
        });
        let checking = self.index.checking.iter();
        in_flight.chain(checking.map(|at| Effect::Moderate { at: *at }))
    }

    /// Dispatches that a remote worker accepted: their results arrive by callback.
    pub fn accepted_dispatches(&self) -> impl Iterator<Item = (StepAt, u32)> {
        let in_flight = self.index.in_flight.iter().map(|(at, dispatch_no)| (*at, *dispatch_no));
        in_flight.filter(|(at, _)| self.is_accepted(*at))
    }

    /// Whether this dispatch is in flight and a remote worker accepted it.
    pub fn is_accepted_dispatch(&self, at: StepAt, dispatch_no: u32) -> bool {
        self.index.in_flight.get(&at) == Some(&dispatch_no) && self.is_accepted(at)
    }

    fn is_accepted(&self, at: StepAt) -> bool {
        let state = self.state(at);
        state.path() == Some(Path::Bridge)
            && state.phase.waiting() == Some(Waiting::ExternalCallback)
    }

    /// Whether the results of dispatches in flight are no longer needed.
    pub fn is_stopping(&self) -> bool {
        self.status == RunStatus::Cancelling
    }

    /// Whether the run needs an owner only when a timer fires or a message arrives.
    pub fn is_parked(&self) -> bool {
        let index = &self.index;
        // Child runs and accepted dispatches report by message.
        let needs_owner = |at: &StepAt| match self.state(*at).path() {
            Some(Path::Edge | Path::Sync) => true,
            Some(Path::Bridge) => !self.is_accepted(*at),
            _ => false,
        };
        let idle = !index.in_flight.keys().any(needs_owner) && index.checking.is_empty();
        let nothing_ready =
            self.next_ready().is_none() && self.next_queued().is_none() && index.asks.is_empty();
        self.status.is_terminal() || (idle && (nothing_ready || self.pause.is_some()))
    }

    /// Whether a dispatch is in flight that only the owner of the run can finish.
    pub fn has_edge_work(&self) -> bool {
        self.due().any(|effect| matches!(effect, Effect::Dispatch { .. }))
    }

    /// Processes that execute steps in flight, each with the agent that started it.
    pub fn processes(&self) -> impl Iterator<Item = (&str, &Process)> {
        let in_flight = self.index.in_flight.keys().map(|at| self.state(*at));
        in_flight
            .filter_map(|state| Some((state.agent()?, state.dispatch.as_ref()?.process.as_ref()?)))
    }

    /// The request that a dispatch sends to its adapter.
    pub fn request(&self, at: StepAt) -> Request {
        let step = self.step(at);
        let state = self.state(at);
        let prepared = state.prepared.as_deref();
        let terms = state.terms().map(|terms| &**terms);
        let schema = crate::outputs::schema::json::of(&step.outputs);
        Request {
            run: self.id,
            step: self.name(at),
            workflow: self.started.workflow.clone(),
            gateway: state.gateway().unwrap_or_default().to_owned(),
            attempt: state.attempt,
            dispatch_no: state.dispatch_no,
            idempotency_key: self.idempotency_key(at),
            session: state.dispatch.as_ref().and_then(|dispatch| dispatch.session.clone()),
            agent: state.agent().unwrap_or_default().to_owned(),
            system_prompt: self.system_prompt(at),
            message: self.message(at),
            stdin: prepared.and_then(|prepared| prepared.stdin.clone()),
            env: prepared.map(|prepared| prepared.env.clone()).unwrap_or_default(),
            cwd: step.cwd.clone(),
            model: terms
                .and_then(|terms| terms.model.clone())
                .or_else(|| self.model_of(at.step).map(str::to_owned)),
            tools: self.tools_of(at.step),
            output_strategy: match schema {
                Some(_) => OutputStrategy::Structured,
                None => OutputStrategy::Text,
            },
            output_schema: schema,
            max_output_tokens: terms
                .and_then(|terms| terms.max_output_tokens)
                .or(step.max_output_tokens),
            price: terms.and_then(|terms| terms.price.clone()),
            ceiling: terms.and_then(ceiling),
            timeout_ms: step.timeout_ms,
            constraints: terms.map(|terms| terms.constraints.clone()).unwrap_or_default(),
            action_digest: state
                .dispatch
                .as_ref()
                .and_then(|dispatch| dispatch.digest.clone())
                .unwrap_or_default(),
            trace: self.call_trace(at),
        }
    }

    /// The span of a step's call, if the run belongs to a trace.
    fn call_trace(&self, at: StepAt) -> Option<TraceParent> {
        let trace_id = Some(&self.started.trace_id).filter(|id| trace::is_trace_id(id))?;
        let span_id = trace::call_span(self.id, &self.name(at), self.state(at).dispatch_no);
        Some(TraceParent { trace_id: trace_id.clone(), span_id })
    }

    /// Prompt layers 1 to 5; `None` for a shell.
    fn system_prompt(&self, at: StepAt) -> Option<String> {
        let state = self.state(at);
        let layers = state.prepared.as_deref().map(|prepared| prepared.layers.as_slice());
        let layers = layers.unwrap_or_default();
        match state.agent() {
            Some(SHELL) => None,
            _ if layers.is_empty() => Some(layers::system_prompt(&[Layer::guardrails()])),
            _ => Some(layers::system_prompt(layers)),
        }
    }

    /// The instruction, followed by memory. The script of a shell is not changed.
    fn message(&self, at: StepAt) -> String {
        let state = self.state(at);
        match state.prepared.as_deref() {
            None => String::new(),
            Some(prepared) if state.agent() == Some(SHELL) => prepared.prompt.clone(),
            Some(prepared) => layers::message(&prepared.prompt, &prepared.layers),
        }
    }

    /// The same if the attempt is sent again after a crash; new for a retry, rewind or
    /// restart.
    fn idempotency_key(&self, at: StepAt) -> String {
        let state = self.state(at);
        let parts = (self.id.to_string(), self.name(at), state.generation, state.attempt);
        canonical::sha256_hex(&parts, 128)
    }

    /// The reference of a sub-workflow step, as the keys of `RunStarted::children` write it.
    pub fn child_reference(&self, at: StepAt) -> Option<String> {
        let Work::Workflow(work) = &self.step(at).work else { return None };
        let version = work.version.map(|version| format!("@{version}"));
        Some(format!("{}{}", work.name, version.unwrap_or_default()))
    }
}

/// The highest cost of a dispatch: its reservation, or less if a constraint sets a lower one.
fn ceiling(terms: &Terms) -> Option<Money> {
    let reserved = Some(terms.reserved).filter(|money| !money.is_zero())?;
    Some(terms.constraints.max_cost.map_or(reserved, |most| most.min(reserved)))
}
