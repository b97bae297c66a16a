//! Audit entries, each in the chain of its writer.

use super::column::{int, node_bytes, node_id, uint};
use super::fault::Fault;
use super::reader::ReadConnection;
use super::writer::Work;
use crate::authentic::{Keys, bytes};
use crate::limits::ENTRIES_MAX;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use sluice_core::evidence::entry::{START, link};
use sluice_core::hash::Hash;
use sluice_core::port::ledger::{Entry, Recorded};
use sluice_core::port::store::NodeId;

/// End of a writer's chain: number and hash of its last entry.
pub(super) type Tip = (u64, Hash);

/// Appends entries to a writer's chain.
pub(super) fn record(work: &mut Work<'_>, writer: NodeId, entries: &[Entry]) -> Result<(), Fault> {
    if entries.is_empty() {
        return Ok(());
    }
    let (mut seq, mut hash) = match work.cache.chain(writer) {
        Some(tip) => tip,
        None => tip(work.connection, writer)?.unwrap_or((0, START)),
    };
    let sql = "INSERT INTO entry (writer, seq, hash, mac, text) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut statement = work.connection.prepare_cached(sql)?;
    for entry in entries {
        seq += 1;
        let text;
        (text, hash) = link(entry, writer, seq, hash);
        let mac = work.keys.get().map(|key| key.entry(writer, seq, hash));
        let mac = bytes(mac.as_ref());
        statement.execute(params![node_bytes(writer), int(seq), hash.0, mac, text])?;
    }
    work.cache.remember_chain(writer, (seq, hash));
    Ok(())
}

pub(super) fn entries(
    reader: &ReadConnection,
    after: u64,
    limit: usize,
) -> Result<Vec<Recorded>, Fault> {
    let sql = "SELECT place, writer, seq, text, hash, mac FROM entry WHERE place > ?1
               ORDER BY place LIMIT ?2";
    let limit = int(limit.min(ENTRIES_MAX) as u64);
    let mut statement = reader.connection.prepare_cached(sql)?;
    let rows = statement.query_map([int(after), limit], |row| read(&reader.shared.keys, row))?;
    Ok(rows.collect::<Result<Vec<_>, _>>()?)
}

fn read(keys: &Keys, row: &Row<'_>) -> rusqlite::Result<Recorded> {
    let mut entry = Recorded {
        place: uint(row.get(0)?),
        writer: node_id(row.get(1)?),
        seq: uint(row.get(2)?),
        text: row.get(3)?,
        hash: Hash(row.get(4)?),
        is_authentic: true,
    };
    entry.is_authentic = keys.is_entry(&entry, row.get_ref(5)?.as_blob()?);
    Ok(entry)
}

fn tip(connection: &Connection, writer: NodeId) -> Result<Option<Tip>, Fault> {
    let sql = "SELECT seq, hash FROM entry WHERE writer = ?1 ORDER BY seq DESC LIMIT 1";
    let read = |row: &Row<'_>| Ok((uint(row.get(0)?), Hash(row.get(1)?)));
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([node_bytes(writer)], read).optional()?)
}
