//! Seals, and what no seal covers yet.

use super::column::{Id, get, hash, int, number, sql_limit};
use super::fault::Fault;
use super::session::Session;
use crate::authentic::Keys;
use crate::limits::{SEAL_ROWS_AT_ONCE, SEAL_ROWS_MAX, SEALS_MAX};
use sluice_core::evidence::mac::FramePlace;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::ledger::{SealMark, SealRow, Sealed, Sealing, Unsealed};
use sluice_core::port::store::NodeId;
use std::collections::BTreeMap;

/// Adds a seal if it has the next number.
pub(super) async fn seal(session: &Session, seal: &Sealing) -> Result<Sealed, Fault> {
    let sql = "INSERT INTO seal (number, hash, frames, entries, text, leaves)
               SELECT $1, $2, $3, $4, $5, $6
               WHERE (SELECT coalesce(max(number), 0) + 1 FROM seal) = $1
               ON CONFLICT DO NOTHING";
    let (hash, upto) = (seal.hash.0.to_vec(), seal.upto);
    let values: [super::session::Value<'_>; 6] =
        [&int(seal.number), &hash, &int(upto.frames), &int(upto.entries), &seal.text, &seal.leaves];
    let added = session.execute(sql, &values).await?;
    Ok(if added == 1 { Sealed::Done } else { Sealed::Stale })
}

pub(super) async fn seals(
    session: &Session,
    from: u64,
    limit: usize,
) -> Result<Vec<SealRow>, Fault> {
    let sql = "SELECT number, text, leaves FROM seal WHERE number >= $1 ORDER BY number LIMIT $2";
    let rows = session.query(sql, &[&int(from), &sql_limit(limit.min(SEALS_MAX))]).await?;
    let read = |row: &tokio_postgres::Row| {
        Ok(SealRow { number: number(row, 0)?, text: get(row, 1)?, leaves: get(row, 2)? })
    };
    rows.iter().map(read).collect()
}

/// Everything after the newest seal. If another node seals in between, the new seal is
/// stale.
pub(super) async fn unsealed(
    session: &Session,
    keys: &Keys,
    limit: usize,
) -> Result<Unsealed, Fault> {
    let sql = "SELECT number, hash, frames, entries FROM seal ORDER BY number DESC LIMIT 1";
    let rows = session.query(sql, &[]).await?;
    let (mut last, mut upto) = (None, SealMark::default());
    if let Some(row) = rows.first() {
        last = Some((number(row, 0)?, hash(row, 1)?));
        upto = SealMark { frames: number(row, 2)?, entries: number(row, 3)? };
    }
    let heads = heads(session, keys, &mut upto, limit).await?;
    let writers = writers(session, keys, &mut upto).await?;
    Ok(Unsealed { last, heads, writers, upto })
}

/// The newest version of every run that has a frame after the mark. Moves the mark to
/// the last frame examined. Skips frames that are not authentic.
async fn heads(
    session: &Session,
    keys: &Keys,
    upto: &mut SealMark,
    limit: usize,
) -> Result<Vec<(RunId, u64, Hash)>, Fault> {
    let sql = "SELECT place, run, first, count, chain, mac
               FROM frame WHERE place > $1 ORDER BY place LIMIT $2";
    let mut newest: BTreeMap<RunId, (u64, Hash)> = BTreeMap::new();
    for _ in 0..SEAL_ROWS_MAX / SEAL_ROWS_AT_ONCE {
        let values: [super::session::Value<'_>; 2] =
            [&int(upto.frames), &sql_limit(SEAL_ROWS_AT_ONCE)];
        let rows = session.query(sql, &values).await?;
        for row in &rows {
            let (run, chain) = (get::<Id>(row, 1)?.run(), get::<&[u8]>(row, 4)?);
            let (first, count) = (number(row, 2)?, u32::try_from(get::<i32>(row, 3)?).unwrap_or(0));
            let place = FramePlace { run, first, count, chain };
            let mac: &[u8] = get(row, 5)?;
            let is_placed = keys.get().is_none_or(|key| key.is_placed(place, mac));
            // Frames from before the hash chain have nothing to seal.
            if let Some(hash) = chain.last_chunk::<32>().filter(|_| is_placed) {
                if newest.len() >= limit && !newest.contains_key(&run) {
                    return Ok(flatten(newest));
                }
                let version = (first + u64::from(count)).saturating_sub(1);
                newest.insert(run, (version, Hash(*hash)));
            }
            upto.frames = number(row, 0)?;
        }
        if rows.len() < SEAL_ROWS_AT_ONCE {
            break;
        }
    }
    Ok(flatten(newest))
}

fn flatten<K>(newest: BTreeMap<K, (u64, Hash)>) -> Vec<(K, u64, Hash)> {
    newest.into_iter().map(|(key, (number, hash))| (key, number, hash)).collect()
}

/// The last authentic entry of every writer that has one after the mark.
async fn writers(
    session: &Session,
    keys: &Keys,
    upto: &mut SealMark,
) -> Result<Vec<(NodeId, u64, Hash)>, Fault> {
    let sql = "SELECT place, writer, seq, hash, mac FROM entry WHERE place > $1
               ORDER BY place LIMIT $2";
    let mut newest: BTreeMap<NodeId, (u64, Hash)> = BTreeMap::new();
    for _ in 0..SEAL_ROWS_MAX / SEAL_ROWS_AT_ONCE {
        let values: [super::session::Value<'_>; 2] =
            [&int(upto.entries), &sql_limit(SEAL_ROWS_AT_ONCE)];
        let rows = session.query(sql, &values).await?;
        for row in &rows {
            let (writer, seq, hash) = (get::<Id>(row, 1)?.node(), number(row, 2)?, hash(row, 3)?);
            let mac: &[u8] = get(row, 4)?;
            if keys.get().is_none_or(|key| key.entry(writer, seq, hash).is(mac)) {
                newest.insert(writer, (seq, hash));
            }
            upto.entries = number(row, 0)?;
        }
        if rows.len() < SEAL_ROWS_AT_ONCE {
            break;
        }
    }
    Ok(flatten(newest))
}
