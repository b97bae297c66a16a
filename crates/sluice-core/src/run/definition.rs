//! What a run is a run of: the plan, pinned.

use crate::plan::policy::QueueOrder;
use crate::plan::step::Approval;
use crate::plan::{Member, Plan, Team};
use crate::team::{Seat, seats};

/// A plan, its hash, and what every run of it needs to know.
#[derive(Debug)]
pub struct Definition {
    /// The plan.
    pub plan: Plan,
    /// Its SHA-256, in hexadecimal.
    pub hash: String,
    /// The document it was made from, as written.
    pub document: String,
    /// For each position, its place in the order in which steps are taken.
    ranks: Vec<u32>,
    /// The positions in that order.
    by_rank: Vec<u32>,
    /// Who does each step; empty where there is no team.
    seats: Vec<Seat>,
    /// How people are asked before a member begins.
    asked: Approval,
}

impl Definition {
    /// Of a plan made from `document`.
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
        let asked = plan.team.as_ref().map(Team::approval).unwrap_or_default();
        Definition { hash: plan.hash(), plan, document, ranks, by_rank, seats, asked }
    }

    /// The place of a step in the order in which they are taken: of ids, unless a
    /// team says otherwise.
    pub(crate) fn rank(&self, step: u32) -> u32 {
        self.ranks[step as usize]
    }

    /// The step at a place in that order.
    pub(crate) fn at_rank(&self, rank: u32) -> u32 {
        self.by_rank[rank as usize]
    }

    /// Who does a step, as far as the plan says.
    pub(crate) fn seat(&self, step: u32) -> Seat {
        self.seats.get(step as usize).copied().unwrap_or(Seat::Outside)
    }

    /// How people are asked before a member begins, if they are.
    pub(crate) fn asked_before(&self, member: &Member) -> Option<&Approval> {
        let always = self.plan.team.as_ref().is_some_and(Team::asks_always);
        (member.requires_approval || always).then_some(&self.asked)
    }
}

/// The lane of whoever does each step, where that decides who comes first. Steps
/// of nobody in the team come last.
fn lanes(plan: &Plan, seats: &[Seat]) -> Vec<i64> {
    let Some(team) = plan.team.as_ref().filter(|team| team.order() == QueueOrder::Lane) else {
        return Vec::new();
    };
    let lane = |seat: &Seat| match seat {
        Seat::Member(at) => team.members[*at as usize].lane,
        Seat::Outside | Seat::Role | Seat::Nobody => i64::MAX,
    };
    seats.iter().map(lane).collect()
}
