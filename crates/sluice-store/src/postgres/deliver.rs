//! Webhook deliveries.

use super::PostgresStore;
use super::column::{Id, Text, get, int, number, some_number, some_text, sql_limit, text};
use super::fault::Fault;
use super::session::Session;
use sluice_core::id::RunId;
use sluice_core::limits::DELIVERIES_KEPT;
use sluice_core::port::deliveries::{Ahead, Deliveries, Delivering, Delivery};
use sluice_core::port::store::Answer;
use std::collections::BTreeSet;
use tokio_postgres::Row;

const TAKE_DUE: &str = "UPDATE delivery SET next_at = $3
    FROM (SELECT number, next_at FROM delivery WHERE webhook = $1 AND next_at <= $2
          ORDER BY next_at, number LIMIT $4 FOR UPDATE SKIP LOCKED) AS due
    WHERE delivery.webhook = $1 AND delivery.number = due.number
    RETURNING delivery.number, run, event, kind, tries, status, error, at, delivery.next_at,
        due.next_at";

impl Deliveries for PostgresStore {
    fn delivering(&self, webhook: String) -> Answer<'_, Delivering> {
        self.read(async move |session| delivering(session, &webhook).await)
    }

    fn deliver(&self, ahead: Ahead) -> Answer<'_, bool> {
        self.transact(async move |session, _| deliver(session, &ahead).await)
    }

    fn take_due(
        &self,
        webhook: String,
        by_ms: u64,
        until_ms: u64,
        limit: usize,
    ) -> Answer<'_, Vec<Delivery>> {
        self.write(async move |session, _| {
            let limit = sql_limit(crate::page(limit));
            let values: [super::session::Value<'_>; 4] =
                [&Text(&webhook), &int(by_ms), &int(until_ms), &limit];
            let rows = session.query(TAKE_DUE, &values).await?;
            let mut due = Vec::with_capacity(rows.len());
            for row in &rows {
                due.push((number(row, 9)?, delivery(&webhook, row)?));
            }
            due.sort_unstable_by_key(|(due, one)| (*due, one.number));
            Ok(due.into_iter().map(|(_, one)| one).collect())
        })
    }

    fn delivered(&self, done: Vec<Delivery>) -> Answer<'_, ()> {
        self.transact(async move |session, _| delivered(session, &done).await)
    }

    fn deliveries(
        &self,
        webhook: String,
        before: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Delivery>> {
        self.read(async move |session| {
            let sql = "SELECT number, run, event, kind, tries, status, error, at, next_at
                       FROM delivery WHERE webhook = $1 AND number < $2
                       ORDER BY number DESC LIMIT $3";
            let before = before.map_or(i64::MAX, int);
            let limit = sql_limit(crate::page(limit));
            let rows = session.query(sql, &[&Text(&webhook), &before, &limit]).await?;
            rows.iter().map(|row| delivery(&webhook, row)).collect()
        })
    }

    fn forget_deliveries(&self, webhook: String) -> Answer<'_, ()> {
        self.transact(async move |session, _| {
            session.execute("DELETE FROM webhook WHERE name = $1", &[&Text(&webhook)]).await?;
            session.execute("DELETE FROM delivery WHERE webhook = $1", &[&Text(&webhook)]).await?;
            Ok(())
        })
    }
}

async fn delivering(session: &Session, webhook: &str) -> Result<Delivering, Fault> {
    let sql = "SELECT (SELECT place FROM webhook WHERE name = $1), count(*), min(next_at)
               FROM delivery WHERE webhook = $1 AND next_at IS NOT NULL";
    let row = &session.query(sql, &[&Text(webhook)]).await?[0];
    Ok(Delivering {
        place: some_number(row, 0)?,
        waiting: number(row, 1)?,
        due_ms: some_number(row, 2)?,
    })
}

async fn deliver(session: &Session, ahead: &Ahead) -> Result<bool, Fault> {
    let sql = "SELECT place, last FROM webhook WHERE name = $1 FOR UPDATE";
    let rows = session.query(sql, &[&Text(&ahead.webhook)]).await?;
    let place = rows.first().map(|row| number(row, 0)).transpose()?;
    if place != ahead.from {
        return Ok(false);
    }
    let last = rows.first().map_or(Ok(0), |row| number(row, 1))?;
    let new = unknown(session, ahead).await?;
    let end = last + new.len() as u64;
    // If two nodes insert a new webhook at once, the second one fails here and retries.
    let sql = match place {
        None => "INSERT INTO webhook (name, place, last) VALUES ($1, $2, $3)",
        Some(_) => "UPDATE webhook SET place = $2, last = $3 WHERE name = $1",
    };
    session.execute(sql, &[&Text(&ahead.webhook), &int(ahead.to), &int(end)]).await?;
    if !new.is_empty() {
        insert(session, &ahead.webhook, last, &new).await?;
    }
    Ok(true)
}

