//! Reads everything in the database at one moment, for a verification.
//!
//! INVARIANT: one read-only transaction lasts from the first row to the last and sees
//! what was committed before it. It has its own connection and ends with it, whatever
//! fails.

mod schema;

use super::PostgresStore;
use super::column::{Id, get, number};
use super::fault::Fault;
use super::registry;
use super::session::Session;
use super::target::{keys, read};
use crate::authentic::Keys;
use crate::inspect::{
    NO_RUN, ORDER, Skip, SnapshotRow, damaged, is_numbered, rolled_back, stored, unreadable,
};
use crate::limits::{INSPECT_IDLE_MS, INSPECT_ROWS_AT_ONCE};
use crate::transfer::table::{Cell, Cells, Table};
use futures_util::StreamExt as _;
use sluice_core::port::inspect::{Each, FrameAt, Inspect, Stored};
use sluice_core::port::store::Answer;
use std::pin::pin;

impl Inspect for PostgresStore {
    fn inspect(&self, each: Each) -> Answer<'_, ()> {
        self.run_task(async move |pool| {
            let session = pool.connect().await.map_err(Fault::rolled_back)?;
            let mut inspector = Inspector { session: &session, keys: &pool.shared.keys, each };
            inspector.inspect().await.map_err(Fault::rolled_back)
        })
    }
}

/// Reads the tables one after the other.
struct Inspector<'a> {
    session: &'a Session,
    keys: &'a Keys,
    each: Each,
}

