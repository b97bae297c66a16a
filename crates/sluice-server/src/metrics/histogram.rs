//! A histogram of durations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets, in microseconds.
pub(super) const BOUNDS_US: [u64; 14] = [
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    1_000_000,
    5_000_000,
    30_000_000,
    300_000_000,
];

#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// The last bucket counts durations above every bound.
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
}

impl Histogram {
    /// Adds a duration.
    pub(super) fn observe(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Cumulative counts up to each bound and in total, and the sum in microseconds.
    pub(super) fn read(&self) -> ([u64; BOUNDS_US.len() + 1], u64) {
        let mut upto = self.buckets.each_ref().map(|count| count.load(Ordering::Relaxed));
        for at in 1..upto.len() {
            upto[at] += upto[at - 1];
        }
        (upto, self.sum_us.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_includes_its_upper_bound() {
        let histogram = Histogram::default();
        for us in [0, 250, 251, 300_000_000, 300_000_001] {
            histogram.observe(Duration::from_micros(us));
        }
        let (upto, sum) = histogram.read();
        assert_eq!((upto[0], upto[1], upto[13], upto[14]), (2, 3, 4, 5));
        assert_eq!(sum, 600_000_502);
    }
}
