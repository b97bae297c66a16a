//! Assigns the steps of a plan to the members of its team.
//!
//! A step goes to the first active member, by lane, then by `sort_order`, then in document
//! order, that may use the required tools and supports the required model tier. A member with
//! `requires_approval` may execute a step whatever its tools, after an approval. The step
//! itself can narrow the choice: a role to the members with that role, an agent to the members
//! with that agent. An agent that is not a member executes the step outside the team.
//!
//! INVARIANT: the assignment follows from the plan alone, so a replay, another process and a
//! reader of the document find the same member.

#[cfg(test)]
mod tests;

use crate::plan::step::{Step, Work};
use crate::plan::{Member, Plan, Team};

/// The assignment of a step, as far as the plan decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seat {
    /// No member: there is no team, the step is not for an agent, or it names an agent
    /// outside the team.
    Outside,
    /// The member at this position.
    Member(u32),
    /// No member has the step's role: the agent that the run binds to the role executes it,
    /// if there is one.
    Role,
    /// No member fits.
    Unassigned,
}

/// The maximum number of members in a reason.
const NAMED_MAX: usize = 5;

/// The assignment of each step; empty without a team.
pub(crate) fn seats(plan: &Plan) -> Vec<Seat> {
    let Some(team) = &plan.team else { return Vec::new() };
    let order = order(team);
    plan.steps.iter().map(|step| seat(team, &order, step)).collect()
}

/// Positions of members in the order of preference.
fn order(team: &Team) -> Vec<u32> {
    let mut order: Vec<u32> = (0u32..).take(team.members.len()).collect();
    order.sort_by_key(|at| {
        let member = &team.members[*at as usize];
        (member.lane, member.sort_order, *at)
    });
    order
}

fn seat(team: &Team, order: &[u32], step: &Step) -> Seat {
    if !matches!(step.work, Work::Command { .. } | Work::Lens(_)) {
        return Seat::Outside;
    }
    let matches = |member: &Member| match (&step.agent, &step.role) {
        (Some(agent), _) => member.agent.as_ref() == Some(agent),
        (None, Some(role)) => member.role.as_ref() == Some(role),
        (None, None) => true,
    };
    let candidates = order.iter().copied().filter(|at| matches(&team.members[*at as usize]));
    let candidates: Vec<u32> = candidates.collect();
    if candidates.is_empty() {
        return match (&step.agent, &step.role) {
            (Some(_), _) => Seat::Outside,
            (None, Some(_)) => Seat::Role,
            (None, None) => Seat::Unassigned,
        };
    }
    let fits = |at: &&u32| unfit(&team.members[**at as usize], step).is_none();
    let active = |at: &&u32| team.members[**at as usize].is_active;
    // A named agent executes the step if it is active. What its profile forbids is then
    // rejected by name, instead of moving the step to another member.
    let named = || candidates.iter().find(active).filter(|_| step.agent.is_some());
    match candidates.iter().find(fits).or_else(named) {
        Some(at) => Seat::Member(*at),
        None => Seat::Unassigned,
    }
}

/// Why a member cannot execute a step; `None` if it can.
fn unfit(member: &Member, step: &Step) -> Option<String> {
    if !member.is_active {
        return Some("is not active".to_owned());
    }
    let lacks = step.tools.iter().filter(|tool| !may_use(member, tool));
    let lacks: Vec<String> = lacks.map(|tool| format!("`{tool}`")).collect();
    if !lacks.is_empty() && !member.requires_approval {
        return Some(format!("may not use {}", lacks.join(", ")));
    }
    match (&step.required_tier, &member.support_level) {
        (Some(tier), Some(level)) if tier != level => Some(format!("supports {level}, not {tier}")),
        (Some(tier), None) => Some(format!("supports no tier, not {tier}")),
        _ => None,
    }
}

/// Whether a member's profile allows a tool.
pub(crate) fn may_use(member: &Member, tool: &str) -> bool {
    let names = |list: &[String]| list.iter().any(|one| one == tool);
    names(&member.allow_tools) && !names(&member.deny_tools)
}

/// Why no member can execute a step, for people.
pub(crate) fn why_unassigned(team: &Team, step: &Step) -> String {
    let role = step.role.as_deref().filter(|_| step.agent.is_none());
    let members = order(team).into_iter().map(|at| &team.members[at as usize]);
    let candidates = members.filter(|member| match (&step.agent, role) {
        (Some(agent), _) => member.agent.as_ref() == Some(agent),
        (None, Some(role)) => member.role.as_deref() == Some(role),
        (None, None) => true,
    });
    let reasons: Vec<String> = candidates
        .filter_map(|member| Some(format!("{} {}", member.id, unfit(member, step)?)))
        .collect();
    if reasons.is_empty() {
        return match role {
            Some(role) => format!("no member of the team has the role `{role}`"),
            None => "the team has no members".to_owned(),
        };
    }
    let shown = reasons[..reasons.len().min(NAMED_MAX)].join("; ");
    match reasons.len().saturating_sub(NAMED_MAX) {
        0 => format!("no member fits: {shown}"),
        more => format!("no member fits: {shown}; and {more} more"),
    }
}
