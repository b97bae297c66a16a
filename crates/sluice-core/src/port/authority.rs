//! The view of governance that a turn decides with: registry rows, policies and counters, as
//! this process knows them.
//!
//! Counters may be slightly out of date. Therefore every dispatch has guards: the store checks
//! the counters again in the transaction that marks the step as running.

#[cfg(test)]
pub(crate) mod fake;

use crate::port::adapter::Quote;
use crate::port::remembered_output::RememberedOutput;
use sluice_govern::account::Name;
use sluice_govern::catalog::Catalog;
use sluice_govern::policy::Policies;
use sluice_govern::registry::{Agent, Fabric, Gateway, Health, Posture};
use std::sync::Arc;

/// Registry rows, policies and counters.
pub trait Authority: Send + Sync {
    /// All registry rows.
    fn fabric(&self) -> &Fabric;

    /// The active policies.
    fn policies(&self) -> &Policies;

    /// The tools of this machine.
    fn catalog(&self) -> &Catalog {
        Catalog::empty()
    }

    /// The row of an agent. Built-in agents have one even if none is registered.
    fn agent(&self, name: &str) -> Option<&Agent>;

    /// The row of a gateway. The gateway of this process has one even if none is
    /// registered.
    fn gateway(&self, name: &str) -> Option<&Gateway>;

    /// Whether a gateway can execute steps.
    fn health(&self, gateway: &str) -> Health;

    /// Whether an agent's steps can be executed at a gateway: this process has an adapter
    /// for its provider, or the agent is built in.
    fn serves(&self, agent: &str, gateway: &str) -> bool {
        let _ = (agent, gateway);
        true
    }

    /// Whether a gateway exists without a row because every process has it.
    fn is_implied(&self, gateway: &str) -> bool {
        let _ = gateway;
        false
    }

    /// The last known value of a counter.
    fn count(&self, counter: Name<'_>) -> i64;

    /// The last known values of all counters of an account.
    fn tally(&self, account: &str) -> Tally {
        Tally {
            held: self.count(Name::held(account)),
            spent: self.count(Name::spent(account)),
            over: self.count(Name::over(account)),
            number: 0,
        }
    }

    /// The last known sum of a counter over a window.
    fn in_window(&self, counter: Name<'_>, window_ms: u64) -> i64;

    /// The remembered outputs of an agent, newest first, as this process knows them.
    fn remembered_outputs(&self, agent: &str) -> Arc<[RememberedOutput]> {
        let _ = agent;
        Arc::default()
    }

    /// The highest cost of a dispatch, as the adapter of the gateway quotes it.
    fn quote(&self, agent: &str, gateway: &str, step: &str) -> Quote;

    /// The posture that the gates apply to a run: its own. A dry run for another run uses
    /// the posture of that run.
    fn judged_by(&self, posture: Posture) -> Posture {
        posture
    }

    /// The times of reminders and of the expiry of an approval, in milliseconds after the
    /// request.
    fn patience(&self) -> &Patience;
}

/// The source of the current catalog of tools.
pub trait CatalogSource: Send + Sync {
    /// The catalog. It is the same one until a declaration or a definition changes.
    fn catalog(&self) -> Arc<Catalog>;
}

/// The counters of one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Spent and reserved money.
    pub held: i64,
    /// Spent money.
    pub spent: i64,
    /// Recorded overruns.
    pub over: i64,
    /// Process-wide id of the account; 0 means none.
    pub number: u64,
}

/// How long approvals and queued steps may wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// When approvers are reminded, and the urgency of each reminder.
    pub reminders: Vec<(u64, String)>,
    /// When an approval expires.
    pub expires_ms: u64,
    /// How long a step waits at a gate that delays it.
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
