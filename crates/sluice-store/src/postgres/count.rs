//! Counters as of the current transaction.
//!
//! The rows are locked before they are read, so guards work on numbers in memory, and
//! each changed counter is written once, however many appends changed it.

use super::column::{CounterText, Text, get, int, sql_limit, text};
use super::fault::Fault;
use super::session::Session;
use crate::limits::COUNTERS_MAX;
use crate::window::{Slice, Window};
use sluice_core::port::ledger::{Count, Counter};
use sluice_core::port::store::{Appended, Guard};
use sluice_govern::account::Name;
use std::collections::BTreeMap;
use tokio_postgres::Row;

/// The counters of one batch.
#[derive(Default)]
pub(super) struct Counters<'a> {
    positions: BTreeMap<(Name<'a>, i64), usize>,
    counters: Vec<BatchCounter<'a>>,
}

pub(super) struct BatchCounter<'a> {
    pub(super) name: Name<'a>,
    pub(super) span: i64,
    /// Value of a plain counter.
    pub(super) count: i64,
    window: Option<Window>,
    /// Whether any guard would change it.
    pub(super) is_wanted: bool,
    pub(super) is_changed: bool,
    is_read: bool,
}

/// The `span` column: the window's length, or 0 for a plain counter.
fn span(window_ms: Option<u64>) -> i64 {
    window_ms.map_or(0, |window_ms| int(window_ms.max(1)))
}

fn window(span: i64, slices: &[u8]) -> Option<Window> {
    let number = |bytes: &[u8]| bytes.first_chunk().copied().map(i64::from_be_bytes);
    let slice = |bytes: &[u8]| {
        let (first, second) = (number(bytes)?, number(bytes.get(8..)?)?);
        Some(Slice { number: u64::try_from(first).ok()?, count: second })
    };
    let span = u64::try_from(span).ok().filter(|span| *span > 0)?;
    Some(Window::new(span, slices.chunks(16).filter_map(slice)))
}

impl<'a> Counters<'a> {
    /// Adds the counters of some guards.
    pub(super) fn add_guards(&mut self, guards: &'a [Guard]) {
        for guard in guards {
            let at = self.position(guard.counter.name(), span(guard.window_ms));
            self.counters[at].is_wanted |= guard.delta != 0;
        }
    }

    fn position(&mut self, name: Name<'a>, span: i64) -> usize {
        let next = self.counters.len();
        let at = *self.positions.entry((name, span)).or_insert(next);
        if at == next {
            let window = window(span, &[]);
            let (is_wanted, is_changed, is_read) = (false, false, false);
            self.counters.push(BatchCounter {
                name,
                span,
                count: 0,
                window,
                is_wanted,
                is_changed,
                is_read,
            });
        }
        at
    }

    /// All counters, sorted by name.
    pub(super) fn sorted(&self) -> Vec<&BatchCounter<'a>> {
        let mut counters: Vec<&BatchCounter<'a>> = self.counters.iter().collect();
        counters.sort_unstable_by_key(|counter| (counter.name, counter.span));
        counters
    }

    /// Fills in the values that were read.
    pub(super) fn read(&mut self, rows: &[Row]) -> Result<(), Fault> {
        for row in rows {
            let (name, span) = (text(row, 0)?, get(row, 1)?);
            let place = self.positions.get(&(Name::of(&name), span)).copied();
            let Some(at) = place else { continue };
            let counter = &mut self.counters[at];
            counter.count = get(row, 2)?;
            counter.window =
                window(counter.span, get::<Option<&[u8]>>(row, 3)?.unwrap_or_default());
            counter.is_read = true;
        }
        Ok(())
    }

    /// Whether a row was found for every counter.
    pub(super) fn are_read(&self) -> bool {
        self.counters.iter().all(|counter| counter.is_read)
    }

    /// Applies all guards, or none if one of them refuses.
    pub(super) fn guard(&mut self, guards: &'a [Guard], now_ms: u64) -> Result<Vec<i64>, Appended> {
        let positions: Vec<usize> = guards
            .iter()
            .map(|guard| self.position(guard.counter.name(), span(guard.window_ms)))
            .collect();
        // Guards on the same counter see each other's changes. A linear search is
        // enough, since few appends have more than a dozen guards.
        let mut seen: Vec<(usize, i64)> = Vec::with_capacity(guards.len());
        for (guard, at) in guards.iter().zip(&positions) {
            let known = seen.iter().rev().find(|(seen, _)| seen == at);
            let count =
                known.map_or_else(|| self.counters[*at].value_at(now_ms), |(_, count)| *count);
            let Some(changed) = crate::guarded(guard, count) else {
                let count = self.counters[*at].value_at(now_ms);
                return Err(Appended::Refused { counter: guard.counter.whole(), count });
            };
            seen.push((*at, changed));
        }
        for (guard, at) in guards.iter().zip(&positions).filter(|(guard, _)| guard.delta != 0) {
            self.counters[*at].add(guard.delta, now_ms);
        }
        Ok(positions.iter().map(|at| self.counters[*at].value_at(now_ms)).collect())
    }
}

