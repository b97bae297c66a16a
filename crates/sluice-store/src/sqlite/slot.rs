//! Slots of schedules.

use super::SqliteStore;
use super::column::{int, run_bytes, run_id, uint};
use super::fault::Fault;
use super::writer::Work;
use crate::limits::SLOTS_KEPT;
use rusqlite::{Connection, OptionalExtension as _, params};
use sluice_core::port::slots::{Mark, Slot, Slots};
use sluice_core::port::store::Answer;

impl Slots for SqliteStore {
    fn slots(
        &self,
        schedule: String,
        before_ms: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Slot>> {
        let read = move |desk: &super::reader::Desk| {
            slots(&desk.connection, &schedule, before_ms, crate::page(limit))
        };
        Box::pin(self.readers.read(read))
    }

    fn mark(&self, marks: Vec<Mark>) -> Answer<'_, Vec<bool>> {
        let bytes = marks.iter().map(|mark| mark.slot.why.as_ref().map_or(64, String::len)).sum();
        Box::pin(
            self.writer
                .write(bytes, move |work| marks.iter().map(|mark| note(work, mark)).collect()),
        )
    }
}

fn slots(
    connection: &Connection,
    schedule: &str,
    before_ms: Option<u64>,
    limit: usize,
) -> Result<Vec<Slot>, Fault> {
    let sql = "SELECT at, count, fate, why, run, noted_at FROM slot
               WHERE schedule = ?1 AND at < ?2 ORDER BY at DESC LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let before = before_ms.map_or(i64::MAX, int);
    let mut rows = statement.query(params![schedule, before, int(limit as u64)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Slot {
            schedule: schedule.to_owned(),
            slot_ms: uint(row.get(0)?),
            count: uint(row.get(1)?),
            fate: row.get(2)?,
            why: row.get(3)?,
            run: row.get::<_, Option<[u8; 16]>>(4)?.map(run_id),
            at_ms: uint(row.get(5)?),
        });
    }
    Ok(found)
}

fn note(work: &mut Work<'_>, mark: &Mark) -> Result<bool, Fault> {
    let slot = &mark.slot;
    let sql = "SELECT fate FROM slot WHERE schedule = ?1 AND at = ?2";
    let mut statement = work.connection.prepare_cached(sql)?;
    let place = params![slot.schedule, int(slot.slot_ms)];
    let fate: Option<String> = statement.query_row(place, |row| row.get(0)).optional()?;
    let fits = match &fate {
        None => mark.from.is_empty(),
        Some(fate) => mark.from.contains(fate),
    };
    if !fits {
        return Ok(false);
    }
    let sql = "INSERT OR REPLACE INTO slot VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    work.connection.prepare_cached(sql)?.execute(params![
        slot.schedule,
        int(slot.slot_ms),
        int(slot.count),
        slot.fate,
        slot.why,
        slot.run.map(run_bytes),
        int(slot.at_ms),
    ])?;
    if fate.is_none() {
        let sql = "DELETE FROM slot WHERE schedule = ?1 AND at <=
                   (SELECT at FROM slot WHERE schedule = ?1 ORDER BY at DESC LIMIT 1 OFFSET ?2)";
        let kept = int(SLOTS_KEPT as u64);
        work.connection.prepare_cached(sql)?.execute(params![slot.schedule, kept])?;
    }
    Ok(true)
}
