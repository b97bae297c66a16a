//! Payloads, taken out of journals.

use super::fault::Fault;
use super::writer::Work;
use super::{entry, read};
use rusqlite::params;
use sluice_core::port::ledger::{Erased, Erasure};

/// How much there is to write, for the bounds of a transaction.
pub(super) fn bytes(erasure: &Erasure) -> usize {
    let bodies = erasure.bodies.iter().chain(&erasure.besides).map(|(_, body)| body.len());
    bodies.sum::<usize>() + crate::entries_bytes(&erasure.entries)
}

/// Finds every frame before it changes one. What is replaced is overwritten in the
/// file too (`secure_delete`), and the log is emptied before this is answered.
pub(super) fn erase(work: &mut Work<'_>, erasure: &Erasure) -> Result<Erased, Fault> {
    let Some(known) = work.memory.find(work.connection, erasure.run)? else {
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

/// Where the frames are that change.
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
        let sql = "UPDATE frame SET body = ?1 WHERE seq = ?2";
        work.connection.prepare_cached(sql)?.execute(params![body, seq])?;
    }
    if crate::takes_out_payloads(erasure) {
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
