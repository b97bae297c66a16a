//! The first round trip: locks and reads the rows that a batch involves.

use super::Write;
use crate::REGISTRY;
use crate::authentic::Keys;
use crate::postgres::Shared;
use crate::postgres::column::{CounterText, Id, Text, get, hash, number, text};
use crate::postgres::count::{BatchCounter, Counters};
use crate::postgres::entry::LOCK_CHAINS;
use crate::postgres::fault::Fault;
use crate::postgres::pool::{NOW, Time, now};
use crate::postgres::session::{Pipeline, Session, step};
use sluice_core::evidence::entry::START;
use sluice_core::evidence::mac::MacKey;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::store::{Append, Create, Head, NodeId};
use std::collections::BTreeMap;
use tokio_postgres::Row;

const LOCK_RUNS: &str = "SELECT id, owner, epoch, version, fingerprint FROM run
    WHERE id = ANY($1) ORDER BY id FOR UPDATE";
const LOCK_KEYS: &str = "SELECT key, run, fingerprint, expires_at, mac FROM key
    WHERE key = ANY($1) ORDER BY key FOR UPDATE";
/// A shared lock: other nodes can read the registry's epoch at the same time, but not
/// change it.
const SHARE_REGISTRY: &str = "SELECT name, span, count, slices FROM counter
    WHERE name = $1 AND span = 0 FOR SHARE";
const LOCK_REGISTRY: &str = "SELECT name, span, count, slices FROM counter
    WHERE name = $1 AND span = 0 FOR UPDATE";
const LOCK_COUNTERS: &str = "SELECT counter.name, counter.span, count, slices FROM counter
    JOIN unnest($1::text[], $2::bigint[]) AS wanted (name, span)
    ON counter.name = wanted.name AND counter.span = wanted.span
    ORDER BY counter.name, counter.span FOR UPDATE OF counter";
/// Inserts the missing rows of counters.
pub(super) const NEW_COUNTERS: &str = "INSERT INTO counter (name, span, count)
    SELECT name, span, 0 FROM unnest($1::text[], $2::bigint[]) AS new (name, span)
    ON CONFLICT DO NOTHING";

/// A run as of the current transaction.
pub(super) struct LockedRun<'a> {
    pub(super) owner: Option<NodeId>,
    pub(super) epoch: u64,
    pub(super) version: u64,
    pub(super) fingerprint: Option<Hash>,
    /// Set if this batch creates the run.
    pub(super) create: Option<&'a Create>,
    /// The newest head in this batch.
    pub(super) head: Option<&'a Head>,
    /// Whether this batch changes the run.
    pub(super) is_moved: bool,
}

/// An idempotency key as of the current transaction.
pub(super) struct KeyRow {
    pub(super) run: RunId,
    pub(super) fingerprint: Hash,
    pub(super) expires_at_ms: u64,
    pub(super) mac: Vec<u8>,
    /// Whether the table has a row for it.
    pub(super) is_stored: bool,
    pub(super) is_changed: bool,
}

/// The rows that a batch involves. Empty until they are locked.
#[derive(Default)]
pub(super) struct LockedRows<'a> {
    pub(super) runs: BTreeMap<RunId, Option<LockedRun<'a>>>,
    pub(super) keys: BTreeMap<&'a str, Option<KeyRow>>,
    pub(super) counters: Counters<'a>,
    /// End of each writer's entry chain.
    pub(super) chains: BTreeMap<NodeId, (u64, Hash)>,
    /// Whether any write depends on the time.
    needs_time: bool,
}

