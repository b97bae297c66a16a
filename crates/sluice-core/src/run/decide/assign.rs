//! Steps that no member of the team fits: they wait until somebody is chosen.

use super::Turn;
use crate::code::Code;
use crate::journal::event::{Assigned, Assignee, StepAt, StepEvent};
use crate::rows::ALWAYS_THERE;
use crate::run::command::Refusal;
use crate::status::StepStatus;
use crate::team::why_nobody;

impl Turn<'_> {
    /// Nobody does the step as it is: the run's owner has to say who does.
    pub(super) fn wait_for_somebody(&mut self, at: StepAt) {
        let plan = &self.run.definition.plan;
        let step = &plan.steps[at.step as usize];
        let message = plan.team.as_ref().map(|team| why_nobody(team, step)).unwrap_or_default();
        let code = Code::NoMemberFits.to_string();
        self.node(at, StepEvent::Blocked { code, message, placeholder: None, waits: true });
    }

    /// Somebody is chosen for a step, and for every instance of it that waits.
    pub(super) fn assign(&mut self, by: &str, step: u32, whom: &str) -> Result<(), Refusal> {
        if self.run.status.is_terminal() {
            return Err(Refusal::Ended(self.run.status));
        }
        let blocked = self.run.index.blocked.iter().copied().filter(|at| at.step == step);
        let blocked: Vec<StepAt> = blocked.collect();
        if blocked.is_empty() {
            let id = self.run.definition.plan.steps.get(step as usize).map(|step| &step.id);
            return Err(Refusal::NotBlocked(id.cloned().unwrap_or_default()));
        }
        let team = self.run.definition.plan.team.as_ref();
        let members = team.map(|team| team.members.as_slice()).unwrap_or_default();
        let whom = if members.iter().any(|member| member.id == whom) {
            Assignee::Member(whom.to_owned())
        } else if ALWAYS_THERE.contains(&whom) || self.given.authority.agent(whom).is_some() {
            Assignee::Agent(whom.to_owned())
        } else {
            return Err(Refusal::NoMember(whom.to_owned()));
        };
        self.go_on_after_people();
        for at in blocked {
            debug_assert_eq!(self.run.state(at).status(), StepStatus::Blocked);
            let assigned = Assigned { assignee: whom.clone(), by: Some(by.to_owned()) };
            self.node(at, StepEvent::Assigned(Box::new(assigned)));
        }
        Ok(())
    }
}
