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
                health
            }
            None => {
                beat.misses = beat.misses.saturating_add(1);
                if beat.misses >= MISSES_MAX { Health::Offline } else { beat.health }
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

    /// Notes what a gateway says of itself.
    pub(super) fn hear(&self, gateway: &str, health: Health, at_ms: u64) {
        held(&self.gateways).entry(gateway.to_owned()).or_default().heard = Some((at_ms, health));
    }

    /// What a gateway said of itself lately.
    pub(super) fn heard(&self, gateway: &str, now_ms: u64) -> Option<Health> {
        let (at_ms, health) = held(&self.gateways).get(gateway)?.heard?;
        (now_ms.abs_diff(at_ms) <= HEARD_MS).then_some(health)
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
