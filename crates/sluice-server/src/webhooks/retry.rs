//! The retry schedule of webhook deliveries.

use crate::limits::{
    DELIVERY_MS, DELIVERY_RETRY_MS, DELIVERY_RETRY_MS_MAX, DELIVERY_SLACK_MS, DELIVERY_TRIES,
};

/// Attempts, delays and timeouts of deliveries.
#[derive(Debug, Clone)]
pub struct RetrySchedule {
    /// Maximum number of attempts.
    pub tries: u32,
    /// Delay before the second attempt.
    pub(crate) retry_ms: u64,
    /// Maximum delay between two attempts.
    pub(crate) retry_ms_max: u64,
    /// How long a receiver may take to answer.
    pub(crate) answer_ms: u64,
    /// How long after that a delivery is attempted again if its sender crashed.
    pub(crate) slack_ms: u64,
}

impl Default for RetrySchedule {
    fn default() -> RetrySchedule {
        RetrySchedule {
            tries: DELIVERY_TRIES,
            retry_ms: DELIVERY_RETRY_MS,
            retry_ms_max: DELIVERY_RETRY_MS_MAX,
            answer_ms: DELIVERY_MS,
            slack_ms: DELIVERY_SLACK_MS,
        }
    }
}

impl RetrySchedule {
    /// The delay after this many attempts, with a jitter of a quarter; `None` after the last
    /// attempt. A longer `Retry-After` of the receiver takes precedence, up to the maximum.
    pub fn wait_ms(&self, tries: u32, chance: u64, retry_after_ms: u64) -> Option<u64> {
        if tries >= self.tries {
            return None;
        }
        let times = 3u64.saturating_pow(tries.saturating_sub(1));
        let plain = self.retry_ms.saturating_mul(times).min(self.retry_ms_max);
        let spread = plain / 2;
        let jittered = plain - spread / 2 + chance % (spread + 1);
        Some(jittered.max(retry_after_ms.min(self.retry_ms_max)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end_within_two_hours() {
        let pace = RetrySchedule::default();
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
    fn a_retry_after_header_is_bounded() {
        let pace = RetrySchedule::default();
        assert_eq!(pace.wait_ms(1, 0, 60_000), Some(60_000));
        assert_eq!(pace.wait_ms(1, 0, u64::MAX), Some(DELIVERY_RETRY_MS_MAX));
        assert_eq!(pace.wait_ms(1, 0, 1), Some(7_500));
    }
}
