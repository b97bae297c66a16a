//! Seals, and what no seal covers yet.

use super::column::{int, node_id, run_id, uint};
use super::fault::Fault;
use super::reader::ReadConnection;
use super::recent_heads::Heads;
use super::writer::Work;
use crate::authentic::Keys;
use crate::limits::{SEAL_ROWS_MAX, SEALS_MAX};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use sluice_core::evidence::mac::FramePlace;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::ledger::{SealMark, SealRow, Sealed, Sealing, Unsealed};
use sluice_core::port::store::NodeId;
use std::collections::BTreeMap;
use std::sync::PoisonError;

/// Adds a seal if it has the next number.
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

/// Everything after the newest seal, from one moment.
pub(super) fn unsealed(reader: &ReadConnection, limit: usize) -> Result<Unsealed, Fault> {
    let moment = reader.connection.unchecked_transaction()?;
    let last = last(&moment)?;
    let mut upto = last.map_or_else(SealMark::default, |(_, _, upto)| upto);
    let heads = match cached_heads(reader, &moment, &mut upto, limit)? {
        Some(heads) => heads,
        None => heads(&moment, &reader.shared.keys, &mut upto, limit)?,
    };
    let writers = writers(&moment, &reader.shared.keys, &mut upto)?;
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

/// The heads from the cache, if this process wrote all frames after the mark.
fn cached_heads(
    reader: &ReadConnection,
    connection: &Connection,
    upto: &mut SealMark,
    limit: usize,
) -> Result<Option<Heads>, Fault> {
    let sql = "SELECT coalesce(max(seq), 0) FROM frame";
    let newest: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    let mut fresh = reader.shared.recent_heads.lock().unwrap_or_else(PoisonError::into_inner);
    let found = fresh.heads(int(upto.frames), newest, limit);
    Ok(found.map(|(heads, seen)| {
        upto.frames = uint(seen);
        heads
    }))
}

/// The newest version of every run that has a frame after the mark. Moves the mark to
/// the last frame examined. Skips frames that are not authentic.
fn heads(
    connection: &Connection,
    keys: &Keys,
    upto: &mut SealMark,
    limit: usize,
) -> Result<Heads, Fault> {
    let sql = "SELECT seq, frame.run, first, count, chain, mac, run.id
               FROM frame LEFT JOIN run ON run.num = frame.run WHERE seq > ?1
               ORDER BY seq LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([int(upto.frames), int(SEAL_ROWS_MAX as u64)])?;
    let mut newest: BTreeMap<RunId, (u64, Hash)> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let blob = |at| row.get_ref(at)?.as_blob().map_err(rusqlite::Error::from);
        let (chain, mac) = (blob(4)?, blob(5)?);
        // Frames from before the hash chain have nothing to seal.
        if let Some(hash) = chain.last_chunk::<32>() {
            let Some(run) = row.get::<_, Option<[u8; 16]>>(6)?.map(run_id) else {
                let num: i64 = row.get(1)?;
                return Err(Fault::Corrupt(format!("run {num} has frames and no row")));
            };
            let (first, count) = (uint(row.get(2)?), row.get(3)?);
            let place = FramePlace { run, first, count, chain };
            if keys.get().is_none_or(|key| key.is_placed(place, mac)) {
                if newest.len() >= limit && !newest.contains_key(&run) {
                    break;
                }
                newest.insert(run, ((first + u64::from(count)).saturating_sub(1), Hash(*hash)));
            }
        }
        upto.frames = uint(row.get(0)?);
    }
    Ok(newest.into_iter().map(|(run, (version, hash))| (run, version, hash)).collect())
}

/// The last authentic entry of every writer that has one after the mark.
fn writers(
    connection: &Connection,
    keys: &Keys,
    upto: &mut SealMark,
) -> Result<Vec<(NodeId, u64, Hash)>, Fault> {
    let sql = "SELECT place, writer, seq, hash, mac FROM entry WHERE place > ?1
               ORDER BY place LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([int(upto.entries), int(SEAL_ROWS_MAX as u64)])?;
    let mut newest: BTreeMap<NodeId, (u64, Hash)> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (writer, seq) = (node_id(row.get(1)?), uint(row.get(2)?));
        let (hash, mac) = (Hash(row.get(3)?), row.get_ref(4)?.as_blob());
        let mac = mac.map_err(rusqlite::Error::from)?;
        if keys.get().is_none_or(|key| key.entry(writer, seq, hash).is(mac)) {
            newest.insert(writer, (seq, hash));
        }
        upto.entries = uint(row.get(0)?);
    }
    Ok(newest.into_iter().map(|(writer, (seq, hash))| (writer, seq, hash)).collect())
}
