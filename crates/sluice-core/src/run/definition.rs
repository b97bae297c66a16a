//! The plan that a run executes, with the data that every run of it needs.

use crate::plan::policy::QueueOrder;
use crate::plan::step::Approval;
use crate::plan::{Member, Plan, Team};
use crate::team::{Seat, seats};

/// A plan, its hash, and the order and the assignment of its steps.
#[derive(Debug)]
pub struct Definition {
    /// The steps with every default filled in.
    pub plan: Plan,
    /// Its SHA-256, in hexadecimal.
    pub hash: String,
    /// The document that it was resolved from, as written.
    pub document: String,
    /// The rank of each step: its position in the order of dispatch.
    ranks: Vec<u32>,
    /// The steps in the order of dispatch.
    by_rank: Vec<u32>,
    /// The assignment of each step; empty without a team.
    seats: Vec<Seat>,
    /// The approval that members with `requires_approval` need.
    member_approval: Approval,
}

impl Definition {
    /// The definition of a plan that was resolved from `document`.
    pub fn new(plan: Plan, document: String) -> Definition {
        let mut by_rank: Vec<u32> = (0u32..).take(plan.steps.len()).collect();
        let seats = seats(&plan);
        let lanes = lanes(&plan, &seats);
        by_rank.sort_by(|a, b| {
            let id = |step: u32| plan.steps[step as usize].id.as_bytes();
            let lane = |step: u32| lanes.get(step as usize);
            (lane(*a), id(*a)).cmp(&(lane(*b), id(*b)))
        });
        let mut ranks = vec![0; by_rank.len()];
        for (rank, position) in (0u32..).zip(&by_rank) {
            ranks[*position as usize] = rank;
        }
        let member_approval = plan.team.as_ref().map(Team::approval).unwrap_or_default();
        Definition { hash: plan.hash(), plan, document, ranks, by_rank, seats, member_approval }
    }

    /// The rank of a step in the order of dispatch: by id, or by lane first if the team orders
    /// its queue by lane.
    pub(crate) fn rank(&self, step: u32) -> u32 {
        self.ranks[step as usize]
    }

    /// The step with a rank.
    pub(crate) fn at_rank(&self, rank: u32) -> u32 {
        self.by_rank[rank as usize]
    }

    /// The assignment of a step, as far as the plan decides it.
    pub(crate) fn seat(&self, step: u32) -> Seat {
        self.seats.get(step as usize).copied().unwrap_or(Seat::Outside)
    }

    /// The approval that a step of this member needs, if it needs one.
    pub(crate) fn approval_of_member(&self, member: &Member) -> Option<&Approval> {
        let always = self.plan.team.as_ref().is_some_and(Team::asks_always);
        (member.requires_approval || always).then_some(&self.member_approval)
    }
}

/// The lane of each step's member, if the team orders its queue by lane. Steps without a
/// member come last.
fn lanes(plan: &Plan, seats: &[Seat]) -> Vec<i64> {
    let Some(team) = plan.team.as_ref().filter(|team| team.order() == QueueOrder::Lane) else {
        return Vec::new();
    };
    let lane = |seat: &Seat| match seat {
        Seat::Member(at) => team.members[*at as usize].lane,
        Seat::Outside | Seat::Role | Seat::Unassigned => i64::MAX,
    };
    seats.iter().map(lane).collect()
}
