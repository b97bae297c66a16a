//! What one decision is made from, gathered by the caller in one reading.

use crate::action::Action;
use crate::money::Money;
use crate::registry::{Agent, Gateway, Health, Held, Phase, Posture, Role};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// A step is sent to an agent.
    DispatchStep,
    /// A run begins; also a step that starts a child run.
    StartRun,
    /// An agent calls a tool.
    UseTool,
    /// An agent is put on a gateway.
    DeployAgent,
    /// A row of the registry changes.
    ChangeConfig,
}

impl Verb {
    /// All of them.
    pub const ALL: [Verb; 5] =
        [Verb::DispatchStep, Verb::StartRun, Verb::UseTool, Verb::DeployAgent, Verb::ChangeConfig];

    /// The name of the action in policies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verb::DispatchStep => "dispatch_step",
            Verb::StartRun => "start_run",
            Verb::UseTool => "use_tool",
            Verb::DeployAgent => "deploy_agent",
            Verb::ChangeConfig => "change_config",
        }
    }
}

/// Everything a decision looks at.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The time.
    pub now_ms: u64,
    /// What is decided.
    pub verb: Verb,
    /// Who acts.
    pub subject: Subject<'a>,
    /// The role it acts in: bounds of the workflow and of the registry together.
    pub role: Option<(&'a str, &'a Role)>,
    /// Where.
    pub place: Option<Place<'a>>,
    /// What it is done to, where that is no gateway: the workflow that begins
    /// (the action's own if absent), the tool that is called, the row that
    /// changes (`kind/name`).
    pub object: Option<&'a str>,
    /// Whether an operator stopped everything.
    pub held: Held,
    /// Steps of the agent in flight, this one not counted.
    pub running: u32,
    /// Dispatches of the agent in its window.
    pub in_window: u32,
    /// Every cap that applies, in the order they are looked at.
    pub caps: Vec<Cap<'a>>,
    /// What the dispatch costs at most.
    pub worst: Worst,
    /// No agent counts as more trusted than this.
    pub trust_ceiling: u8,
    /// What is known of the inputs.
    pub inputs: Inputs<'a>,
    /// How much freedom the run has.
    pub posture: Posture,
    /// The run.
    pub run: RunFacts<'a>,
    /// The step, where it is about one.
    pub step: Option<StepFacts<'a>>,
    /// Who says that a person must agree, beside policies: the step itself.
    pub asks: Option<Asks<'a>>,
    /// What a person has agreed to.
    pub grant: Option<Granted<'a>>,
    /// What would be done, but for what the decision itself adds to it:
    /// constraints and the hash of the policies that matched.
    pub action: Action<'a>,
}

impl Facts<'_> {
    /// Whether the agent is on trial, so that some gates only observe.
    pub fn on_trial(&self) -> bool {
        match self.subject {
            Subject::Agent(_, Some(agent)) => agent.phase_at(self.now_ms) == Phase::Poc,
            Subject::Agent(_, None) | Subject::User(_) => false,
        }
    }

    /// The caps that a gate looks at. A person has none of their own.
    pub fn caps_of(&self, whose: Whose) -> impl Iterator<Item = &Cap<'_>> {
        let looks = whose == Whose::Envelope || matches!(self.subject, Subject::Agent(..));
        self.caps.iter().filter(move |cap| looks && cap.whose == whose)
    }

    /// Whether a budget stops it, and not only by way of observing.
    pub fn short_of_money(&self) -> bool {
        let stops = |whose| self.caps_of(whose).any(|cap| cap.stops(self.worst).is_some());
        !self.on_trial() && (stops(Whose::Agent) || stops(Whose::Envelope))
    }
}

/// Who acts.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// An agent, and its row; none if there is no such agent.
    Agent(&'a str, Option<&'a Agent>),
    /// A person or program: runs that begin, rows that change.
    User(&'a str),
}

/// Where something would be done.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The gateway; empty where no route leads anywhere.
    pub name: &'a str,
    /// Its row; none if there is no such gateway.
    pub gateway: Option<&'a Gateway>,
    /// Whether it can do work.
    pub health: Health,
    /// Whether something there can do the agent's work at all.
    pub serves: bool,
}

