//! Erases payloads from journals.
//!
//! Readers stop seeing replaced content at once. The old bytes leave the database files
//! at the next vacuum.

use super::column::{Id, get, int, number};
use super::entry;
use super::fault::Fault;
use super::session::Session;
use crate::authentic::{self, Keys};
use sluice_core::evidence::mac::FramePlace;
use sluice_core::id::RunId;
use sluice_core::port::ledger::{Erased, Erasure};
use std::collections::BTreeMap;

/// Finds every frame before it changes one. Runs in a transaction.
pub(super) async fn erase(
    session: &Session,
    keys: &Keys,
    erasure: &Erasure,
) -> Result<Erased, Fault> {
    let run = Id::from(erasure.run);
    let rows = session.query("SELECT 1 FROM run WHERE id = $1 FOR UPDATE", &[&run]).await?;
    if rows.is_empty() || !has_all(session, erasure).await? {
        return Ok(Erased::NoFrame);
    }
    let (firsts, bodies) = newest(&erasure.bodies);
    if !firsts.is_empty() {
        let macs = renewed(session, keys, erasure.run, &firsts, &bodies).await?;
        let sql = "UPDATE frame SET body = new.body, mac = new.mac
                   FROM unnest($2::bigint[], $3::bytea[], $4::bytea[]) AS new (first, body, mac)
                   WHERE frame.run = $1 AND frame.first = new.first";
        session.execute(sql, &[&run, &firsts, &bodies, &macs]).await?;
    }
    let (firsts, bodies) = newest(&erasure.besides);
    if !firsts.is_empty() {
        let sql = "UPDATE frame SET beside = new.body
                   FROM unnest($2::bigint[], $3::bytea[]) AS new (first, body)
                   WHERE frame.run = $1 AND frame.first = new.first";
        session.execute(sql, &[&run, &firsts, &bodies]).await?;
    }
    if crate::erases_payloads(erasure) {
        session.execute("DELETE FROM snapshot WHERE run = $1", &[&run]).await?;
        session.execute("DELETE FROM memo WHERE run = $1", &[&run]).await?;
    }
    if !erasure.blobs.is_empty() {
        let hashes: Vec<Vec<u8>> = erasure.blobs.iter().map(|hash| hash.0.to_vec()).collect();
        session.execute("DELETE FROM blob WHERE hash = ANY($1)", &[&hashes]).await?;
    }
    entry::record(session, keys, erasure.node, &erasure.entries).await?;
    Ok(Erased::Done)
}

/// If a frame is named twice, the last body wins.
fn newest(left: &[(u64, Vec<u8>)]) -> (Vec<i64>, Vec<&[u8]>) {
    let left: BTreeMap<i64, &[u8]> =
        left.iter().map(|(first, body)| (int(*first), &body[..])).collect();
    left.into_iter().unzip()
}

/// The MACs of frames with replaced bodies, in the order of `firsts`. The halves of the
/// MACs over their positions and hashes do not change.
async fn renewed(
    session: &Session,
    keys: &Keys,
    run: RunId,
    firsts: &Vec<i64>,
    bodies: &[&[u8]],
) -> Result<Vec<Vec<u8>>, Fault> {
    let sql = "SELECT first, count, chain, mac FROM frame
               WHERE run = $1 AND first = ANY($2) ORDER BY first";
    let rows = session.query(sql, &[&Id::from(run), firsts]).await?;
    let mac = |(row, body): (&tokio_postgres::Row, &&[u8])| {
        let count = u32::try_from(get::<i32>(row, 1)?).unwrap_or(0);
        let place = FramePlace { run, first: number(row, 0)?, count, chain: get(row, 2)? };
        Ok(authentic::mac_with_body(keys, place, body, get(row, 3)?))
    };
    rows.iter().zip(bodies).map(mac).collect()
}

/// Whether every frame exists, and has stream deltas where it must.
async fn has_all(session: &Session, erasure: &Erasure) -> Result<bool, Fault> {
    let firsts = erasure.bodies.iter().chain(&erasure.besides).map(|(first, _)| int(*first));
    let firsts: Vec<i64> = firsts.collect();
    let sql = "SELECT first, coalesce(octet_length(beside), 0) > 0 FROM frame
               WHERE run = $1 AND first = ANY($2)";
    let rows = session.query(sql, &[&Id::from(erasure.run), &firsts]).await?;
    let mut found: BTreeMap<u64, bool> = BTreeMap::new();
    for row in &rows {
        found.insert(number(row, 0)?, get(row, 1)?);
    }
    let has_body = erasure.bodies.iter().all(|(first, _)| found.contains_key(first));
    let has_beside = erasure.besides.iter().all(|(first, _)| found.get(first) == Some(&true));
    Ok(has_body && has_beside)
}
