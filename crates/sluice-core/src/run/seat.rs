//! Who does a step of a run: a member of its team, an agent, or nobody yet.

use super::definition::Definition;
use super::state::{Grant, Run};
use crate::journal::event::{Assignee, RunStarted, StepAt};
use crate::plan::Member;
use crate::plan::step::{Approval, Work};
use crate::team::{Seat, may_use};
use std::collections::BTreeMap;

/// The built-in agent that executes shell scripts.
pub(crate) const SHELL: &str = "shell";

/// Who does a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Seated<'a> {
    /// An agent that is no member: as the step and the run say.
    Outside,
    /// A member of the team.
    Member(&'a Member),
    /// An agent that somebody chose.
    Agent(&'a str),
    /// No member, until an operator assigns one.
    Unassigned,
}

impl Run {
    /// Who does a step.
    pub fn seated(&self, step: u32) -> Seated<'_> {
        let Some(team) = &self.definition.plan.team else { return Seated::Outside };
        let member = |id: &str| team.members.iter().find(|member| member.id == id);
        match &self.steps[step as usize].assigned {
            Some(Assignee::Agent(agent)) => return Seated::Agent(agent),
            Some(Assignee::Member(id)) => {
                return member(id).map_or(Seated::Unassigned, Seated::Member);
            }
            None => {}
        }
        self.definition.seated(step, &self.started.role_bindings)
    }

    /// The member of the team that does a step.
    pub fn member_of(&self, step: u32) -> Option<&Member> {
        match self.seated(step) {
            Seated::Member(member) => Some(member),
            Seated::Outside | Seated::Agent(_) | Seated::Unassigned => None,
        }
    }

    /// Who does a step: the agent of its member, the agent it names, the one its
    /// role is bound to, else the run's.
    pub fn agent_of(&self, step: u32) -> Option<&str> {
        let RunStarted { role_bindings, default_agent, .. } = &*self.started;
        let seated = self.seated(step);
        match self.definition.agent(step, seated, role_bindings, default_agent.as_deref()) {
            Planned::Agent(agent) => Some(agent),
            Planned::Unnamed | Planned::Unassigned => None,
        }
    }

    /// The role a step is done in: its own, else that of its member.
    pub fn role_of(&self, step: u32) -> Option<&str> {
        let member = || self.member_of(step).and_then(|member| member.role.as_deref());
        self.plan_role(step).or_else(member)
    }

    /// The model a step names, else the caller's, else the document's.
    pub fn model_of(&self, step: u32) -> Option<&str> {
        let plan = &self.definition.plan;
        let own = plan.steps[step as usize].model.as_deref();
        own.or(self.started.default_model.as_deref()).or(plan.default_model.as_deref())
    }

    /// The tools a step is given: those it needs, as far as whoever does it may use
    /// them. A flagged member may use what a person has agreed to; nothing lifts
    /// what a profile denies.
    pub fn tools_of(&self, step: u32) -> Vec<String> {
        let tools = &self.definition.plan.steps[step as usize].tools;
        let Some(member) = self.member_of(step) else { return tools.clone() };
        let may = |tool: &&String| {
            let denied = member.deny_tools.contains(tool);
            may_use(member, tool) || (member.requires_approval && !denied)
        };
        tools.iter().filter(may).cloned().collect()
    }

    /// How people are asked before a step begins, if they are: as it says itself,
    /// else as its member's team does.
    pub fn approval_of(&self, step: u32) -> Option<&Approval> {
        let own = self.definition.plan.steps[step as usize].approval.as_deref();
        own.or_else(|| {
            let member = self.member_of(step)?;
            self.definition.asked_before(member)
        })
    }

    /// Whether a person must be asked before the step's next attempt.
    pub(crate) fn must_ask(&self, at: StepAt) -> bool {
        let step = self.step(at);
        let asks = matches!(step.work, Work::Approval) || self.approval_of(at.step).is_some();
        // A fan-out as a whole asks nobody: its instances do.
        let whole_fan_out = step.for_each.is_some() && at.item.is_none();
        asks && !whole_fan_out && self.state(at).grant == Grant::None
    }

    fn plan_role(&self, step: u32) -> Option<&str> {
        self.definition.plan.steps[step as usize].role.as_deref()
    }
}

/// Which agent does a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planned<'a> {
    /// This one.
    Agent(&'a str),
    /// Nothing names one: the run cannot begin.
    Unnamed,
    /// No member fits: the step waits until an operator assigns one.
    Unassigned,
}

type Bindings = BTreeMap<String, String>;

impl Definition {
    /// Which agent does a step of a run with these bindings, unless an operator
    /// assigns one later.
    pub fn planned<'a>(
        &'a self,
        step: u32,
        bindings: &'a Bindings,
        default: Option<&'a str>,
    ) -> Planned<'a> {
        self.agent(step, self.seated(step, bindings), bindings, default)
    }

    fn seated(&self, step: u32, bindings: &Bindings) -> Seated<'_> {
        let Some(team) = &self.plan.team else { return Seated::Outside };
        let role = self.plan.steps[step as usize].role.as_ref();
        match self.seat(step) {
            Seat::Outside => Seated::Outside,
            Seat::Member(at) => Seated::Member(&team.members[at as usize]),
            Seat::Role if role.is_some_and(|role| bindings.contains_key(role)) => Seated::Outside,
            Seat::Role | Seat::Nobody => Seated::Unassigned,
        }
    }

    fn agent<'a>(
        &'a self,
        step: u32,
        seated: Seated<'a>,
        bindings: &'a Bindings,
        default: Option<&'a str>,
    ) -> Planned<'a> {
        let plan = &self.plan.steps[step as usize];
        let (agent, role) = match seated {
            Seated::Unassigned => return Planned::Unassigned,
            Seated::Agent(agent) => return Planned::Agent(agent),
            Seated::Member(member) => (&member.agent, &member.role),
            Seated::Outside => (&plan.agent, &plan.role),
        };
        let bound = || bindings.get(role.as_ref()?).map(String::as_str);
        let agent = agent.as_deref().or_else(bound).or(default);
        agent.map_or(Planned::Unnamed, Planned::Agent)
    }
}
