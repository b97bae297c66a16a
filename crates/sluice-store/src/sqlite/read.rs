//! Journals and blobs, read.

use super::column::{int, run_bytes, uint};
use super::fault::Fault;
use rusqlite::{Connection, OptionalExtension as _};
use sluice_core::port::store::{Frame, Hash, Loaded};
use sluice_core::run::id::RunId;

/// The newest snapshot and the tail after it, from one moment.
pub(super) fn load(connection: &Connection, run: RunId) -> Result<Option<Loaded>, Fault> {
    let moment = connection.unchecked_transaction()?;
    let Some(num) = number(&moment, run)? else {
        return Ok(None);
    };
    let sql = "SELECT version, body FROM snapshot WHERE run = ?1";
    let read = |row: &rusqlite::Row<'_>| Ok((uint(row.get(0)?), row.get(1)?));
    let snapshot = moment.prepare_cached(sql)?.query_row([num], read).optional()?;
    let after = snapshot.as_ref().map_or(0, |(version, _)| *version);
    let frames = tail(&moment, num, after, usize::MAX, BARE)?;
    Ok(Some(Loaded { snapshot, frames }))
}

/// A page of frames.
pub(super) fn frames(
    connection: &Connection,
    run: RunId,
    after: u64,
    bytes_max: usize,
) -> Result<Vec<Frame>, Fault> {
    let moment = connection.unchecked_transaction()?;
    match number(&moment, run)? {
        Some(num) => tail(&moment, num, after, bytes_max, WHOLE),
        None => Ok(Vec::new()),
    }
}

/// What lies under a hash. It is looked at: a blob is read rarely and believed fully.
pub(super) fn blob(connection: &Connection, hash: Hash) -> Result<Option<Vec<u8>>, Fault> {
    let sql = "SELECT body FROM blob WHERE hash = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let body: Option<Vec<u8>> = statement.query_row([hash.0], |row| row.get(0)).optional()?;
    match body {
        Some(body) if Hash::of(&body) != hash => {
            Err(Fault::Corrupt(format!("the blob {hash} is not what was stored")))
        }
        body => Ok(body),
    }
}

/// A frame as the fold reads it.
const BARE: &str = "SELECT prev, first, count, chain, body, NULL FROM frame WHERE seq = ?1";
/// A frame with what stands beside it.
const WHOLE: &str = "SELECT prev, first, count, chain, frame.body, beside.body
                     FROM frame LEFT JOIN beside ON beside.seq = frame.seq WHERE frame.seq = ?1";

/// The frame, if something stands beside it.
pub(super) fn has_beside(connection: &Connection, seq: i64) -> Result<Option<i64>, Fault> {
    let sql = "SELECT seq FROM beside WHERE seq = ?1 AND length(body) > 0";
    Ok(connection.prepare_cached(sql)?.query_row([seq], |row| row.get(0)).optional()?)
}

fn number(connection: &Connection, run: RunId) -> Result<Option<i64>, Fault> {
    let sql = "SELECT num FROM run WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([run_bytes(run)], |row| row.get(0)).optional()?)
}

/// The frames with events after `after`, until they pass `bytes_max`. From mark
/// to mark, so that no walk along the chain is long.
fn tail(
    connection: &Connection,
    num: i64,
    mut after: u64,
    bytes_max: usize,
    sql: &str,
) -> Result<Vec<Frame>, Fault> {
    let mut page: Vec<Frame> = Vec::new();
    let mut bytes = 0usize;
    loop {
        let chain = walk(connection, entry(connection, num, after)?, after, sql)?;
        let Some(newest) = chain.first() else {
            return Ok(page);
        };
        after = newest.first + u64::from(newest.count) - 1;
        for frame in chain.into_iter().rev() {
            bytes = bytes.saturating_add(frame.body.len() + frame.beside.len());
            if bytes > bytes_max && !page.is_empty() {
                return Ok(page);
            }
            page.push(frame);
        }
    }
}

/// Where to enter the chain to find what comes after `after`: the next mark, or
/// the tip.
fn entry(connection: &Connection, num: i64, after: u64) -> Result<i64, Fault> {
    let sql = "SELECT seq FROM mark WHERE run = ?1 AND first > ?2 ORDER BY first LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let mark = statement.query_row([num, int(after)], |row| row.get(0)).optional()?;
    if let Some(seq) = mark {
        return Ok(seq);
    }
    let sql = "SELECT seq FROM tip WHERE run = ?1";
    Ok(connection.prepare_cached(sql)?.query_row([num], |row| row.get(0))?)
}

/// Where the frame with this first event lies, if there is one.
pub(super) fn place(connection: &Connection, num: i64, first: u64) -> Result<Option<i64>, Fault> {
    let mut seq = entry(connection, num, first.saturating_sub(1))?;
    let mut statement =
        connection.prepare_cached("SELECT prev, first FROM frame WHERE seq = ?1")?;
    while seq > 0 {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, uint(row.get(1)?)));
        let found = statement.query_row([seq], read).optional()?;
        let Some((prev, begins)) = found.filter(|(prev, _)| *prev < seq) else {
            return Err(Fault::Corrupt(format!("frame {seq} of a journal is missing")));
        };
        if begins <= first {
            return Ok((begins == first).then_some(seq));
        }
        seq = prev;
    }
    Ok(None)
}

/// The frames from `seq` back to the one after `after`, newest first.
fn walk(connection: &Connection, mut seq: i64, after: u64, sql: &str) -> Result<Vec<Frame>, Fault> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut chain = Vec::new();
    while seq > 0 {
        let read = |row: &rusqlite::Row<'_>| {
            let frame = Frame {
                first: uint(row.get(1)?),
                count: row.get(2)?,
                chain: row.get(3)?,
                body: row.get(4)?,
                beside: row.get::<_, Option<Vec<u8>>>(5)?.unwrap_or_default(),
            };
            Ok((row.get::<_, i64>(0)?, frame))
        };
        let found = statement.query_row([seq], read).optional()?;
        // Links only go back, so the walk ends whatever the file holds.
        let Some((prev, frame)) = found.filter(|(prev, _)| *prev < seq) else {
            return Err(Fault::Corrupt(format!("frame {seq} of a journal is missing")));
        };
        if frame.first + u64::from(frame.count) <= after.saturating_add(1) {
            break;
        }
        chain.push(frame);
        seq = prev;
    }
    Ok(chain)
}
