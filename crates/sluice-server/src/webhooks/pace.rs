//! How patiently webhooks are sent: how often, after how long, and for how long.

use crate::limits::{
    DELIVERY_MS, DELIVERY_RETRY_MS, DELIVERY_RETRY_MS_MAX, DELIVERY_SLACK_MS, DELIVERY_TRIES,
};

/// How patiently webhooks are sent.
#[derive(Debug, Clone)]
pub struct Pace {
    /// How often a delivery is tried.
    pub tries: u32,
    /// How long after the first try the second comes.
    pub retry_ms: u64,
    /// The longest wait between two tries.
    pub retry_ms_max: u64,
    /// How long a receiver may take to answer.
    pub answer_ms: u64,
    /// How long after that a delivery whose sender vanished is tried again.
    pub slack_ms: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            tries: DELIVERY_TRIES,
            retry_ms: DELIVERY_RETRY_MS,
            retry_ms_max: DELIVERY_RETRY_MS_MAX,
            answer_ms: DELIVERY_MS,
            slack_ms: DELIVERY_SLACK_MS,
        }
    }
}

impl Pace {
    /// How long to wait after so many tries, a quarter more or less as chance has
    /// it; none when it was the last. What the receiver asks for counts if it is
    /// longer, within bounds.
    pub fn wait_ms(&self, tries: u32, chance: u64, asked_ms: u64) -> Option<u64> {
        if tries >= self.tries {
            return None;
        }
        let times = 3u64.saturating_pow(tries.saturating_sub(1));
        let plain = self.retry_ms.saturating_mul(times).min(self.retry_ms_max);
        let spread = plain / 2;
        let shaken = plain - spread / 2 + chance % (spread + 1);
        Some(shaken.max(asked_ms.min(self.retry_ms_max)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end_within_two_hours() {
        let pace = Pace::default();
        let wait = |tries, chance| pace.wait_ms(tries, chance, 0);
        assert_eq!(wait(1, 0), Some(7_500));
        assert_eq!(wait(1, 5_000), Some(12_500));
        let mut total = 0;
        for tries in 1..pace.tries {
            let (least, most) = (wait(tries, 0).expect("it goes on"), 30 * 60 * 1000 * 5 / 4);
            assert!(least <= most, "{least}");
            total += least;
        }
        assert!((45 * 60 * 1000..2 * 60 * 60 * 1000).contains(&total), "{total}");
        assert_eq!(wait(pace.tries, 0), None);
        assert_eq!(wait(u32::MAX, 0), None);
    }

    #[test]
    fn a_receiver_may_ask_for_more_time_but_not_for_ever() {
        let pace = Pace::default();
        assert_eq!(pace.wait_ms(1, 0, 60_000), Some(60_000));
        assert_eq!(pace.wait_ms(1, 0, u64::MAX), Some(DELIVERY_RETRY_MS_MAX));
        assert_eq!(pace.wait_ms(1, 0, 1), Some(7_500));
    }
}