impl BatchCounter<'_> {
    fn value_at(&self, now_ms: u64) -> i64 {
        self.window.as_ref().map_or(self.count, |window| window.sum(now_ms))
    }

    fn add(&mut self, delta: i64, now_ms: u64) {
        self.is_changed = true;
        match &mut self.window {
            None => self.count = self.count.saturating_add(delta),
            Some(window) => {
                window.add(now_ms, delta);
                window.prune(now_ms);
            }
        }
    }

    /// The slices of a window as stored.
    pub(super) fn slices(&self) -> Option<Vec<u8>> {
        let write = |slice: Slice| [int(slice.number).to_be_bytes(), slice.count.to_be_bytes()];
        Some(self.window.as_ref()?.slices().flat_map(write).flatten().collect())
    }
}

/// Committed values of counters.
pub(super) async fn counts(
    session: &Session,
    counters: &[Counter],
    now_ms: u64,
) -> Result<Vec<i64>, Fault> {
    let mut held = Counters::default();
    let positions: Vec<usize> = counters
        .iter()
        .map(|one| held.position(Name::of(&one.name), span(one.window_ms)))
        .collect();
    let (names, spans): (Vec<CounterText<'_>>, Vec<i64>) =
        held.counters.iter().map(|counter| (CounterText(counter.name), counter.span)).unzip();
    let sql = "SELECT counter.name, counter.span, count, slices FROM counter
               JOIN unnest($1::text[], $2::bigint[]) AS wanted (name, span)
               ON counter.name = wanted.name AND counter.span = wanted.span";
    let rows = session.query(sql, &[&names, &spans]).await?;
    held.read(&rows)?;
    Ok(positions.into_iter().map(|at| held.counters[at].value_at(now_ms)).collect())
}

/// Committed plain counters that are not zero, between two names.
pub(super) async fn between(
    session: &Session,
    after: &str,
    before: &str,
    limit: usize,
) -> Result<Vec<Count>, Fault> {
    let sql = "SELECT name, count FROM counter
               WHERE name > $1 AND name < $2 AND span = 0 AND count <> 0 ORDER BY name LIMIT $3";
    let limit = sql_limit(limit.min(COUNTERS_MAX));
    let rows = session.query(sql, &[&Text(after), &Text(before), &limit]).await?;
    rows.iter()
        .map(|row| Ok(Count { name: text(row, 0)?.into_owned(), count: get(row, 1)? }))
        .collect()
}

/// Committed value of a plain counter.
pub(super) async fn plain(session: &Session, name: &str) -> Result<i64, Fault> {
    let sql = "SELECT count FROM counter WHERE name = $1 AND span = 0";
    let rows = session.query(sql, &[&name]).await?;
    rows.first().map_or(Ok(0), |row| get(row, 0))
}
