//! Reads journals and blobs.

use super::column::{Id, get, int, number, sql_limit};
use super::fault::Fault;
use super::session::Session;
use crate::authentic::{Keys, authentic};
use crate::limits::FRAMES_AT_ONCE;
use sluice_core::evidence::mac::{FramePlace, MacKey, last_hash};
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::store::{Examined, Frame, Loaded};
use tokio_postgres::Row;

/// Frames starting with the one that holds the event after `$2`: up to `$3` bytes, but
/// at least `$4` frames.
const PAGE: &str = "
    SELECT first, count, chain, body, beside, mac FROM (
        SELECT first, count, chain, body, beside, mac,
            sum(octet_length(body) + coalesce(octet_length(beside), 0)) OVER (ORDER BY first) AS bytes,
            row_number() OVER (ORDER BY first) AS number
        FROM (SELECT first, count, chain, body, beside, mac FROM frame
              WHERE run = $1 AND first + count > $2::bigint + 1 AND first >= coalesce(
                  (SELECT max(before.first) FROM frame AS before
                   WHERE before.run = $1 AND before.first <= $2::bigint + 1), 0)
              ORDER BY first LIMIT $5) AS page
    ) AS counted
    WHERE bytes <= $3::bigint OR number <= $4::bigint ORDER BY first";

/// The newest snapshot and the frames after it. A snapshot that is not authentic, or
/// does not belong to this journal, is ignored: the journal is complete.
pub(super) async fn load(
    session: &Session,
    keys: &Keys,
    run: RunId,
) -> Result<Option<Loaded>, Fault> {
    let sql = "SELECT run.version, snapshot.version, snapshot.body, snapshot.mac
               FROM run LEFT JOIN snapshot ON snapshot.run = run.id WHERE run.id = $1";
    let rows = session.query(sql, &[&Id::from(run)]).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let version = number(row, 0)?;
    let mut snapshot: Option<(u64, Vec<u8>)> = match get::<Option<i64>>(row, 1)? {
        Some(_) => Some((number(row, 1)?, get(row, 2)?)),
        None => None,
    };
    let mut has_foreign_snapshot = false;
    if let (Some(key), Some((version, body))) = (keys.get(), &snapshot) {
        let last = last(session, key, run, *version).await?;
        let mac: &[u8] = get(row, 3)?;
        let is_own = last.is_some_and(|last| key.snapshot(run, *version, last, body).is(mac));
        if !is_own {
            (snapshot, has_foreign_snapshot) = (None, true);
        }
    }
    let after = snapshot.as_ref().map_or(0, |(version, _)| *version);
    // Frames are only appended, so the ones added since the first query belong to it
    // too.
    let sql = "SELECT first, count, chain, body, NULL::bytea, mac FROM frame
               WHERE run = $1 AND first > $2 ORDER BY first";
    let rows = session.query(sql, &[&Id::from(run), &int(after)]).await?;
    let frames = rows.iter().map(|row| frame(keys, run, row));
    let frames = frames.collect::<Result<Vec<Examined>, Fault>>()?;
    let frames = authentic(run, frames).map_err(Fault::Corrupt)?;
    let mut last = after;
    for frame in &frames {
        if frame.first != last + 1 {
            return Err(Fault::Corrupt(format!(
                "the frame after event {last} of {run} is missing"
            )));
        }
        last += u64::from(frame.count);
    }
    if last < version {
        return Err(Fault::Corrupt(format!("the frame after event {last} of {run} is missing")));
    }
    Ok(Some(Loaded { snapshot, frames, has_foreign_snapshot }))
}

/// The hash of an event, if an authentic frame ends with it.
async fn last(
    session: &Session,
    key: &MacKey,
    run: RunId,
    version: u64,
) -> Result<Option<Hash>, Fault> {
    let sql = "SELECT first, count, chain, mac FROM frame WHERE run = $1 AND first <= $2
               ORDER BY first DESC LIMIT 1";
    let rows = session.query(sql, &[&Id::from(run), &int(version)]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let count = u32::try_from(get::<i32>(row, 1)?).unwrap_or(0);
    let chain: &[u8] = get(row, 2)?;
    let place = FramePlace { run, first: number(row, 0)?, count, chain };
    let ends_there = place.first + u64::from(count) == version + 1;
    let is_placed = ends_there && key.is_placed(place, get(row, 3)?);
    Ok(is_placed.then(|| last_hash(chain)))
}

/// A page of frames as stored.
pub(super) async fn examine(
    session: &Session,
    keys: &Keys,
    run: RunId,
    after: u64,
    bytes_max: usize,
) -> Result<Vec<Examined>, Fault> {
    let (mut page, mut after, mut bytes_left) = (Vec::new(), after, bytes_max);
    loop {
        let at_least = i64::from(page.is_empty());
        // Keeps the sum in the query within the range of its type.
        let bytes = sql_limit(bytes_left).min(i64::MAX / 2);
        let start = int(after).min(i64::MAX - 1);
        let limit = sql_limit(FRAMES_AT_ONCE);
        let rows =
            session.query(PAGE, &[&Id::from(run), &start, &bytes, &at_least, &limit]).await?;
        for row in &rows {
            let examined = frame(keys, run, row)?;
            let frame = &examined.frame;
            bytes_left = bytes_left.saturating_sub(frame.body.len() + frame.beside.len());
            after = frame.first + u64::from(frame.count) - 1;
            page.push(examined);
        }
        // Fewer rows than the limit: the journal has ended, or the page is full.
        if rows.len() < FRAMES_AT_ONCE {
            return Ok(page);
        }
    }
}

/// The blob with a hash. The hash is verified: blobs are read rarely and fully trusted.
pub(super) async fn blob(session: &Session, hash: Hash) -> Result<Option<Vec<u8>>, Fault> {
    let rows = session.query("SELECT body FROM blob WHERE hash = $1", &[&hash.0.to_vec()]).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let body: Vec<u8> = get(row, 0)?;
    if Hash::of(&body) != hash {
        return Err(Fault::Corrupt(format!("the content of blob {hash} does not match its hash")));
    }
    Ok(Some(body))
}

/// Reads a frame: first, count, chain, body, beside, mac.
fn frame(keys: &Keys, run: RunId, row: &Row) -> Result<Examined, Fault> {
    frame_at(keys, run, row, 0)
}

/// Reads a frame whose columns begin at an index.
pub(super) fn frame_at(keys: &Keys, run: RunId, row: &Row, at: usize) -> Result<Examined, Fault> {
    let count: i32 = get(row, at + 1)?;
    let frame = Frame {
        first: number(row, at)?,
        count: u32::try_from(count).unwrap_or(0),
        chain: get(row, at + 2)?,
        body: get(row, at + 3)?,
        beside: get::<Option<Vec<u8>>>(row, at + 4)?.unwrap_or_default(),
    };
    Ok(keys.examined(run, frame, get(row, at + 5)?))
}
