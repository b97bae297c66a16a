//! The first round trip: what a batch is about, locked and read.

use super::Write;
use crate::REGISTRY;
use crate::authentic::Keys;
use crate::postgres::Shared;
use crate::postgres::column::{Id, Named, Text, get, hash, number, text};
use crate::postgres::count::{Counters, Slot};
use crate::postgres::desk::{NOW, Time, now};
use crate::postgres::entry::LOCK_CHAINS;
use crate::postgres::fault::Fault;
use crate::postgres::session::{Pipeline, Session, step};
use sluice_core::evidence::entry::START;
use sluice_core::evidence::mac::MacKey;
use sluice_core::port::store::{Append, Create, Hash, Head, NodeId};
use sluice_core::run::id::RunId;
use std::collections::BTreeMap;
use tokio_postgres::Row;

const LOCK_RUNS: &str = "SELECT id, owner, epoch, version, fingerprint FROM run
    WHERE id = ANY($1) ORDER BY id FOR UPDATE";
const LOCK_KEYS: &str = "SELECT key, run, fingerprint, expires_at, mac FROM key
    WHERE key = ANY($1) ORDER BY key FOR UPDATE";
/// Whoever only looks at the registry's epoch keeps others from changing it, not
/// from looking.
const LOOK_AT_REGISTRY: &str = "SELECT name, span, count, slices FROM counter
    WHERE name = $1 AND span = 0 FOR SHARE";
const LOCK_REGISTRY: &str = "SELECT name, span, count, slices FROM counter
    WHERE name = $1 AND span = 0 FOR UPDATE";
const LOCK_COUNTERS: &str = "SELECT counter.name, counter.span, count, slices FROM counter
    JOIN unnest($1::text[], $2::bigint[]) AS wanted (name, span)
    ON counter.name = wanted.name AND counter.span = wanted.span
    ORDER BY counter.name, counter.span FOR UPDATE OF counter";
/// Makes rows of counters that have none.
pub(super) const NEW_COUNTERS: &str = "INSERT INTO counter (name, span, count)
    SELECT name, span, 0 FROM unnest($1::text[], $2::bigint[]) AS new (name, span)
    ON CONFLICT DO NOTHING";

/// A run as it is in the transaction under way.
pub(super) struct Known<'a> {
    pub(super) owner: Option<NodeId>,
    pub(super) epoch: u64,
    pub(super) version: u64,
    pub(super) fingerprint: Option<Hash>,
    /// Set where it is created in this batch.
    pub(super) create: Option<&'a Create>,
    /// The newest head of this batch.
    pub(super) head: Option<&'a Head>,
    /// Whether this batch changes it.
    pub(super) is_moved: bool,
}

/// A caller's key as it is in the transaction under way.
pub(super) struct KeyRow {
    pub(super) run: RunId,
    pub(super) fingerprint: Hash,
    pub(super) expires_at_ms: u64,
    pub(super) mac: Vec<u8>,
    /// Whether the table has a row of it.
    pub(super) is_stored: bool,
    pub(super) is_changed: bool,
}

/// Everything that a batch is about. Empty until it is locked.
#[derive(Default)]
pub(super) struct Locked<'a> {
    pub(super) runs: BTreeMap<RunId, Option<Known<'a>>>,
    pub(super) keys: BTreeMap<&'a str, Option<KeyRow>>,
    pub(super) counters: Counters<'a>,
    /// Where the chain of each writer of entries ends.
    pub(super) chains: BTreeMap<NodeId, (u64, Hash)>,
    /// Whether it matters what time it is.
    minds_the_time: bool,
}

impl<'a> Locked<'a> {
    /// What some writes are about.
    pub(super) fn of(writes: impl Iterator<Item = &'a Write>) -> Locked<'a> {
        let mut wanted = Locked::default();
        for write in writes {
            match write {
                Write::Append(append, _) => wanted.want(append),
                Write::Post(letter, _) => {
                    wanted.runs.entry(letter.run).or_default();
                    wanted.minds_the_time = true;
                }
                Write::Record(_, entries) if entries.is_empty() => {}
                Write::Record(writer, _) => _ = wanted.chains.insert(*writer, (0, START)),
            }
        }
        wanted
    }

    fn want(&mut self, append: &'a Append) {
        self.runs.entry(append.run).or_default();
        for letter in &append.letters {
            self.runs.entry(letter.run).or_default();
        }
        if let Some(key) = append.create.as_ref().and_then(|create| create.key.as_ref()) {
            for name in [Some(&key.key), key.former.as_ref()].into_iter().flatten() {
                self.keys.entry(name).or_default();
            }
        }
        self.counters.want(&append.guards);
        self.minds_the_time |= !append.letters.is_empty()
            || super::is_released(append)
            || append.create.as_ref().is_some_and(|create| create.key.is_some())
            || append.guards.iter().any(|guard| guard.window_ms.is_some());
        if !append.entries.is_empty() {
            self.chains.insert(append.node, (0, START));
        }
    }

    /// Locks and reads it all. Answers what time it is then, if that matters.
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
        let asks = matches!(time, Time::Database) && self.minds_the_time;
        let clock = asks.then(|| step!(pipeline, NOW));
        let answers = session.run(&pipeline).await?;
        drop(pipeline);
        let rows = |at: Option<usize>| at.map_or(&[][..], |at| &answers[at][..]);
        for row in rows(runs) {
            self.runs.insert(get::<Id>(row, 0)?.run(), Some(known(row)?));
        }
        for row in rows(keys) {
            self.read_key(&shared.keys, row)?;
        }
        for at in counters {
            self.counters.read(&answers[at])?;
        }
        if !self.counters.are_read() {
            return Err(Fault::Again("a counter has lost its row".to_owned()));
        }
        if chains.is_some_and(|at| answers[at].len() != self.chains.len()) {
            return Err(Fault::Again("a chain has lost its row".to_owned()));
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

/// The registry's counter before all others, wherever its name would put it.
fn lock_counters<'a>(pipeline: &mut Pipeline<'a>, slots: &[&Slot<'a>]) -> Vec<usize> {
    let is_registry = |slot: &&&Slot<'_>| slot.name.is(REGISTRY) && slot.span == 0;
    let mut places = Vec::new();
    if let Some(registry) = slots.iter().find(is_registry) {
        let sql = if registry.is_wanted { LOCK_REGISTRY } else { LOOK_AT_REGISTRY };
        places.push(step!(pipeline, sql, REGISTRY));
    }
    let (names, spans): (Vec<Named<'a>>, Vec<i64>) = slots
        .iter()
        .filter(|slot| !is_registry(slot))
        .map(|slot| (Named(slot.name), slot.span))
        .unzip();
    if !names.is_empty() {
        places.push(step!(pipeline, LOCK_COUNTERS, names, spans));
    }
    places
}

fn known(row: &Row) -> Result<Known<'static>, Fault> {
    let fingerprint: Option<&[u8]> = get(row, 4)?;
    Ok(Known {
        owner: get::<Option<Id>>(row, 1)?.map(Id::node),
        epoch: number(row, 2)?,
        version: number(row, 3)?,
        fingerprint: fingerprint.map(|_| hash(row, 4)).transpose()?,
        create: None,
        head: None,
        is_moved: false,
    })
}
