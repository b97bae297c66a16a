//! Days and hours in UTC, and the names of budget periods.
//!
//! Civil dates are computed here: the calendar repeats every 400 years, so years begin
//! in March and the leap day is the last day of its year.

use crate::registry::Period;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const HOUR_MS: u64 = 60 * 60 * 1000;
/// Days in 400 years.
const ERA_DAYS: u64 = 146_097;
/// Days from 1 March of year 0 to 1 January 1970.
const EPOCH_DAYS: u64 = 719_468;

/// A calendar date and hour, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    /// Of the Gregorian calendar.
    pub year: u64,
    /// From 1 to 12.
    pub month: u8,
    /// Day of the month, 1 to 31.
    pub day: u8,
    /// From 0 to 23.
    pub hour: u8,
    /// The weekday: 0 on Sunday, 6 on Saturday.
    pub days_since_sunday: u8,
}

impl Civil {
    /// The date and hour of a time.
    pub fn at(now_ms: u64) -> Civil {
        Civil::of_day(now_ms / DAY_MS, small(now_ms % DAY_MS / HOUR_MS))
    }

    fn of_day(day: u64, hour: u8) -> Civil {
        let shifted = day + EPOCH_DAYS;
        let (era, of_era) = (shifted / ERA_DAYS, shifted % ERA_DAYS);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Months from March: 153 days are five of them.
        let month_of_year = (5 * of_year + 2) / 153;
        let month = if month_of_year < 10 { month_of_year + 3 } else { month_of_year - 9 };
        Civil {
            year: year_of_era + era * 400 + u64::from(month <= 2),
            month: small(month),
            day: small(of_year - (153 * month_of_year + 2) / 5 + 1),
            hour,
            // 1 January 1970 was a Thursday.
            days_since_sunday: small((day + 4) % 7),
        }
    }

    /// Name of the weekday.
    pub const fn weekday(self) -> &'static str {
        match self.days_since_sunday {
            0 => "sunday",
            1 => "monday",
            2 => "tuesday",
            3 => "wednesday",
            4 => "thursday",
            5 => "friday",
            _ => "saturday",
        }
    }

    fn push_date(self, text: &mut String) {
        self.push_year_and_month(text);
        text.push('-');
        push_two(text, self.day);
    }

    fn push_year_and_month(self, text: &mut String) {
        // Formatted by hand, because every cap of every dispatch has a name with a date
        // in it.
        if self.year < 10_000 {
            push_two(text, small(self.year / 100));
            push_two(text, small(self.year % 100));
        } else {
            text.push_str(&self.year.to_string());
        }
        text.push('-');
        push_two(text, self.month);
    }
}

/// Appends a number below 100 with two digits.
fn push_two(text: &mut String, number: u8) {
    text.push(char::from(b'0' + number / 10));
    text.push(char::from(b'0' + number % 10));
}

fn small(number: u64) -> u8 {
    u8::try_from(number).expect("hours, days and months are small")
}

impl Period {
    /// The name of the period that contains a time: `2026-11-15`, the Sunday that
    /// begins a week, `2026-11`, or `total`.
    pub fn key(self, now_ms: u64) -> String {
        let mut text = String::with_capacity("2026-11-15".len());
        self.push_key(&mut text, now_ms);
        text
    }

    /// Appends that name to a text.
    pub(super) fn push_key(self, text: &mut String, now_ms: u64) {
        let today = Civil::at(now_ms);
        match self {
            Period::Daily => today.push_date(text),
            Period::Weekly => {
                let day = now_ms / DAY_MS;
                // The first days of 1970 belong to a week that began before it.
                let sunday = day.saturating_sub(u64::from(today.days_since_sunday));
                Civil::of_day(sunday, 0).push_date(text);
            }
            Period::Monthly => today.push_year_and_month(text),
            Period::Total => text.push_str("total"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2026-11-15, a Sunday, at midnight.
    const SUNDAY_MS: u64 = 1_794_700_800_000;

    #[test]
    fn periods_begin_at_midnight_on_sunday_and_on_the_first() {
        for (now_ms, daily, weekly, monthly) in [
            (SUNDAY_MS, "2026-11-15", "2026-11-15", "2026-11"),
            (SUNDAY_MS - 1, "2026-11-14", "2026-11-08", "2026-11"),
            (SUNDAY_MS + 16 * DAY_MS, "2026-12-01", "2026-11-29", "2026-12"),
            (951_782_400_000, "2000-02-29", "2000-02-27", "2000-02"),
            (4_107_542_400_000, "2100-03-01", "2100-02-28", "2100-03"),
            (0, "1970-01-01", "1970-01-01", "1970-01"),
        ] {
            assert_eq!(Period::Daily.key(now_ms), daily);
            assert_eq!(Period::Weekly.key(now_ms), weekly);
            assert_eq!(Period::Monthly.key(now_ms), monthly);
            assert_eq!(Period::Total.key(now_ms), "total");
        }
    }

    #[test]
    fn a_time_has_an_hour_and_a_weekday() {
        let civil = Civil::at(SUNDAY_MS + 23 * HOUR_MS + 59 * 60_000);
        assert_eq!((civil.hour, civil.weekday()), (23, "sunday"));
        assert_eq!(Civil::at(SUNDAY_MS + DAY_MS).weekday(), "monday");
        assert_eq!(Civil::at(SUNDAY_MS - 1).weekday(), "saturday");
    }

    /// Counts from 1970 day by day: slow, and plainly right.
    fn counted(days: u64) -> (u64, u8, u8) {
        let leap = |year: u64| {
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
        };
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for _ in 0..days {
            let length = match month {
                2 if leap(year) => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
        (year, month, day)
    }

    proptest! {
        #[test]
        fn a_date_is_what_counting_days_gives(days in 0..200_000_u64) {
            let civil = Civil::at(days * DAY_MS);
            prop_assert_eq!((civil.year, civil.month, civil.day), counted(days));
        }

        #[test]
        fn any_time_has_a_key(now_ms: u64) {
            for period in [Period::Daily, Period::Weekly, Period::Monthly, Period::Total] {
                prop_assert!(!period.key(now_ms).is_empty());
            }
        }
    }
}
