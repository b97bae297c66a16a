//! Counters as of the current transaction.
//!
//! A governed append changes about ten counters, most of them shared by many runs. So
//! guards work on cached numbers, and each changed counter is written once, at the end
//! of the transaction.

use super::column::{int, uint};
use super::fault::Fault;
use crate::limits::{CACHED_MAX, COUNTERS_MAX};
use crate::window::{Slice, Window};
use rusqlite::{Connection, OptionalExtension as _, params};
use sluice_core::port::ledger::{Count, Counter};
use sluice_core::port::store::{Appended, Guard};
use sluice_govern::account::{CounterName, Name};
use std::collections::HashMap;
use std::sync::Arc;

/// Guard lists up to this length have their own entry in `positions`; longer ones
/// share.
const SHAPES: usize = 32;

/// The cached counters.
#[derive(Default)]
pub(super) struct Counters {
    counters: Vec<CachedCounter>,
    /// Indices of plain counters.
    plain: HashMap<Arc<str>, usize>,
    /// Indices of counters over windows. Few counters have more than one window.
    windows: HashMap<Arc<str>, Vec<usize>>,
    /// Indices of counters that changed and are not written yet.
    changed: Vec<usize>,
    /// Indices of the counters of the last guard list of each length: the next append
    /// with as many guards usually names the same counters in the same order.
    positions: [Vec<usize>; SHAPES],
    /// Changes by the current guards, oldest first.
    undo: Vec<CounterBefore>,
}

struct CachedCounter {
    name: Arc<str>,
    /// The name in the form that guards have.
    parts: CounterName,
    /// Current value; for a window, the value at `at_ms`.
    count: i64,
    window: Option<CachedWindow>,
    is_changed: bool,
}

struct CachedWindow {
    window_ms: u64,
    window: Window,
    /// The clock is read once per transaction, so one sum serves all its guards.
    at_ms: Option<u64>,
}

/// The value of a counter before a guard changed it.
struct CounterBefore {
    at: usize,
    count: i64,
    newest: Option<Slice>,
}

impl Counters {
    /// Applies all guards, or none if one of them refuses.
    pub(super) fn guard(
        &mut self,
        connection: &Connection,
        guards: &[Guard],
        now_ms: u64,
    ) -> Result<Result<Vec<i64>, Appended>, Fault> {
        self.undo.clear();
        let shape = guards.len() % SHAPES;
        for (number, guard) in guards.iter().enumerate() {
            let at = self.index_of(connection, (shape, number), guard)?;
            let counter = &mut self.counters[at];
            let Some(count) = crate::guarded(guard, counter.value_at(now_ms)) else {
                self.undo_all();
                let (counter, count) = (guard.counter.whole(), self.counters[at].count);
                return Ok(Err(Appended::Refused { counter, count }));
            };
            if guard.delta != 0 {
                let (before, newest) = (counter.count, counter.change(now_ms, guard.delta, count));
                self.undo.push(CounterBefore { at, count: before, newest });
            }
        }
        for CounterBefore { at, .. } in &self.undo {
            mark(&mut self.counters[*at], *at, &mut self.changed);
        }
        let positions = self.positions[shape].iter().take(guards.len());
        Ok(Ok(positions.map(|at| self.counters[*at].count).collect()))
    }

    /// A plain counter; zero if it was never changed.
    pub(super) fn count(&mut self, connection: &Connection, name: &str) -> Result<i64, Fault> {
        let at = self.find(connection, &name.into(), None)?;
        Ok(self.counters[at].count)
    }

    /// Sets a plain counter.
    pub(super) fn set(
        &mut self,
        connection: &Connection,
        name: &str,
        count: i64,
    ) -> Result<(), Fault> {
        let at = self.find(connection, &name.into(), None)?;
        self.counters[at].count = count;
        mark(&mut self.counters[at], at, &mut self.changed);
        Ok(())
    }

