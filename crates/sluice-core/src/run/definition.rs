//! What a run is a run of: the plan, pinned.

use crate::plan::Plan;

/// A plan, its hash, and what every run of it needs to know.
#[derive(Debug)]
pub struct Definition {
    /// The plan.
    pub plan: Plan,
    /// Its SHA-256, in hexadecimal.
    pub hash: String,
    /// The document it was made from, as written.
    pub document: String,
    /// For each position, its place in the order of ids.
    ranks: Vec<u32>,
    /// The positions in the order of their ids.
    by_rank: Vec<u32>,
}

impl Definition {
    /// Of a plan made from `document`.
    pub fn new(plan: Plan, document: String) -> Definition {
        let mut by_rank: Vec<u32> = (0u32..).take(plan.steps.len()).collect();
        by_rank.sort_by(|a, b| {
            plan.steps[*a as usize].id.as_bytes().cmp(plan.steps[*b as usize].id.as_bytes())
        });
        let mut ranks = vec![0; by_rank.len()];
        for (rank, position) in (0u32..).zip(&by_rank) {
            ranks[*position as usize] = rank;
        }
        Definition { hash: plan.hash(), plan, document, ranks, by_rank }
    }

    /// The place of a step in the order of ids.
    pub(crate) fn rank(&self, step: u32) -> u32 {
        self.ranks[step as usize]
    }

    /// The step at a place in the order of ids.
    pub(crate) fn at_rank(&self, rank: u32) -> u32 {
        self.by_rank[rank as usize]
    }
}
