//! The ten gates. Each is one file and one line of the table below.

mod agent_status;
mod approval_required;
mod budget_agent;
mod budgets;
mod caps;
mod concurrency;
mod context_trust;
mod gateway_health;
mod policy_rules;
mod rate_limit;
mod trust_level;

use crate::case::Case;
use crate::decision::{Figure, Figures, GateOutcome};

/// The gates, in the order of evaluation.
pub(crate) const GATES: [Gate; 10] = [
    gateway_health::GATE,
    agent_status::GATE,
    concurrency::GATE,
    rate_limit::GATE,
    budget_agent::GATE,
    budgets::GATE,
    trust_level::GATE,
    context_trust::GATE,
    policy_rules::GATE,
    approval_required::GATE,
];

pub(crate) struct Gate {
    /// Name in every record.
    pub name: &'static str,
    /// Error code of a block.
    pub code: &'static str,
    /// How it treats agents on trial.
    pub trial: Trial,
    /// Evaluates a case.
    pub judge: fn(&mut Case<'_>) -> Finding,
}

/// How a gate treats agents on trial.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trial {
    /// Like all other agents.
    Enforced,
    /// Reports a block as a warning.
    Observed,
}

/// The finding of a gate, before it is known whether it only observes.
pub(crate) struct Finding {
    pub outcome: GateOutcome,
    pub message: Option<Box<str>>,
    pub hint: Option<Box<str>>,
    pub figures: Figures,
    pub retryable: bool,
    pub paused: bool,
}

impl Finding {
    pub(crate) fn pass() -> Finding {
        Finding::new(GateOutcome::Pass, None, None)
    }

    pub(crate) fn skip() -> Finding {
        Finding::new(GateOutcome::Skip, None, None)
    }

    pub(crate) fn warn(message: String) -> Finding {
        Finding::new(GateOutcome::Warn, Some(message.into()), None)
    }

    pub(crate) fn block(message: String, hint: String) -> Finding {
        Finding::new(GateOutcome::Block, Some(message.into()), Some(hint.into()))
    }

    pub(crate) fn hold(message: String, hint: String) -> Finding {
        Finding::new(GateOutcome::Hold, Some(message.into()), Some(hint.into()))
    }

    fn new(outcome: GateOutcome, message: Option<Box<str>>, hint: Option<Box<str>>) -> Finding {
        let figures = Figures::default();
        Finding { outcome, message, hint, figures, retryable: false, paused: false }
    }

    /// Adds the values that were compared.
    pub(crate) fn figures<const N: usize>(self, figures: [(&'static str, Figure); N]) -> Finding {
        Finding { figures: figures.into(), ..self }
    }

    /// Marks the block as retryable.
    pub(crate) fn retryable(mut self) -> Finding {
        self.retryable = true;
        self
    }

    /// Marks the block as ended only by an operator.
    pub(crate) fn paused(mut self) -> Finding {
        self.paused = true;
        self.retryable()
    }
}
