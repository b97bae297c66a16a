//! A run as the fold of its journal.
//!
//! Next to the fold, a run has an index of its steps, so that no decision has to look at
//! every step.

use super::definition::Definition;
use super::history::RunHistory;
use super::index::Index;
use super::lineage::Source;
use super::phase::StepPhase;
use super::seen::SeenLog;
use crate::choices::choices;
use crate::hash::Hash;
use crate::id::{ApprovalId, RunId};
use crate::journal::chain::START;
use crate::journal::event::{
    ApprovalSource, ApprovalSubject, Assignee, Ending, HistoryTaken, Path, Prepared, Resolution,
    Ruling, RunStarted, SkipCause, StepAt, StepOutcome, Terms, Tightened,
};
use crate::money::Money;
use crate::origin::FlowLabels;
use crate::plan::policy::{Family, OnFailure};
use crate::plan::step::Step;
use crate::port::adapter::{Process, Usage};
use crate::status::{RunStatus, StepStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_govern::account;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The state of a run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Identifies the run in the store.
    pub id: RunId,
    /// The plan that the run executes.
    pub definition: Arc<Definition>,
    /// Everything that it was started with.
    pub started: Arc<RunStarted>,
    /// The id of the last event folded into it.
    pub version: u64,
    /// The hash of the last durable event. `evolve` does not change it: the engine sets it
    /// when it loads frames or encodes new ones.
    pub tip: Hash,
    /// The status after the last event.
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
    /// How often it was retried after it had failed, by a person or by the engine.
    pub reopened: u32,
    /// How often the engine retried it, as its workflow allows.
    pub recoveries: u32,
    /// The number of completions and skips of steps.
    pub checkpoints: u64,
    /// Steps in the order they completed: the order in which variables were written.
    pub writers: Vec<u32>,
    /// The state of each step, by position in the plan.
    pub steps: Vec<StepState>,
    /// All approvals, open and closed.
    pub approvals: BTreeMap<ApprovalId, Approval>,
    /// How many values its steps read, and how many of those came from its own steps.
    pub provenance: (u64, u64),
    /// How many values its steps read from each other run.
    pub taken: BTreeMap<RunId, u64>,
    /// Dispatches that were aborted before their cost was known. Their reservations are
    /// kept, so that a cost that is reported late can be booked.
    pub open: BTreeMap<(StepAt, u32), Open>,
    /// What happened, for policies about history.
    pub(crate) history: RunHistory,
    /// The time that counts against the run's timeout.
    pub(crate) clock: RunClock,
    /// Where values were seen.
    pub(crate) seen: SeenLog,
    /// Named labels of the answers of each tool, by its name.
    pub(crate) answers: BTreeMap<String, FlowLabels>,
    /// The arguments as one object, as expressions read them.
    pub(crate) args: Arc<Value>,
    pub(crate) index: Index,
}

/// A dispatch whose cost is not known yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Open {
    /// What is reserved for it.
    pub terms: Arc<Terms>,
    /// When the reservation is booked as the cost; later reports are ignored.
    pub until_ms: u64,
}

impl Open {
    /// Whether money is reserved for it, which must be settled by `until_ms`.
    pub(crate) fn is_reserved(&self) -> bool {
        !self.terms.accounts.is_empty()
    }
}

choices! {
    /// Why a run is paused.
    pub enum Pause, "a reason of a pause" {
        /// An operator paused it.
        Operator = "operator",
        /// It waits only for people.
        Approval = "approval",
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The outputs of a completed run.
    #[serde(with = "crate::compact::present")]
    pub outputs: Option<Arc<Value>>,
    /// Code and message of the failure.
    pub error: Option<(String, String)>,
}

/// The time that counts against a run's timeout. The clock stops while the run waits only for
/// people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct RunClock {
    pub(crate) used_ms: u64,
    pub(crate) since_ms: Option<u64>,
}

