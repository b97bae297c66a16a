//! Decides what happens to slots that are due.
//!
//! A slot that is evaluated soon after its time is on time; a later one is missed, and the
//! schedule's policy for missed slots applies.

use super::timing::Timing;
use crate::limits::{BACKFILL_MAX, SLOT_LOOK_BACK_MS, SLOT_ROWS_MAX, SLOTS_PER_LOOK_MAX};
use sluice_govern::registry::{Missed, Schedule};

/// A slot is on time if it is no older than this, in milliseconds.
const GRACE_MS: u64 = 60_000;

/// A due slot, or several consecutive slots with the same outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The time of the slot; of several, the last.
    pub slot_ms: u64,
    /// The number of slots; 0 if they were not counted.
    pub count: u64,
    /// What happens to it.
    pub what: What,
}

/// What happens to a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A run is started, unless an earlier run is active.
    Start,
    /// A run is queued and started even if an earlier run is active.
    MakeUp,
    /// No run is started, for this reason: `missed`, `date` or `disabled`.
    Skip(&'static str),
}

/// The slots after `after_ms` that are due by `now_ms`, oldest first.
pub fn due(schedule: &Schedule, timing: &Timing, after_ms: u64, now_ms: u64) -> Vec<Due> {
    let from_ms = after_ms.max(now_ms.saturating_sub(SLOT_LOOK_BACK_MS));
    let mut found: Vec<Due> = Vec::new();
    if from_ms > after_ms {
        // Too many to examine one by one.
        let count = timing.count(after_ms, from_ms).unwrap_or(0);
        found.push(Due { slot_ms: from_ms, count, what: What::Skip("missed") });
    }
    let mut at_ms = from_ms;
    let slots = std::iter::from_fn(|| {
        at_ms = timing.next(at_ms).filter(|slot_ms| *slot_ms <= now_ms)?;
        Some(at_ms)
    });
    let first = found.len();
    for slot_ms in slots.take(SLOTS_PER_LOOK_MAX) {
        let what = if !schedule.enabled {
            What::Skip("disabled")
        } else if timing.is_off(slot_ms) {
            What::Skip("date")
        } else {
            What::Start
        };
        found.push(Due { slot_ms, count: 1, what });
    }
    make_up(schedule.missed, &mut found[first..], now_ms);
    if found.len() > SLOT_ROWS_MAX { gather(found) } else { found }
}

/// Applies the policy for missed slots.
fn make_up(missed: Missed, slots: &mut [Due], now_ms: u64) {
    let on_time = |slot: &Due| slot.slot_ms.saturating_add(GRACE_MS) >= now_ms;
    let starts = |slot: &Due| slot.what == What::Start;
    // A slot that is on time replaces the missed ones.
    let served = slots.iter().any(|slot| starts(slot) && on_time(slot));
    let kept = match missed {
        Missed::Skip => 0,
        Missed::RunOnce => usize::from(!served),
        Missed::Backfill => BACKFILL_MAX,
    };
    let late = slots.iter_mut().rev().filter(|slot| starts(slot) && !on_time(slot));
    for (place, slot) in late.enumerate() {
        slot.what = match missed {
            _ if place >= kept => What::Skip("missed"),
            Missed::Backfill => What::MakeUp,
            Missed::Skip | Missed::RunOnce => What::Start,
        };
    }
}

/// Joins consecutive skipped slots with the same reason.
fn gather(slots: Vec<Due>) -> Vec<Due> {
    let mut gathered: Vec<Due> = Vec::new();
    for slot in slots {
        match gathered.last_mut() {
            Some(last) if last.what == slot.what && matches!(slot.what, What::Skip(_)) => {
                last.slot_ms = slot.slot_ms;
                last.count = if last.count == 0 { 0 } else { last.count + slot.count };
            }
            _ => gathered.push(slot),
        }
    }
    gathered
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};
    use std::fmt::Write as _;

    const HOUR_MS: u64 = 3_600_000;

    /// Slots every hour, after so many hours and up to others.
    fn check(row: Value, after_h: u64, now_ms: u64, expected: &Expect) {
        let mut row = row;
        row["workflow"] = "w".into();
        row["every"] = "1h".into();
        let schedule: Schedule = serde_json::from_value(row).unwrap();
        let timing = Timing::of(&schedule).unwrap();
        let mut text = String::new();
        for slot in due(&schedule, &timing, after_h * HOUR_MS, now_ms) {
            let _ = writeln!(text, "{} x{} {:?}", slot.slot_ms / HOUR_MS, slot.count, slot.what);
        }
        expected.assert_eq(&text);
    }

    #[test]
    fn a_slot_on_time_is_started() {
        check(
            json!({}),
            10,
            11 * HOUR_MS + 500,
            &expect![[r#"
            11 x1 Start
        "#]],
        );
        check(json!({}), 11, 11 * HOUR_MS + 500, &expect![[r#""#]]);
        check(
            json!({"enabled": false}),
            10,
            11 * HOUR_MS,
            &expect![[r#"
            11 x1 Skip("disabled")
        "#]],
        );
        check(
            json!({"skip_dates": ["1970-01-01"]}),
            10,
            11 * HOUR_MS,
            &expect![[r#"
            11 x1 Skip("date")
        "#]],
        );
    }

    #[test]
    fn missed_slots_are_dropped_stood_for_or_made_up_for() {
        let late_ms = 14 * HOUR_MS + HOUR_MS / 2;
        check(
            json!({"missed": "skip"}),
            11,
            late_ms,
            &expect![[r#"
            12 x1 Skip("missed")
            13 x1 Skip("missed")
            14 x1 Skip("missed")
        "#]],
        );
        check(
            json!({"missed": "run_once"}),
            11,
            late_ms,
            &expect![[r#"
            12 x1 Skip("missed")
            13 x1 Skip("missed")
            14 x1 Start
        "#]],
        );
        check(
            json!({"missed": "backfill"}),
            11,
            late_ms,
            &expect![[r#"
            12 x1 MakeUp
            13 x1 MakeUp
            14 x1 MakeUp
        "#]],
        );
        check(
            json!({"missed": "run_once"}),
            11,
            14 * HOUR_MS,
            &expect![[r#"
            12 x1 Skip("missed")
            13 x1 Skip("missed")
            14 x1 Start
        "#]],
        );
        check(
            json!({"missed": "backfill"}),
            11,
            14 * HOUR_MS,
            &expect![[r#"
            12 x1 MakeUp
            13 x1 MakeUp
            14 x1 Start
        "#]],
        );
    }

    #[test]
    fn no_more_than_ten_are_made_up_for_and_long_rows_are_told_together() {
        let now_ms = 2000 * HOUR_MS + HOUR_MS / 2;
        check(
            json!({"missed": "backfill"}),
            11,
            now_ms,
            &expect![[r#"
            1990 x1979 Skip("missed")
            1991 x1 MakeUp
            1992 x1 MakeUp
            1993 x1 MakeUp
            1994 x1 MakeUp
            1995 x1 MakeUp
            1996 x1 MakeUp
            1997 x1 MakeUp
            1998 x1 MakeUp
            1999 x1 MakeUp
            2000 x1 MakeUp
        "#]],
        );
        check(
            json!({"missed": "skip"}),
            11,
            now_ms,
            &expect![[r#"
            2000 x1989 Skip("missed")
        "#]],
        );
    }
}
