//! The input of a decision, gathered by the caller in one read.

mod call;

pub use call::{ArgumentFacts, ArgumentRole, CallFacts, FlowFacts, SeenIn, SendsTo, ToolFacts};

use crate::action::Action;
use crate::choice::choices;
use crate::money::Money;
use crate::policy::history::History;
use crate::registry::{Agent, Gateway, Health, Held, Phase, Posture, Role};
use std::borrow::Cow;
use std::sync::Arc;

choices! {
    /// The action to decide.
    pub enum Verb, "an action" {
        /// Send a step to an agent.
        DispatchStep = "dispatch_step",
        /// Start a run; also a step that starts a child run.
        StartRun = "start_run",
        /// Call a tool.
        UseTool = "use_tool",
        /// Deploy an agent on a gateway.
        DeployAgent = "deploy_agent",
        /// Change a registry row.
        ChangeConfig = "change_config",
    }
}

/// All input of a decision.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The time.
    pub now_ms: u64,
    /// The action to decide.
    pub verb: Verb,
    /// The acting principal.
    pub subject: Subject<'a>,
    /// The role it acts in: bounds of the workflow and of the registry together.
    pub role: Option<(&'a str, &'a Role)>,
    /// The gateway, if the action uses one.
    pub place: Option<Place<'a>>,
    /// The resource, if it is not a gateway: the workflow to start (default: the
    /// action's own), the tool to call, or the row to change (`kind/name`).
    pub object: Option<&'a str>,
    /// Whether an operator stopped all work.
    pub held: Held,
    /// Steps of the agent in flight, without this one.
    pub running: u32,
    /// Dispatches of the agent in its window.
    pub in_window: u32,
    /// Every cap that applies, in the order of evaluation.
    pub caps: Vec<Cap<'a>>,
    /// Cost ceiling of the dispatch.
    pub worst: Worst,
    /// Caps the trust level of every agent.
    pub trust_ceiling: u8,
    /// Properties of the inputs.
    pub inputs: Inputs<'a>,
    /// What is known about the values of the call: the inputs of the action.
    pub call: Option<CallFacts>,
    /// The labels of the whole action.
    pub flow: FlowFacts,
    /// What the operator declared about the tool to call.
    pub tool: Option<&'a ToolFacts>,
    /// What happened before, if some policy asks.
    pub history: Option<&'a dyn History>,
    /// Posture of the run.
    pub posture: Posture,
    /// The run.
    pub run: RunFacts<'a>,
    /// The step, if the action concerns one.
    pub step: Option<StepFacts<'a>>,
    /// The step's own requirement of an approval.
    pub asks: Option<Asks<'a>>,
    /// A granted approval.
    pub grant: Option<Granted<'a>>,
    /// The action, without what the decision itself adds: constraints and the hash of
    /// the matching policies.
    pub action: Action<'a>,
}

impl Facts<'_> {
    /// Whether the agent is on trial, so that some gates only observe.
    pub(crate) fn on_trial(&self) -> bool {
        match self.subject {
            Subject::Agent(_, Some(agent)) => agent.phase_at(self.now_ms) == Phase::Poc,
            Subject::Agent(_, None) | Subject::User(_) => false,
        }
    }

    /// The caps that a gate checks. A person has no own caps.
    pub(crate) fn caps_of(&self, whose: CapGate) -> impl Iterator<Item = &Cap<'_>> {
        let looks = whose == CapGate::Budget || matches!(self.subject, Subject::Agent(..));
        self.caps.iter().filter(move |cap| looks && cap.whose == whose)
    }

    /// Whether a budget blocks the action, and does not only observe.
    pub(crate) fn short_of_money(&self) -> bool {
        let stops = |whose| self.caps_of(whose).any(|cap| cap.stops(self.worst).is_some());
        !self.on_trial() && (stops(CapGate::Agent) || stops(CapGate::Budget))
    }
}

/// The acting principal.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// An agent and its row; `None` if the agent does not exist.
    Agent(&'a str, Option<&'a Agent>),
    /// A person or program: starts runs, changes rows.
    User(&'a str),
}

/// The gateway that an action would use.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Name of the gateway; empty if routing found none.
    pub name: &'a str,
    /// Row of the gateway; `None` if it does not exist.
    pub gateway: Option<&'a Gateway>,
    /// Health of the gateway.
    pub health: Health,
    /// Whether an adapter at the gateway can do the agent's work.
    pub serves: bool,
}

