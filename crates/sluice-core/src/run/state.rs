//! A run as the fold of its journal.
//!
//! Beside what happened, the state keeps what the next decision needs, so that
//! no decision looks at every step: that is its index.

use super::definition::Definition;
use super::id::{ApprovalId, RunId};
use super::index::Index;
use super::status::{RunStatus, StepStatus, Waiting};
use crate::journal::chain::START;
use crate::journal::event::{
    ApprovalSource, Asked, Ending, Outcome, Path, Prepared, Resolution, Ruling, RunStarted, Skip,
    SkipCause, StepAt, Terms, Whom,
};
use crate::money::Money;
use crate::plan::policy::{Family, OnFailure};
use crate::plan::step::Step;
use crate::port::adapter::{Process, Usage};
use crate::port::store::Hash;
use serde_json::Value;
use sluice_govern::account;
use sluice_govern::decision::Constraints;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// What it is a run of.
    pub definition: Arc<Definition>,
    /// What it was started with.
    pub started: Arc<RunStarted>,
    /// The id of the last event folded into it.
    pub version: u64,
    /// The hash of the last event that was made durable. Not folded from events:
    /// whoever loads frames or encodes new ones keeps it.
    pub tip: Hash,
    /// What it is doing.
    pub status: RunStatus,
    /// Why it is paused, while it is.
    pub pause: Option<Pause>,
    /// When it was started.
    pub started_at_ms: u64,
    /// When it ended.
    pub ended_at_ms: Option<u64>,
    /// How it ended.
    pub end: Option<End>,
    /// Why it is being cancelled.
    pub cancel_reason: Option<String>,
    /// The step whose failure halts it.
    pub halted_by: Option<StepAt>,
    /// How often it was taken up again after a failure.
    pub reopened: u32,
    /// How often of those it was by itself.
    pub recoveries: u32,
    /// How many completions and skips there were.
    pub checkpoints: u64,
    /// Steps in the order they completed: the order in which variables were written.
    pub writers: Vec<u32>,
    /// What its steps are doing, by position in the plan.
    pub steps: Vec<StepState>,
    /// Every question asked, also those that are closed.
    pub approvals: BTreeMap<ApprovalId, Approval>,
    /// Values that came here from elsewhere, and went elsewhere from here.
    pub provenance: (u64, u64),
    /// How many values came from which other run.
    pub taken: BTreeMap<RunId, u64>,
    /// Dispatches that were given up before their cost was known: what was reserved
    /// for them is still held, and a cost that is reported late is booked.
    pub open: BTreeMap<(StepAt, u32), Open>,
    /// The time that counts against the run's timeout.
    pub(crate) clock: RunClock,
    /// What it was given, as expressions see it.
    pub(crate) args: Arc<Value>,
    pub(crate) index: Index,
}

/// A dispatch whose cost nobody knows yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Open {
    /// What is held for it.
    pub terms: Arc<Terms>,
    /// When the reservation is taken for the cost, and no report counts any more.
    pub until_ms: u64,
}

impl Open {
    /// Whether a budget holds money for it, which must be settled in time.
    pub(crate) fn is_reserved(&self) -> bool {
        !self.terms.accounts.is_empty()
    }
}

/// Why a run is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// Somebody stopped it.
    Operator,
    /// Only people are left to wait for.
    Approval,
}

impl Pause {
    /// The word on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Pause::Operator => "operator",
            Pause::Approval => "approval",
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    /// Its result, where it ended well.
    pub outputs: Option<Arc<Value>>,
    /// The kind of failure, and what failed.
    pub error: Option<(String, String)>,
}

/// The time that counts against a run's timeout: not while only people are
/// waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RunClock {
    pub(crate) used_ms: u64,
    pub(crate) since_ms: Option<u64>,
}

