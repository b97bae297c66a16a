//! Registry rows with their history.

use super::column::{Text, get, int, number, text, uint};
use super::fault::Fault;
use super::session::Session;
use super::{count, entry};
use crate::REGISTRY;
use crate::authentic::{Keys, bytes};
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
    let epoch = epoch + 1;
    let put = change.put.iter().map(|row| ((row.kind, &row.name), Some(row.body.to_string())));
    let removed = change.remove.iter().map(|(kind, name)| ((*kind, name), None));
    let rows: BTreeMap<(Kind, &String), Option<String>> = put.chain(removed).collect();
    let kinds: Vec<&str> = rows.keys().map(|(kind, _)| kind.as_str()).collect();
    let names: Vec<Text<'_>> = rows.keys().map(|(_, name)| Text(name)).collect();
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
    let sql = "UPDATE counter SET count = $2 WHERE name = $1 AND span = 0";
    session.execute(sql, &[&REGISTRY, &int(epoch)]).await?;
    entry::record(session, keys, change.node, &change.entries).await?;
    Ok(Changed::Done { epoch })
}

/// The rows as of an epoch. Caches the newest ones until there is a newer epoch, since
/// the content at an epoch never changes.
pub(super) async fn rows(
    session: &Session,
    keys: &Keys,
    at: Option<u64>,
    known: &RefCell<Option<Rows>>,
) -> Result<Rows, Fault> {
    let newest = uint(count::plain(session, REGISTRY).await?);
    let epoch = at.map_or(newest, |at| at.min(newest));
    if let Some(known) = known.borrow().as_ref().filter(|known| known.epoch == epoch) {
        return Ok(known.clone());
    }
    let sql = "SELECT DISTINCT ON (kind, name) kind, name, epoch, body, mac FROM registry
               WHERE epoch <= $1 ORDER BY kind, name, epoch DESC";
    let found = session.query(sql, &[&int(epoch)]).await?;
    let (mut rows, mut foreign) = (Vec::with_capacity(found.len()), Vec::new());
    for one in &found {
        let (kind, name): (&str, _) = (get(one, 0)?, text(one, 1)?);
        let body: Option<&str> = get(one, 3)?;
        if !keys.is_row((kind, &name), number(one, 2)?, body, get(one, 4)?) {
            foreign.push((kind.to_owned(), name.into_owned()));
        } else if let Some(body) = body {
            rows.push(crate::registry_row(kind, &name, body).map_err(Fault::Corrupt)?);
        }
    }
    rows.sort_unstable_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
    let rows = Rows { epoch, rows, foreign };
    if epoch == newest {
        *known.borrow_mut() = Some(rows.clone());
    }
    Ok(rows)
}
