//! Registry rows with their history.

use super::column::{int, uint};
use super::fault::Fault;
use super::reader::ReadConnection;
use super::writer::Work;
use super::{count, entry};
use crate::REGISTRY;
use crate::authentic;
use rusqlite::{OptionalExtension as _, params};
use sluice_core::port::ledger::{Change, Changed, Rows};

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
    let epoch = epoch + 1;
    let put = change.put.iter().map(|row| (row.kind, &row.name, Some(row.body.to_string())));
    let removed = change.remove.iter().map(|(kind, name)| (*kind, name, None));
    let sql = "INSERT INTO registry (kind, name, epoch, body, mac) VALUES (?1, ?2, ?3, ?4, ?5)
               ON CONFLICT DO UPDATE SET body = excluded.body, mac = excluded.mac";
    let mut statement = work.connection.prepare_cached(sql)?;
    for (kind, name, body) in put.chain(removed) {
        let kind = kind.as_str();
        let mac = work.keys.get().map(|key| key.row(kind, name, epoch, body.as_deref()));
        statement.execute(params![kind, name, int(epoch), body, authentic::bytes(mac.as_ref())])?;
    }
    work.cache.counters.set(work.connection, REGISTRY, int(epoch))?;
    entry::record(work, change.node, &change.entries)?;
    Ok(Changed::Done { epoch })
}

/// The rows as of an epoch. Needs one index lookup per name and one per row, however
/// long the history is.
pub(super) fn rows(reader: &ReadConnection, at: Option<u64>) -> Result<Rows, Fault> {
    let moment = reader.connection.unchecked_transaction()?;
    let newest = uint(count::plain(&moment, REGISTRY)?);
    let epoch = at.map_or(newest, |at| at.min(newest));
    let mut names = moment.prepare_cached(
        "SELECT kind, name FROM registry WHERE (kind, name) > (?1, ?2)
         ORDER BY kind, name LIMIT 1",
    )?;
    let mut bodies = moment.prepare_cached(
        "SELECT epoch, body, mac FROM registry WHERE kind = ?1 AND name = ?2 AND epoch <= ?3
         ORDER BY epoch DESC LIMIT 1",
    )?;
    let (mut rows, mut foreign) = (Vec::new(), Vec::new());
    let mut last = (String::new(), String::new());
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    while let Some(next) = names.query_row([&last.0, &last.1], read).optional()? {
        last = next;
        let mut found = bodies.query(params![last.0, last.1, int(epoch)])?;
        let Some(newest) = found.next()? else { continue };
        let body: Option<String> = newest.get(1)?;
        let mac = newest.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
        let (named, of_epoch) = ((&*last.0, &*last.1), uint(newest.get(0)?));
        if !reader.shared.keys.is_row(named, of_epoch, body.as_deref(), mac) {
            foreign.push(last.clone());
        } else if let Some(body) = body {
            rows.push(crate::registry_row(&last.0, &last.1, &body).map_err(Fault::Corrupt)?);
        }
    }
    rows.sort_unstable_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
    Ok(Rows { epoch, rows, foreign })
}
