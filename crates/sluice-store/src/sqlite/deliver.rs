//! Webhook deliveries.

use super::SqliteStore;
use super::column::{int, run_bytes, run_id, uint};
use super::fault::Fault;
use super::writer::Work;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use sluice_core::limits::DELIVERIES_KEPT;
use sluice_core::port::deliveries::{Ahead, Deliveries, Delivering, Delivery};
use sluice_core::port::store::Answer;

/// Columns in the order in which `delivery` reads them.
const COLUMNS: &str = "number, run, event, kind, tries, status, error, at, next_at";

impl Deliveries for SqliteStore {
    fn delivering(&self, webhook: String) -> Answer<'_, Delivering> {
        let read =
            move |reader: &super::reader::ReadConnection| delivering(&reader.connection, &webhook);
        Box::pin(self.readers.read(read))
    }

    fn deliver(&self, ahead: Ahead) -> Answer<'_, bool> {
        let bytes = 64 + ahead.put.len() * 128;
        Box::pin(self.writer.write(bytes, move |work| deliver(work, &ahead)))
    }

    fn take_due(
        &self,
        webhook: String,
        by_ms: u64,
        until_ms: u64,
        limit: usize,
    ) -> Answer<'_, Vec<Delivery>> {
        let limit = crate::page(limit);
        Box::pin(
            self.writer.write(64, move |work| take_due(work, &webhook, (by_ms, until_ms), limit)),
        )
    }

    fn delivered(&self, done: Vec<Delivery>) -> Answer<'_, ()> {
        let bytes = done.iter().map(|one| 128 + one.error.as_ref().map_or(0, String::len)).sum();
        Box::pin(
            self.writer.write(bytes, move |work| done.iter().try_for_each(|one| update(work, one))),
        )
    }

    fn deliveries(
        &self,
        webhook: String,
        before: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Delivery>> {
        let limit = crate::page(limit);
        let read = move |reader: &super::reader::ReadConnection| {
            let before = before.map_or(i64::MAX, int);
            let sql = format!(
                "SELECT {COLUMNS} FROM delivery WHERE webhook = ?1 AND number < ?2
                 ORDER BY number DESC LIMIT ?3"
            );
            let mut statement = reader.connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params![webhook, before, int(limit as u64)])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(delivery(&webhook, row)?);
            }
            Ok(found)
        };
        Box::pin(self.readers.read(read))
    }

    fn forget_deliveries(&self, webhook: String) -> Answer<'_, ()> {
        Box::pin(self.writer.write(64, move |work| {
            let connection = work.connection;
            connection.execute("DELETE FROM delivery WHERE webhook = ?1", params![webhook])?;
            connection.execute("DELETE FROM webhook WHERE name = ?1", params![webhook])?;
            Ok(())
        }))
    }
}

fn delivering(connection: &Connection, webhook: &str) -> Result<Delivering, Fault> {
    let place = place(connection, webhook)?.map(|(place, _)| place);
    let sql = "SELECT count(*), min(next_at) FROM delivery
               WHERE webhook = ?1 AND next_at IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let (waiting, due): (i64, Option<i64>) =
        statement.query_row(params![webhook], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Delivering { place, waiting: uint(waiting), due_ms: due.map(uint) })
}

/// Feed position of a webhook, and the number of its last delivery.
fn place(connection: &Connection, webhook: &str) -> Result<Option<(u64, u64)>, Fault> {
    let mut statement =
        connection.prepare_cached("SELECT place, last FROM webhook WHERE name = ?1")?;
    let found: Option<(i64, i64)> =
        statement.query_row(params![webhook], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(found.map(|(place, last)| (uint(place), uint(last))))
}

fn deliver(work: &mut Work<'_>, ahead: &Ahead) -> Result<bool, Fault> {
    let connection = work.connection;
    let stored = place(connection, &ahead.webhook)?;
    if stored.map(|(place, _)| place) != ahead.from {
        return Ok(false);
    }
    let mut last = stored.map_or(0, |(_, last)| last);
    let sql = "INSERT OR IGNORE INTO delivery VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    for one in &ahead.put {
        let added = connection.prepare_cached(sql)?.execute(params![
            ahead.webhook,
            int(last + 1),
            run_bytes(one.run),
            int(one.event),
            one.kind,
            one.tries,
            one.status,
            one.error,
            int(one.at_ms),
            one.next_ms.map(int),
        ])?;
        last += added as u64;
    }
    let sql = "INSERT OR REPLACE INTO webhook VALUES (?1, ?2, ?3)";
    connection.prepare_cached(sql)?.execute(params![ahead.webhook, int(ahead.to), int(last)])?;
    Ok(true)
}

fn take_due(
    work: &mut Work<'_>,
    webhook: &str,
    (by_ms, until_ms): (u64, u64),
    limit: usize,
) -> Result<Vec<Delivery>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM delivery WHERE webhook = ?1 AND next_at <= ?2
         ORDER BY next_at, number LIMIT ?3"
    );
    let mut statement = work.connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![webhook, int(by_ms), int(limit as u64)])?;
    let mut taken = Vec::new();
    while let Some(row) = rows.next()? {
        let due = delivery(webhook, row)?;
        taken.push(Delivery { next_ms: Some(until_ms), ..due });
    }
    let sql = "UPDATE delivery SET next_at = ?3 WHERE webhook = ?1 AND number = ?2";
    for one in &taken {
        let place = params![webhook, int(one.number), int(until_ms)];
        work.connection.prepare_cached(sql)?.execute(place)?;
    }
    Ok(taken)
}

fn update(work: &mut Work<'_>, one: &Delivery) -> Result<(), Fault> {
    let sql = "UPDATE delivery SET tries = ?3, status = ?4, error = ?5, at = ?6, next_at = ?7
               WHERE webhook = ?1 AND number = ?2";
    work.connection.prepare_cached(sql)?.execute(params![
        one.webhook,
        int(one.number),
        one.tries,
        one.status,
        one.error,
        int(one.at_ms),
        one.next_ms.map(int),
    ])?;
    if one.next_ms.is_none() {
        let sql = "DELETE FROM delivery WHERE webhook = ?1 AND next_at IS NULL AND number <=
                   (SELECT number FROM delivery WHERE webhook = ?1 AND next_at IS NULL
                    ORDER BY number DESC LIMIT 1 OFFSET ?2)";
        let kept = int(DELIVERIES_KEPT as u64);
        work.connection.prepare_cached(sql)?.execute(params![one.webhook, kept])?;
    }
    Ok(())
}

fn delivery(webhook: &str, row: &Row<'_>) -> Result<Delivery, Fault> {
    Ok(Delivery {
        webhook: webhook.to_owned(),
        number: uint(row.get(0)?),
        run: run_id(row.get(1)?),
        event: uint(row.get(2)?),
        kind: row.get(3)?,
        tries: row.get(4)?,
        status: row.get(5)?,
        error: row.get(6)?,
        at_ms: uint(row.get(7)?),
        next_ms: row.get::<_, Option<i64>>(8)?.map(uint),
    })
}