/// The state of a step, or of an instance of one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StepState {
    /// What the step waits for or does, with the data of that phase.
    pub phase: StepPhase,
    /// How often the step was invalidated.
    pub generation: u32,
    /// Attempts in this generation.
    pub attempt: u32,
    /// How many of them were sent with the errors of the attempt before.
    pub reasks: u32,
    /// Whether the next attempt is sent with the errors of the last one.
    pub reask: bool,
    /// Dispatches in all generations.
    pub dispatch_no: u32,
    /// The last dispatch of this generation.
    pub dispatch: Option<Box<LastDispatch>>,
    /// What is sent to execute the step.
    pub prepared: Option<Arc<Prepared>>,
    /// The last failure: of a step that failed, is retried or is escalated.
    pub failure: Option<Arc<Ending>>,
    /// The member or agent that a person assigned. Kept for a step as a whole.
    pub assigned: Option<Assignee>,
    /// What the step may do without another approval.
    pub grant: Grant,
    /// The approval that gave the grant.
    pub granted: Option<ApprovalId>,
    /// Whether its failure was already escalated to a person.
    pub escalated: bool,
    /// When the step was first dispatched in this generation.
    pub started_at_ms: Option<u64>,
    /// When the first part of its answer arrived.
    pub first_byte_at_ms: Option<u64>,
    /// Cost of all attempts.
    pub usage: Usage,
    /// Parts of answers so far.
    pub deltas: u64,
    /// Whether the gates decided about the step in this generation.
    pub decided: bool,
    /// The waits at gates since the step was last dispatched.
    pub gate: Option<Box<GateWait>>,
    /// SHA-256 of the inputs that the moderator has cleared.
    pub cleared: Option<String>,
    /// Session of the provider after the last answer.
    pub session: Option<String>,
    /// Tool calls that the attempt in flight requested, by their ids.
    pub calls: BTreeMap<String, ToolCall>,
    /// Whether a tool was called, which makes the result untrusted.
    pub used_tools: bool,
    /// Named labels of the answers of these tools.
    pub tool_labels: FlowLabels,
    /// The instances of a `for_each` step.
    pub fan_out: Option<Box<FanOut>>,
    /// How many values the step read, by the run that they are from.
    pub(crate) sources: Vec<Source>,
    /// Counts of invalidated instances, by item: new instances continue them.
    pub(crate) past: Vec<Past>,
}

/// The last dispatch of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastDispatch {
    /// How the step is executed.
    pub path: Path,
    /// When it was dispatched.
    pub at_ms: u64,
    /// Agent that executes the step.
    pub agent: Option<String>,
    /// Gateway that it was sent to.
    pub gateway: String,
    /// What is reserved for the dispatch, and its constraints; `None` once it has ended.
    pub terms: Option<Arc<Terms>>,
    /// SHA-256 of the action that the gates allowed.
    pub digest: Option<String>,
    /// Session of the provider that the dispatch continues.
    pub session: Option<String>,
    /// The process that executes the step, if it is one.
    pub process: Option<Process>,
}

impl StepState {
    /// The status on every wire.
    pub const fn status(&self) -> StepStatus {
        self.phase.status()
    }

    /// Whether the step has ended.
    pub const fn is_settled(&self) -> bool {
        self.phase.is_settled()
    }

    /// The result, if the step succeeded.
    pub const fn outcome(&self) -> Option<&Arc<StepOutcome>> {
        self.phase.outcome()
    }

    /// How the step was last dispatched.
    pub fn path(&self) -> Option<Path> {
        self.dispatch.as_ref().map(|dispatch| dispatch.path)
    }

    /// When the last attempt was dispatched.
    pub fn attempt_at_ms(&self) -> Option<u64> {
        self.dispatch.as_ref().map(|dispatch| dispatch.at_ms)
    }

    /// Agent of the last dispatch.
    pub fn agent(&self) -> Option<&str> {
        self.dispatch.as_ref()?.agent.as_deref()
    }

    /// Gateway of the last dispatch.
    pub fn gateway(&self) -> Option<&str> {
        self.dispatch.as_ref().map(|dispatch| dispatch.gateway.as_str())
    }

    /// Terms of the dispatch in flight.
    pub fn terms(&self) -> Option<&Arc<Terms>> {
        self.dispatch.as_ref()?.terms.as_ref()
    }
}

/// The counts of an instance that an invalidation does not reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Past {
    pub(crate) dispatch_no: u32,
    pub(crate) deltas: u64,
}

/// The wait of a step that a gate refused for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateWait {
    /// When the wait began.
    pub since_ms: u64,
    /// How often gates refused the step.
    pub tries: u32,
    /// The code of the last refusal.
    pub code: String,
    /// What would end the wait.
    pub hint: Option<String>,
    /// The gateway that the step would be sent to.
    pub gateway: String,
}

/// A tool call that a step requested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The tool's name, as policies write it.
    pub tool: String,
    /// SHA-256 of tool and input.
    pub digest: String,
    /// The arguments of the call, while it waits for an approval.
    #[serde(with = "crate::compact::present")]
    pub input: Option<Value>,
    /// What the gates decided.
    pub ruling: Ruling,
    /// Whether the tool has answered.
    pub answered: bool,
    /// What it holds of counters across runs, until it ends.
    pub(crate) taken: Vec<HistoryTaken>,
}

