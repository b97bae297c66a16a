//! Reads journals and blobs.

use super::column::{int, run_bytes, uint};
use super::fault::Fault;
use super::reader::ReadConnection;
use crate::authentic::{Keys, authentic, frame_place};
use rusqlite::{Connection, OptionalExtension as _};
use sluice_core::evidence::mac::{MacKey, last_hash};
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::store::{Examined, Frame, Loaded};

/// The newest snapshot and the frames after it, from one moment. A snapshot that is not
/// authentic, or does not belong to this journal, is ignored: the journal is complete.
pub(super) fn load(reader: &ReadConnection, run: RunId) -> Result<Option<Loaded>, Fault> {
    let moment = reader.connection.unchecked_transaction()?;
    let Some(num) = number(&moment, run)? else {
        return Ok(None);
    };
    let journal =
        JournalReader { connection: &moment, keys: &reader.shared.keys, run, num, sql: BARE };
    let sql = "SELECT version, body, mac FROM snapshot WHERE run = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok((uint(row.get(0)?), row.get::<_, Vec<u8>>(1)?, row.get::<_, Vec<u8>>(2)?))
    };
    let snapshot = moment.prepare_cached(sql)?.query_row([num], read).optional()?;
    let has_snapshot = snapshot.is_some();
    if let Some((version, body, mac)) = snapshot {
        let tail = journal.tail(version, usize::MAX)?;
        let is_own = |key: &MacKey| {
            let last = tail.before.filter(|(last, _)| *last == version);
            last.is_some_and(|(_, hash)| key.snapshot(run, version, hash, &body).is(&mac))
        };
        if journal.keys.get().is_none_or(is_own) {
            let frames = authentic(run, tail.frames).map_err(Fault::Corrupt)?;
            let snapshot = Some((version, body));
            return Ok(Some(Loaded { snapshot, frames, has_foreign_snapshot: false }));
        }
    }
    let frames = journal.tail(0, usize::MAX)?.frames;
    let frames = authentic(run, frames).map_err(Fault::Corrupt)?;
    Ok(Some(Loaded { snapshot: None, frames, has_foreign_snapshot: has_snapshot }))
}

/// A page of frames, all of them authentic.
pub(super) fn frames(
    reader: &ReadConnection,
    run: RunId,
    after: u64,
    bytes_max: usize,
) -> Result<Vec<Frame>, Fault> {
    authentic(run, examine(reader, run, after, bytes_max)?).map_err(Fault::Corrupt)
}

/// A page of frames as stored.
pub(super) fn examine(
    reader: &ReadConnection,
    run: RunId,
    after: u64,
    bytes_max: usize,
) -> Result<Vec<Examined>, Fault> {
    let moment = reader.connection.unchecked_transaction()?;
    let Some(num) = number(&moment, run)? else { return Ok(Vec::new()) };
    let keys = &reader.shared.keys;
    let journal = JournalReader { connection: &moment, keys, run, num, sql: WHOLE };
    Ok(journal.tail(after, bytes_max)?.frames)
}

/// The blob with a hash. The hash is verified: blobs are read rarely and fully trusted.
pub(super) fn blob(connection: &Connection, hash: Hash) -> Result<Option<Vec<u8>>, Fault> {
    let sql = "SELECT body FROM blob WHERE hash = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let body: Option<Vec<u8>> = statement.query_row([hash.0], |row| row.get(0)).optional()?;
    match body {
        Some(body) if Hash::of(&body) != hash => {
            Err(Fault::Corrupt(format!("the content of blob {hash} does not match its hash")))
        }
        body => Ok(body),
    }
}

/// A frame without its stream deltas.
const BARE: &str = "SELECT prev, first, count, chain, mac, body, NULL FROM frame WHERE seq = ?1";
/// A frame with its stream deltas.
const WHOLE: &str = "SELECT prev, first, count, chain, mac, frame.body, beside.body
                     FROM frame LEFT JOIN beside ON beside.seq = frame.seq WHERE frame.seq = ?1";

/// The frame, if it has stream deltas.
pub(super) fn has_beside(connection: &Connection, seq: i64) -> Result<Option<i64>, Fault> {
    let sql = "SELECT seq FROM beside WHERE seq = ?1 AND length(body) > 0";
    Ok(connection.prepare_cached(sql)?.query_row([seq], |row| row.get(0)).optional()?)
}

