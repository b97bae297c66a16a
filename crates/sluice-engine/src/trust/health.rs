//! Whether gateways can do work, as far as this process can tell.

use super::held;
use sluice_govern::registry::Health;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

/// Checks that must fail one after the other before a gateway counts as offline.
const MISSES_MAX: u32 = 3;
/// How long what a gateway says of itself counts.
const HEARD_MS: u64 = 45_000;
/// Most changes that are remembered of a gateway.
const HISTORY_MAX: usize = 100;

/// What was found out about gateways.
#[derive(Default)]
pub(super) struct Pulse {
    gateways: Mutex<BTreeMap<String, Beat>>,
}

#[derive(Debug, Clone, Default)]
struct Beat {
    health: Health,
    misses: u32,
    /// Whether it ever answered a check.
    answered: bool,
    history: VecDeque<(u64, Health)>,
    /// When it last said itself how it is, and what it said.
    heard: Option<(u64, Health)>,
}

impl Pulse {
    /// Whether a gateway can do work; one nobody has looked at can.
    pub(super) fn health(&self, gateway: &str) -> Health {
        held(&self.gateways).get(gateway).map_or(Health::Healthy, |beat| beat.health)
    }

    /// Notes what a check found: none if it got no answer. What changed, if
    /// anything did: from what to what.
    pub(super) fn note(
        &self,
        gateway: &str,
        found: Option<Health>,
        at_ms: u64,
    ) -> Option<(Health, Health)> {
        let mut gateways = held(&self.gateways);
        let beat = gateways.entry(gateway.to_owned()).or_default();
        let health = match found {
            Some(health) => {
                beat.misses = 0;
                beat.answered = true;
                health
            }
            None => {
                beat.misses = beat.misses.saturating_add(1);
                match beat.health {
                    _ if beat.misses >= MISSES_MAX => Health::Offline,
                    // Nothing has shown yet that it is there.
                    Health::Healthy if !beat.answered => Health::Degraded,
                    health => health,
                }
            }
        };
        let before = std::mem::replace(&mut beat.health, health);
        if before == health {
            return None;
        }
        if beat.history.len() >= HISTORY_MAX {
            beat.history.pop_front();
        }
        beat.history.push_back((at_ms, health));
        Some((before, health))
    }

    /// Forgets what was found out about gateways that are others now, or gone.
    pub(super) fn forget(&self, changed: &[String]) {
        let mut gateways = held(&self.gateways);
        for gateway in changed {
            if let Some(beat) = gateways.get_mut(gateway) {
                beat.answered = false;
                beat.misses = 0;
            }
        }
    }

    /// Notes what a gateway says of itself.
    pub(super) fn hear(&self, gateway: &str, health: Health, at_ms: u64) {
        held(&self.gateways).entry(gateway.to_owned()).or_default().heard = Some((at_ms, health));
    }

    /// What a gateway said of itself lately.
    pub(super) fn heard(&self, gateway: &str, now_ms: u64) -> Option<Health> {
        let (at_ms, health) = held(&self.gateways).get(gateway)?.heard?;
        (now_ms.abs_diff(at_ms) <= HEARD_MS).then_some(health)
    }

    /// Whether a gateway did not answer lately, and is not offline yet.
    pub(super) fn is_doubtful(&self) -> bool {
        held(&self.gateways).values().any(|beat| (1..MISSES_MAX).contains(&beat.misses))
    }

    /// How many checks in a row got no answer.
    pub(super) fn misses(&self, gateway: &str) -> u32 {
        held(&self.gateways).get(gateway).map_or(0, |beat| beat.misses)
    }

    /// The last changes of a gateway's health, oldest first.
    pub(super) fn history(&self, gateway: &str) -> Vec<(u64, Health)> {
        held(&self.gateways)
            .get(gateway)
            .map_or_else(Vec::new, |beat| beat.history.iter().copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_misses_make_a_gateway_offline_and_one_answer_brings_it_back() {
        let pulse = Pulse::default();
        assert_eq!(pulse.note("g", Some(Health::Healthy), 0), None);
        assert_eq!(pulse.health("g"), Health::Healthy);
        assert_eq!(pulse.note("g", None, 1), None);
        assert_eq!(pulse.note("g", None, 2), None);
        assert_eq!(pulse.misses("g"), 2);
        assert_eq!(pulse.note("g", None, 3), Some((Health::Healthy, Health::Offline)));
        assert_eq!(pulse.note("g", None, 4), None);
        assert_eq!(
            pulse.note("g", Some(Health::Degraded), 5),
            Some((Health::Offline, Health::Degraded))
        );
        assert_eq!(pulse.history("g"), [(3, Health::Offline), (5, Health::Degraded)]);
    }

    #[test]
    fn a_gateway_that_never_answered_is_not_healthy_after_the_first_miss() {
        let pulse = Pulse::default();
        assert_eq!(pulse.note("g", None, 1), Some((Health::Healthy, Health::Degraded)));
        assert!(pulse.is_doubtful());
        assert_eq!(pulse.note("g", None, 2), None);
        assert_eq!(pulse.note("g", None, 3), Some((Health::Degraded, Health::Offline)));
        assert!(!pulse.is_doubtful());
        assert_eq!(
            pulse.note("g", Some(Health::Healthy), 4),
            Some((Health::Offline, Health::Healthy))
        );
        assert_eq!(pulse.note("g", None, 5), None);
        // One that is another now has to show again that it is there.
        pulse.forget(&["g".to_owned(), "other".to_owned()]);
        assert_eq!(pulse.health("g"), Health::Healthy);
        assert_eq!(pulse.note("g", None, 6), Some((Health::Healthy, Health::Degraded)));
    }

    #[test]
    fn what_a_gateway_says_of_itself_counts_for_a_while() {
        let pulse = Pulse::default();
        assert_eq!(pulse.heard("g", 5), None);
        pulse.hear("g", Health::Degraded, 10);
        assert_eq!(pulse.heard("g", 10 + HEARD_MS), Some(Health::Degraded));
        assert_eq!(pulse.heard("g", 11 + HEARD_MS), None);
    }

    #[test]
    fn an_answer_that_says_offline_counts_at_once() {
        let pulse = Pulse::default();
        assert_eq!(
            pulse.note("g", Some(Health::Offline), 1),
            Some((Health::Healthy, Health::Offline))
        );
    }
}
