//! What policies see of a decision: plain data that is recorded with it, so
//! that a changed set can be tried on what happened.
//!
//! INVARIANT: a set answers from this alone. What is read back from a record
//! gets the same answer as what was recorded.

use crate::facts::{Facts, Place, Subject, Verb, Worst};
use crate::registry::Posture;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What policies see of a decision. Written short: every decision carries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyFacts {
    /// The time, milliseconds since 1970.
    pub at: u64,
    /// What is decided.
    pub verb: Verb,
    /// Who acts.
    pub who: Principal,
    /// What it is done to.
    pub what: Resource,
    /// The run.
    pub run: RunSeen,
    /// The step, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepSeen>,
    /// What is known of the inputs.
    #[serde(default, skip_serializing_if = "InputsSeen::is_default")]
    pub inputs: InputsSeen,
    /// Most it may cost, in micro-cents; absent where nobody can say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// How much freedom the run has.
    #[serde(default, skip_serializing_if = "is_bounded")]
    pub posture: Posture,
    /// Tools that are asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
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
pub enum Principal {
    /// An agent, in a role.
    Agent {
        /// Its name.
        name: String,
        /// The role.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<String>,
        /// How far it is trusted here.
        trust: u8,
        /// How far it has come.
        phase: Cow<'static, str>,
        /// Whether it may work.
        status: Cow<'static, str>,
        /// Its model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// What its gateway must offer.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        capabilities: Vec<String>,
    },
    /// A person or program.
    User {
        /// Its name.
        name: String,
    },
}

/// What something is done to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Where a step is sent or an agent is put.
    Gateway {
        /// Its name.
        name: String,
        /// What it speaks to.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        provider: String,
        /// The environment it stands in.
        environment: String,
        /// Agents below this trust level may not use it.
        min_trust: u8,
        /// What it offers.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        capabilities: Vec<String>,
    },
    /// A workflow that begins.
    Workflow(String),
    /// A tool that is called.
    Tool(String),
    /// A row that changes: `kind/name`.
    Row(String),
}

/// The run, as policies see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSeen {
    /// Its id.
    pub id: String,
    /// The workflow.
    pub workflow: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Who started it.
    pub initiator: String,
    /// How many runs are above it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
}

/// The step, as policies see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSeen {
    /// Its id.
    pub id: String,
    /// `command`, `lens`, `workflow`, `approval`.
    pub kind: Cow<'static, str>,
    /// The attempt that would be made.
    pub attempt: u32,
    /// What its gateway must offer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
}

/// The inputs, as policies see them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InputsSeen {
    /// Who made them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
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

impl InputsSeen {
    fn is_default(&self) -> bool {
        *self == InputsSeen::default()
    }
}

impl Resource {
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

impl Facts<'_> {
    /// What policies see of it.
    pub fn policy_facts(&self) -> PolicyFacts {
        PolicyFacts {
            at: self.now_ms,
            verb: self.verb,
            who: principal(self),
            what: resource(self),
            run: RunSeen {
                id: self.run.id.to_owned(),
                workflow: self.run.workflow.to_owned(),
                version: self.run.version,
                initiator: self.run.initiator.to_owned(),
                depth: self.run.depth,
            },
            step: self.step.map(|step| StepSeen {
                id: step.id.to_owned(),
                kind: Cow::Borrowed(step.kind),
                attempt: step.attempt,
                capabilities: step.capabilities.to_vec(),
            }),
            inputs: InputsSeen {
                classes: self.inputs.classes.iter().map(|&class| class.to_owned()).collect(),
                untrusted: self.inputs.untrusted,
                private: self.inputs.private,
                age_s: self.inputs.age_ms.map(|age_ms| age_ms.div_ceil(1000)),
            },
            cost: match self.worst {
                Worst::Known(money) => Some(money.micro_cents()),
                Worst::Unknown => None,
            },
            posture: self.posture,
            tools: self.action.tools.to_vec(),
            short_of_money: self.short_of_money(),
        }
    }
}

fn principal(facts: &Facts<'_>) -> Principal {
    let (name, row) = match facts.subject {
        Subject::User(name) => return Principal::User { name: name.to_owned() },
        Subject::Agent(name, row) => (name, row),
    };
    Principal::Agent {
        name: name.to_owned(),
        role: facts.role.map(|(role, _)| role.to_owned()),
        trust: row.map_or(0, |agent| agent.trust_level.min(facts.trust_ceiling)),
        phase: row.map_or("sunset", |agent| agent.phase_at(facts.now_ms).as_str()).into(),
        status: row.map_or("terminated", |agent| agent.status.as_str()).into(),
        model: facts.action.model.map(str::to_owned),
        capabilities: row.map(|agent| agent.capabilities.clone()).unwrap_or_default(),
    }
}

fn resource(facts: &Facts<'_>) -> Resource {
    match facts.verb {
        Verb::DispatchStep | Verb::DeployAgent => gateway(facts.place),
        Verb::StartRun => {
            Resource::Workflow(facts.object.unwrap_or(facts.action.workflow).to_owned())
        }
        Verb::UseTool => Resource::Tool(facts.object.unwrap_or_default().to_owned()),
        Verb::ChangeConfig => Resource::Row(facts.object.unwrap_or_default().to_owned()),
    }
}

fn gateway(place: Option<Place<'_>>) -> Resource {
    let row = place.and_then(|place| place.gateway);
    Resource::Gateway {
        name: place.map(|place| place.name.to_owned()).unwrap_or_default(),
        provider: row.map(|row| row.provider.clone()).unwrap_or_default(),
        environment: row.map(|row| row.environment.clone()).unwrap_or_default(),
        min_trust: row.map_or(1, |row| row.min_trust_level),
        capabilities: row.map(|row| row.capabilities.clone()).unwrap_or_default(),
    }
}
