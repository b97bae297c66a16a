//! Gate 6: every budget that applies.

use super::{Finding, Gate, Trial, caps};
use crate::case::Case;
use crate::facts::CapGate;

pub(super) const GATE: Gate =
    Gate { name: "budget_envelopes", code: "budget_exceeded", trial: Trial::Observed, judge };

fn judge(case: &mut Case<'_>) -> Finding {
    caps::judge(case, CapGate::Budget)
}