/// A cap that applies.
#[derive(Debug, Clone, PartialEq)]
pub struct Cap<'a> {
    /// The gate that looks at it.
    pub whose: Whose,
    /// What people know it by: an envelope's name, `agent scribe, monthly`, …
    pub name: Cow<'a, str>,
    /// The account it bounds.
    pub account: Arc<str>,
    /// The cap.
    pub amount: Money,
    /// What is spent and reserved, without this dispatch.
    pub held: Money,
    /// Overruns booked and not accepted: the cap is closed.
    pub over: Money,
    /// Overruns that somebody has accepted.
    pub accepted: Money,
}

/// Why a cap stops a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// An overrun closed it.
    Closed,
    /// Nobody can say what the dispatch costs.
    Unpriced,
    /// It would be passed.
    Passed,
}

impl<'a> Cap<'a> {
    /// A cap, before what is counted of its account is read.
    pub(crate) fn new(whose: Whose, name: Cow<'a, str>, account: Arc<str>, amount: Money) -> Self {
        let [held, over, accepted] = [Money::ZERO; 3];
        Cap { whose, name, account, amount, held, over, accepted }
    }

    /// Notes what its counters `held` and `over` say.
    pub fn count(&mut self, held: Money, over: Money) {
        let open = over.micro_cents().saturating_sub(self.accepted.micro_cents());
        self.held = held;
        self.over = Money::from_micro_cents(open);
    }

    /// Whether it stops a dispatch that costs at most so much.
    pub fn stops(&self, worst: Worst) -> Option<Stop> {
        if !self.over.is_zero() {
            return Some(Stop::Closed);
        }
        let Worst::Known(worst) = worst else { return Some(Stop::Unpriced) };
        // A sum that cannot be counted passes every cap.
        match self.held.checked_add(worst) {
            Some(sum) if sum <= self.amount => None,
            _ => Some(Stop::Passed),
        }
    }

    /// What is left of it.
    pub fn left(&self) -> Money {
        Money::from_micro_cents(self.amount.micro_cents().saturating_sub(self.held.micro_cents()))
    }
}

/// Which gate looks at a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Gate 5: a role's or an agent's own.
    Agent,
    /// Gate 6: an envelope.
    Envelope,
}

/// What a dispatch costs at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worst {
    /// So much.
    Known(Money),
    /// Nobody can say: no price, no ceiling. Passes no cap.
    Unknown,
}

/// What is known of the inputs of a step.
#[derive(Debug, Clone, Default)]
pub struct Inputs<'a> {
    /// Who made them: `caller`, `agent`, `tool`, `human`.
    pub classes: Vec<&'a str>,
    /// Something came from outside and was checked by nobody.
    pub untrusted: bool,
    /// Something must not leave the house.
    pub private: bool,
    /// The age of the oldest.
    pub age_ms: Option<u64>,
}

/// The run a decision is about.
#[derive(Debug, Clone, Copy)]
pub struct RunFacts<'a> {
    /// Its id.
    pub id: &'a str,
    /// The workflow.
    pub workflow: &'a str,
    /// Its version.
    pub version: Option<u64>,
    /// Who started it.
    pub initiator: &'a str,
    /// How many runs are above it.
    pub depth: u32,
    /// Whether its definition comes from the registry.
    pub registered: bool,
    /// SHA-256 of its definition.
    pub definition: &'a str,
}

/// The step a decision is about.
#[derive(Debug, Clone, Copy)]
pub struct StepFacts<'a> {
    /// Its id.
    pub id: &'a str,
    /// `command`, `lens`, `workflow`, `approval`.
    pub kind: &'static str,
    /// The attempt that would be made.
    pub attempt: u32,
    /// What its gateway must offer.
    pub capabilities: &'a [String],
}

/// A step that says by itself that a person must agree.
#[derive(Debug, Clone, Copy)]
pub struct Asks<'a> {
    /// Users or roles who may answer; none named means anyone who may approve.
    pub approvers: &'a [String],
}

/// What a person has agreed to.
#[derive(Debug, Clone, Copy)]
pub struct Granted<'a> {
    /// The digest of the action, with what the person tightened.
    pub digest: &'a str,
    /// What the person tightened.
    pub constraints: &'a crate::decision::Constraints,
}