/// The deliveries that are not stored yet, without duplicates.
async fn unknown<'a>(session: &Session, ahead: &'a Ahead) -> Result<Vec<&'a Delivery>, Fault> {
    let runs: Vec<Id> = ahead.put.iter().map(|one| Id::from(one.run)).collect();
    let events: Vec<i64> = ahead.put.iter().map(|one| int(one.event)).collect();
    let sql = "SELECT delivery.run, delivery.event FROM delivery
               JOIN unnest($2::uuid[], $3::bigint[]) AS new (run, event)
               ON delivery.run = new.run AND delivery.event = new.event
               WHERE delivery.webhook = $1";
    let rows = session.query(sql, &[&Text(&ahead.webhook), &runs, &events]).await?;
    let mut known: BTreeSet<(RunId, u64)> = BTreeSet::new();
    for row in &rows {
        known.insert((get::<Id>(row, 0)?.run(), number(row, 1)?));
    }
    Ok(ahead.put.iter().filter(|one| known.insert((one.run, one.event))).collect())
}

async fn insert(
    session: &Session,
    webhook: &str,
    last: u64,
    new: &[&Delivery],
) -> Result<(), Fault> {
    let sql = "INSERT INTO delivery
                   (webhook, number, run, event, kind, tries, status, error, at, next_at)
               SELECT $1, number, run, event, kind, tries, status, error, at, next_at
               FROM unnest($2::bigint[], $3::uuid[], $4::bigint[], $5::text[], $6::bigint[],
                   $7::integer[], $8::text[], $9::bigint[], $10::bigint[])
                   AS new (number, run, event, kind, tries, status, error, at, next_at)";
    let numbers: Vec<i64> = (1..=new.len() as u64).map(|number| int(last + number)).collect();
    let runs: Vec<Id> = new.iter().map(|one| Id::from(one.run)).collect();
    let events: Vec<i64> = new.iter().map(|one| int(one.event)).collect();
    let webhook = Text(webhook);
    let kinds: Vec<Text<'_>> = new.iter().map(|one| Text(&one.kind)).collect();
    let tries: Vec<i64> = new.iter().map(|one| i64::from(one.tries)).collect();
    let statuses: Vec<Option<i32>> = new.iter().map(|one| one.status.map(i32::from)).collect();
    let errors: Vec<_> = new.iter().map(|one| one.error.as_deref().map(Text)).collect();
    let ats: Vec<i64> = new.iter().map(|one| int(one.at_ms)).collect();
    let nexts: Vec<Option<i64>> = new.iter().map(|one| one.next_ms.map(int)).collect();
    session
        .execute(
            sql,
            &[&webhook, &numbers, &runs, &events, &kinds, &tries, &statuses, &errors, &ats, &nexts],
        )
        .await?;
    Ok(())
}

async fn delivered(session: &Session, done: &[Delivery]) -> Result<(), Fault> {
    let sql = "UPDATE delivery SET tries = $3, status = $4, error = $5, at = $6, next_at = $7
               WHERE webhook = $1 AND number = $2";
    for one in done {
        let (tries, status) = (i64::from(one.tries), one.status.map(i32::from));
        let (at, next) = (int(one.at_ms), one.next_ms.map(int));
        let error = one.error.as_deref().map(Text);
        let values: [super::session::Value<'_>; 7] =
            [&Text(&one.webhook), &int(one.number), &tries, &status, &error, &at, &next];
        session.execute(sql, &values).await?;
    }
    let over = done.iter().filter(|one| one.next_ms.is_none());
    let webhooks: BTreeSet<&str> = over.map(|one| &one.webhook[..]).collect();
    let sql = "DELETE FROM delivery WHERE webhook = $1 AND next_at IS NULL AND number <=
               (SELECT number FROM delivery WHERE webhook = $1 AND next_at IS NULL
                ORDER BY number DESC LIMIT 1 OFFSET $2)";
    for webhook in webhooks {
        session.execute(sql, &[&Text(webhook), &sql_limit(DELIVERIES_KEPT)]).await?;
    }
    Ok(())
}

fn delivery(webhook: &str, row: &Row) -> Result<Delivery, Fault> {
    let status: Option<i32> = get(row, 5)?;
    Ok(Delivery {
        webhook: webhook.to_owned(),
        number: number(row, 0)?,
        run: get::<Id>(row, 1)?.run(),
        event: number(row, 2)?,
        kind: text(row, 3)?.into_owned(),
        tries: u32::try_from(get::<i64>(row, 4)?).unwrap_or(u32::MAX),
        status: status.and_then(|status| u16::try_from(status).ok()),
        error: some_text(row, 6)?,
        at_ms: number(row, 7)?,
        next_ms: some_number(row, 8)?,
    })
}
