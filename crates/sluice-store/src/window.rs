//! A sum over a sliding time window, kept in slices.
//!
//! A slice is a sixtieth of the window. A slice that overlaps the window is included in
//! full, so the sum is never too small: with a bound on the sum, no window of that
//! length exceeds the bound, wherever it begins.
//!
//! INVARIANT: slices are in chronological order and only the newest one changes. When
//! the clock goes back, additions go to the newest slice until the clock has caught up.

use std::collections::VecDeque;

const SLICES: u64 = 60;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    window_ms: u64,
    width_ms: u64,
    slices: VecDeque<Slice>,
}

/// The amount added within a sixtieth of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    /// Start of the slice divided by its width.
    pub(crate) number: u64,
    pub(crate) count: i64,
}

impl Window {
    /// From slices in order. A window of zero length becomes one millisecond.
    pub(crate) fn new(window_ms: u64, slices: impl IntoIterator<Item = Slice>) -> Window {
        let window_ms = window_ms.max(1);
        let width_ms = (window_ms / SLICES).max(1);
        Window { window_ms, width_ms, slices: slices.into_iter().collect() }
    }

    /// The sum over the window that ends now.
    pub(crate) fn sum(&self, now_ms: u64) -> i64 {
        let oldest = self.oldest(now_ms);
        let counted = self.slices.iter().rev().take_while(|slice| slice.number >= oldest);
        counted.fold(0i64, |sum, slice| sum.saturating_add(slice.count))
    }

    /// Adds to the slice of this moment.
    pub(crate) fn add(&mut self, now_ms: u64, delta: i64) {
        let number = self.moment(now_ms) / self.width_ms;
        match self.slices.back_mut() {
            Some(slice) if slice.number == number => {
                slice.count = slice.count.saturating_add(delta);
            }
            Some(_) | None => self.slices.push_back(Slice { number, count: delta }),
        }
    }

    /// The slice that was last added to.
    pub(crate) fn newest(&self) -> Option<Slice> {
        self.slices.back().copied()
    }

    /// Every slice, in chronological order.
    pub(crate) fn slices(&self) -> impl Iterator<Item = Slice> {
        self.slices.iter().copied()
    }

    /// Undoes the additions made since `newest` was the newest slice.
    pub(crate) fn restore(&mut self, newest: Option<Slice>) {
        let is_later = |slice: &mut Slice| newest.is_none_or(|kept| slice.number > kept.number);
        while self.slices.pop_back_if(is_later).is_some() {}
        if let (Some(slice), Some(back)) = (newest, self.slices.back_mut()) {
            *back = slice;
        }
    }

    /// Drops the slices that have left the window. Returns the number of the oldest
    /// remaining slice if any were dropped.
    pub(crate) fn prune(&mut self, now_ms: u64) -> Option<u64> {
        let oldest = self.oldest(now_ms);
        let held = self.slices.len();
        while self.slices.pop_front_if(|slice| slice.number < oldest).is_some() {}
        (self.slices.len() < held).then_some(oldest)
    }

    /// The number of the slice that contains the window's first millisecond.
    fn oldest(&self, now_ms: u64) -> u64 {
        (self.moment(now_ms).saturating_add(1)).saturating_sub(self.window_ms) / self.width_ms
    }

    fn moment(&self, now_ms: u64) -> u64 {
        let begun_ms = self.newest().map_or(0, |slice| slice.number.saturating_mul(self.width_ms));
        now_ms.max(begun_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty(window_ms: u64) -> Window {
        Window::new(window_ms, [])
    }

    #[test]
    fn what_is_added_counts_until_its_slice_has_left() {
        let mut window = empty(600);
        window.add(1005, 2);
        assert_eq!([1005, 1599, 1604, 1608].map(|now_ms| window.sum(now_ms)), [2, 2, 2, 2]);
        assert_eq!(window.sum(1609), 0);
    }

    #[test]
    fn a_short_window_has_slices_of_a_millisecond() {
        let mut window = empty(3);
        window.add(10, 1);
        window.add(11, 1);
        assert_eq!([11, 12, 13, 14].map(|now_ms| window.sum(now_ms)), [2, 2, 1, 0]);
        let mut window = empty(0);
        window.add(10, 1);
        assert_eq!([10, 11].map(|now_ms| window.sum(now_ms)), [1, 0]);
    }

    #[test]
    fn a_clock_that_goes_back_loses_nothing() {
        let mut window = empty(60);
        window.add(1000, 1);
        window.add(900, 1);
        assert_eq!([900, 1000, 1059, 1060].map(|now_ms| window.sum(now_ms)), [2, 2, 2, 0]);
    }

    #[test]
    fn what_has_left_is_dropped() {
        let mut window = empty(60);
        for now_ms in [10, 20, 30] {
            window.add(now_ms, 1);
        }
        assert_eq!(window.prune(69), None);
        assert_eq!(window.prune(80), Some(21));
        assert_eq!(window.slices.len(), 1);
    }

    #[test]
    fn additions_are_taken_back() {
        let mut window = empty(60);
        window.restore(None);
        window.add(10, 1);
        let (before, newest) = (window.clone(), window.newest());
        window.add(10, 4);
        window.add(20, 4);
        window.restore(newest);
        assert_eq!(window, before);
        window.restore(None);
        assert_eq!(window, empty(60));
    }

    #[test]
    fn the_end_of_time_is_no_overflow() {
        let mut window = empty(u64::MAX);
        window.add(u64::MAX, i64::MAX);
        window.add(u64::MAX, i64::MAX);
        assert_eq!(window.sum(u64::MAX), i64::MAX);
    }
}
