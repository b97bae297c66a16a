//! Registry rows with their history.

use super::column::{Text, get, int, number, text, uint};
use super::fault::Fault;
use super::session::Session;
use super::{count, entry};
use crate::REGISTRY;
use crate::authentic::{Keys, bytes};
use crate::newest_rows::{HEAD_ROW, NO_HEAD, NewestRows, NextHead, StoredVersion};
use sluice_core::evidence::mac::MacKey;
use sluice_core::port::ledger::{Change, Changed, Rows};
use sluice_govern::registry::Kind;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Puts rows, then removes rows, in a transaction: the last change to a row wins.
pub(super) async fn change(
    session: &Session,
    keys: &Keys,
    change: &Change,
) -> Result<Changed, Fault> {
    let sql = "INSERT INTO counter (name, span, count) VALUES ($1, 0, 0) ON CONFLICT DO NOTHING";
    session.execute(sql, &[&REGISTRY]).await?;
    let sql = "SELECT count FROM counter WHERE name = $1 AND span = 0 FOR UPDATE";
    let rows = session.query(sql, &[&REGISTRY]).await?;
    let epoch = uint(rows.first().map_or(Ok(0), |row| get(row, 0))?);
    if change.expect.is_some_and(|expected| expected != epoch) {
        return Ok(Changed::Stale { epoch });
    }
    let mut next = match keys.get() {
        None => None,
        Some(key) => {
            let sql = "SELECT mark FROM authentic WHERE one = $1";
            let rows = session.query(sql, &[&HEAD_ROW]).await?;
            let stored = rows.first().map(|row| get::<&[u8]>(row, 0)).transpose()?;
            let next = NextHead::after(keys, key, stored);
            Some(next.ok_or_else(|| Fault::Corrupt(NO_HEAD.to_owned()))?)
        }
    };
    // The counter may have been set back; an epoch is never used twice.
    let epoch = next.as_ref().map_or(0, NextHead::epoch).max(epoch) + 1;
    let put = change.put.iter().map(|row| ((row.kind, &row.name), Some(row.body.to_string())));
    let removed = change.remove.iter().map(|(kind, name)| ((*kind, name), None));
    let rows: BTreeMap<(Kind, &String), Option<String>> = put.chain(removed).collect();
    let kinds: Vec<&str> = rows.keys().map(|(kind, _)| kind.as_str()).collect();
    let names: Vec<Text<'_>> = rows.keys().map(|(_, name)| Text(name)).collect();
    if let Some(next) = &mut next {
        replace(session, next, (&kinds, &names)).await?;
        kinds.iter().zip(&names).for_each(|(kind, name)| next.add(kind, name.0, epoch));
    }
    let bodies: Vec<Option<&str>> = rows.values().map(Option::as_deref).collect();
    let macs = rows.iter().map(|((kind, name), body)| {
        let mac = keys.get().map(|key| key.row(kind.as_str(), name, epoch, body.as_deref()));
        bytes(mac.as_ref()).to_vec()
    });
    let macs: Vec<Vec<u8>> = macs.collect();
    let sql = "INSERT INTO registry (kind, name, epoch, body, mac)
               SELECT kind, name, $1, body, mac
               FROM unnest($2::text[], $3::text[], $4::text[], $5::bytea[])
                   AS new (kind, name, body, mac)";
    session.execute(sql, &[&int(epoch), &kinds, &names, &bodies, &macs]).await?;
    if let Some(next) = next {
        write_head(session, &next.seal(epoch)).await?;
    }
    let sql = "UPDATE counter SET count = $2 WHERE name = $1 AND span = 0";
    session.execute(sql, &[&REGISTRY, &int(epoch)]).await?;
    entry::record(session, keys, change.node, &change.entries).await?;
    Ok(Changed::Done { epoch })
}

