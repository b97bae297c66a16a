//! Assignments of steps that no member of the team fits.

use crate::journal::event::{Assigned, Assignee, StepAt, StepEvent};
use crate::rows::ALWAYS_THERE;
use crate::run::command::Refusal;
use crate::run::decide::draft::Draft;
use crate::run::decide::draft::pause::resume_after_people;
use crate::status::StepStatus;

/// Assigns a member or an agent to a step, with every instance that waits.
pub(crate) fn assign(
    draft: &mut Draft<'_>,
    by: &str,
    step: u32,
    whom: &str,
) -> Result<(), Refusal> {
    if draft.run.status.is_terminal() {
        return Err(Refusal::Ended(draft.run.status));
    }
    let blocked = draft.run.index.blocked.iter().copied().filter(|at| at.step == step);
    let blocked: Vec<StepAt> = blocked.collect();
    if blocked.is_empty() {
        let id = draft.run.definition.plan.steps.get(step as usize).map(|step| &step.id);
        return Err(Refusal::NotBlocked(id.cloned().unwrap_or_default()));
    }
    let team = draft.run.definition.plan.team.as_ref();
    let members = team.map(|team| team.members.as_slice()).unwrap_or_default();
    let whom = if members.iter().any(|member| member.id == whom) {
        Assignee::Member(whom.to_owned())
    } else if ALWAYS_THERE.contains(&whom) || draft.given.authority.agent(whom).is_some() {
        Assignee::Agent(whom.to_owned())
    } else {
        return Err(Refusal::NoMember(whom.to_owned()));
    };
    resume_after_people(draft);
    for at in blocked {
        debug_assert_eq!(draft.run.state(at).status(), StepStatus::Blocked);
        let assigned = Assigned { assignee: whom.clone(), by: Some(by.to_owned()) };
        draft.record(at, StepEvent::Assigned(Box::new(assigned)));
    }
    Ok(())
}
