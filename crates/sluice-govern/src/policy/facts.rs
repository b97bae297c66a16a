//! The policies' view of a decision: plain data that is recorded with it, so that a
//! changed policy set can be tried on recorded decisions.
//!
//! Every decision has one, so all text is borrowed from the decision's input; a view
//! that is read from a record owns its text.
//!
//! INVARIANT: a policy set decides from this data alone. A view that is read from a
//! record gives the same answer as the original.

use super::Policies;
use super::call::recorded;
use super::history::HistoryValues;
use crate::facts::{CallFacts, Facts, FlowFacts, Place, SendsTo, Subject, ToolFacts, Verb, Worst};
use crate::registry::Posture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The policies' view of a decision, in compact form: every decision carries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyFacts<'a> {
    /// The time, milliseconds since 1970.
    pub at: u64,
    /// The action to decide.
    pub verb: Verb,
    /// The acting principal.
    pub who: Principal<'a>,
    /// The resource of the action.
    pub what: Resource<'a>,
    /// The run.
    pub run: RunSeen<'a>,
    /// The step, if the action concerns one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepSeen<'a>>,
    /// Properties of the inputs.
    #[serde(default, skip_serializing_if = "InputsSeen::is_default")]
    pub inputs: InputsSeen<'a>,
    /// Cost ceiling in micro-cents; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// Posture of the run.
    #[serde(default, skip_serializing_if = "is_bounded")]
    pub posture: Posture,
    /// Requested tools.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub tools: Cow<'a, [String]>,
    /// What the operator declared about the tool of the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Cow<'a, ToolFacts>>,
    /// The labels of the whole action.
    #[serde(default, skip_serializing_if = "FlowFacts::is_empty")]
    pub flow: FlowFacts,
    /// Where the values of the action were seen; absent if no loaded policy asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallFacts>,
    /// The values: the arguments of a tool call and, if a loaded policy asks, the inputs of
    /// a step or the arguments of a run. Absent if there are too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Cow<'a, Map<String, Value>>>,
    /// The facts about history that policies in scope test.
    #[serde(default, skip_serializing_if = "HistoryValues::is_empty")]
    pub history: HistoryValues,
    /// Whether a budget blocks the action. Cedar does not see this; it decides whether
    /// a budget policy requests an approval.
    #[serde(default, skip_serializing_if = "is_false")]
    pub short_of_money: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_bounded(posture: &Posture) -> bool {
    *posture == Posture::BoundedAutonomous
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The acting principal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Principal<'a> {
    /// An agent in a role.
    Agent {
        /// Name of the agent.
        name: Cow<'a, str>,
        /// Role of the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<Cow<'a, str>>,
        /// Trust level, capped by the deployment.
        trust: u8,
        /// Lifecycle phase.
        phase: Cow<'a, str>,
        /// Status of the agent.
        status: Cow<'a, str>,
        /// Model of the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Cow<'a, str>>,
        /// Capabilities that its gateway must offer.
        #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
        capabilities: Cow<'a, [String]>,
    },
    /// A person or program.
    User {
        /// Name of the user.
        name: Cow<'a, str>,
    },
}

/// The resource of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource<'a> {
    /// The gateway that a step is sent to or an agent is deployed on.
    Gateway {
        /// Name of the gateway.
        name: Cow<'a, str>,
        /// Provider of the gateway.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        provider: Cow<'a, str>,
        /// Environment of the gateway.
        environment: Cow<'a, str>,
        /// Agents below this trust level may not use it.
        min_trust: u8,
        /// Capabilities that it offers.
        #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
        capabilities: Cow<'a, [String]>,
        /// Where it sends what it is given; absent if not declared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sends_to: Option<SendsTo>,
    },
    /// A workflow to start.
    Workflow(Cow<'a, str>),
    /// A tool to call.
    Tool(Cow<'a, str>),
    /// A registry row to change: `kind/name`.
    Row(Cow<'a, str>),
}

/// The run, as policies see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSeen<'a> {
    /// Id of the run.
    pub id: Cow<'a, str>,
    /// The workflow.
    pub workflow: Cow<'a, str>,
    /// Version of the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Initiator of the run.
    pub initiator: Cow<'a, str>,
    /// Number of ancestor runs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// Whether its definition comes from the registry; false in older records.
    #[serde(default, skip_serializing_if = "is_false")]
    pub registered: bool,
    /// SHA-256 of its definition; empty if unknown.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub definition: Cow<'a, str>,
}

/// The step, as policies see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSeen<'a> {
    /// Id of the step.
    pub id: Cow<'a, str>,
    /// `command`, `lens`, `workflow`, `approval`.
    pub kind: Cow<'a, str>,
    /// Number of the attempt.
    pub attempt: u32,
    /// Capabilities that its gateway must offer.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub capabilities: Cow<'a, [String]>,
}

/// The inputs, as policies see them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InputsSeen<'a> {
    /// Source classes of the inputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Cow<'a, str>>,
    /// Whether an input came from outside and was not checked.
    #[serde(skip_serializing_if = "is_false")]
    pub untrusted: bool,
    /// Whether an input must not leave the organisation.
    #[serde(skip_serializing_if = "is_false")]
    pub private: bool,
    /// Age of the oldest input, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u64>,
}

