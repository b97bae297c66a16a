//! What a turn is told of governance: rows, rules and counters, as this process
//! knows them.
//!
//! What it says of counters may be a moment old. That is why every dispatch
//! carries guards: the store looks again, in the transaction that marks the step
//! running.

#[cfg(test)]
pub(crate) mod fake;

use crate::port::adapter::Quote;
use crate::port::memo::Memo;
use sluice_govern::account::Name;
use sluice_govern::policy::Policies;
use sluice_govern::registry::{Agent, Fabric, Gateway, Health, Posture};
use std::sync::Arc;

/// Rows, rules and counters.
pub trait Authority: Send + Sync {
    /// Everything that is set up.
    fn fabric(&self) -> &Fabric;

    /// The rules in force.
    fn policies(&self) -> &Policies;

    /// An agent's row. Agents that every setup has are there without one.
    fn agent(&self, name: &str) -> Option<&Agent>;

    /// A gateway's row. The gateway of this process is there without one.
    fn gateway(&self, name: &str) -> Option<&Gateway>;

    /// Whether a gateway can do work.
    fn health(&self, gateway: &str) -> Health;

    /// Whether something at a gateway can do the work of an agent: its provider is
    /// spoken to from here, or the agent is of this process.
    fn serves(&self, agent: &str, gateway: &str) -> bool {
        let _ = (agent, gateway);
        true
    }

    /// Whether a gateway is only there because every process has it, without a row.
    fn is_implied(&self, gateway: &str) -> bool {
        let _ = gateway;
        false
    }

    /// What a counter was when this process last heard of it.
    fn count(&self, counter: Name<'_>) -> i64;

    /// What was in an account: all of its counters at once.
    fn tally(&self, account: &str) -> Tally {
        Tally {
            held: self.count(Name::held(account)),
            spent: self.count(Name::spent(account)),
            over: self.count(Name::over(account)),
            number: 0,
        }
    }

    /// The sum of a counter over a window, as this process last heard of it.
    fn in_window(&self, counter: Name<'_>, window_ms: u64) -> i64;

    /// What an agent answered last, newest first, as this process knows it.
    fn memos(&self, agent: &str) -> Arc<[Memo]> {
        let _ = agent;
        Arc::default()
    }

    /// What whoever does the work itself says a dispatch costs at most.
    fn quote(&self, agent: &str, gateway: &str, step: &str) -> Quote;

    /// The freedom that the gates judge a run by: its own. A run that only looks on
    /// behalf of another is judged by the other's.
    fn judged_by(&self, posture: Posture) -> Posture {
        posture
    }

    /// An answer that is given without asking the gates: a yardstick for what
    /// asking them costs.
    #[cfg(feature = "sabotage")]
    fn unasked(&self) -> Option<&Unasked> {
        None
    }

    /// When people are reminded of a question, how urgent it is by then, and
    /// when it expires: each in milliseconds after it was asked.
    fn patience(&self) -> &Patience;
}

/// The counters of one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// What is spent and reserved.
    pub held: i64,
    /// What is spent.
    pub spent: i64,
    /// Overruns booked.
    pub over: i64,
    /// Stands for the account and no other; 0 if no number does.
    pub number: u64,
}

/// What is written down of a dispatch that nobody was asked about.
#[cfg(feature = "sabotage")]
#[derive(Debug, Clone, PartialEq)]
pub enum Unasked {
    /// This decision, whatever the step; everything else is as it would be.
    Noted(Box<sluice_govern::decision::Decision>, super::decision_record::Record),
    /// Nothing.
    Silent,
}

/// How long people are given to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// When they are reminded, and how urgent it is by then.
    pub reminders: Vec<(u64, String)>,
    /// When the question expires.
    pub expires_ms: u64,
    /// How long a step waits at a gate that says: not now.
    pub queue_ms: u64,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            reminders: default_reminders(0),
            expires_ms: crate::limits::APPROVAL_MS_DEFAULT,
            queue_ms: crate::limits::QUEUE_MS_DEFAULT,
        }
    }
}

/// Default delays after which approvers are reminded, with the urgency of each reminder.
const REMINDERS: [(u64, &str); 3] =
    [(3_600_000, "normal"), (24 * 3_600_000, "elevated"), (72 * 3_600_000, "critical")];

/// Times of the default reminders of an approval requested at `requested_at_ms`.
pub(crate) fn default_reminders(requested_at_ms: u64) -> Vec<(u64, String)> {
    let at = |(after_ms, level): &(u64, &str)| {
        (requested_at_ms.saturating_add(*after_ms), (*level).to_owned())
    };
    REMINDERS.iter().map(at).collect()
}
