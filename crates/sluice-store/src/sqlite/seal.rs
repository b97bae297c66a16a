//! Seals, and what they have not covered yet.

use super::column::{int, node_id, run_id, uint};
use super::fault::Fault;
use super::fresh::Heads;
use super::reader::Desk;
use super::writer::Work;
use crate::limits::{SEAL_ROWS_MAX, SEALS_MAX};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use sluice_core::port::ledger::{SealMark, SealRow, Sealed, Sealing, Unsealed};
use sluice_core::port::store::{Hash, NodeId};
use std::collections::{BTreeMap, HashMap};
use std::sync::PoisonError;

/// Adds a seal, if it is the next.
pub(super) fn seal(work: &mut Work<'_>, seal: &Sealing) -> Result<Sealed, Fault> {
    let last = last(work.connection)?.map_or(0, |(number, _, _)| number);
    if seal.number != last + 1 {
        return Ok(Sealed::Stale);
    }
    let sql = "INSERT INTO seal (number, hash, frames, entries, text, leaves)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    work.connection.prepare_cached(sql)?.execute(params![
        int(seal.number),
        seal.hash.0,
        int(seal.upto.frames),
        int(seal.upto.entries),
        seal.text,
        seal.leaves,
    ])?;
    Ok(Sealed::Done)
}

/// A page of seals.
pub(super) fn seals(
    connection: &Connection,
    from: u64,
    limit: usize,
) -> Result<Vec<SealRow>, Fault> {
    let sql = "SELECT number, text, leaves FROM seal WHERE number >= ?1 ORDER BY number LIMIT ?2";
    let limit = int(limit.min(SEALS_MAX) as u64);
    let read = |row: &Row<'_>| {
        Ok(SealRow { number: uint(row.get(0)?), text: row.get(1)?, leaves: row.get(2)? })
    };
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([int(from), limit], read)?;
    Ok(rows.collect::<Result<Vec<_>, _>>()?)
}

/// What came after the newest seal, from one moment.
pub(super) fn unsealed(desk: &Desk, limit: usize) -> Result<Unsealed, Fault> {
    let moment = desk.connection.unchecked_transaction()?;
    let last = last(&moment)?;
    let mut upto = last.map_or_else(SealMark::default, |(_, _, upto)| upto);
    let heads = match known(desk, &moment, &mut upto, limit)? {
        Some(heads) => heads,
        None => heads(&moment, &mut upto, limit)?,
    };
    let writers = writers(&moment, &mut upto)?;
    let last = last.map(|(number, hash, _)| (number, hash));
    Ok(Unsealed { last, heads, writers, upto })
}

fn last(connection: &Connection) -> Result<Option<(u64, Hash, SealMark)>, Fault> {
    let sql = "SELECT number, hash, frames, entries FROM seal ORDER BY number DESC LIMIT 1";
    let read = |row: &Row<'_>| {
        let upto = SealMark { frames: uint(row.get(2)?), entries: uint(row.get(3)?) };
        Ok((uint(row.get(0)?), Hash(row.get(1)?), upto))
    };
    Ok(connection.prepare_cached(sql)?.query_row([], read).optional()?)
}

/// The same as this process remembers it, if it wrote all of that itself.
fn known(
    desk: &Desk,
    connection: &Connection,
    upto: &mut SealMark,
    limit: usize,
) -> Result<Option<Heads>, Fault> {
    let sql = "SELECT coalesce(max(seq), 0) FROM frame";
    let newest: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    let mut fresh = desk.shared.fresh.lock().unwrap_or_else(PoisonError::into_inner);
    let found = fresh.heads(int(upto.frames), newest, limit);
    Ok(found.map(|(heads, seen)| {
        upto.frames = uint(seen);
        heads
    }))
}

/// The newest version of every run that has a frame after the mark. The mark
/// goes on to the last frame that was looked at.
fn heads(connection: &Connection, upto: &mut SealMark, limit: usize) -> Result<Heads, Fault> {
    let sql = "SELECT seq, run, first, count, chain FROM frame WHERE seq > ?1
               ORDER BY seq LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([int(upto.frames), int(SEAL_ROWS_MAX as u64)])?;
    let mut newest: HashMap<i64, (u64, Hash)> = HashMap::new();
    while let Some(row) = rows.next()? {
        let chain = row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?;
        // Frames from before there were hashes have nothing to seal.
        if let Some(hash) = chain.last_chunk::<32>() {
            let num = row.get(1)?;
            if newest.len() >= limit && !newest.contains_key(&num) {
                break;
            }
            let version = uint(row.get::<_, i64>(2)? + row.get::<_, i64>(3)? - 1);
            newest.insert(num, (version, Hash(*hash)));
        }
        upto.frames = uint(row.get(0)?);
    }
    named(connection, newest)
}

/// Names the runs. In the order of their numbers, so that neighbours share pages.
fn named(connection: &Connection, newest: HashMap<i64, (u64, Hash)>) -> Result<Heads, Fault> {
    let mut newest: Vec<(i64, (u64, Hash))> = newest.into_iter().collect();
    newest.sort_unstable_by_key(|(num, _)| *num);
    let mut statement = connection.prepare_cached("SELECT id FROM run WHERE num = ?1")?;
    let mut heads = Vec::with_capacity(newest.len());
    for (num, (version, hash)) in newest {
        let run = statement.query_row([num], |row| row.get(0)).optional()?;
        let Some(run) = run else {
            return Err(Fault::Corrupt(format!("run {num} has frames and no row")));
        };
        heads.push((run_id(run), version, hash));
    }
    heads.sort_unstable_by_key(|(run, _, _)| *run);
    Ok(heads)
}

/// The last entry of every writer that has one after the mark.
fn writers(
    connection: &Connection,
    upto: &mut SealMark,
) -> Result<Vec<(NodeId, u64, Hash)>, Fault> {
    let sql = "SELECT place, writer, seq, hash FROM entry WHERE place > ?1
               ORDER BY place LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([int(upto.entries), int(SEAL_ROWS_MAX as u64)])?;
    let mut newest: BTreeMap<NodeId, (u64, Hash)> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        newest.insert(node_id(row.get(1)?), (uint(row.get(2)?), Hash(row.get(3)?)));
        upto.entries = uint(row.get(0)?);
    }
    Ok(newest.into_iter().map(|(writer, (seq, hash))| (writer, seq, hash)).collect())
}