/// A step, or an instance of one.
#[derive(Debug, Clone, PartialEq)]
pub struct StepState {
    /// What it is doing.
    pub status: StepStatus,
    /// Why it waits, exactly while it does; why it was skipped, if by a condition.
    pub waiting: Option<Waiting>,
    /// How often it was invalidated.
    pub generation: u32,
    /// Attempts in this generation.
    pub attempt: u32,
    /// How many of them were asked again with what was wrong.
    pub reasks: u32,
    /// Whether the next attempt is asked with what was wrong.
    pub reask: bool,
    /// Dispatches in all.
    pub dispatch_no: u32,
    /// How it was last dispatched.
    pub path: Option<Path>,
    /// Who does it.
    pub agent: Option<String>,
    /// Where.
    pub gateway: Option<String>,
    /// What it was given.
    pub prepared: Option<Arc<Prepared>>,
    /// What came of it.
    pub outcome: Option<Arc<Outcome>>,
    /// Why it failed, or is being retried.
    pub ending: Option<Arc<Ending>>,
    /// Why it was not done.
    pub skip: Option<Box<Skip>>,
    /// The label without a value that blocks it.
    pub placeholder: Option<String>,
    /// Whether a block waits for someone.
    pub block_waits: bool,
    /// Whom somebody chose to do it. Kept for a step as a whole.
    pub assigned: Option<Whom>,
    /// When the next attempt starts.
    pub wake_at_ms: Option<u64>,
    /// When the attempt is given up.
    pub deadline_ms: Option<u64>,
    /// The time that is left of it, while that stands still.
    pub left_ms: Option<u64>,
    /// The open question about it.
    pub approval: Option<ApprovalId>,
    /// What it may do without being asked again.
    pub grant: Grant,
    /// Whether a person was already asked what to do about its failure.
    pub escalated: bool,
    /// When it was first dispatched in this generation.
    pub started_at_ms: Option<u64>,
    /// When the last attempt was dispatched.
    pub attempt_at_ms: Option<u64>,
    /// When the first part of its answer came.
    pub first_byte_at_ms: Option<u64>,
    /// When it was settled.
    pub ended_at_ms: Option<u64>,
    /// What it cost, over all attempts.
    pub usage: Usage,
    /// Parts of answers so far.
    pub deltas: u64,
    /// What the last dispatch has taken and must keep to.
    pub terms: Option<Arc<Terms>>,
    /// SHA-256 of the action the last dispatch was allowed for.
    pub digest: Option<String>,
    /// Whether the gates were asked about it in this generation.
    pub decided: bool,
    /// The wait at a gate, since it first began.
    pub gate: Option<Box<GateWait>>,
    /// The question whose answer is its grant.
    pub granted: Option<ApprovalId>,
    /// The digest of the text that the moderator is being asked about.
    pub asked: Option<String>,
    /// The digest of the text that the moderator has let in.
    pub cleared: Option<String>,
    /// The process that does it, if it is one.
    pub process: Option<Process>,
    /// The session of the provider that it left.
    pub session: Option<String>,
    /// The session of the provider that the last dispatch continues.
    pub continues: Option<String>,
    /// Calls of tools that the attempt in flight asked for, by their ids.
    pub calls: BTreeMap<String, ToolCall>,
    /// Whether a tool was called for what came of it: that is not to be trusted.
    pub used_tools: bool,
    /// The instances of a `for_each` step.
    pub fan_out: Option<Box<FanOut>>,
    /// How many values it took, by the run they are from.
    pub(crate) sources: Vec<Source>,
    /// What instances counted before they were invalidated, by item: those that
    /// come after them count on.
    pub(crate) past: Vec<Past>,
}

/// Values that a step took from the steps of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Source {
    /// The run; none means this one.
    pub(crate) run: Option<RunId>,
    pub(crate) rows: u32,
}

/// The counts of an instance that never start anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Past {
    pub(crate) dispatch_no: u32,
    pub(crate) deltas: u64,
}

impl Default for StepState {
    fn default() -> StepState {
        StepState {
            status: StepStatus::Pending,
            waiting: None,
            generation: 0,
            attempt: 0,
            reasks: 0,
            reask: false,
            dispatch_no: 0,
            path: None,
            agent: None,
            gateway: None,
            prepared: None,
            outcome: None,
            ending: None,
            skip: None,
            placeholder: None,
            block_waits: false,
            assigned: None,
            wake_at_ms: None,
            deadline_ms: None,
            left_ms: None,
            approval: None,
            grant: Grant::None,
            escalated: false,
            started_at_ms: None,
            attempt_at_ms: None,
            first_byte_at_ms: None,
            ended_at_ms: None,
            usage: Usage::default(),
            deltas: 0,
            terms: None,
            digest: None,
            decided: false,
            gate: None,
            granted: None,
            asked: None,
            cleared: None,
            process: None,
            session: None,
            continues: None,
            calls: BTreeMap::new(),
            used_tools: false,
            fan_out: None,
            sources: Vec::new(),
            past: Vec::new(),
        }
    }
}

/// A wait for what a gate said no to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateWait {
    /// When it first had to wait.
    pub since_ms: u64,
    /// How often it was refused.
    pub tries: u32,
    /// The gate's code.
    pub code: String,
    /// What would end the wait.
    pub hint: Option<String>,
    /// Where it would have gone.
    pub gateway: String,
    /// Whether it waits at the gate now, not in the queue.
    pub active: bool,
}

/// A call of a tool that a step asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool.
    pub tool: String,
    /// SHA-256 of tool and input.
    pub digest: String,
    /// What it is to be called with, while a person is asked.
    pub input: Option<Value>,
    /// What was decided.
    pub ruling: Ruling,
}

/// What a step may do without being asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// Nothing.
    None,
    /// One attempt.
    Attempt,
    /// This attempt and its retries.
    Retries,
}

