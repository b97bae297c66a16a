//! The times of a schedule's slots.
//!
//! INVARIANT: slots strictly increase, and the same schedule has the same slots on every
//! machine and at every time.

use super::cron::Cron;
use crate::duration;
use crate::limits::{EVERY_MS_MIN, SLOTS_PER_LOOK_MAX};
use crate::span::Fault;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use serde_json::Value;
use sluice_govern::registry::Schedule;
use std::collections::BTreeSet;

const MINUTE_MS: u64 = 60_000;

/// The times of a schedule.
#[derive(Debug, Clone)]
pub struct Timing {
    rhythm: Rhythm,
    zone: TimeZone,
    skip: BTreeSet<Date>,
    only: BTreeSet<Date>,
}

#[derive(Debug, Clone)]
enum Rhythm {
    /// Local time.
    Cron(Cron),
    /// Every time that this many milliseconds divide, counted from 1970.
    Every(u64),
}

/// A problem in a field of a schedule, with its position in the text.
pub(crate) type FieldFault = (&'static str, Fault);

impl Timing {
    /// The times of a schedule row.
    pub fn of(schedule: &Schedule) -> Result<Timing, String> {
        Timing::read(schedule).map_err(|(field, fault)| format!("`{field}`: {}", fault.message))
    }

    pub(crate) fn read(schedule: &Schedule) -> Result<Timing, FieldFault> {
        let rhythm = match (&schedule.cron, &schedule.every) {
            (Some(cron), None) => Rhythm::Cron(Cron::parse(cron).map_err(|one| ("cron", one))?),
            (None, Some(every)) => Rhythm::Every(every_ms(every).map_err(|one| ("every", one))?),
            (Some(_), Some(_)) => {
                return Err(("every", Fault::new(0..0, "`cron` and `every` exclude each other")));
            }
            (None, None) => return Err(("cron", Fault::new(0..0, "`cron` or `every` is missing"))),
        };
        Ok(Timing {
            rhythm,
            zone: zone(&schedule.time_zone).map_err(|fault| ("time_zone", fault))?,
            skip: dates(&schedule.skip_dates).map_err(|fault| ("skip_dates", fault))?,
            only: dates(&schedule.only_dates).map_err(|fault| ("only_dates", fault))?,
        })
    }

    /// The first slot after a time; `None` if there is none for years.
    ///
    /// A local time that is skipped by a clock change moves to the next existing minute; a
    /// local time that occurs twice is used once, the first time.
    pub fn next(&self, after_ms: u64) -> Option<u64> {
        let cron = match &self.rhythm {
            Rhythm::Every(every_ms) => return (after_ms / every_ms + 1).checked_mul(*every_ms),
            Rhythm::Cron(cron) => cron,
        };
        let mut shown = self.shown(after_ms)?;
        for _ in 0..SLOTS_PER_LOOK_MAX {
            shown = cron.next(shown)?;
            // In an hour that occurs twice, the second occurrence may be before
            // `after` in local time.
            if let Some(slot_ms) = self.moment(shown).filter(|slot_ms| *slot_ms > after_ms) {
                return Some(slot_ms);
            }
        }
        None
    }

    /// Whether no run is started on the day of a slot.
    pub fn is_off(&self, slot_ms: u64) -> bool {
        let Some(date) = self.shown(slot_ms).map(DateTime::date) else { return true };
        self.skip.contains(&date) || !(self.only.is_empty() || self.only.contains(&date))
    }

    /// The number of slots after one time and up to another; `None` if they must be counted
    /// one by one.
    pub(super) fn count(&self, after_ms: u64, upto_ms: u64) -> Option<u64> {
        match &self.rhythm {
            Rhythm::Every(every_ms) => Some((upto_ms / every_ms) - (after_ms / every_ms)),
            Rhythm::Cron(_) => None,
        }
    }

    /// The local time.
    fn shown(&self, at_ms: u64) -> Option<DateTime> {
        let at = Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok()?;
        Some(self.zone.to_datetime(at))
    }

    /// The first moment of a local time, or the next one if it is skipped.
    fn moment(&self, shown: DateTime) -> Option<u64> {
        let ambiguous = self.zone.to_ambiguous_timestamp(shown);
        let at = match ambiguous.offset() {
            // With the later offset it lies before the gap, whose end is next.
            AmbiguousOffset::Gap { after, .. } => {
                let before = after.to_timestamp(shown).ok()?;
                self.zone.following(before).next()?.timestamp()
            }
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => {
                ambiguous.earlier().ok()?
            }
        };
        let at_ms = u64::try_from(at.as_millisecond()).ok()?;
        Some(at_ms.div_ceil(MINUTE_MS) * MINUTE_MS)
    }
}

fn every_ms(every: &Value) -> Result<u64, Fault> {
    let text = match every {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let every_ms = duration::parse(&text)?;
    if every_ms < EVERY_MS_MIN {
        let least = duration::format(EVERY_MS_MIN);
        let message = format!("`{text}` is more often than every {least}");
        return Err(Fault::new(0..text.len(), message));
    }
    Ok(every_ms)
}

fn zone(name: &str) -> Result<TimeZone, Fault> {
    TimeZoneDatabase::bundled().get(name).map_err(|_| {
        let hint = "use an IANA name, such as `Europe/Berlin` or `UTC`";
        Fault::new(0..name.len(), format!("there is no time zone `{name}`")).with_hint(hint)
    })
}

fn dates(written: &[String]) -> Result<BTreeSet<Date>, Fault> {
    let date = |text: &String| {
        // Only the short form: a longer one would contain a time of day.
        let parsed = text.parse::<Date>().ok().filter(|_| text.len() == 10);
        parsed.ok_or_else(|| {
            let message = format!("`{text}` is not a date");
            Fault::new(0..0, message).with_hint("write it as `2026-12-24`")
        })
    };
    written.iter().map(date).collect()
}

#[cfg(test)]
mod tests;
