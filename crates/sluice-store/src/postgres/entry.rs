//! Audit entries, each in the chain of its writer.

use super::column::{Id, get, hash, int, number, sql_limit};
use super::fault::Fault;
use super::session::Session;
use crate::authentic::{Keys, bytes};
use crate::limits::ENTRIES_MAX;
use sluice_core::evidence::entry::{START, link};
use sluice_core::port::ledger::{Entry, Recorded};
use sluice_core::port::store::NodeId;

/// Locks and reads the ends of chains.
pub(super) const LOCK_CHAINS: &str = "SELECT writer, seq, hash FROM chain
    WHERE writer = ANY($1) ORDER BY writer FOR UPDATE";
/// Inserts entries, whose positions end at the current position.
pub(super) const INSERT_ENTRIES: &str = "INSERT INTO entry (writer, seq, place, hash, text, mac)
    SELECT new.writer, new.seq, position.entries - new.back, new.hash, new.text, new.mac
    FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bytea[], $5::text[], $6::bytea[])
        AS new (writer, seq, back, hash, text, mac), position WHERE position.one = 1";
/// Updates the ends of chains.
pub(super) const MOVE_CHAINS: &str = "UPDATE chain SET seq = new.seq, hash = new.hash
    FROM unnest($1::uuid[], $2::bigint[], $3::bytea[]) AS new (writer, seq, hash)
    WHERE chain.writer = new.writer";

/// Inserts the missing rows of chains.
pub(super) async fn make_chains(session: &Session, writers: &[NodeId]) -> Result<(), Fault> {
    let writers: Vec<Id> = writers.iter().map(|writer| Id::from(*writer)).collect();
    let sql = "INSERT INTO chain (writer, seq, hash) SELECT writer, 0, $2
               FROM unnest($1::uuid[]) AS new (writer) ON CONFLICT DO NOTHING";
    session.execute(sql, &[&writers, &START.0.to_vec()]).await?;
    Ok(())
}

/// Appends entries to a writer's chain, in a transaction that holds neither a chain nor
/// the position.
pub(super) async fn record(
    session: &Session,
    keys: &Keys,
    writer: NodeId,
    entries: &[Entry],
) -> Result<(), Fault> {
    if entries.is_empty() {
        return Ok(());
    }
    make_chains(session, &[writer]).await?;
    let rows = session.query(LOCK_CHAINS, &[&vec![Id::from(writer)]]).await?;
    let row = rows.first().ok_or_else(|| Fault::Conflict("a chain has lost its row".to_owned()))?;
    let (mut seq, mut tip) = (number(row, 1)?, hash(row, 2)?);
    let (mut seqs, mut hashes, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    let mut macs: Vec<Vec<u8>> = Vec::new();
    for entry in entries {
        seq += 1;
        let text;
        (text, tip) = link(entry, writer, seq, tip);
        seqs.push(int(seq));
        hashes.push(tip.0.to_vec());
        texts.push(text);
        let mac = keys.get().map(|key| key.entry(writer, seq, tip));
        macs.push(bytes(mac.as_ref()).to_vec());
    }
    let count = int(entries.len() as u64);
    let sql = "UPDATE position SET entries = entries + $1 WHERE one = 1";
    session.execute(sql, &[&count]).await?;
    let (writers, back) = (vec![Id::from(writer); entries.len()], (0..count).rev());
    let back: Vec<i64> = back.collect();
    session.execute(INSERT_ENTRIES, &[&writers, &seqs, &back, &hashes, &texts, &macs]).await?;
    let ends: (Vec<Id>, Vec<i64>, Vec<Vec<u8>>) =
        (vec![Id::from(writer)], vec![int(seq)], vec![tip.0.to_vec()]);
    session.execute(MOVE_CHAINS, &[&ends.0, &ends.1, &ends.2]).await?;
    Ok(())
}

pub(super) async fn entries(
    session: &Session,
    keys: &Keys,
    after: u64,
    limit: usize,
) -> Result<Vec<Recorded>, Fault> {
    let sql = "SELECT place, writer, seq, text, hash, mac FROM entry WHERE place > $1
               ORDER BY place LIMIT $2";
    let limit = sql_limit(limit.min(ENTRIES_MAX));
    let rows = session.query(sql, &[&int(after), &limit]).await?;
    let read = |row: &tokio_postgres::Row| {
        let mut entry = Recorded {
            place: number(row, 0)?,
            writer: get::<Id>(row, 1)?.node(),
            seq: number(row, 2)?,
            text: get(row, 3)?,
            hash: hash(row, 4)?,
            is_authentic: true,
        };
        entry.is_authentic = keys.is_entry(&entry, get(row, 5)?);
        Ok(entry)
    };
    rows.iter().map(read).collect()
}