/// The instances of a `for_each` step.
#[derive(Debug, Clone, PartialEq)]
pub struct FanOut {
    /// What they are done for.
    pub items: Arc<Vec<Value>>,
    /// One for each item.
    pub instances: Vec<StepState>,
    /// Instances not settled.
    pub(crate) unsettled: u32,
    /// Instances in flight.
    pub(crate) in_flight: u32,
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// What it is about.
    pub at: StepAt,
    /// Why it is asked.
    pub source: ApprovalSource,
    /// What is asked.
    pub summary: String,
    /// Users or roles who may answer.
    pub approvers: Vec<String>,
    /// How it was closed; none while it is open.
    pub resolution: Option<Resolution>,
    /// When it was asked.
    pub requested_at_ms: u64,
    /// When it is too late.
    pub expires_at_ms: u64,
    /// Reminders sent.
    pub reminders: u32,
    /// When it was closed.
    pub resolved_at_ms: Option<u64>,
    /// Who answered.
    pub by: Option<String>,
    /// What they said.
    pub comment: Option<String>,
    /// Of each group at least one must agree.
    pub groups: Vec<Vec<String>>,
    /// How many must agree.
    pub quorum: u32,
    /// Whether the one who started the run may not.
    pub not_initiator: bool,
    /// When people are reminded, and how urgent it is by then.
    pub remind_at: Vec<(u64, String)>,
    /// What is agreed to.
    pub action: Option<Arc<Asked>>,
    /// Who has agreed so far, in which roles.
    pub votes: Vec<(String, Vec<String>)>,
    /// What was tightened on the way, and the digest of the action with it.
    pub tightened: Option<(Constraints, String)>,
}

impl Approval {
    /// When something is next due about it.
    pub(crate) fn due_at_ms(&self) -> u64 {
        let reminder = self.remind_at.get(self.reminders as usize);
        reminder.map_or(self.expires_at_ms, |(at_ms, _)| self.expires_at_ms.min(*at_ms))
    }

    /// The digest that a grant is for: with whatever was tightened.
    pub fn digest(&self) -> Option<&str> {
        let tightened = self.tightened.as_ref().map(|(_, digest)| digest);
        tightened.or(self.action.as_ref().map(|asked| &asked.digest)).map(String::as_str)
    }
}

/// The arguments as one value.
pub(crate) fn args_of(started: &RunStarted) -> Arc<Value> {
    Arc::new(Value::Object((*started.args).clone()))
}

impl Run {
    /// A run of which nothing is known but how it was started.
    pub fn new(id: RunId, definition: Arc<Definition>, started: Arc<RunStarted>) -> Run {
        let steps = vec![StepState::default(); definition.plan.steps.len()];
        let mut run = Run {
            args: args_of(&started),
            id,
            definition,
            started,
            version: 0,
            tip: START,
            status: RunStatus::Queued,
            pause: None,
            started_at_ms: 0,
            ended_at_ms: None,
            end: None,
            cancel_reason: None,
            halted_by: None,
            reopened: 0,
            recoveries: 0,
            checkpoints: 0,
            writers: Vec::new(),
            steps,
            approvals: BTreeMap::new(),
            provenance: (0, 0),
            taken: BTreeMap::new(),
            open: BTreeMap::new(),
            clock: RunClock::default(),
            index: Index::default(),
        };
        run.index = run.reindex();
        run
    }

    /// What the plan says of a step.
    pub fn step(&self, at: StepAt) -> &Step {
        &self.definition.plan.steps[at.step as usize]
    }

    /// A step's id; `step[3]` for an instance.
    pub fn name(&self, at: StepAt) -> String {
        let id = &self.step(at).id;
        at.item.map_or_else(|| id.clone(), |item| format!("{id}[{item}]"))
    }

    /// The step or instance of this name.
    pub fn find(&self, name: &str) -> Option<StepAt> {
        let graph = &self.definition.plan.graph;
        let whole = |id: &str| u32::try_from(graph.position(id)?).ok().map(StepAt::whole);
        if let Some(at) = whole(name) {
            return Some(at);
        }
        let (id, item) = name.strip_suffix(']')?.rsplit_once('[')?;
        let at = StepAt { item: item.parse().ok(), ..whole(id)? };
        (at.item.is_some() && self.get(at).is_some()).then_some(at)
    }

    /// What a step is doing; none for an instance that does not exist.
    pub fn get(&self, at: StepAt) -> Option<&StepState> {
        let whole = self.steps.get(at.step as usize)?;
        match at.item {
            None => Some(whole),
            Some(item) => whole.fan_out.as_ref()?.instances.get(item as usize),
        }
    }

    /// What a step that exists is doing.
    pub fn state(&self, at: StepAt) -> &StepState {
        self.get(at).expect("the step exists")
    }

