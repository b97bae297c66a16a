//! Reads journals and blobs.

use super::column::{int, run_bytes, uint};
use super::fault::Fault;
use super::reader::ReadConnection;
use crate::authentic::{Keys, authentic};
use rusqlite::{Connection, OptionalExtension as _};
use sluice_core::evidence::mac::{FramePlace, MacKey, last_hash};
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
        JournalReader { connection: &moment, keys: &reader.shared.keys, run, num, queries: BARE };
    let sql = "SELECT version, body, mac FROM snapshot WHERE run = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok((uint(row.get(0)?), row.get::<_, Vec<u8>>(1)?, row.get::<_, Vec<u8>>(2)?))
    };
    let snapshot = moment.prepare_cached(sql)?.query_row([num], read).optional()?;
    let has_snapshot = snapshot.is_some();
    if let Some((version, body, mac)) = snapshot {
        let tail = journal.tail(version, usize::MAX)?;
        let last = journal.last_event(tail.before)?.filter(|(last, _)| *last == version);
        let is_own = |key: &MacKey| {
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
    let journal = JournalReader { connection: &moment, keys, run, num, queries: WHOLE };
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

/// The queries for one frame: where it is and its size, and all of it.
struct FrameQueries {
    header: &'static str,
    frame: &'static str,
}

/// Frames without their stream deltas.
const BARE: FrameQueries = FrameQueries {
    header: "SELECT prev, first, count, length(body) FROM frame WHERE seq = ?1",
    frame: "SELECT first, count, chain, mac, body, NULL FROM frame WHERE seq = ?1",
};
/// Frames with their stream deltas.
const WHOLE: FrameQueries = FrameQueries {
    header: "SELECT prev, first, count, length(frame.body) + ifnull(length(beside.body), 0)
             FROM frame LEFT JOIN beside ON beside.seq = frame.seq WHERE frame.seq = ?1",
    frame: "SELECT first, count, chain, mac, frame.body, beside.body
            FROM frame LEFT JOIN beside ON beside.seq = frame.seq WHERE frame.seq = ?1",
};

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
    queries: FrameQueries,
}

/// A range of frames at the end of a journal.
struct Tail {
    frames: Vec<Examined>,
    /// The frame before the range; 0 if there is none.
    before: i64,
}

/// Where a frame is, and the size of its body and stream deltas.
struct FrameHeader {
    seq: i64,
    /// The first event after the frame.
    end: u64,
    bytes: usize,
}

impl JournalReader<'_> {
    /// The frames with events after `after`, up to `bytes_max`. Links only lead back, so
    /// it walks back over headers from the next index mark, which bounds the length of
    /// each walk, and then reads the bodies forward: only those that fit.
    fn tail(&self, mut after: u64, bytes_max: usize) -> Result<Tail, Fault> {
        let (mut headers, before) = self.headers(after)?;
        let mut page = Tail { frames: Vec::new(), before };
        let mut bytes = 0usize;
        while let Some(newest) = headers.first() {
            after = newest.end.saturating_sub(1);
            for header in headers.iter().rev() {
                bytes = bytes.saturating_add(header.bytes);
                if bytes > bytes_max && !page.frames.is_empty() {
                    return Ok(page);
                }
                page.frames.push(self.frame(header.seq)?);
            }
            (headers, _) = self.headers(after)?;
        }
        Ok(page)
    }

    /// The headers of the frames from the next index mark back to the first one with events
    /// after `after`, newest first, and the number of the frame before them or 0.
    fn headers(&self, after: u64) -> Result<(Vec<FrameHeader>, i64), Fault> {
        let mut seq = entry(self.connection, self.num, after)?;
        let mut statement = self.connection.prepare_cached(self.queries.header)?;
        let mut headers = Vec::new();
        while seq > 0 {
            let read = |row: &rusqlite::Row<'_>| {
                let end = uint(row.get(1)?).saturating_add(row.get::<_, u32>(2)?.into());
                let bytes = usize::try_from(uint(row.get(3)?)).unwrap_or(usize::MAX);
                Ok((row.get::<_, i64>(0)?, FrameHeader { seq, end, bytes }))
            };
            let found = statement.query_row([seq], read).optional()?;
            // Links only go back, so the walk ends even if the file is damaged.
            let (prev, header) =
                found.filter(|(prev, _)| *prev < seq).ok_or_else(|| missing(seq))?;
            if header.end <= after.saturating_add(1) {
                break;
            }
            headers.push(header);
            seq = prev;
        }
        Ok((headers, seq))
    }

    /// The last event of a frame, and its hash, if both are authentic.
    fn last_event(&self, seq: i64) -> Result<Option<(u64, Hash)>, Fault> {
        let sql = "SELECT first, count, chain, mac FROM frame WHERE seq = ?1";
        let read = |row: &rusqlite::Row<'_>| {
            let (first, count) = (uint(row.get(0)?), row.get(1)?);
            Ok(NarrowFrame { first, count, chain: row.get(2)?, mac: row.get(3)? })
        };
        let found = self.connection.prepare_cached(sql)?.query_row([seq], read).optional()?;
        let is_placed = |frame: &NarrowFrame| {
            let NarrowFrame { first, count, ref chain, ref mac } = *frame;
            let place = FramePlace { run: self.run, first, count, chain };
            self.keys.get().is_none_or(|key| key.is_placed(place, mac))
        };
        Ok(found.filter(is_placed).map(|frame| {
            let end = frame.first + u64::from(frame.count);
            (end.saturating_sub(1), last_hash(&frame.chain))
        }))
    }

    /// A frame, with the verdict of its MAC.
    fn frame(&self, seq: i64) -> Result<Examined, Fault> {
        let mut statement = self.connection.prepare_cached(self.queries.frame)?;
        let mut rows = statement.query([seq])?;
        let row = rows.next()?.ok_or_else(|| missing(seq))?;
        let frame = Frame {
            first: uint(row.get(0)?),
            count: row.get(1)?,
            chain: row.get(2)?,
            body: row.get(4)?,
            beside: row.get::<_, Option<Vec<u8>>>(5)?.unwrap_or_default(),
        };
        let mac = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
        Ok(self.keys.examined(self.run, frame, mac))
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
            return Err(missing(seq));
        };
        if begins <= first {
            return Ok((begins == first).then_some(seq));
        }
        seq = prev;
    }
    Ok(None)
}

fn missing(seq: i64) -> Fault {
    Fault::Corrupt(format!("frame {seq} of a journal is missing"))
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
            return Err(missing(seq));
        };
        if frame.first <= event {
            return Ok(Some(frame));
        }
        seq = prev;
    }
    Ok(None)
}