/// What a step may do without a new approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Grant {
    /// Nothing.
    #[default]
    None,
    /// The next attempt only.
    Attempt,
    /// This attempt and its retries.
    Retries,
}

/// The instances of a `for_each` step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FanOut {
    /// The items that the step is executed for.
    pub items: Arc<Vec<Value>>,
    /// One instance for each item.
    pub instances: Vec<StepState>,
    /// The number of instances that are not settled.
    #[serde(skip)]
    pub(crate) unsettled: u32,
    /// The number of instances in flight.
    #[serde(skip)]
    pub(crate) in_flight: u32,
}

impl FanOut {
    /// Computes the counts again, after the instances were read from a snapshot.
    pub(crate) fn recount(&mut self) {
        let count = |is: fn(&StepState) -> bool| {
            let count = self.instances.iter().filter(|one| is(one)).count();
            u32::try_from(count).expect("items are bounded")
        };
        (self.unsettled, self.in_flight) =
            (count(|one| !one.is_settled()), count(|one| one.status().is_dispatched()));
    }
}

/// An approval that a step needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The step that waits for the decision.
    pub at: StepAt,
    /// What requires the approval.
    pub source: ApprovalSource,
    /// What the approver decides on, in words.
    pub summary: String,
    /// Users or roles that may decide.
    pub approvers: Vec<String>,
    /// How it was closed; `None` while it is open.
    pub resolution: Option<Resolution>,
    /// When it was requested.
    pub requested_at_ms: u64,
    /// When it expires.
    pub expires_at_ms: u64,
    /// The number of reminders sent.
    pub reminders: u32,
    /// When it was closed.
    pub resolved_at_ms: Option<u64>,
    /// The principal that closed it.
    pub by: Option<String>,
    /// The comment of that principal.
    pub comment: Option<String>,
    /// Groups of which at least one member each must approve.
    pub groups: Vec<Vec<String>>,
    /// How many approvers must approve.
    pub quorum: u32,
    /// Whether initiators of the run may not approve.
    pub not_initiator: bool,
    /// When approvers are reminded, with the urgency of each reminder.
    pub remind_at: Vec<(u64, String)>,
    /// The action that is approved.
    pub action: Option<Arc<ApprovalSubject>>,
    /// The votes so far: the principal and its roles.
    pub votes: Vec<(String, Vec<String>)>,
    /// Constraints that approvers added.
    pub tightened: Option<Tightened>,
}

/// Name of the last approved call of a tool among the approved actions of another run. No step
/// has this name.
pub(crate) fn agreed_tool(tool: &str) -> String {
    format!("tool:{tool}")
}

impl Approval {
    /// The tool whose call is approved; `None` if it is about a step.
    pub fn tool(&self) -> Option<&str> {
        let subject = self.action.as_ref().filter(|_| self.source == ApprovalSource::Tool)?;
        subject.action["tools"][0].as_str()
    }

    /// When the next reminder or the expiry is due.
    pub(crate) fn due_at_ms(&self) -> u64 {
        let reminder = self.remind_at.get(self.reminders as usize);
        reminder.map_or(self.expires_at_ms, |(at_ms, _)| self.expires_at_ms.min(*at_ms))
    }

    /// The digest of the action that the approval grants, with the constraints that approvers
    /// added.
    pub fn digest(&self) -> Option<&str> {
        let tightened = self.tightened.as_ref().map(|tightened| &tightened.digest);
        tightened.or(self.action.as_ref().map(|subject| &subject.digest)).map(String::as_str)
    }
}

/// The arguments as one object.
pub(crate) fn args_of(started: &RunStarted) -> Arc<Value> {
    Arc::new(Value::Object((*started.args).clone()))
}

