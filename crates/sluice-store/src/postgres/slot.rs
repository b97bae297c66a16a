//! Slots of schedules.

use super::PostgresStore;
use super::column::{Id, Text, get, int, most, number, some_text, text};
use super::fault::Fault;
use super::session::Session;
use crate::limits::SLOTS_KEPT;
use sluice_core::port::slots::{Mark, Slot, Slots};
use sluice_core::port::store::Answer;

impl Slots for PostgresStore {
    fn slots(
        &self,
        schedule: String,
        before_ms: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Slot>> {
        self.ask(async move |session| slots(session, &schedule, before_ms, limit).await)
    }

    fn mark(&self, marks: Vec<Mark>) -> Answer<'_, Vec<bool>> {
        self.transact(async move |session, _| {
            let mut noted = Vec::with_capacity(marks.len());
            for mark in &marks {
                noted.push(note(session, mark).await?);
            }
            Ok(noted)
        })
    }
}

async fn slots(
    session: &Session,
    schedule: &str,
    before_ms: Option<u64>,
    limit: usize,
) -> Result<Vec<Slot>, Fault> {
    let sql = "SELECT at, count, fate, why, run, noted_at FROM slot
               WHERE schedule = $1 AND at < $2 ORDER BY at DESC LIMIT $3";
    let before = before_ms.map_or(i64::MAX, int);
    let rows = session.query(sql, &[&Text(schedule), &before, &most(crate::page(limit))]).await?;
    let slot = |row: &tokio_postgres::Row| {
        Ok(Slot {
            schedule: schedule.to_owned(),
            slot_ms: number(row, 0)?,
            count: number(row, 1)?,
            fate: text(row, 2)?.into_owned(),
            why: some_text(row, 3)?,
            run: get::<Option<Id>>(row, 4)?.map(Id::run),
            at_ms: number(row, 5)?,
        })
    };
    rows.iter().map(slot).collect()
}

/// One that nobody has noted is added, one with the right fate is changed.
async fn note(session: &Session, mark: &Mark) -> Result<bool, Fault> {
    let slot = &mark.slot;
    let (schedule, fate) = (Text(&slot.schedule), Text(&slot.fate));
    let why = slot.why.as_deref().map(Text);
    let run = slot.run.map(Id::from);
    let (at, count, noted_at) = (int(slot.slot_ms), int(slot.count), int(slot.at_ms));
    if !mark.from.is_empty() {
        let from: Vec<Text<'_>> = mark.from.iter().map(|fate| Text(fate)).collect();
        let sql = "UPDATE slot SET count = $3, fate = $4, why = $5, run = $6, noted_at = $7
                   WHERE schedule = $1 AND at = $2 AND fate = ANY($8)";
        let changed = session
            .execute(sql, &[&schedule, &at, &count, &fate, &why, &run, &noted_at, &from])
            .await?;
        return Ok(changed > 0);
    }
    let sql = "INSERT INTO slot (schedule, at, count, fate, why, run, noted_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING";
    let added =
        session.execute(sql, &[&schedule, &at, &count, &fate, &why, &run, &noted_at]).await?;
    if added > 0 {
        let sql = "DELETE FROM slot WHERE schedule = $1 AND at <=
                   (SELECT at FROM slot WHERE schedule = $1 ORDER BY at DESC LIMIT 1 OFFSET $2)";
        session.execute(sql, &[&schedule, &most(SLOTS_KEPT)]).await?;
    }
    Ok(added > 0)
}
