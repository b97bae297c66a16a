//! Schedule slots.

use super::SqliteStore;
use super::column::{int, run_bytes, run_id, uint};
use super::fault::Fault;
use super::reader::ReadConnection;
use super::writer::Work;
use crate::authentic::{self, Keys};
use rusqlite::{Row, params};
use sluice_core::limits::SLOTS_KEPT;
use sluice_core::port::slots::{Mark, Slot, Slots};
use sluice_core::port::store::Answer;

impl Slots for SqliteStore {
    fn slots(
        &self,
        schedule: String,
        before_ms: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Slot>> {
        let read =
            move |reader: &ReadConnection| slots(reader, &schedule, before_ms, crate::page(limit));
        Box::pin(self.readers.read(read))
    }

    fn mark(&self, marks: Vec<Mark>) -> Answer<'_, Vec<bool>> {
        let bytes = marks.iter().map(|mark| mark.slot.why.as_ref().map_or(64, String::len)).sum();
        Box::pin(async move {
            self.shared.keys.for_writing()?;
            let store = move |work: &mut Work<'_>| {
                marks.iter().map(|mark| store_slot(work, mark)).collect::<Result<Vec<_>, Fault>>()
            };
            self.writer.write(bytes, store).await
        })
    }
}

const COLUMNS: &str = "SELECT at, count, fate, why, run, noted_at, mac FROM slot";

fn slots(
    reader: &ReadConnection,
    schedule: &str,
    before_ms: Option<u64>,
    limit: usize,
) -> Result<Vec<Slot>, Fault> {
    let sql = format!("{COLUMNS} WHERE schedule = ?1 AND at < ?2 ORDER BY at DESC LIMIT ?3");
    let mut statement = reader.connection.prepare_cached(&sql)?;
    let before = before_ms.map_or(i64::MAX, int);
    let mut rows = statement.query(params![schedule, before, int(limit as u64)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(&reader.shared.keys, schedule, row)?);
    }
    Ok(found)
}

/// Fails if the slot is not authentic, because slots decide which runs are started.
fn read(keys: &Keys, schedule: &str, row: &Row<'_>) -> Result<Slot, Fault> {
    let slot = Slot {
        schedule: schedule.to_owned(),
        slot_ms: uint(row.get(0)?),
        count: uint(row.get(1)?),
        outcome: row.get(2)?,
        why: row.get(3)?,
        run: row.get::<_, Option<[u8; 16]>>(4)?.map(run_id),
        at_ms: uint(row.get(5)?),
    };
    if !keys.is_slot(&slot, row.get_ref(6)?.as_blob().map_err(rusqlite::Error::from)?) {
        let Slot { schedule, slot_ms, .. } = slot;
        return Err(Fault::Corrupt(authentic::slot_not_authentic(&schedule, slot_ms)));
    }
    Ok(slot)
}

fn store_slot(work: &mut Work<'_>, mark: &Mark) -> Result<bool, Fault> {
    let slot = &mark.slot;
    let outcome = outcome(work, slot)?;
    let fits = match &outcome {
        None => mark.from.is_empty(),
        Some(outcome) => mark.from.contains(outcome),
    };
    if !fits {
        return Ok(false);
    }
    let mac = work.keys.get().map(|key| key.slot(slot));
    let sql = "INSERT OR REPLACE INTO slot VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    work.connection.prepare_cached(sql)?.execute(params![
        slot.schedule,
        int(slot.slot_ms),
        int(slot.count),
        slot.outcome,
        slot.why,
        slot.run.map(run_bytes),
        int(slot.at_ms),
        authentic::bytes(mac.as_ref()),
    ])?;
    if outcome.is_none() {
        let sql = "DELETE FROM slot WHERE schedule = ?1 AND at <=
                   (SELECT at FROM slot WHERE schedule = ?1 ORDER BY at DESC LIMIT 1 OFFSET ?2)";
        let kept = int(SLOTS_KEPT as u64);
        work.connection.prepare_cached(sql)?.execute(params![slot.schedule, kept])?;
    }
    Ok(true)
}

/// The stored outcome of a slot.
fn outcome(work: &Work<'_>, slot: &Slot) -> Result<Option<String>, Fault> {
    let sql = format!("{COLUMNS} WHERE schedule = ?1 AND at = ?2");
    let mut statement = work.connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![slot.schedule, int(slot.slot_ms)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(read(work.keys, &slot.schedule, row)?.outcome))
}
