//! Erases payloads from journals.

use super::column::uint;
use super::fault::Fault;
use super::writer::Work;
use super::{entry, read};
use crate::authentic;
use rusqlite::params;
use sluice_core::evidence::mac::FramePlace;
use sluice_core::id::RunId;
use sluice_core::port::ledger::{Erased, Erasure};

/// Size of an erasure in bytes, for the limits of a transaction.
pub(super) fn bytes(erasure: &Erasure) -> usize {
    let bodies = erasure.bodies.iter().chain(&erasure.besides).map(|(_, body)| body.len());
    bodies.sum::<usize>() + crate::entries_bytes(&erasure.entries)
}

/// Finds every frame before it changes one. SQLite overwrites replaced content in the
/// file (`secure_delete`), and the writer empties the log before it answers.
pub(super) fn erase(work: &mut Work<'_>, erasure: &Erasure) -> Result<Erased, Fault> {
    let Some(known) = work.cache.find(work.connection, erasure.run)? else {
        return Ok(Erased::NoFrame);
    };
    let mut places = Vec::with_capacity(erasure.bodies.len());
    for (first, _) in &erasure.bodies {
        match read::place(work.connection, known.num, *first)? {
            Some(seq) => places.push(seq),
            None => return Ok(Erased::NoFrame),
        }
    }
    let mut besides = Vec::with_capacity(erasure.besides.len());
    for (first, _) in &erasure.besides {
        let seq = read::place(work.connection, known.num, *first)?;
        match seq.map(|seq| read::has_beside(work.connection, seq)).transpose()? {
            Some(Some(seq)) => besides.push(seq),
            Some(None) | None => return Ok(Erased::NoFrame),
        }
    }
    replace(work, erasure, known.num, &Places { bodies: places, besides })?;
    work.erased = true;
    entry::record(work, erasure.node, &erasure.entries)?;
    Ok(Erased::Done)
}

/// Row numbers of the frames to change.
struct Places {
    bodies: Vec<i64>,
    besides: Vec<i64>,
}

fn replace(work: &Work<'_>, erasure: &Erasure, num: i64, places: &Places) -> Result<(), Fault> {
    for (seq, (_, body)) in places.besides.iter().zip(&erasure.besides) {
        let sql = "UPDATE beside SET body = ?1 WHERE seq = ?2";
        work.connection.prepare_cached(sql)?.execute(params![body, seq])?;
    }
    for (seq, (_, body)) in places.bodies.iter().zip(&erasure.bodies) {
        let mac = renewed(work, erasure.run, *seq, body)?;
        let sql = "UPDATE frame SET body = ?1, mac = ?2 WHERE seq = ?3";
        work.connection.prepare_cached(sql)?.execute(params![body, mac, seq])?;
    }
    if crate::erases_payloads(erasure) {
        let sql = "DELETE FROM snapshot WHERE run = ?1";
        work.connection.prepare_cached(sql)?.execute([num])?;
        let sql = "DELETE FROM memo WHERE run = ?1";
        work.connection.prepare_cached(sql)?.execute([num])?;
    }
    for hash in &erasure.blobs {
        let sql = "DELETE FROM blob WHERE hash = ?1";
        work.connection.prepare_cached(sql)?.execute([hash.0])?;
    }
    Ok(())
}

/// The MAC of a frame with a replaced body. The half of the MAC over its position and
/// hashes does not change.
fn renewed(work: &Work<'_>, run: RunId, seq: i64, body: &[u8]) -> Result<Vec<u8>, Fault> {
    let sql = "SELECT first, count, chain, mac FROM frame WHERE seq = ?1";
    let mut statement = work.connection.prepare_cached(sql)?;
    let read = |row: &rusqlite::Row<'_>| {
        let (chain, mac): (Vec<u8>, Vec<u8>) = (row.get(2)?, row.get(3)?);
        Ok((uint(row.get(0)?), row.get(1)?, chain, mac))
    };
    let (first, count, chain, mac) = statement.query_row([seq], read)?;
    let place = FramePlace { run, first, count, chain: &chain };
    Ok(authentic::mac_with_body(work.keys, place, body, mac))
}
