//! The five fields of cron, in Vixie's dialect.
//!
//! If both the day of the month and the day of the week are restricted, either one is enough;
//! if one of them begins with `*`, both must match.

use crate::span::Fault;
use jiff::civil::{Date, DateTime};
use std::ops::Range;

/// A cron schedule in local time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether both the day of the month and the day of the week must match.
    both: bool,
}

/// The number of days to search: the next 29th of February may be eight years away.
const DAYS_MAX: usize = 366 * 9;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The range and the names of a field.
struct CronField {
    what: &'static str,
    least: u32,
    most: u32,
    /// Names of the numbers, starting with `least`.
    names: &'static [&'static str],
}

const KINDS: [CronField; 5] = [
    CronField { what: "minute", least: 0, most: 59, names: &[] },
    CronField { what: "hour", least: 0, most: 23, names: &[] },
    CronField { what: "day of the month", least: 1, most: 31, names: &[] },
    CronField { what: "month", least: 1, most: 12, names: &MONTHS },
    CronField { what: "day of the week", least: 0, most: 7, names: &WEEKDAYS },
];

impl Cron {
    /// Parses the five fields.
    pub fn parse(text: &str) -> Result<Cron, Fault> {
        let fields = fields(text);
        if fields.len() != KINDS.len() {
            let message = format!("{} fields, not five", fields.len());
            let hint =
                "write minute, hour, day of the month, month, day of the week: `30 6 * * 1-5`";
            return Err(Fault::new(0..text.len(), message).with_hint(hint));
        }
        let mut sets = [0u64; 5];
        for ((set, kind), (start, field)) in sets.iter_mut().zip(&KINDS).zip(&fields) {
            *set = kind.read(field, *start)?;
        }
        let [minutes, hours, days, months, weekdays] = sets;
        // Sunday is 0 and 7.
        let weekdays = (weekdays | (weekdays >> 7)) & 0x7f;
        let both = fields[2].1.starts_with('*') || fields[4].1.starts_with('*');
        let cron = Cron { minutes, hours, days, months, weekdays, both };
        if cron.next(DateTime::constant(2000, 1, 1, 0, 0, 0, 0)).is_none() {
            return Err(Fault::new(0..text.len(), "there is no such day in any year"));
        }
        Ok(cron)
    }

    /// The first matching minute after a time; `None` if there is none for years.
    pub(super) fn next(&self, after: DateTime) -> Option<DateTime> {
        let mut date = after.date();
        let mut from = minute_of(after).checked_add(1)?;
        for _ in 0..DAYS_MAX {
            if self.has(date)
                && let Some(minute) = self.minute_from(from)
            {
                let (hour, minute) = (minute / 60, minute % 60);
                return Some(date.at(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0));
            }
            date = date.tomorrow().ok()?;
            from = 0;
        }
        None
    }

    fn has(&self, date: Date) -> bool {
        let day = is_in(self.days, date.day());
        let weekday = is_in(self.weekdays, date.weekday().to_sunday_zero_offset());
        let right = if self.both { day && weekday } else { day || weekday };
        right && is_in(self.months, date.month())
    }

    /// The first matching minute of a day, starting with `from`.
    fn minute_from(&self, from: u32) -> Option<u32> {
        (from..24 * 60).find(|minute| {
            self.hours >> (minute / 60) & 1 == 1 && self.minutes >> (minute % 60) & 1 == 1
        })
    }
}

fn minute_of(time: DateTime) -> u32 {
    u32::from(time.hour().unsigned_abs()) * 60 + u32::from(time.minute().unsigned_abs())
}

fn is_in(set: u64, number: i8) -> bool {
    set >> number.unsigned_abs() & 1 == 1
}

/// The words of a text, with their positions.
fn fields(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    for word in text.split([' ', '\t']) {
        if !word.is_empty() {
            found.push((at, word));
        }
        at += word.len() + 1;
    }
    found
}

impl CronField {
    /// The numbers of a field as a bit set.
    fn read(&self, field: &str, start: usize) -> Result<u64, Fault> {
        let mut set = 0;
        let mut at = start;
        for part in field.split(',') {
            set |= self.part(part, at..at + part.len())?;
            at += part.len() + 1;
        }
        Ok(set)
    }