impl<'a> PolicyFacts<'a> {
    /// The view of a change of a registry row (`kind/name`) by a person.
    pub fn of_change(at: u64, who: &'a str, row: &'a str) -> PolicyFacts<'a> {
        PolicyFacts {
            at,
            verb: Verb::ChangeConfig,
            who: Principal::User { name: who.into() },
            what: Resource::Row(row.into()),
            run: RunSeen {
                id: "".into(),
                workflow: "".into(),
                version: None,
                initiator: who.into(),
                depth: 0,
                registered: false,
                definition: "".into(),
            },
            step: None,
            inputs: InputsSeen::default(),
            cost: None,
            posture: Posture::default(),
            tools: [][..].into(),
            tool: None,
            flow: FlowFacts::default(),
            call: None,
            input: None,
            history: HistoryValues::new(),
            short_of_money: false,
        }
    }
}

impl PolicyFacts<'_> {
    /// The server of the tool: as declared, else the part of its name before the dot.
    pub(super) fn tool_server(&self) -> Option<&str> {
        let Resource::Tool(name) = &self.what else { return None };
        match &self.tool {
            Some(tool) => Some(&tool.server),
            None => name.split_once('.').map(|(server, _)| server),
        }
    }
}

impl InputsSeen<'_> {
    fn is_default(&self) -> bool {
        *self == InputsSeen::default()
    }
}

impl Resource<'_> {
    /// The Cedar type of an action's resource.
    pub(super) const fn kind_for(verb: Verb) -> &'static str {
        match verb {
            Verb::DispatchStep | Verb::DeployAgent => "Gateway",
            Verb::StartRun => "Workflow",
            Verb::UseTool => "Tool",
            Verb::ChangeConfig => "Row",
        }
    }

    /// The name of the resource.
    pub fn name(&self) -> &str {
        match self {
            Resource::Gateway { name, .. }
            | Resource::Workflow(name)
            | Resource::Tool(name)
            | Resource::Row(name) => name,
        }
    }
}

impl<'a> Facts<'a> {
    /// The policies' view of these facts. `policies` are those that will decide: values
    /// that none of them reads are left out, except those of a tool call.
    pub(crate) fn policy_facts(&self, policies: &Policies) -> PolicyFacts<'a> {
        let reads_values = self.verb == Verb::UseTool || policies.reads_values(self.verb);
        PolicyFacts {
            at: self.now_ms,
            verb: self.verb,
            who: principal(self),
            what: resource(self),
            run: RunSeen {
                id: self.run.id.into(),
                workflow: self.run.workflow.into(),
                version: self.run.version,
                initiator: self.run.initiator.into(),
                depth: self.run.depth,
                registered: self.run.registered,
                definition: self.run.definition.into(),
            },
            step: self.step.map(|step| StepSeen {
                id: step.id.into(),
                kind: step.kind.into(),
                attempt: step.attempt,
                capabilities: step.capabilities.into(),
            }),
            inputs: InputsSeen {
                classes: self.inputs.classes.iter().map(|&class| class.into()).collect(),
                untrusted: self.inputs.untrusted,
                private: self.inputs.private,
                age_s: self.inputs.age_ms.map(|age_ms| age_ms.div_ceil(1000)),
            },
            cost: match self.worst {
                Worst::Known(money) => Some(money.micro_cents()),
                Worst::Unknown => None,
            },
            posture: self.posture,
            tools: self.action.tools.into(),
            tool: self.tool.map(Cow::Borrowed),
            flow: self.flow.clone(),
            call: self.call.clone(),
            input: if reads_values { recorded(self.action.inputs) } else { None },
            history: HistoryValues::new(),
            short_of_money: self.short_of_money(),
        }
    }
}

fn principal<'a>(facts: &Facts<'a>) -> Principal<'a> {
    let (name, row) = match facts.subject {
        Subject::User(name) => return Principal::User { name: name.into() },
        Subject::Agent(name, row) => (name, row),
    };
    Principal::Agent {
        name: name.into(),
        role: facts.role.map(|(role, _)| role.into()),
        trust: row.map_or(0, |agent| agent.trust_level.min(facts.trust_ceiling)),
        phase: row.map_or("sunset", |agent| agent.phase_at(facts.now_ms).as_str()).into(),
        status: row.map_or("terminated", |agent| agent.status.as_str()).into(),
        model: facts.action.model.map(Cow::Borrowed),
        capabilities: row.map_or(&[][..], |agent| &agent.capabilities).into(),
    }
}

fn resource<'a>(facts: &Facts<'a>) -> Resource<'a> {
    match facts.verb {
        Verb::DispatchStep | Verb::DeployAgent => gateway(facts.place),
        Verb::StartRun => Resource::Workflow(facts.object.unwrap_or(facts.action.workflow).into()),
        Verb::UseTool => Resource::Tool(facts.object.unwrap_or_default().into()),
        Verb::ChangeConfig => Resource::Row(facts.object.unwrap_or_default().into()),
    }
}

fn gateway(place: Option<Place<'_>>) -> Resource<'_> {
    let row = place.and_then(|place| place.gateway);
    Resource::Gateway {
        name: place.map_or("", |place| place.name).into(),
        provider: row.map_or("", |row| &row.provider).into(),
        environment: row.map_or("", |row| &row.environment).into(),
        min_trust: row.map_or(1, |row| row.min_trust_level),
        capabilities: row.map_or(&[][..], |row| &row.capabilities).into(),
        sends_to: row.and_then(|row| row.sends_to),
    }
}
