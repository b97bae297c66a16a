//! Slots in time zones with clock changes.

use super::*;
use serde_json::json;

fn timing(row: &Value) -> Timing {
    Timing::of(&serde_json::from_value(row.clone()).unwrap()).unwrap()
}

fn ms(time: &str) -> u64 {
    u64::try_from(time.parse::<Timestamp>().unwrap().as_millisecond()).unwrap()
}

/// The next slots after a time.
fn slots(row: &Value, after: &str, count: usize) -> Vec<String> {
    let timing = timing(row);
    let mut at_ms = ms(after);
    let mut found = Vec::new();
    for _ in 0..count {
        at_ms = timing.next(at_ms).unwrap();
        let at = Timestamp::from_millisecond(i64::try_from(at_ms).unwrap()).unwrap();
        found.push(at.to_string());
    }
    found
}

fn cron(cron: &str, zone: &str) -> Value {
    json!({"workflow": "w", "cron": cron, "time_zone": zone})
}

#[test]
fn a_time_that_is_skipped_is_at_the_next_minute_there_is() {
    // Berlin, 2026-03-29: 02:00 becomes 03:00, which is 01:00 UTC.
    let before = "2026-03-28T12:00:00Z";
    let expected = ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"];
    assert_eq!(slots(&cron("30 2 * * *", "Europe/Berlin"), before, 2), expected);
    let expected = ["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z", "2026-03-30T00:15:00Z"];
    assert_eq!(slots(&cron("*/15 2 * * *", "Europe/Berlin"), before, 3), expected);
    // No slot occurs twice if the next valid minute is a slot of its own.
    let expected = ["2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"];
    let after = "2026-03-28T23:30:00Z";
    assert_eq!(slots(&cron("0 * * * *", "Europe/Berlin"), after, 3), expected);
    // Half an hour is skipped on Lord Howe Island: 02:00 becomes 02:30.
    let expected = ["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"];
    let after = "2026-10-03T00:00:00Z";
    assert_eq!(slots(&cron("15 2 * * *", "Australia/Lord_Howe"), after, 2), expected);
}

#[test]
fn a_time_that_is_repeated_comes_once() {
    // Berlin, 2026-10-25: 03:00 becomes 02:00; 02:30 is at 00:30 and 01:30 UTC.
    let row = cron("30 2 * * *", "Europe/Berlin");
    let expected = ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"];
    assert_eq!(slots(&row, "2026-10-24T12:00:00Z", 2), expected);
    // In the second of the two hours, the slot is over.
    assert_eq!(slots(&row, "2026-10-25T01:10:00Z", 1), ["2026-10-26T01:30:00Z"]);
    let hourly = cron("0 * * * *", "Europe/Berlin");
    let expected = ["2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z"];
    assert_eq!(slots(&hourly, "2026-10-24T23:30:00Z", 2), expected);
}

#[test]
fn a_rhythm_without_a_clock_knows_no_summer() {
    let row = json!({"workflow": "w", "every": "90m", "time_zone": "Europe/Berlin"});
    let expected = ["2026-03-29T00:00:00Z", "2026-03-29T01:30:00Z", "2026-03-29T03:00:00Z"];
    assert_eq!(slots(&row, "2026-03-28T23:59:59Z", 3), expected);
    let row = json!({"workflow": "w", "every": 60});
    assert_eq!(slots(&row, "2026-03-28T23:59:59Z", 1), ["2026-03-29T00:00:00Z"]);
}

#[test]
fn days_are_those_of_the_zone() {
    let timing = timing(&json!({
        "workflow": "w", "cron": "30 0 * * *", "time_zone": "Asia/Tokyo",
        "skip_dates": ["2026-01-01"],
    }));
    assert!(timing.is_off(ms("2025-12-31T15:30:00Z")));
    assert!(!timing.is_off(ms("2026-01-01T15:30:00Z")));
    let only = self::timing(&json!({
        "workflow": "w", "every": "1h", "only_dates": ["2026-05-01", "2026-05-02"],
    }));
    assert!(!only.is_off(ms("2026-05-02T23:00:00Z")));
    assert!(only.is_off(ms("2026-05-03T00:00:00Z")));
}

#[test]
fn what_is_no_timing_is_refused() {
    for (row, message) in [
        (json!({"workflow": "w"}), "`cron`: `cron` or `every` is missing"),
        (
            json!({"workflow": "w", "cron": "* * * * *", "every": 60}),
            "`every`: `cron` and `every` exclude each other",
        ),
        (
            json!({"workflow": "w", "every": 60, "time_zone": "Mars/Olympus"}),
            "`time_zone`: there is no time zone `Mars/Olympus`",
        ),
        (json!({"workflow": "w", "every": "10ms"}), "`every`: `10ms` is more often than every 1s"),
        (
            json!({"workflow": "w", "every": 60, "skip_dates": ["24.12.2026"]}),
            "`skip_dates`: `24.12.2026` is not a date",
        ),
        (
            json!({"workflow": "w", "every": 60, "only_dates": ["2026-02-30"]}),
            "`only_dates`: `2026-02-30` is not a date",
        ),
    ] {
        let row = serde_json::from_value(row).unwrap();
        assert_eq!(Timing::of(&row).unwrap_err(), message);
    }
}
