//! Registry rows with their history.

use super::column::{int, uint};
use super::fault::Fault;
use super::reader::ReadConnection;
use super::writer::Work;
use super::{count, entry};
use crate::REGISTRY;
use crate::authentic::{self, Keys};
use crate::newest_rows::{HEAD, NO_HEAD, NewestRows, NextHead, StoredVersion};
use rusqlite::{Connection, OptionalExtension as _, params};
use sluice_core::evidence::mac::MacKey;
use sluice_core::port::ledger::{Change, Changed, Rows};
use sluice_govern::registry::Kind;
use std::collections::BTreeMap;

/// Size of a change in bytes, for the limits of a transaction.
pub(super) fn bytes(change: &Change) -> usize {
    let rows = change.put.iter().map(|row| row.name.len() + crate::json_bytes(&row.body));
    let names = change.remove.iter().map(|(_, name)| name.len());
    rows.chain(names).sum::<usize>() + crate::entries_bytes(&change.entries)
}

/// Puts rows, then removes rows: the last change to a row wins.
pub(super) fn change(work: &mut Work<'_>, change: &Change) -> Result<Changed, Fault> {
    let epoch = uint(work.cache.counters.count(work.connection, REGISTRY)?);
    if change.expect.is_some_and(|expected| expected != epoch) {
        return Ok(Changed::Stale { epoch });
    }
    let mut next = match work.keys.get() {
        None => None,
        Some(key) => {
            let next = NextHead::after(work.keys, key, head(work.connection)?.as_deref());
            Some(next.ok_or_else(|| Fault::Corrupt(NO_HEAD.to_owned()))?)
        }
    };
    // The counter may have been set back; an epoch is never used twice.
    let epoch = next.as_ref().map_or(0, NextHead::epoch).max(epoch) + 1;
    let put = change.put.iter().map(|row| ((row.kind, &row.name), Some(row.body.to_string())));
    let removed = change.remove.iter().map(|(kind, name)| ((*kind, name), None));
    let rows: BTreeMap<(Kind, &String), Option<String>> = put.chain(removed).collect();
    let sql = "INSERT INTO registry (kind, name, epoch, body, mac) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut insert = work.connection.prepare_cached(sql)?;
    let sql = "SELECT max(epoch) FROM registry WHERE kind = ?1 AND name = ?2";
    let mut newest = work.connection.prepare_cached(sql)?;
    for ((kind, name), body) in rows {
        let kind = kind.as_str();
        if let Some(next) = &mut next {
            let before: Option<i64> = newest.query_row([kind, name], |row| row.get(0))?;
            if let Some(before) = before {
                next.replace(kind, name, uint(before));
            }
            next.add(kind, name, epoch);
        }
        let mac = work.keys.get().map(|key| key.row(kind, name, epoch, body.as_deref()));
        insert.execute(params![kind, name, int(epoch), body, authentic::bytes(mac.as_ref())])?;
    }
    if let Some(next) = next {
        write_head(work.connection, &next.seal(epoch))?;
    }
    work.cache.counters.set(work.connection, REGISTRY, int(epoch))?;
    entry::record(work, change.node, &change.entries)?;
    Ok(Changed::Done { epoch })
}

/// Writes the head of all rows as they are, when a store adopts a key.
pub(super) fn adopt_head(connection: &Connection, key: &MacKey) -> Result<(), Fault> {
    let mut next = NextHead::empty(key);
    let sql = "SELECT kind, name, max(epoch) FROM registry GROUP BY kind, name";
    let mut newest = connection.prepare(sql)?;
    let mut rows = newest.query([])?;
    while let Some(row) = rows.next()? {
        let (kind, name): (String, String) = (row.get(0)?, row.get(1)?);
        next.add(&kind, &name, uint(row.get(2)?));
    }
    let epoch = uint(count::plain(connection, REGISTRY)?);
    write_head(connection, &next.seal(epoch))
}

fn write_head(connection: &Connection, head: &[u8]) -> Result<(), Fault> {
    let sql = "INSERT OR REPLACE INTO authentic (one, mark) VALUES (?1, ?2)";
    connection.prepare_cached(sql)?.execute(params![HEAD, head])?;
    Ok(())
}

fn head(connection: &Connection) -> Result<Option<Vec<u8>>, Fault> {
    let mut sql = connection.prepare_cached("SELECT mark FROM authentic WHERE one = ?1")?;
    Ok(sql.query_row([HEAD], |row| row.get(0)).optional()?)
}

/// The rows as of an epoch. Needs one index lookup per name and one per row, however
/// long the history is.
pub(super) fn rows(reader: &ReadConnection, at: Option<u64>) -> Result<Rows, Fault> {
    let keys = &reader.shared.keys;
    let seen = keys.seen_head();
    let moment = reader.connection.unchecked_transaction()?;
    let newest = uint(count::plain(&moment, REGISTRY)?);
    match at.filter(|at| *at < newest) {
        Some(at) => Ok(newest_rows(&moment, keys, at)?.into_rows(at)),
        None => {
            let rows = newest_rows(&moment, keys, u64::MAX)?;
            Ok(rows.into_current(newest, head(&moment)?.as_deref(), seen))
        }
    }
}

/// Whether the newest rows are those of the head.
pub(super) fn is_current(connection: &Connection, keys: &Keys) -> Result<bool, Fault> {
    let rows = newest_rows(connection, keys, u64::MAX)?;
    Ok(rows.is_current(head(connection)?.as_deref(), 0))
}

fn newest_rows<'k>(
    connection: &Connection,
    keys: &'k Keys,
    upto: u64,
) -> Result<NewestRows<'k>, Fault> {
    let mut names = connection.prepare_cached(
        "SELECT kind, name FROM registry WHERE (kind, name) > (?1, ?2)
         ORDER BY kind, name LIMIT 1",
    )?;
    let mut bodies = connection.prepare_cached(
        "SELECT epoch, body, mac FROM registry WHERE kind = ?1 AND name = ?2 AND epoch <= ?3
         ORDER BY epoch DESC LIMIT 1",
    )?;
    let upto = i64::try_from(upto).unwrap_or(i64::MAX);
    let mut rows = NewestRows::new(keys);
    let mut last = (String::new(), String::new());
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    while let Some(next) = names.query_row([&last.0, &last.1], read).optional()? {
        last = next;
        let mut found = bodies.query(params![last.0, last.1, upto])?;
        let Some(newest) = found.next()? else { continue };
        let body: Option<String> = newest.get(1)?;
        let mac = newest.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
        let (epoch, body) = (uint(newest.get(0)?), body.as_deref());
        let version = StoredVersion { kind: &last.0, name: &last.1, epoch, body, mac };
        rows.add(version).map_err(Fault::Corrupt)?;
    }
    Ok(rows)
}
