//! Gate 5: the caps of the role and of the agent's month.

use super::{Finding, Gate, Trial, caps};
use crate::case::Case;
use crate::facts::{CapGate, Subject};

pub(super) const GATE: Gate =
    Gate { name: "budget_agent", code: "budget_exceeded", trial: Trial::Observed, judge };

fn judge(case: &mut Case<'_>) -> Finding {
    match case.facts.subject {
        Subject::Agent(..) => caps::judge(case, CapGate::Agent),
        Subject::User(_) => Finding::skip(),
    }
}