/// A cap that applies.
#[derive(Debug, Clone, PartialEq)]
pub struct Cap<'a> {
    /// The gate that checks it.
    pub whose: CapGate,
    /// Display name: a budget's name, `agent scribe, monthly`, …
    pub name: Cow<'a, str>,
    /// The account that it bounds.
    pub account: Arc<str>,
    /// The cap.
    pub amount: Money,
    /// Amount spent and reserved, without this dispatch.
    pub held: Money,
    /// Overruns that are booked and not accepted: they close the cap.
    pub over: Money,
    /// Overruns that an operator has accepted.
    pub accepted: Money,
}

/// Why a cap blocks a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapBlock {
    /// An overrun closed it.
    Closed,
    /// The cost of the dispatch is unknown.
    Unpriced,
    /// The dispatch would exceed it.
    Passed,
}

impl<'a> Cap<'a> {
    /// A cap, before the counters of its account are read.
    pub(crate) fn new(
        whose: CapGate,
        name: Cow<'a, str>,
        account: Arc<str>,
        amount: Money,
    ) -> Self {
        let [held, over, accepted] = [Money::ZERO; 3];
        Cap { whose, name, account, amount, held, over, accepted }
    }

    /// Sets the values of its counters `held` and `over`.
    pub fn count(&mut self, held: Money, over: Money) {
        let open = over.micro_cents().saturating_sub(self.accepted.micro_cents());
        self.held = held;
        self.over = Money::from_micro_cents(open);
    }

    /// Whether it blocks a dispatch with this cost ceiling.
    pub fn stops(&self, worst: Worst) -> Option<CapBlock> {
        if !self.over.is_zero() {
            return Some(CapBlock::Closed);
        }
        let Worst::Known(worst) = worst else { return Some(CapBlock::Unpriced) };
        // A sum that overflows exceeds every cap.
        match self.held.checked_add(worst) {
            Some(sum) if sum <= self.amount => None,
            _ => Some(CapBlock::Passed),
        }
    }

    /// The remaining amount.
    pub fn left(&self) -> Money {
        Money::from_micro_cents(self.amount.micro_cents().saturating_sub(self.held.micro_cents()))
    }
}

/// The gate that checks a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapGate {
    /// Gate 5: the cap of a role or an agent.
    Agent,
    /// Gate 6: a budget.
    Budget,
}

/// Cost ceiling of a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worst {
    /// A known amount.
    Known(Money),
    /// Unknown: there is neither a price nor a ceiling. Exceeds every cap.
    Unknown,
}

/// Properties of the inputs of a step.
#[derive(Debug, Clone, Default)]
pub struct Inputs<'a> {
    /// Source classes: `caller`, `agent`, `tool`, `human`.
    pub classes: Vec<&'a str>,
    /// Whether an input came from outside and was not checked.
    pub untrusted: bool,
    /// Whether an input must not leave the organisation.
    pub private: bool,
    /// Age of the oldest input.
    pub age_ms: Option<u64>,
}

/// The run of a decision.
#[derive(Debug, Clone, Copy)]
pub struct RunFacts<'a> {
    /// Id of the run.
    pub id: &'a str,
    /// The workflow.
    pub workflow: &'a str,
    /// Version of the workflow.
    pub version: Option<u64>,
    /// Initiator of the run.
    pub initiator: &'a str,
    /// Number of ancestor runs.
    pub depth: u32,
    /// Whether its definition comes from the registry.
    pub registered: bool,
    /// SHA-256 of its definition.
    pub definition: &'a str,
}

/// The step of a decision.
#[derive(Debug, Clone, Copy)]
pub struct StepFacts<'a> {
    /// Id of the step.
    pub id: &'a str,
    /// `command`, `lens`, `workflow`, `approval`.
    pub kind: &'static str,
    /// Number of the attempt.
    pub attempt: u32,
    /// Capabilities that its gateway must offer.
    pub capabilities: &'a [String],
}

/// A step that requires an approval by itself.
#[derive(Debug, Clone, Copy)]
pub struct Asks<'a> {
    /// Users or roles that may approve; empty means anyone with the permission.
    pub approvers: &'a [String],
}

/// A granted approval.
#[derive(Debug, Clone, Copy)]
pub struct Granted<'a> {
    /// Digest of the action, including the approver's constraints.
    pub digest: &'a str,
    /// Constraints that the approver added.
    pub constraints: &'a crate::decision::Constraints,
}
