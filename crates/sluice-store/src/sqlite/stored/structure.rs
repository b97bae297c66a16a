//! Checks the tables that index the journals. Only SQLite has them, and reading rows
//! does not reveal whether they are consistent.

use super::fault;
use crate::inspect::NO_RUN;
use crate::sqlite::fault::Fault;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use sluice_core::port::inspect::{Each, Stored};

/// A consistency check of one table.
struct StructureCheck {
    table: &'static str,
    /// Selects the keys of inconsistent rows. Linear in the rows, except for sorting.
    sql: &'static str,
    detail: &'static str,
}

const CHECKS: &[StructureCheck] = &[
    StructureCheck {
        table: "memo",
        sql: "SELECT place FROM memo LEFT JOIN run ON run.num = memo.run WHERE run.num IS NULL",
        detail: NO_RUN,
    },
    StructureCheck {
        table: "letter",
        sql: "SELECT letter.id FROM letter LEFT JOIN run ON run.num = letter.run
              WHERE run.num IS NULL",
        detail: NO_RUN,
    },
    StructureCheck {
        table: "snapshot",
        sql: "SELECT snapshot.run FROM snapshot LEFT JOIN run ON run.num = snapshot.run
              WHERE run.num IS NULL",
        detail: NO_RUN,
    },
    StructureCheck {
        table: "tip",
        sql: "SELECT tip.run FROM tip LEFT JOIN run ON run.num = tip.run WHERE run.num IS NULL",
        detail: NO_RUN,
    },
    StructureCheck {
        table: "mark",
        sql: "SELECT mark.run, first FROM mark LEFT JOIN run ON run.num = mark.run
              WHERE run.num IS NULL",
        detail: NO_RUN,
    },
    StructureCheck {
        table: "beside",
        sql: "SELECT beside.seq FROM beside LEFT JOIN frame ON frame.seq = beside.seq
              WHERE frame.seq IS NULL",
        detail: "its frame has no row",
    },
    // Readers follow the links from a frame to the previous one.
    StructureCheck {
        table: "frame",
        sql: "SELECT seq FROM (SELECT seq, prev,
                  lag(seq, 1, 0) OVER (PARTITION BY run ORDER BY first, seq) AS before FROM frame)
              WHERE prev IS NOT before",
        detail: "its link does not point to the previous frame of its run",
    },
    StructureCheck {
        table: "tip",
        sql: "SELECT lower(hex(run.id)) FROM run LEFT JOIN tip ON tip.run = run.num
              LEFT JOIN (SELECT run, count(*) AS frames, max(first + count) - 1 AS version,
                             max(seq) AS seq FROM frame GROUP BY run) AS held
                  ON held.run = run.num
              WHERE tip.version IS NOT coalesce(held.version, 0)
                  OR tip.seq IS NOT coalesce(held.seq, 0)
                  OR tip.frames IS NOT coalesce(held.frames, 0)",
        detail: "the tip is missing or does not match the last frame of the run",
    },
    StructureCheck {
        table: "mark",
        sql: "SELECT mark.run, mark.first FROM mark LEFT JOIN frame ON frame.seq = mark.seq
              WHERE frame.run IS NOT mark.run OR frame.first IS NOT mark.first",
        detail: "it does not point to the frame of its run that begins with its event",
    },
    // Every 64th frame: `FRAMES_PER_MARK`.
    StructureCheck {
        table: "mark",
        sql: "SELECT counted.run, counted.first FROM (SELECT run, first,
                  row_number() OVER (PARTITION BY run ORDER BY first, seq) AS number
                  FROM frame) AS counted
              LEFT JOIN mark ON mark.run = counted.run AND mark.first = counted.first
              WHERE counted.number % 64 = 0 AND mark.run IS NULL",
        detail: "the index mark is missing: reads of the journal take longer",
    },
];

/// Reports every inconsistent row.
pub(super) fn check(connection: &Connection, each: &mut Each) -> Result<(), Fault> {
    for check in CHECKS {
        match broken(connection, check, each) {
            Err(Fault::Corrupt(why)) => {
                let detail = format!("the table cannot be checked: {why}");
                each(Stored::Damaged { table: check.table, key: String::new(), detail });
            }
            checked => checked?,
        }
    }
    Ok(())
}

fn broken(connection: &Connection, check: &StructureCheck, each: &mut Each) -> Result<(), Fault> {
    let mut statement = connection.prepare(check.sql).map_err(fault)?;
    let columns = statement.column_count();
    let mut rows = statement.query([]).map_err(fault)?;
    while let Some(row) = rows.next().map_err(fault)? {
        let key =
            (0..columns).map(|at| row.get_ref(at).map(key_text)).collect::<Result<Vec<_>, _>>();
        let (key, detail) = (key?.join(", "), check.detail.to_owned());
        each(Stored::Damaged { table: check.table, key, detail });
    }
    Ok(())
}

fn key_text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "none".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text).into_owned(),
    }
}