impl Run {
    /// A run into which no event was folded yet.
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
            history: RunHistory::default(),
            clock: RunClock::default(),
            seen: SeenLog::default(),
            answers: BTreeMap::new(),
            index: Index::default(),
        };
        run.index = run.reindex();
        run
    }

    /// A step of the plan.
    pub fn step(&self, at: StepAt) -> &Step {
        &self.definition.plan.steps[at.step as usize]
    }

    /// A step's id; `step[3]` for an instance.
    pub fn name(&self, at: StepAt) -> String {
        let id = &self.step(at).id;
        at.item.map_or_else(|| id.clone(), |item| format!("{id}[{item}]"))
    }

    /// The step or instance with this name.
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

    /// The state of a step; `None` for an instance that does not exist.
    pub fn get(&self, at: StepAt) -> Option<&StepState> {
        let whole = self.steps.get(at.step as usize)?;
        match at.item {
            None => Some(whole),
            Some(item) => whole.fan_out.as_ref()?.instances.get(item as usize),
        }
    }

    /// The state of a step that exists.
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

    /// The open approval that a step waits for. Between the events of one append, a step can
    /// still wait for an approval that was just closed.
    pub fn open_approval(&self, at: StepAt) -> Option<ApprovalId> {
        let approval = self.state(at).phase.approval()?;
        self.approvals[&approval].resolution.is_none().then_some(approval)
    }

    /// Whether a failure of this step stops the run.
    pub(crate) fn halts(&self, at: StepAt) -> bool {
        self.step(at).on_failure.is_some_and(|policy| policy != OnFailure::Skip)
    }

    /// Whether steps that depend on this one see it as failed.
    pub(crate) fn counts_as_failed(&self, step: u32) -> bool {
        let state = &self.steps[step as usize];
        match state.status() {
            StepStatus::Failed | StepStatus::TimedOut | StepStatus::Cancelled => true,
            StepStatus::Blocked => state.is_settled(),
            // In a lens graph a failure passes through the steps that it skipped.
            StepStatus::Skipped => {
                self.definition.plan.family == Family::Lens
                    && state.phase.skip().is_some_and(|skip| skip.cause == SkipCause::ParentFailure)
            }
            _ => false,
        }
    }

    /// When the next timer of the run is due.
    pub fn next_due_ms(&self) -> Option<u64> {
        if self.status.is_terminal() {
            // Reservations must still be settled, or the engine retries the run.
            let open = self.open.values().filter(|open| open.is_reserved());
            let open = open.map(|open| open.until_ms);
            return open.chain(self.recovers_at_ms()).min();
        }
        self.index.timers.first().map(|(at_ms, _)| *at_ms)
    }

    /// The cost caps that apply to a child run.
    pub fn family_caps(&self) -> Vec<(RunId, Money)> {
        let own = self.definition.plan.max_cost.map(|money| (self.id, money));
        own.into_iter().chain(self.started.caps.iter().copied()).collect()
    }

    /// The accounts of the caps of this run, of its roles and of the runs above it.
    pub fn own_accounts(&self) -> Vec<String> {
        let plan = &self.definition.plan;
        let run = plan.max_cost.map(|_| account::of_run(&self.id.to_string()));
        let above = self.started.caps.iter().map(|(run, _)| account::of_run(&run.to_string()));
        let capped = plan.roles.iter().filter(|(_, role)| role.max_spend.is_some());
        let id = self.id.to_string();
        let roles = capped.map(|(name, _)| account::of_role(&id, name));
        run.into_iter().chain(above).chain(roles).collect()
    }

    /// When the run times out, unless its clock stops before.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        let timeout_ms = self.definition.plan.timeout_ms?;
        let since_ms = self.clock.since_ms?;
        Some(since_ms + timeout_ms.saturating_sub(self.clock.used_ms))
    }

    /// The position of a step in the order of dispatch: by rank, then by item.
    pub(crate) fn place(&self, at: StepAt) -> (u32, Option<u32>) {
        (self.definition.rank(at.step), at.item)
    }

    /// The step at a position in the order of dispatch.
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

    /// The names of the variables that a completed step sets: its declared outputs that have
    /// a value.
    pub(crate) fn written_by(&self, step: u32) -> impl Iterator<Item = &String> {
        let plan = &self.definition.plan.steps[step as usize];
        let outcome = self.steps[step as usize].outcome();
        // Outputs of instances and of lens nodes are read through the step, not as variables.
        let collected = plan.for_each.is_some() || self.definition.plan.family == Family::Lens;
        plan.outputs.keys().filter(move |name| {
            !collected && outcome.is_some_and(|one| one.outputs.get(name.as_str()).is_some())
        })
    }

    /// The value that a step last wrote to a variable; `None` before the first write.
    pub fn variable(&self, name: &str) -> Option<&Value> {
        let writer = self.index.variables.get(name)?;
        self.steps[*writer as usize].outcome()?.outputs.get(name)
    }

    /// All variables, by name.
    pub fn variables(&self) -> impl Iterator<Item = (&String, &Value)> {
        let value = |name: &String| self.variable(name);
        self.index.variables.keys().filter_map(move |name| Some((name, value(name)?)))
    }
}
