//! Which member of the team, or which agent, executes a step of a run.

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
    /// An agent outside the team, as the step and the run name it.
    Outside,
    /// A member of the team.
    Member(&'a Member),
    /// An agent that a person assigned.
    Agent(&'a str),
    /// No member fits: the step waits until a person assigns it.
    Unassigned,
}

impl Run {
    /// The assignment of a step.
    pub(crate) fn seated(&self, step: u32) -> Seated<'_> {
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

    /// The member of the team that executes a step.
    pub(crate) fn member_of(&self, step: u32) -> Option<&Member> {
        match self.seated(step) {
            Seated::Member(member) => Some(member),
            Seated::Outside | Seated::Agent(_) | Seated::Unassigned => None,
        }
    }

    /// The agent that executes a step: the agent of its member, the agent that it names, the
    /// agent that its role is bound to, or the default agent of the run.
    pub fn agent_of(&self, step: u32) -> Option<&str> {
        let RunStarted { role_bindings, default_agent, .. } = &*self.started;
        let seated = self.seated(step);
        match self.definition.agent(step, seated, role_bindings, default_agent.as_deref()) {
            Planned::Agent(agent) => Some(agent),
            Planned::Unnamed | Planned::Unassigned => None,
        }
    }

    /// The role of a step: its own, or that of its member.
    pub(crate) fn role_of(&self, step: u32) -> Option<&str> {
        let member = || self.member_of(step).and_then(|member| member.role.as_deref());
        self.plan_role(step).or_else(member)
    }

    /// The model that a step names, or the default model of the start, or that of the
    /// document.
    pub(crate) fn model_of(&self, step: u32) -> Option<&str> {
        let plan = &self.definition.plan;
        let own = plan.steps[step as usize].model.as_deref();
        own.or(self.started.default_model.as_deref()).or(plan.default_model.as_deref())
    }

    /// The tools that a step may use: those that it requires and that its member's profile
    /// allows. A member with `requires_approval` may use any tool that its profile does not
    /// deny, because an approval precedes the step.
    pub(crate) fn tools_of(&self, step: u32) -> Vec<String> {
        let tools = &self.definition.plan.steps[step as usize].tools;
        let Some(member) = self.member_of(step) else { return tools.clone() };
        let may = |tool: &&String| {
            let denied = member.deny_tools.contains(tool);
            may_use(member, tool) || (member.requires_approval && !denied)
        };
        tools.iter().filter(may).cloned().collect()
    }

    /// The approval that a step needs, if it needs one: its own, or that of its member.
    pub(crate) fn approval_of(&self, step: u32) -> Option<&Approval> {
        let own = self.definition.plan.steps[step as usize].approval.as_deref();
        own.or_else(|| {
            let member = self.member_of(step)?;
            self.definition.approval_of_member(member)
        })
    }

    /// Whether the next attempt of a step needs an approval that was not granted yet.
    pub(crate) fn needs_approval(&self, at: StepAt) -> bool {
        let step = self.step(at);
        let requires = matches!(step.work, Work::Approval) || self.approval_of(at.step).is_some();
        // The instances of a fan-out request approvals, not the step as a whole.
        let whole_fan_out = step.for_each.is_some() && at.item.is_none();
        requires && !whole_fan_out && self.state(at).grant == Grant::None
    }

    fn plan_role(&self, step: u32) -> Option<&str> {
        self.definition.plan.steps[step as usize].role.as_deref()
    }
}

/// The agent that will execute a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planned<'a> {
    /// The agent with this name.
    Agent(&'a str),
    /// No agent is named: the run cannot start.
    Unnamed,
    /// No member fits: the step waits until a person assigns it.
    Unassigned,
}

type Bindings = BTreeMap<String, String>;

impl Definition {
    /// The agent that executes a step in a run with these bindings, unless a person assigns
    /// the step later.
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
            Seat::Role | Seat::Unassigned => Seated::Unassigned,
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