    /// Writes the changed counters in name order, so that neighbours share pages.
    pub(super) fn write(&mut self, connection: &Connection, now_ms: u64) -> Result<(), Fault> {
        if !self.changed.is_empty() {
            let sql = "INSERT INTO counter VALUES (?1, ?2)
                       ON CONFLICT DO UPDATE SET count = excluded.count";
            let mut statement = connection.prepare_cached(sql)?;
            let counters = &mut self.counters;
            self.changed
                .sort_unstable_by(|one, other| counters[*one].name.cmp(&counters[*other].name));
            for at in self.changed.drain(..) {
                let counter = &mut counters[at];
                counter.is_changed = false;
                match &mut counter.window {
                    None => _ = statement.execute(params![counter.name, counter.count])?,
                    Some(kept) => kept.write(connection, &counter.name, now_ms)?,
                }
            }
        }
        // A full cache is rare. Starting over is simpler than tracking usage.
        if self.counters.len() >= CACHED_MAX {
            *self = Counters::default();
        }
        Ok(())
    }

    /// The index of a guard's counter: first the index used by the last guard list of
    /// the same length, then a lookup by name.
    fn index_of(
        &mut self,
        connection: &Connection,
        (shape, number): (usize, usize),
        guard: &Guard,
    ) -> Result<usize, Fault> {
        let position = self.positions[shape].get(number).copied();
        let is_surely = |at: &usize| {
            let counter = &self.counters[*at];
            counter.window_ms() == guard.window_ms && counter.parts.is_surely(&guard.counter)
        };
        if let Some(at) = position.filter(is_surely) {
            return Ok(at);
        }
        let is_it = |at: &usize| self.counters[*at].is_named(guard.counter.name(), guard.window_ms);
        let at = match position.filter(is_it) {
            Some(at) => at,
            None => self.find(connection, &guard.counter, guard.window_ms)?,
        };
        if guard.counter.number().is_some() {
            // Keep the numbered name, so that the next lookup compares numbers.
            self.counters[at].parts = guard.counter.clone();
        }
        match self.positions[shape].get_mut(number) {
            Some(position) => *position = at,
            None => self.positions[shape].push(at),
        }
        Ok(at)
    }

    /// The index of a counter, which is loaded if it is not cached.
    fn find(
        &mut self,
        connection: &Connection,
        parts: &CounterName,
        window_ms: Option<u64>,
    ) -> Result<usize, Fault> {
        let name = parts.whole();
        let Some(window_ms) = window_ms else {
            if let Some(at) = self.plain.get(&*name) {
                return Ok(*at);
            }
            let count = plain(connection, &name)?;
            let (name, at) = self.insert(parts, name, count, None);
            self.plain.insert(name, at);
            return Ok(at);
        };
        let is_it = |at: &&usize| self.counters[**at].is_named(parts.name(), Some(window_ms));
        if let Some(at) = self.windows.get(&*name).and_then(|all| all.iter().find(is_it)) {
            return Ok(*at);
        }
        let window = window(connection, &name, window_ms)?;
        let window = CachedWindow { window_ms, window, at_ms: None };
        let (name, at) = self.insert(parts, name, 0, Some(window));
        self.windows.entry(name).or_default().push(at);
        Ok(at)
    }

    fn insert(
        &mut self,
        parts: &CounterName,
        name: String,
        count: i64,
        window: Option<CachedWindow>,
    ) -> (Arc<str>, usize) {
        let (name, parts): (Arc<str>, _) = (name.into(), parts.clone());
        let counter =
            CachedCounter { name: Arc::clone(&name), parts, count, window, is_changed: false };
        self.counters.push(counter);
        (name, self.counters.len() - 1)
    }

    /// Undoes the changes by the current guards, newest first.
    fn undo_all(&mut self) {
        while let Some(before) = self.undo.pop() {
            let counter = &mut self.counters[before.at];
            counter.count = before.count;
            if let Some(kept) = &mut counter.window {
                kept.window.restore(before.newest);
            }
        }
    }
}