/// Removes the versions that were the newest before a change from the head.
async fn replace(
    session: &Session,
    next: &mut NextHead<'_>,
    (kinds, names): (&[&str], &[Text<'_>]),
) -> Result<(), Fault> {
    let sql = "SELECT kind, name, max(epoch) FROM registry
               WHERE (kind, name) IN (SELECT * FROM unnest($1::text[], $2::text[]))
               GROUP BY kind, name";
    for row in &session.query(sql, &[&kinds, &names]).await? {
        next.replace(get(row, 0)?, &text(row, 1)?, number(row, 2)?);
    }
    Ok(())
}

/// Writes the head of all rows as they are, when a store adopts a key.
pub(super) async fn adopt_head(session: &Session, key: &MacKey) -> Result<(), Fault> {
    let mut next = NextHead::empty(key);
    let sql = "SELECT count FROM counter WHERE name = $1 AND span = 0 FOR UPDATE";
    session.query(sql, &[&REGISTRY]).await?;
    let sql = "SELECT kind, name, max(epoch) FROM registry GROUP BY kind, name";
    for row in &session.query(sql, &[]).await? {
        next.add(get(row, 0)?, &text(row, 1)?, number(row, 2)?);
    }
    let epoch = uint(count::plain(session, REGISTRY).await?);
    write_head(session, &next.seal(epoch)).await
}

async fn write_head(session: &Session, head: &[u8]) -> Result<(), Fault> {
    let sql = "INSERT INTO authentic (one, mark) VALUES ($1, $2)
               ON CONFLICT (one) DO UPDATE SET mark = excluded.mark";
    session.execute(sql, &[&HEAD_ROW, &head]).await?;
    Ok(())
}

/// The rows as of an epoch. Caches the newest ones until there is a newer epoch, since
/// the content at an epoch never changes.
pub(super) async fn rows(
    session: &Session,
    keys: &Keys,
    at: Option<u64>,
    known: &RefCell<Option<Rows>>,
) -> Result<Rows, Fault> {
    let seen = keys.seen_head();
    let newest = uint(count::plain(session, REGISTRY).await?);
    let epoch = at.map_or(newest, |at| at.min(newest));
    if let Some(known) = known.borrow().as_ref().filter(|known| known.epoch == epoch) {
        return Ok(known.clone());
    }
    if epoch < newest {
        return Ok(read_registry(session, keys, epoch).await?.rows.into_rows(epoch));
    }
    let read = read_registry(session, keys, u64::MAX).await?;
    let rows = read.rows.into_current(read.epoch, read.head.as_deref(), seen);
    *known.borrow_mut() = Some(rows.clone());
    Ok(rows)
}

/// Whether the newest rows are those of the head.
pub(super) async fn is_current(session: &Session, keys: &Keys) -> Result<bool, Fault> {
    let read = read_registry(session, keys, u64::MAX).await?;
    Ok(read.rows.is_current(read.head.as_deref(), 0))
}

struct ReadRegistry<'k> {
    epoch: u64,
    head: Option<Vec<u8>>,
    rows: NewestRows<'k>,
}

/// Reads the head, the counter and the rows with one statement, so that all are of one
/// moment. An empty registry gives one row without a version.
async fn read_registry<'k>(
    session: &Session,
    keys: &'k Keys,
    upto: u64,
) -> Result<ReadRegistry<'k>, Fault> {
    let sql = "SELECT (SELECT mark FROM authentic WHERE one = $2),
                   (SELECT count FROM counter WHERE name = $3 AND span = 0),
                   newest.kind, newest.name, newest.epoch, newest.body, newest.mac
               FROM (VALUES (1)) AS always LEFT JOIN
                   (SELECT DISTINCT ON (kind, name) kind, name, epoch, body, mac FROM registry
                    WHERE epoch <= $1 ORDER BY kind, name, epoch DESC) AS newest ON true";
    let upto = i64::try_from(upto).unwrap_or(i64::MAX);
    let found = session.query(sql, &[&upto, &HEAD_ROW, &REGISTRY]).await?;
    let mut read = ReadRegistry { epoch: 0, head: None, rows: NewestRows::new(keys) };
    for row in &found {
        read.head = get(row, 0)?;
        read.epoch = uint(get::<Option<i64>>(row, 1)?.unwrap_or(0));
        let Some(kind) = get::<Option<&str>>(row, 2)? else { continue };
        let (name, epoch) = (text(row, 3)?, number(row, 4)?);
        let (body, mac) = (get(row, 5)?, get(row, 6)?);
        let version = StoredVersion { kind, name: &name, epoch, body, mac };
        read.rows.add(version).map_err(Fault::Corrupt)?;
    }
    Ok(read)
}