    pub(crate) fn state_mut(&mut self, at: StepAt) -> &mut StepState {
        let whole = &mut self.steps[at.step as usize];
        match at.item {
            None => whole,
            Some(item) => {
                let fan_out = whole.fan_out.as_mut().expect("an instance has a fan-out");
                &mut fan_out.instances[item as usize]
            }
        }
    }

    /// Whether a failure of this step stops the run.
    pub(crate) fn halts(&self, at: StepAt) -> bool {
        self.step(at).on_failure.is_some_and(|policy| policy != OnFailure::Skip)
    }

    /// Whether what became of this step counts as a failure for those that depend on it.
    pub(crate) fn counts_as_failed(&self, step: u32) -> bool {
        let state = &self.steps[step as usize];
        match state.status {
            StepStatus::Failed | StepStatus::TimedOut | StepStatus::Cancelled => true,
            StepStatus::Blocked => !state.block_waits,
            // In a lens graph a failure travels through what it skipped.
            StepStatus::Skipped => {
                self.definition.plan.family == Family::Lens
                    && state
                        .skip
                        .as_ref()
                        .is_some_and(|skip| skip.cause == SkipCause::ParentFailure)
            }
            _ => false,
        }
    }

    /// When something is next due by itself.
    pub fn next_due_ms(&self) -> Option<u64> {
        if self.status.is_terminal() {
            // Money is still to be settled, or it is taken up again.
            let open = self.open.values().filter(|open| open.is_reserved());
            let open = open.map(|open| open.until_ms);
            return open.chain(self.recovers_at_ms()).min();
        }
        self.index.timers.first().map(|(at_ms, _)| *at_ms)
    }

    /// The caps that spending in a run below this one counts in.
    pub fn family_caps(&self) -> Vec<(RunId, Money)> {
        let own = self.definition.plan.max_cost.map(|money| (self.id, money));
        own.into_iter().chain(self.started.caps.iter().copied()).collect()
    }

    /// The accounts that are this run's own, or its family's.
    pub fn own_accounts(&self) -> Vec<String> {
        let plan = &self.definition.plan;
        let run = plan.max_cost.map(|_| account::of_run(&self.id.to_string()));
        let above = self.started.caps.iter().map(|(run, _)| account::of_run(&run.to_string()));
        let capped = plan.roles.iter().filter(|(_, role)| role.max_spend.is_some());
        let id = self.id.to_string();
        let roles = capped.map(|(name, _)| account::of_role(&id, name));
        run.into_iter().chain(above).chain(roles).collect()
    }

    /// When the run has taken too long, unless it pauses before.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        let timeout_ms = self.definition.plan.timeout_ms?;
        let since_ms = self.clock.since_ms?;
        Some(since_ms + timeout_ms.saturating_sub(self.clock.used_ms))
    }

    /// The order of ids, then of items: the order in which steps are taken.
    pub(crate) fn place(&self, at: StepAt) -> (u32, Option<u32>) {
        (self.definition.rank(at.step), at.item)
    }

    /// The step at a place.
    pub(crate) fn at_place(&self, place: (u32, Option<u32>)) -> StepAt {
        StepAt { step: self.definition.at_rank(place.0), item: place.1 }
    }

    /// Every step and instance.
    pub fn all(&self) -> impl Iterator<Item = (StepAt, &StepState)> {
        (0u32..).zip(&self.steps).flat_map(|(step, whole)| {
            let instances = whole.fan_out.iter().flat_map(|fan_out| &fan_out.instances);
            let instances = (0u32..).zip(instances);
            let whole = std::iter::once((StepAt::whole(step), whole));
            whole.chain(instances.map(move |(item, one)| (StepAt::instance(step, item), one)))
        })
    }

    /// The variables a completed step sets: the outputs it declares and has.
    pub(crate) fn written_by(&self, step: u32) -> impl Iterator<Item = &String> {
        let plan = &self.definition.plan.steps[step as usize];
        let outcome = self.steps[step as usize].outcome.as_ref();
        // Values that a person gives a lens node are that node's own.
        let collected = plan.for_each.is_some() || self.definition.plan.family == Family::Lens;
        plan.outputs.keys().filter(move |name| {
            !collected && outcome.is_some_and(|one| one.outputs.get(name.as_str()).is_some())
        })
    }

    /// The variable of exactly this name.
    pub fn variable(&self, name: &str) -> Option<&Value> {
        let writer = self.index.variables.get(name)?;
        self.steps[*writer as usize].outcome.as_ref()?.outputs.get(name)
    }

    /// All variables, by name.
    pub fn variables(&self) -> impl Iterator<Item = (&String, &Value)> {
        let value = |name: &String| self.variable(name);
        self.index.variables.keys().filter_map(move |name| Some((name, value(name)?)))
    }
}