impl CachedCounter {
    fn is_named(&self, name: Name<'_>, window_ms: Option<u64>) -> bool {
        self.window_ms() == window_ms && self.parts.name() == name
    }

    fn window_ms(&self) -> Option<u64> {
        self.window.as_ref().map(|kept| kept.window_ms)
    }

    /// The value now.
    fn value_at(&mut self, now_ms: u64) -> i64 {
        if let Some(kept) = &mut self.window
            && kept.at_ms != Some(now_ms)
        {
            kept.at_ms = Some(now_ms);
            self.count = kept.window.sum(now_ms);
        }
        self.count
    }

    /// Changes the counter. Returns its newest slice before that, if it has slices.
    fn change(&mut self, now_ms: u64, delta: i64, changed: i64) -> Option<Slice> {
        self.count = changed;
        let window = &mut self.window.as_mut()?.window;
        let newest = window.newest();
        window.add(now_ms, delta);
        newest
    }
}

impl CachedWindow {
    /// Writes only the newest slice: nothing else changes within a transaction, because
    /// the clock is read once.
    fn write(&mut self, connection: &Connection, name: &str, now_ms: u64) -> Result<(), Fault> {
        let CachedWindow { window_ms, window, .. } = self;
        let window_ms = int(*window_ms);
        if let Some(oldest) = window.prune(now_ms) {
            let sql = "DELETE FROM slice WHERE name = ?1 AND window = ?2 AND number < ?3";
            let values = params![name, window_ms, int(oldest)];
            connection.prepare_cached(sql)?.execute(values)?;
        }
        if let Some(slice) = window.newest() {
            let sql = "INSERT INTO slice VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT DO UPDATE SET count = excluded.count";
            let values = params![name, window_ms, int(slice.number), slice.count];
            connection.prepare_cached(sql)?.execute(values)?;
        }
        Ok(())
    }
}

fn mark(counter: &mut CachedCounter, at: usize, changed: &mut Vec<usize>) {
    if !counter.is_changed {
        counter.is_changed = true;
        changed.push(at);
    }
}

/// Committed values of counters.
pub(super) fn counts(
    connection: &Connection,
    counters: &[Counter],
    now_ms: u64,
) -> Result<Vec<i64>, Fault> {
    let moment = connection.unchecked_transaction()?;
    let count = |counter: &Counter| match counter.window_ms {
        None => plain(&moment, &counter.name),
        Some(window_ms) => Ok(window(&moment, &counter.name, window_ms)?.sum(now_ms)),
    };
    counters.iter().map(count).collect()
}

/// Committed plain counters that are not zero, between two names.
pub(super) fn between(
    connection: &Connection,
    after: &str,
    before: &str,
    limit: usize,
) -> Result<Vec<Count>, Fault> {
    let sql = "SELECT name, count FROM counter
               WHERE name > ?1 AND name < ?2 AND count <> 0 ORDER BY name LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let limit = int(limit.min(COUNTERS_MAX) as u64);
    let read = |row: &rusqlite::Row<'_>| Ok(Count { name: row.get(0)?, count: row.get(1)? });
    let counters = statement.query_map(params![after, before, limit], read)?;
    Ok(counters.collect::<Result<_, _>>()?)
}

/// A plain counter as stored.
pub(super) fn plain(connection: &Connection, name: &str) -> Result<i64, Fault> {
    let sql = "SELECT count FROM counter WHERE name = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?.unwrap_or(0))
}

fn window(connection: &Connection, name: &str, window_ms: u64) -> Result<Window, Fault> {
    let sql = "SELECT number, count FROM slice WHERE name = ?1 AND window = ?2 ORDER BY number";
    let mut statement = connection.prepare_cached(sql)?;
    let read =
        |row: &rusqlite::Row<'_>| Ok(Slice { number: uint(row.get(0)?), count: row.get(1)? });
    let slices = statement.query_map(params![name, int(window_ms)], read)?;
    Ok(Window::new(window_ms, slices.collect::<Result<Vec<_>, _>>()?))
}