impl Inspector<'_> {
    async fn inspect(&mut self) -> Result<(), Fault> {
        // It holds no locks, so it may be idle for longer than a transaction that
        // writes.
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
             SET LOCAL idle_in_transaction_session_timeout = {INSPECT_IDLE_MS};
             {}; SAVEPOINT whole",
            schema::FORM
        );
        self.session.script(&begin).await?;
        schema::check(self.session, &mut self.each).await?;
        for table in ORDER {
            self.table(table).await?;
        }
        self.position().await?;
        // Rows that cannot be read are reported already.
        if !registry::is_current(self.session, self.keys).await.unwrap_or(true) {
            (self.each)(rolled_back());
        }
        self.session.script("COMMIT").await
    }

    /// Reads a table, skipping the parts that cannot be read.
    async fn table(&mut self, table: Table) -> Result<(), Fault> {
        let mut last = None;
        loop {
            let why = match self.rows(table, &mut last).await {
                Err(Fault::Corrupt(why) | Fault::Statement(why)) => why,
                read => return read,
            };
            self.rollback_to_savepoint().await?;
            self.unreadable(table, last.as_deref(), &why);
            match self.skip_damage(table, last.as_deref()).await? {
                Some(next) => last = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Streams the rows after a key, and keeps the key of the last one. Reports and
    /// skips an invalid row; stops at an error of the database.
    async fn rows(&mut self, table: Table, last: &mut Option<Cells>) -> Result<(), Fault> {
        let sql = select(table, last.is_some());
        let rows = self.session.stream(&sql, &values(table, last.as_deref())).await?;
        let mut rows = pin!(rows);
        let mut read = 0usize;
        loop {
            let next = async { rows.next().await.transpose().map_err(Fault::from) };
            let Some(row) = self.session.with_timeout(next).await? else { return Ok(()) };
            let found = match table {
                Table::Frame => self.frame(&row),
                Table::Snapshot => self.snapshot(&row),
                _ => self.row(table, &row),
            };
            match found {
                Ok(key) => *last = Some(key),
                Err(Fault::Corrupt(why)) => self.unreadable(table, last.as_deref(), &why),
                Err(fault) => return Err(fault),
            }
            read += 1;
            if read.is_multiple_of(INSPECT_ROWS_AT_ONCE) {
                // The writer works on the same thread.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Checks that there is exactly one row of positions, and that stream deltas are
    /// NULL rather than empty.
    async fn position(&mut self) -> Result<(), Fault> {
        let sql = "SELECT one::bigint FROM position";
        let rows = self.session.query(sql, &[]).await?;
        let found = rows.iter().map(|row| get::<i64>(row, 0)).collect::<Result<Vec<_>, _>>()?;
        if found != [1] {
            let detail = format!("found the rows {found:?} instead of only row 1");
            (self.each)(damaged(Table::Position.target(), None, detail));
        }
        let sql = "SELECT place FROM frame WHERE length(beside) = 0";
        for row in &self.session.query(sql, &[]).await? {
            let key = [Cell::Int(get(row, 0)?)];
            let detail = "its stream deltas are empty instead of NULL".to_owned();
            (self.each)(damaged(Table::Frame.target(), Some(&key), detail));
        }
        Ok(())
    }

    /// Leaves the failed statement, without changing the snapshot of the transaction.
    async fn rollback_to_savepoint(&self) -> Result<(), Fault> {
        self.session.script("ROLLBACK TO SAVEPOINT whole").await
    }

    fn unreadable(&mut self, table: Table, last: Option<&[Cell]>, why: &str) {
        (self.each)(damaged(table.target(), last, unreadable(why)));
    }

    /// The key after which a table can be read again; `None` if skipping is not
    /// possible or does not help.
    async fn skip_damage(
        &self,
        table: Table,
        last: Option<&[Cell]>,
    ) -> Result<Option<Cells>, Fault> {
        if !is_numbered(table) {
            return Ok(None);
        }
        let sql = format!("{} LIMIT 1", select(table, true));
        let mut skip = Skip::after(last);
        while let Some(key) = skip.next() {
            match self.session.query(&sql, &[&key]).await {
                Ok(_) => skip.record(key, true),
                Err(Fault::Corrupt(_) | Fault::Statement(_)) => {
                    self.rollback_to_savepoint().await?;
                    skip.record(key, false);
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(skip.resume_key())
    }

    /// Reads a row with the columns of its table, optionally followed by the id of its
    /// run. Returns its key.
    fn row(&mut self, table: Table, row: &tokio_postgres::Row) -> Result<Cells, Fault> {
        let cells = read(table, row)?;
        let found = stored(self.keys, table, &cells);
        found.map_err(corrupt)?.into_iter().for_each(&mut self.each);
        let key = table.key_of(&cells);
        if has_run(table) {
            self.orphan(table, &key, row, cells.len())?;
        }
        Ok(key)
    }

    /// Reads a frame: position, run, first event, count; id of its run.
    fn frame(&mut self, row: &tokio_postgres::Row) -> Result<Cells, Fault> {
        let place: i64 = get(row, 0)?;
        let key = vec![Cell::Int(place)];
        (self.each)(Stored::Frame(FrameAt {
            place: number(row, 0)?,
            run: get::<Id>(row, 1)?.run(),
            first: number(row, 2)?,
            count: u32::try_from(get::<i32>(row, 3)?).unwrap_or(0),
        }));
        self.orphan(Table::Frame, &key, row, 4)?;
        Ok(key)
    }

    /// Reads a snapshot: run, version, body, MAC; id of its run; the frame it ends
    /// with.
    fn snapshot(&mut self, row: &tokio_postgres::Row) -> Result<Cells, Fault> {
        let run = get::<Id>(row, 0)?.run();
        let key = vec![Cell::Id(run.0)];
        let frame = match get::<Option<i64>>(row, 5)? {
            Some(_) => {
                let count = u32::try_from(get::<i32>(row, 6)?).unwrap_or(0);
                Some((number(row, 5)?, count, get(row, 7)?, get(row, 8)?))
            }
            None => None,
        };
        let (version, body, mac) = (number(row, 1)?, get(row, 2)?, get(row, 3)?);
        if !(SnapshotRow { run, version, body, mac, frame }).is_authentic(self.keys) {
            (self.each)(Stored::ForeignSnapshot(run));
        }
        self.orphan(Table::Snapshot, &key, row, 4)?;
        Ok(key)
    }

    /// Reports a row without its run, whose id is in column `at`.
    fn orphan(
        &mut self,
        table: Table,
        key: &[Cell],
        row: &tokio_postgres::Row,
        at: usize,
    ) -> Result<(), Fault> {
        if get::<Option<Id>>(row, at)?.is_none() {
            (self.each)(damaged(table.target(), Some(key), NO_RUN.to_owned()));
        }
        Ok(())
    }
}

fn corrupt(why: &str) -> Fault {
    Fault::Corrupt(why.to_owned())
}

/// Whether the rows of a table are read together with their runs.
fn has_run(table: Table) -> bool {
    matches!(table, Table::Message | Table::RememberedOutput)
}

/// The parameters for rows after a key.
fn values(
    table: Table,
    after: Option<&[Cell]>,
) -> Vec<Box<dyn tokio_postgres::types::ToSql + Sync + '_>> {
    let mut values = keys(table, after, 0);
    // The last parameter is the page size.
    values.pop();
    values
}

/// Selects all rows of a table, or those after a key, without the bodies of frames.
fn select(table: Table, has_after: bool) -> String {
    let name = table.target();
    let columns = |columns: &mut dyn Iterator<Item = &'static str>| {
        columns.map(|column| format!("{name}.{column}")).collect::<Vec<_>>().join(", ")
    };
    let key = table.key().iter().filter_map(|at| table.columns().get(*at));
    let key = columns(&mut key.map(|(column, _)| *column));
    let what = match table {
        Table::Frame => FRAMES.to_owned(),
        Table::Snapshot => SNAPSHOTS.to_owned(),
        _ => {
            let all = columns(&mut table.columns().iter().map(|(column, _)| *column));
            match has_run(table) {
                true => {
                    format!("{all}, run.id FROM {name} LEFT JOIN run ON run.id = {name}.run")
                }
                false => format!("{all} FROM {name}"),
            }
        }
    };
    let mut conditions = Vec::new();
    if table == Table::Counter {
        conditions.push("span = 0".to_owned());
    }
    if has_after {
        let marks = (1..=table.key().len()).map(|at| format!("${at}")).collect::<Vec<_>>();
        conditions.push(format!("({key}) > ({})", marks.join(", ")));
    }
    let conditions = match &conditions[..] {
        [] => String::new(),
        conditions => format!(" WHERE {}", conditions.join(" AND ")),
    };
    format!("SELECT {what}{conditions} ORDER BY {key}")
}

const FRAMES: &str = "frame.place, frame.run, frame.first, frame.count, run.id
    FROM frame LEFT JOIN run ON run.id = frame.run";
const SNAPSHOTS: &str = "snapshot.run, snapshot.version, snapshot.body, snapshot.mac, run.id,
        frame.first, frame.count, frame.chain, frame.mac
    FROM snapshot LEFT JOIN run ON run.id = snapshot.run
    LEFT JOIN frame ON frame.run = snapshot.run AND frame.first =
        (SELECT max(before.first) FROM frame AS before
         WHERE before.run = snapshot.run AND before.first <= snapshot.version)";
