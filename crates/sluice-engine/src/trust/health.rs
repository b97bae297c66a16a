//! Health of gateways as seen by this node.

use super::lock;
use sluice_govern::registry::Health;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

/// Failed checks in a row before a gateway is offline.
const MISSES_MAX: u32 = 3;
/// How long a gateway's own report is valid.
const REPORT_VALID_MS: u64 = 45_000;
/// Most changes kept in the history of a gateway.
const HISTORY_MAX: usize = 100;

/// Results of health checks, by gateway.
#[derive(Default)]
pub(super) struct GatewayHealth {
    gateways: Mutex<BTreeMap<String, HealthRecord>>,
}

#[derive(Debug, Clone, Default)]
struct HealthRecord {
    health: Health,
    misses: u32,
    /// Whether it has ever answered a check.
    answered: bool,
    history: VecDeque<(u64, Health)>,
    /// Last report of the gateway itself, and its time.
    reported: Option<(u64, Health)>,
}

impl GatewayHealth {
    /// Health of a gateway; healthy until it was checked.
    pub(super) fn health(&self, gateway: &str) -> Health {
        lock(&self.gateways).get(gateway).map_or(Health::Healthy, |record| record.health)
    }

    /// Whether a gateway was checked since its row was registered or changed.
    pub(super) fn is_checked(&self, gateway: &str) -> bool {
        let gateways = lock(&self.gateways);
        gateways.get(gateway).is_some_and(|record| record.answered || record.misses > 0)
    }

    /// Records the result of a check, `None` if there was no answer. Returns the old and
    /// the new health if they differ.
    pub(super) fn record(
        &self,
        gateway: &str,
        found: Option<Health>,
        at_ms: u64,
    ) -> Option<(Health, Health)> {
        let mut gateways = lock(&self.gateways);
        let record = gateways.entry(gateway.to_owned()).or_default();
        let health = match found {
            Some(health) => {
                record.misses = 0;
                record.answered = true;
                health
            }
            None => {
                record.misses = record.misses.saturating_add(1);
                match record.health {
                    _ if record.misses >= MISSES_MAX => Health::Offline,
                    // It has never answered, so it is not known to be healthy.
                    Health::Healthy if !record.answered => Health::Degraded,
                    health => health,
                }
            }
        };
        let before = std::mem::replace(&mut record.health, health);
        if before == health {
            return None;
        }
        if record.history.len() >= HISTORY_MAX {
            record.history.pop_front();
        }
        record.history.push_back((at_ms, health));
        Some((before, health))
    }

    /// Resets gateways whose rows have changed.
    pub(super) fn forget(&self, changed: &[String]) {
        let mut gateways = lock(&self.gateways);
        for gateway in changed {
            if let Some(record) = gateways.get_mut(gateway) {
                record.answered = false;
                record.misses = 0;
            }
        }
    }

    /// Records a gateway's own report.
    pub(super) fn report(&self, gateway: &str, health: Health, at_ms: u64) {
        lock(&self.gateways).entry(gateway.to_owned()).or_default().reported =
            Some((at_ms, health));
    }

    /// A gateway's own report, while it is valid.
    pub(super) fn reported(&self, gateway: &str, now_ms: u64) -> Option<Health> {
        let (at_ms, health) = lock(&self.gateways).get(gateway)?.reported?;
        (now_ms.abs_diff(at_ms) <= REPORT_VALID_MS).then_some(health)
    }

    /// Whether a gateway missed checks but is not offline yet.
    pub(super) fn is_doubtful(&self) -> bool {
        lock(&self.gateways).values().any(|record| (1..MISSES_MAX).contains(&record.misses))
    }

    /// Failed checks in a row.
    pub(super) fn misses(&self, gateway: &str) -> u32 {
        lock(&self.gateways).get(gateway).map_or(0, |record| record.misses)
    }

    /// Last changes of a gateway's health, oldest first.
    pub(super) fn history(&self, gateway: &str) -> Vec<(u64, Health)> {
        lock(&self.gateways)
            .get(gateway)
            .map_or_else(Vec::new, |record| record.history.iter().copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_misses_make_a_gateway_offline_and_one_answer_brings_it_back() {
        let health = GatewayHealth::default();
        assert_eq!(health.record("g", Some(Health::Healthy), 0), None);
        assert_eq!(health.health("g"), Health::Healthy);
        assert_eq!(health.record("g", None, 1), None);
        assert_eq!(health.record("g", None, 2), None);
        assert_eq!(health.misses("g"), 2);
        assert_eq!(health.record("g", None, 3), Some((Health::Healthy, Health::Offline)));
        assert_eq!(health.record("g", None, 4), None);
        assert_eq!(
            health.record("g", Some(Health::Degraded), 5),
            Some((Health::Offline, Health::Degraded))
        );
        assert_eq!(health.history("g"), [(3, Health::Offline), (5, Health::Degraded)]);
    }

    #[test]
    fn a_gateway_that_never_answered_is_not_healthy_after_the_first_miss() {
        let health = GatewayHealth::default();
        assert_eq!(health.record("g", None, 1), Some((Health::Healthy, Health::Degraded)));
        assert!(health.is_doubtful());
        assert_eq!(health.record("g", None, 2), None);
        assert_eq!(health.record("g", None, 3), Some((Health::Degraded, Health::Offline)));
        assert!(!health.is_doubtful());
        assert_eq!(
            health.record("g", Some(Health::Healthy), 4),
            Some((Health::Offline, Health::Healthy))
        );
        assert_eq!(health.record("g", None, 5), None);
        // A changed gateway has to answer again.
        health.forget(&["g".to_owned(), "other".to_owned()]);
        assert_eq!(health.health("g"), Health::Healthy);
        assert_eq!(health.record("g", None, 6), Some((Health::Healthy, Health::Degraded)));
    }

    #[test]
    fn a_report_of_a_gateway_is_valid_for_a_while() {
        let health = GatewayHealth::default();
        assert_eq!(health.reported("g", 5), None);
        health.report("g", Health::Degraded, 10);
        assert_eq!(health.reported("g", 10 + REPORT_VALID_MS), Some(Health::Degraded));
        assert_eq!(health.reported("g", 11 + REPORT_VALID_MS), None);
    }

    #[test]
    fn an_answer_of_offline_takes_effect_at_once() {
        let health = GatewayHealth::default();
        assert_eq!(
            health.record("g", Some(Health::Offline), 1),
            Some((Health::Healthy, Health::Offline))
        );
    }
}
