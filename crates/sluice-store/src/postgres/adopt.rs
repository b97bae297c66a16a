//! Adoption of a MAC key by an existing store.
//!
//! Rows from before the key have no MACs. They are added table by table, in bounded
//! batches, and the store is marked at the end.

use super::PostgresStore;
use super::column::get;
use super::fault::Fault;
use super::registry;
use super::session::{Session, Value};
use super::target::{array, key, keys, page, read, sort};
use crate::authentic::{FoundMark, Keyed, Mark, TABLES, row_mac};
use crate::limits::{ADOPT_BYTES_MAX, ADOPT_ROWS_MAX};
use crate::transfer::table::{Cell, Cells, ColumnType, Table};
use sluice_core::evidence::mac::{Doubts, MacKey};
use sluice_core::port::store::Answer;
use std::sync::Arc;
use tokio_postgres::types::ToSql;

impl Keyed for PostgresStore {
    fn marked(&self, key: &MacKey) -> Mark {
        self.shared.keys.mark(key)
    }

    fn is_marked(&self) -> bool {
        self.shared.keys.is_marked()
    }

    fn adopt(&self, key: MacKey, doubts: Doubts) -> Answer<'_, ()> {
        Box::pin(async move {
            let given = Arc::new((key, doubts));
            for table in TABLES {
                let mut after = None;
                loop {
                    let (given, from) = (Arc::clone(&given), after.take());
                    let adopt = async move |session: &Session, _: &super::ConnectionPool| {
                        batch(session, &given, table, from.as_ref()).await
                    };
                    match self.transact(adopt).await? {
                        Some(last) => after = Some(last),
                        None => break,
                    }
                }
            }
            let key = given.0.clone();
            self.transact(async move |session, _| write_mark(session, &key).await).await?;
            self.unlock(given.0.clone());
            Ok(())
        })
    }

    fn unlock(&self, key: MacKey) {
        self.shared.keys.set(key);
    }
}

/// Reads the mark of the store. A node that adopts a key at the same time writes the
/// mark before any other row, so rows are checked before the mark.
pub(super) async fn find(session: &Session) -> Result<FoundMark, Fault> {
    let mut unmarked = FoundMark::Empty;
    for table in TABLES {
        let sql = format!("SELECT 1 FROM {} LIMIT 1", table.target());
        if !session.query(&sql, &[]).await?.is_empty() {
            unmarked = FoundMark::Unmarked;
            break;
        }
    }
    let sql = "SELECT one::bigint, mark FROM authentic LIMIT 3";
    let rows = session.query(sql, &[]).await?;
    let marks = rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?)));
    Ok(FoundMark::from_rows(marks.collect::<Result<_, Fault>>()?, unmarked))
}

/// Marks the store and writes the head of its registry. Deletes all snapshots: they are made again from authentic journals.
async fn write_mark(session: &Session, key: &MacKey) -> Result<(), Fault> {
    session.execute("DELETE FROM snapshot", &[]).await?;
    let sql = "INSERT INTO authentic (one, mark) VALUES (1, $1)
               ON CONFLICT (one) DO UPDATE SET mark = excluded.mark";
    session.execute(sql, &[&&key.mark().0[..]]).await?;
    registry::adopt_head(session, key).await
}

/// Adds MACs to the next batch of rows after a key. Returns the last key of the batch,
/// or `None` at the end of the table.
async fn batch(
    session: &Session,
    (own, doubts): &(MacKey, Doubts),
    table: Table,
    after: Option<&Cells>,
) -> Result<Option<Cells>, Fault> {
    let after = after.map(Vec::as_slice);
    let (mut last, mut bytes, mut found) = (None, 0, Vec::new());
    let values = keys(table, after, ADOPT_ROWS_MAX);
    let values: Vec<Value<'_>> = values.iter().map(|value| &**value as Value<'_>).collect();
    for row in &session.query(&page(table, after), &values).await? {
        let row = read(table, row)?;
        bytes += row.iter().map(Cell::bytes).sum::<usize>();
        last = Some(table.key_of(&row));
        // The MAC is the last column of each of these tables.
        let has = row.last();
        if let Some(mac) = row_mac(own, doubts, table, &row).map(Cell::Bytes)
            && has != Some(&mac)
        {
            let mut values = table.key_of(&row);
            values.push(mac);
            found.push(values);
        }
        if bytes >= ADOPT_BYTES_MAX {
            break;
        }
    }
    if !found.is_empty() {
        let columns = table.key().iter().filter_map(|at| table.columns().get(*at));
        let kinds = columns.map(|(_, kind)| *kind).chain([ColumnType::Bytes]);
        let values: Vec<Box<dyn ToSql + Sync + '_>> = kinds
            .enumerate()
            .map(|(at, kind)| array(kind, found.iter().map(move |row| &row[at])))
            .collect();
        let values: Vec<Value<'_>> = values.iter().map(|value| &**value as Value<'_>).collect();
        session.execute(&update(table), &values).await?;
    }
    Ok(last)
}

/// Sets the MACs of rows by key, from arrays.
fn update(table: Table) -> String {
    let columns: Vec<_> = table.key().iter().filter_map(|at| table.columns().get(*at)).collect();
    let arrays = (1..).zip(&columns).map(|(at, (_, kind))| format!("${at}::{}[]", sort(*kind)));
    let same = columns.iter().map(|(name, _)| format!("old.{name} = new.{name}"));
    format!(
        "UPDATE {} AS old SET mac = new.mac
         FROM unnest({}, ${}::bytea[]) AS new ({}, mac) WHERE {}",
        table.target(),
        arrays.collect::<Vec<_>>().join(", "),
        columns.len() + 1,
        key(table),
        same.collect::<Vec<_>>().join(" AND "),
    )
}