fn number(connection: &Connection, run: RunId) -> Result<Option<i64>, Fault> {
    let sql = "SELECT num FROM run WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([run_bytes(run)], |row| row.get(0)).optional()?)
}

/// Reads the frames of one run.
struct JournalReader<'a> {
    connection: &'a Connection,
    keys: &'a Keys,
    run: RunId,
    num: i64,
    /// The query for one frame.
    sql: &'a str,
}

/// A range of frames at the end of a journal.
struct Tail {
    frames: Vec<Examined>,
    /// Last event of the frame before the range, and its hash, if both are authentic.
    before: Option<(u64, Hash)>,
}

impl JournalReader<'_> {
    /// The frames with events after `after`, up to `bytes_max`. Reads from one index
    /// mark to the next, which bounds the length of each walk along the chain.
    fn tail(&self, mut after: u64, bytes_max: usize) -> Result<Tail, Fault> {
        let mut page = Tail { frames: Vec::new(), before: None };
        let mut bytes = 0usize;
        loop {
            let found = self.walk(entry(self.connection, self.num, after)?, after)?;
            if page.frames.is_empty() {
                page.before = found.before;
            }
            let Some(newest) = found.frames.first() else {
                return Ok(page);
            };
            after = newest.frame.first + u64::from(newest.frame.count) - 1;
            for one in found.frames.into_iter().rev() {
                bytes = bytes.saturating_add(one.frame.body.len() + one.frame.beside.len());
                if bytes > bytes_max && !page.frames.is_empty() {
                    return Ok(page);
                }
                page.frames.push(one);
            }
        }
    }

    /// The frames from `seq` back to the one after `after`, newest first.
    fn walk(&self, mut seq: i64, after: u64) -> Result<Tail, Fault> {
        let mut statement = self.connection.prepare_cached(self.sql)?;
        let mut chain = Tail { frames: Vec::new(), before: None };
        while seq > 0 {
            let mut rows = statement.query([seq])?;
            // Links only go back, so the walk ends even if the file is damaged.
            let row = rows.next()?.map(|row| Ok::<_, Fault>((row.get::<_, i64>(0)?, row)));
            let Some((prev, row)) = row.transpose()?.filter(|(prev, _)| *prev < seq) else {
                return Err(Fault::Corrupt(format!("frame {seq} of a journal is missing")));
            };
            let frame = Frame {
                first: uint(row.get(1)?),
                count: row.get(2)?,
                chain: row.get(3)?,
                body: row.get(5)?,
                beside: row.get::<_, Option<Vec<u8>>>(6)?.unwrap_or_default(),
            };
            let mac = row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?;
            let end = frame.first + u64::from(frame.count);
            if end <= after.saturating_add(1) {
                let place = frame_place(self.run, &frame);
                let is_placed = self.keys.get().is_none_or(|key| key.is_placed(place, mac));
                chain.before = is_placed.then(|| (end.saturating_sub(1), last_hash(&frame.chain)));
                break;
            }
            chain.frames.push(self.keys.examined(self.run, frame, mac));
            seq = prev;
        }
        Ok(chain)
    }
}

/// The frame at which to enter the chain for events after `after`: the next index mark,
/// or the last frame.
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

/// The frame with this first event, if there is one.
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

/// A frame without its body.
pub(super) struct NarrowFrame {
    pub(super) first: u64,
    pub(super) count: u32,
    pub(super) chain: Vec<u8>,
    pub(super) mac: Vec<u8>,
}

/// The frame that holds an event, or the last one before it; `None` if the journal
/// begins later.
pub(super) fn frame_at(
    connection: &Connection,
    num: i64,
    event: u64,
) -> Result<Option<NarrowFrame>, Fault> {
    let mut seq = entry(connection, num, event)?;
    let sql = "SELECT prev, first, count, chain, mac FROM frame WHERE seq = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let read = |row: &rusqlite::Row<'_>| {
        let (first, count) = (uint(row.get(1)?), row.get(2)?);
        let frame = NarrowFrame { first, count, chain: row.get(3)?, mac: row.get(4)? };
        Ok((row.get::<_, i64>(0)?, frame))
    };
    while seq > 0 {
        let found = statement.query_row([seq], read).optional()?;
        let Some((prev, frame)) = found.filter(|(prev, _)| *prev < seq) else {
            return Err(Fault::Corrupt(format!("frame {seq} of a journal is missing")));
        };
        if frame.first <= event {
            return Ok(Some(frame));
        }
        seq = prev;
    }
    Ok(None)
}