impl<'a> LockedRows<'a> {
    /// Collects the keys of the rows that some writes involve.
    pub(super) fn collect(writes: impl Iterator<Item = &'a Write>) -> LockedRows<'a> {
        let mut rows = LockedRows::default();
        for write in writes {
            match write {
                Write::Append(append, _) => rows.add_append(append),
                Write::Post(message, _) => {
                    rows.runs.entry(message.run).or_default();
                    rows.needs_time = true;
                }
                Write::Record(_, entries) if entries.is_empty() => {}
                Write::Record(writer, _) => _ = rows.chains.insert(*writer, (0, START)),
            }
        }
        rows
    }

    fn add_append(&mut self, append: &'a Append) {
        self.runs.entry(append.run).or_default();
        for message in &append.messages {
            self.runs.entry(message.run).or_default();
        }
        if let Some(key) = append.create.as_ref().and_then(|create| create.key.as_ref()) {
            for name in [Some(&key.key), key.former.as_ref()].into_iter().flatten() {
                self.keys.entry(name).or_default();
            }
        }
        self.counters.add_guards(&append.guards);
        self.needs_time |= !append.messages.is_empty()
            || super::is_released(append)
            || append.create.as_ref().is_some_and(|create| create.key.is_some())
            || append.guards.iter().any(|guard| guard.window_ms.is_some());
        if !append.entries.is_empty() {
            self.chains.insert(append.node, (0, START));
        }
    }

    /// Locks and reads the rows. Returns the time, or 0 if no write depends on it.
    pub(super) async fn lock(&mut self, session: &Session, shared: &Shared) -> Result<u64, Fault> {
        let time = &shared.time;
        let mut pipeline = Pipeline::default();
        step!(pipeline, "BEGIN");
        let runs: Vec<Id> = self.runs.keys().map(|run| Id::from(*run)).collect();
        let runs = (!runs.is_empty()).then(|| step!(pipeline, LOCK_RUNS, runs));
        let keys: Vec<Text<'a>> = self.keys.keys().copied().map(Text).collect();
        let keys = (!keys.is_empty()).then(|| step!(pipeline, LOCK_KEYS, keys));
        let counters = lock_counters(&mut pipeline, &self.counters.sorted());
        let chains: Vec<Id> = self.chains.keys().map(|writer| Id::from(*writer)).collect();
        let chains = (!chains.is_empty()).then(|| step!(pipeline, LOCK_CHAINS, chains));
        let asks = matches!(time, Time::Database) && self.needs_time;
        let clock = asks.then(|| step!(pipeline, NOW));
        let answers = session.run(&pipeline).await?;
        drop(pipeline);
        let rows = |at: Option<usize>| at.map_or(&[][..], |at| &answers[at][..]);
        for row in rows(runs) {
            self.runs.insert(get::<Id>(row, 0)?.run(), Some(locked_run(row)?));
        }
        for row in rows(keys) {
            self.read_key(&shared.keys, row)?;
        }
        for at in counters {
            self.counters.read(&answers[at])?;
        }
        if !self.counters.are_read() {
            return Err(Fault::Conflict("a counter has lost its row".to_owned()));
        }
        if chains.is_some_and(|at| answers[at].len() != self.chains.len()) {
            return Err(Fault::Conflict("a chain has lost its row".to_owned()));
        }
        for row in rows(chains) {
            self.chains.insert(get::<Id>(row, 0)?.node(), (number(row, 1)?, hash(row, 2)?));
        }
        match time {
            Time::Given(clock) => Ok(clock.now_ms()),
            Time::Database => clock.map_or(Ok(0), |at| now(&answers[at][0])),
        }
    }

    fn read_key(&mut self, keys: &Keys, row: &Row) -> Result<(), Fault> {
        let name = text(row, 0)?;
        let (run, fingerprint) = (get::<Id>(row, 1)?.run(), hash(row, 2)?);
        let (expires_at_ms, mac) = (number(row, 3)?, get::<Vec<u8>>(row, 4)?);
        let is_own = |key: &MacKey| key.key(&name, run, fingerprint, expires_at_ms).is(&mac);
        if !keys.get().is_none_or(is_own) {
            return Err(Fault::Corrupt(format!("the idempotency key {name:?} is not authentic")));
        }
        if let Some(key) = self.keys.get_mut(&*name) {
            *key = Some(KeyRow {
                run,
                fingerprint,
                expires_at_ms,
                mac,
                is_stored: true,
                is_changed: false,
            });
        }
        Ok(())
    }
}

/// Locks the registry's counter before all other counters, whatever its name.
fn lock_counters<'a>(pipeline: &mut Pipeline<'a>, counters: &[&BatchCounter<'a>]) -> Vec<usize> {
    let is_registry = |counter: &&&BatchCounter<'_>| counter.name.is(REGISTRY) && counter.span == 0;
    let mut places = Vec::new();
    if let Some(registry) = counters.iter().find(is_registry) {
        let sql = if registry.is_wanted { LOCK_REGISTRY } else { SHARE_REGISTRY };
        places.push(step!(pipeline, sql, REGISTRY));
    }
    let (names, spans): (Vec<CounterText<'a>>, Vec<i64>) = counters
        .iter()
        .filter(|counter| !is_registry(counter))
        .map(|counter| (CounterText(counter.name), counter.span))
        .unzip();
    if !names.is_empty() {
        places.push(step!(pipeline, LOCK_COUNTERS, names, spans));
    }
    places
}

fn locked_run(row: &Row) -> Result<LockedRun<'static>, Fault> {
    let fingerprint: Option<&[u8]> = get(row, 4)?;
    Ok(LockedRun {
        owner: get::<Option<Id>>(row, 1)?.map(Id::node),
        epoch: number(row, 2)?,
        version: number(row, 3)?,
        fingerprint: fingerprint.map(|_| hash(row, 4)).transpose()?,
        create: None,
        head: None,
        is_moved: false,
    })
}
