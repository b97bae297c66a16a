//! Who of a team does a step.
//!
//! A step goes to the first active member, by lane, then by `sort_order`, then
//! as they are written, that may use the tools it needs and supports the tier it
//! needs. A member flagged `requires_approval` may take a step whatever its
//! tools; a person is asked first. What a step says of who does it narrows the
//! choice: a role to the members of that role, an agent to the members that are
//! that agent. An agent that no member is does the step outside the team.
//!
//! INVARIANT: the choice follows from the plan alone, so that a replay, another
//! process and a person who reads the document come to the same member.

#[cfg(test)]
mod tests;

use crate::plan::step::{Step, Work};
use crate::plan::{Member, Plan, Team};

/// Who does a step, as far as the plan says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seat {
    /// Nobody of the team: there is none, it is no work for an agent, or the step
    /// names an agent that no member is.
    Outside,
    /// The member at this position.
    Member(u32),
    /// No member has the step's role: whoever the run binds it to does it, else
    /// nobody.
    Role,
    /// No member fits.
    Nobody,
}

/// Most members that a reason names.
const NAMED_MAX: usize = 5;

/// Who does each step; empty where there is no team.
pub fn seats(plan: &Plan) -> Vec<Seat> {
    let Some(team) = &plan.team else { return Vec::new() };
    let order = order(team);
    plan.steps.iter().map(|step| seat(team, &order, step)).collect()
}

/// Positions of members in the order in which they are asked.
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
    let is = |member: &Member| match (&step.agent, &step.role) {
        (Some(agent), _) => member.agent.as_ref() == Some(agent),
        (None, Some(role)) => member.role.as_ref() == Some(role),
        (None, None) => true,
    };
    let meant = order.iter().copied().filter(|at| is(&team.members[*at as usize]));
    let meant: Vec<u32> = meant.collect();
    if meant.is_empty() {
        return match (&step.agent, &step.role) {
            (Some(_), _) => Seat::Outside,
            (None, Some(_)) => Seat::Role,
            (None, None) => Seat::Nobody,
        };
    }
    let fits = |at: &&u32| unfit(&team.members[**at as usize], step).is_none();
    let active = |at: &&u32| team.members[**at as usize].is_active;
    // Named, an agent does the step if it works at all. What its profile forbids
    // is then refused by name, not handed to somebody else.
    let named = || meant.iter().find(active).filter(|_| step.agent.is_some());
    match meant.iter().find(fits).or_else(named) {
        Some(at) => Seat::Member(*at),
        None => Seat::Nobody,
    }
}

/// Why a member does not take a step; none if it does.
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

/// Whether a member's profile lets it use a tool.
pub fn may_use(member: &Member, tool: &str) -> bool {
    let names = |list: &[String]| list.iter().any(|one| one == tool);
    names(&member.allow_tools) && !names(&member.deny_tools)
}

/// Why no member takes a step, for people.
pub fn why_nobody(team: &Team, step: &Step) -> String {
    let role = step.role.as_deref().filter(|_| step.agent.is_none());
    let meant = order(team).into_iter().map(|at| &team.members[at as usize]);
    let meant = meant.filter(|member| match (&step.agent, role) {
        (Some(agent), _) => member.agent.as_ref() == Some(agent),
        (None, Some(role)) => member.role.as_deref() == Some(role),
        (None, None) => true,
    });
    let told: Vec<String> = meant
        .filter_map(|member| Some(format!("{} {}", member.id, unfit(member, step)?)))
        .collect();
    if told.is_empty() {
        return match role {
            Some(role) => format!("no member of the team has the role `{role}`"),
            None => "the team has no members".to_owned(),
        };
    }
    let shown = told[..told.len().min(NAMED_MAX)].join("; ");
    match told.len().saturating_sub(NAMED_MAX) {
        0 => format!("no member fits: {shown}"),
        more => format!("no member fits: {shown}; and {more} more"),
    }
}
