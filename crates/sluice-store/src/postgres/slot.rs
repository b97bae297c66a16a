//! Schedule slots.

use super::PostgresStore;
use super::column::{Id, Text, get, int, number, some_text, sql_limit, text};
use super::fault::Fault;
use super::session::{Session, Value};
use crate::authentic::{self, Keys};
use sluice_core::limits::SLOTS_KEPT;
use sluice_core::port::slots::{Mark, Slot, Slots};
use sluice_core::port::store::Answer;
use std::sync::Arc;

impl Slots for PostgresStore {
    fn slots(
        &self,
        schedule: String,
        before_ms: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Slot>> {
        let shared = Arc::clone(&self.shared);
        self.read(async move |session| {
            slots(session, &shared.keys, &schedule, before_ms, limit).await
        })
    }

    fn mark(&self, marks: Vec<Mark>) -> Answer<'_, Vec<bool>> {
        let stored = self.transact(async move |session, pool| {
            let mut stored = Vec::with_capacity(marks.len());
            for mark in &marks {
                stored.push(store_slot(session, &pool.shared.keys, mark).await?);
            }
            Ok(stored)
        });
        Box::pin(async move {
            self.shared.keys.for_writing()?;
            stored.await
        })
    }
}

const COLUMNS: &str = "SELECT at, count, fate, why, run, noted_at, mac FROM slot";

async fn slots(
    session: &Session,
    keys: &Keys,
    schedule: &str,
    before_ms: Option<u64>,
    limit: usize,
) -> Result<Vec<Slot>, Fault> {
    let sql = format!("{COLUMNS} WHERE schedule = $1 AND at < $2 ORDER BY at DESC LIMIT $3");
    let before = before_ms.map_or(i64::MAX, int);
    let rows =
        session.query(&sql, &[&Text(schedule), &before, &sql_limit(crate::page(limit))]).await?;
    rows.iter().map(|row| read(keys, schedule, row)).collect()
}

/// Fails if the slot is not authentic, because slots decide which runs are started.
fn read(keys: &Keys, schedule: &str, row: &tokio_postgres::Row) -> Result<Slot, Fault> {
    let slot = Slot {
        schedule: schedule.to_owned(),
        slot_ms: number(row, 0)?,
        count: number(row, 1)?,
        outcome: text(row, 2)?.into_owned(),
        why: some_text(row, 3)?,
        run: get::<Option<Id>>(row, 4)?.map(Id::run),
        at_ms: number(row, 5)?,
    };
    if !keys.is_slot(&slot, get(row, 6)?) {
        return Err(Fault::Corrupt(authentic::slot_not_authentic(schedule, slot.slot_ms)));
    }
    Ok(slot)
}

/// Inserts a new slot, or updates one whose stored outcome is in `mark.from`.
async fn store_slot(session: &Session, keys: &Keys, mark: &Mark) -> Result<bool, Fault> {
    let slot = &mark.slot;
    let (schedule, outcome) = (Text(&slot.schedule), Text(&slot.outcome));
    let why = slot.why.as_deref().map(Text);
    let run = slot.run.map(Id::from);
    let (at, count, noted_at) = (int(slot.slot_ms), int(slot.count), int(slot.at_ms));
    let mac = keys.get().map(|key| key.slot(slot));
    let mac = authentic::bytes(mac.as_ref());
    if !mark.from.is_empty() {
        let sql = format!("{COLUMNS} WHERE schedule = $1 AND at = $2 FOR UPDATE");
        let rows = session.query(&sql, &[&schedule, &at]).await?;
        let stored = rows.first().map(|row| read(keys, &slot.schedule, row)).transpose()?;
        if !stored.is_some_and(|stored| mark.from.contains(&stored.outcome)) {
            return Ok(false);
        }
        let sql = "UPDATE slot SET count = $3, fate = $4, why = $5, run = $6, noted_at = $7,
                       mac = $8
                   WHERE schedule = $1 AND at = $2";
        let values: [Value<'_>; 8] =
            [&schedule, &at, &count, &outcome, &why, &run, &noted_at, &mac];
        return Ok(session.execute(sql, &values).await? > 0);
    }
    let sql = "INSERT INTO slot (schedule, at, count, fate, why, run, noted_at, mac)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING";
    let values: [Value<'_>; 8] = [&schedule, &at, &count, &outcome, &why, &run, &noted_at, &mac];
    let added = session.execute(sql, &values).await?;
    if added > 0 {
        let sql = "DELETE FROM slot WHERE schedule = $1 AND at <=
                   (SELECT at FROM slot WHERE schedule = $1 ORDER BY at DESC LIMIT 1 OFFSET $2)";
        session.execute(sql, &[&schedule, &sql_limit(SLOTS_KEPT)]).await?;
    }
    Ok(added > 0)
}
