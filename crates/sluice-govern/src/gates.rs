//! The ten gates. Each is a file with one row of the table below; an eleventh is
//! one more file and one more line.

mod agent_status;
mod approval_required;
mod budget_agent;
mod budget_envelopes;
mod caps;
mod concurrency;
mod context_trust;
mod gateway_health;
mod policy_rules;
mod rate_limit;
mod trust_level;

use crate::case::Case;
use crate::decision::{Figure, Figures, Outcome};

/// The gates, in the order in which they are asked.
pub(crate) const GATES: [Gate; 10] = [
    gateway_health::GATE,
    agent_status::GATE,
    concurrency::GATE,
    rate_limit::GATE,
    budget_agent::GATE,
    budget_envelopes::GATE,
    trust_level::GATE,
    context_trust::GATE,
    policy_rules::GATE,
    approval_required::GATE,
];

/// One gate.
pub(crate) struct Gate {
    /// Its name in every record.
    pub name: &'static str,
    /// The code of its trouble.
    pub code: &'static str,
    /// What it does to agents on trial.
    pub trial: Trial,
    /// What it says of a case.
    pub judge: fn(&mut Case<'_>) -> Finding,
}

/// What a gate does to agents on trial.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trial {
    /// The same as to all.
    Enforced,
    /// It says what it would have done.
    Observed,
}

/// What a gate found, before it is known whether it only observes.
pub(crate) struct Finding {
    pub outcome: Outcome,
    pub message: Option<Box<str>>,
    pub hint: Option<Box<str>>,
    pub figures: Figures,
    pub retryable: bool,
    pub paused: bool,
}

impl Finding {
    pub(crate) fn pass() -> Finding {
        Finding::new(Outcome::Pass, None, None)
    }

    pub(crate) fn skip() -> Finding {
        Finding::new(Outcome::Skip, None, None)
    }

    pub(crate) fn warn(message: String) -> Finding {
        Finding::new(Outcome::Warn, Some(message.into()), None)
    }

    pub(crate) fn block(message: String, hint: String) -> Finding {
        Finding::new(Outcome::Block, Some(message.into()), Some(hint.into()))
    }

    pub(crate) fn hold(message: String, hint: String) -> Finding {
        Finding::new(Outcome::Hold, Some(message.into()), Some(hint.into()))
    }

    fn new(outcome: Outcome, message: Option<Box<str>>, hint: Option<Box<str>>) -> Finding {
        let figures = Figures::default();
        Finding { outcome, message, hint, figures, retryable: false, paused: false }
    }

    /// With what was compared, all of it.
    pub(crate) fn figures<const N: usize>(self, figures: [(&'static str, Figure); N]) -> Finding {
        Finding { figures: figures.into(), ..self }
    }

    /// Worth trying again.
    pub(crate) fn retryable(mut self) -> Finding {
        self.retryable = true;
        self
    }

    /// Over when an operator ends it.
    pub(crate) fn paused(mut self) -> Finding {
        self.paused = true;
        self.retryable()
    }
}