    fn part(&self, part: &str, place: Range<usize>) -> Result<u64, Fault> {
        let bad = |message: String| Fault::new(place.clone(), message);
        let (range, step) = match part.split_once('/') {
            None => (part, 1),
            Some((range, step)) => {
                let step = step.parse::<u32>().ok().filter(|step| *step > 0);
                let step = step.ok_or_else(|| bad(format!("`{part}` has no step of 1 or more")))?;
                if range != "*" && !range.contains('-') {
                    let hint = "a step follows `*` or a range: `*/15`, `8-18/2`";
                    return Err(bad(format!("`{part}` steps from one number")).with_hint(hint));
                }
                (range, step)
            }
        };
        let number = |text: &str| self.number(text).ok_or_else(|| bad(self.not_one(text)));
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.least, self.most),
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(range)?, number(range)?),
        };
        if first > last {
            return Err(bad(format!("`{range}` runs backwards")));
        }
        let numbers = (first..=last).step_by(usize::try_from(step).unwrap_or(usize::MAX));
        Ok(numbers.fold(0, |set, number| set | 1 << number))
    }

    fn number(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        if let Some(place) = named {
            return Some(self.least + u32::try_from(place).ok()?);
        }
        let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() <= 2;
        text.parse().ok().filter(|number| plain && (self.least..=self.most).contains(number))
    }

    fn not_one(&self, text: &str) -> String {
        format!("`{text}` is not a valid {}: expected {} to {}", self.what, self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(cron: &str, after: &str) -> String {
        let cron = Cron::parse(cron).unwrap();
        cron.next(after.parse().unwrap()).unwrap().to_string()
    }

    #[test]
    fn the_next_minute_is_the_first_that_fits_all_fields() {
        for (cron, after, expected) in [
            ("* * * * *", "2026-03-01T10:00:30", "2026-03-01T10:01:00"),
            ("*/15 * * * *", "2026-03-01T10:15:00", "2026-03-01T10:30:00"),
            ("5 4 * * *", "2026-12-31T04:05:00", "2027-01-01T04:05:00"),
            ("0 0 1 jan *", "2026-03-01T00:00:00", "2027-01-01T00:00:00"),
            ("30 8-18/5 * * *", "2026-03-01T13:30:00", "2026-03-01T18:30:00"),
            ("0 12 29 2 *", "2026-03-01T00:00:00", "2028-02-29T12:00:00"),
            ("0 9 * * mon,WED", "2026-03-02T09:00:00", "2026-03-04T09:00:00"),
            ("0 9 * * 7", "2026-03-02T09:00:00", "2026-03-08T09:00:00"),
            ("0 9 * * 5-7", "2026-03-07T09:00:00", "2026-03-08T09:00:00"),
        ] {
            assert_eq!(next(cron, after), expected, "{cron}");
        }
    }

    #[test]
    fn of_two_kinds_of_days_either_is_enough_unless_one_begins_with_a_star() {
        // The 13th, and every Friday.
        assert_eq!(next("0 0 13 * fri", "2026-03-10T00:00:00"), "2026-03-13T00:00:00");
        assert_eq!(next("0 0 13 * fri", "2026-03-13T00:00:00"), "2026-03-20T00:00:00");
        assert_eq!(next("0 0 13 * fri", "2026-04-12T00:00:00"), "2026-04-13T00:00:00");
        // Fridays with an odd date.
        assert_eq!(next("0 0 */2 * fri", "2026-03-13T00:00:00"), "2026-03-27T00:00:00");
        assert_eq!(next("0 0 13 * */7", "2026-03-01T00:00:00"), "2026-09-13T00:00:00");
    }

    #[test]
    fn what_is_no_time_is_refused_where_it_stands() {
        for (cron, place, message) in [
            ("* * * *", 0..7, "4 fields, not five"),
            ("60 * * * *", 0..2, "`60` is not a valid minute: expected 0 to 59"),
            ("* 1,24 * * *", 4..6, "`24` is not a valid hour: expected 0 to 23"),
            ("* * 0 * *", 4..5, "`0` is not a valid day of the month: expected 1 to 31"),
            ("* * * febr *", 6..10, "`febr` is not a valid month: expected 1 to 12"),
            ("* * * * 8", 8..9, "`8` is not a valid day of the week: expected 0 to 7"),
            ("5-1 * * * *", 0..3, "`5-1` runs backwards"),
            ("*/0 * * * *", 0..3, "`*/0` has no step of 1 or more"),
            ("5/10 * * * *", 0..4, "`5/10` steps from one number"),
            ("+5 * * * *", 0..2, "`+5` is not a valid minute: expected 0 to 59"),
            (", * * * *", 0..0, "`` is not a valid minute: expected 0 to 59"),
            ("0 0 30 2 *", 0..10, "there is no such day in any year"),
        ] {
            let fault = Cron::parse(cron).unwrap_err();
            assert_eq!((fault.span.range(), fault.message.as_str()), (place, message), "{cron}");
        }
    }
}
