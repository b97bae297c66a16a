//! Counters as they are in the transaction under way.
//!
//! The rows are locked before they are read, so guards work on numbers in memory,
//! and each counter that changed is written once, however many appends changed it.

use super::column::{Named, Text, get, int, most, text};
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
    places: BTreeMap<(Name<'a>, i64), usize>,
    slots: Vec<Slot<'a>>,
}

/// One counter.
pub(super) struct Slot<'a> {
    pub(super) name: Name<'a>,
    pub(super) span: i64,
    /// What a plain one is.
    pub(super) count: i64,
    window: Option<Window>,
    /// Whether some guard would change it.
    pub(super) is_wanted: bool,
    pub(super) is_changed: bool,
    is_read: bool,
}

/// How a counter's window is told apart: 0 for a plain one.
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
    /// Makes room for the counters of guards.
    pub(super) fn want(&mut self, guards: &'a [Guard]) {
        for guard in guards {
            let at = self.place(guard.counter.name(), span(guard.window_ms));
            self.slots[at].is_wanted |= guard.delta != 0;
        }
    }

    fn place(&mut self, name: Name<'a>, span: i64) -> usize {
        let next = self.slots.len();
        let at = *self.places.entry((name, span)).or_insert(next);
        if at == next {
            let window = window(span, &[]);
            let (is_wanted, is_changed, is_read) = (false, false, false);
            self.slots.push(Slot { name, span, count: 0, window, is_wanted, is_changed, is_read });
        }
        at
    }

    /// Every counter, by name.
    pub(super) fn sorted(&self) -> Vec<&Slot<'a>> {
        let mut slots: Vec<&Slot<'a>> = self.slots.iter().collect();
        slots.sort_unstable_by_key(|slot| (slot.name, slot.span));
        slots
    }

    /// Takes what was read over.
    pub(super) fn read(&mut self, rows: &[Row]) -> Result<(), Fault> {
        for row in rows {
            let (name, span) = (text(row, 0)?, get(row, 1)?);
            let place = self.places.get(&(Name::of(&name), span)).copied();
            let Some(at) = place else { continue };
            let slot = &mut self.slots[at];
            slot.count = get(row, 2)?;
            slot.window = window(slot.span, get::<Option<&[u8]>>(row, 3)?.unwrap_or_default());
            slot.is_read = true;
        }
        Ok(())
    }

    /// Whether every row was there.
    pub(super) fn are_read(&self) -> bool {
        self.slots.iter().all(|slot| slot.is_read)
    }

    /// Applies all guards, or none and says which refused.
    pub(super) fn guard(&mut self, guards: &'a [Guard], now_ms: u64) -> Result<Vec<i64>, Appended> {
        let places: Vec<usize> = guards
            .iter()
            .map(|guard| self.place(guard.counter.name(), span(guard.window_ms)))
            .collect();
        // Guards on one counter see each other. Few appends have more than a dozen.
        let mut seen: Vec<(usize, i64)> = Vec::with_capacity(guards.len());
        for (guard, at) in guards.iter().zip(&places) {
            let known = seen.iter().rev().find(|(seen, _)| seen == at);
            let count = known.map_or_else(|| self.slots[*at].at(now_ms), |(_, count)| *count);
            let Some(changed) = crate::guarded(guard, count) else {
                let count = self.slots[*at].at(now_ms);
                return Err(Appended::Refused { counter: guard.counter.whole(), count });
            };
            seen.push((*at, changed));
        }
        for (guard, at) in guards.iter().zip(&places).filter(|(guard, _)| guard.delta != 0) {
            self.slots[*at].add(guard.delta, now_ms);
        }
        Ok(places.iter().map(|at| self.slots[*at].at(now_ms)).collect())
    }
}

impl Slot<'_> {
    fn at(&self, now_ms: u64) -> i64 {
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

    /// A window's slices, as they are written.
    pub(super) fn slices(&self) -> Option<Vec<u8>> {
        let write = |slice: Slice| [int(slice.number).to_be_bytes(), slice.count.to_be_bytes()];
        Some(self.window.as_ref()?.slices().flat_map(write).flatten().collect())
    }
}

/// What counters are, as far as it was committed.
pub(super) async fn counts(
    session: &Session,
    counters: &[Counter],
    now_ms: u64,
) -> Result<Vec<i64>, Fault> {
    let mut held = Counters::default();
    let places: Vec<usize> =
        counters.iter().map(|one| held.place(Name::of(&one.name), span(one.window_ms))).collect();
    let (names, spans): (Vec<Named<'_>>, Vec<i64>) =
        held.slots.iter().map(|slot| (Named(slot.name), slot.span)).unzip();
    let sql = "SELECT counter.name, counter.span, count, slices FROM counter
               JOIN unnest($1::text[], $2::bigint[]) AS wanted (name, span)
               ON counter.name = wanted.name AND counter.span = wanted.span";
    let rows = session.query(sql, &[&names, &spans]).await?;
    held.read(&rows)?;
    Ok(places.into_iter().map(|at| held.slots[at].at(now_ms)).collect())
}

/// Plain counters that are not zero, between two names, as far as it was committed.
pub(super) async fn between(
    session: &Session,
    after: &str,
    before: &str,
    limit: usize,
) -> Result<Vec<Count>, Fault> {
    let sql = "SELECT name, count FROM counter
               WHERE name > $1 AND name < $2 AND span = 0 AND count <> 0 ORDER BY name LIMIT $3";
    let limit = most(limit.min(COUNTERS_MAX));
    let rows = session.query(sql, &[&Text(after), &Text(before), &limit]).await?;
    rows.iter()
        .map(|row| Ok(Count { name: text(row, 0)?.into_owned(), count: get(row, 1)? }))
        .collect()
}

/// A plain counter, as far as it was committed.
pub(super) async fn plain(session: &Session, name: &str) -> Result<i64, Fault> {
    let sql = "SELECT count FROM counter WHERE name = $1 AND span = 0";
    let rows = session.query(sql, &[&name]).await?;
    rows.first().map_or(Ok(0), |row| get(row, 0))
}
