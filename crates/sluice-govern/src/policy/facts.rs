//! What policies see of a decision: plain data that is recorded with it, so
//! that a changed set can be tried on what happened.
//!
//! All text is borrowed from what a decision is made from, since every decision
//! has one of these; what is read back from a record owns it.
//!
//! INVARIANT: a set answers from this alone. What is read back from a record
//! gets the same answer as what was recorded.

use crate::facts::{Facts, Place, Subject, Verb, Worst};
use crate::registry::Posture;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What policies see of a decision. Written short: every decision carries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyFacts<'a> {
    /// The time, milliseconds since 1970.
    pub at: u64,
    /// What is decided.
    pub verb: Verb,
    /// Who acts.
    pub who: Principal<'a>,
    /// What it is done to.
    pub what: Resource<'a>,
    /// The run.
    pub run: RunSeen<'a>,
    /// The step, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepSeen<'a>>,
    /// What is known of the inputs.
    #[serde(default, skip_serializing_if = "InputsSeen::is_default")]
    pub inputs: InputsSeen<'a>,
    /// Most it may cost, in micro-cents; absent where nobody can say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// How much freedom the run has.
    #[serde(default, skip_serializing_if = "is_bounded")]
    pub posture: Posture,
    /// Tools that are asked for.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub tools: Cow<'a, [String]>,
    /// Whether a budget stops it. Cedar does not see this; whether a question
    /// about money is asked depends on it.
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

/// Who acts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Principal<'a> {
    /// An agent, in a role.
    Agent {
        /// Its name.
        name: Cow<'a, str>,
        /// The role.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<Cow<'a, str>>,
        /// How far it is trusted here.
        trust: u8,
        /// How far it has come.
        phase: Cow<'a, str>,
        /// Whether it may work.
        status: Cow<'a, str>,
        /// Its model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Cow<'a, str>>,
        /// What its gateway must offer.
        #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
        capabilities: Cow<'a, [String]>,
    },
    /// A person or program.
    User {
        /// Its name.
        name: Cow<'a, str>,
    },
}

/// What something is done to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource<'a> {
    /// Where a step is sent or an agent is put.
    Gateway {
        /// Its name.
        name: Cow<'a, str>,
        /// What it speaks to.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        provider: Cow<'a, str>,
        /// The environment it stands in.
        environment: Cow<'a, str>,
        /// Agents below this trust level may not use it.
        min_trust: u8,
        /// What it offers.
        #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
        capabilities: Cow<'a, [String]>,
    },
    /// A workflow that begins.
    Workflow(Cow<'a, str>),
    /// A tool that is called.
    Tool(Cow<'a, str>),
    /// A row that changes: `kind/name`.
    Row(Cow<'a, str>),
}

/// The run, as policies see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSeen<'a> {
    /// Its id.
    pub id: Cow<'a, str>,
    /// The workflow.
    pub workflow: Cow<'a, str>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Who started it.
    pub initiator: Cow<'a, str>,
    /// How many runs are above it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// Whether its definition comes from the registry; not known of older records.
    #[serde(default, skip_serializing_if = "is_false")]
    pub registered: bool,
    /// SHA-256 of its definition; empty where it is not known.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub definition: Cow<'a, str>,
}

/// The step, as policies see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSeen<'a> {
    /// Its id.
    pub id: Cow<'a, str>,
    /// `command`, `lens`, `workflow`, `approval`.
    pub kind: Cow<'a, str>,
    /// The attempt that would be made.
    pub attempt: u32,
    /// What its gateway must offer.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub capabilities: Cow<'a, [String]>,
}

/// The inputs, as policies see them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InputsSeen<'a> {
    /// Who made them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Cow<'a, str>>,
    /// Something came from outside and was checked by nobody.
    #[serde(skip_serializing_if = "is_false")]
    pub untrusted: bool,
    /// Something must not leave the house.
    #[serde(skip_serializing_if = "is_false")]
    pub private: bool,
    /// The age of the oldest, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u64>,
}

impl<'a> PolicyFacts<'a> {
    /// What policies see of a change of a row (`kind/name`) by a person.
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
            short_of_money: false,
        }
    }
}

impl InputsSeen<'_> {
    fn is_default(&self) -> bool {
        *self == InputsSeen::default()
    }
}

impl Resource<'_> {
    /// The kind of resource an action is done to, as Cedar names it.
    pub(super) const fn kind_for(verb: Verb) -> &'static str {
        match verb {
            Verb::DispatchStep | Verb::DeployAgent => "Gateway",
            Verb::StartRun => "Workflow",
            Verb::UseTool => "Tool",
            Verb::ChangeConfig => "Row",
        }
    }

    /// Its name among its kind.
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
    /// What policies see of it.
    pub fn policy_facts(&self) -> PolicyFacts<'a> {
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
    }
}
