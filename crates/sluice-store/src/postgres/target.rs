//! The schema that a transfer writes to.
//!
//! Rows arrive in key order, so the greatest key shows the progress. A row of the table
//! `transfer` records the source and the current table.
//!
//! INVARIANT: a batch and its progress are written in one transaction, and only by the
//! newest attempt. Batches still in flight from a killed process are rejected.

use super::column::{Id, Text, get, some_text, sql_limit};
use super::fault::Fault;
use super::migrate::{self, OpenError, Unfinished};
use super::outside;
use super::session::{Pipeline, Session, step};
use crate::limits::TRANSFER_PAGE_ROWS;
use crate::transfer::TransferError;
use crate::transfer::table::{Cell, Cells, ColumnType, Table};
use futures_util::StreamExt as _;
use sluice_core::hash::Hash;
use std::future::Future;
use std::pin::Pin;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;
use tokio_postgres::RowStream;
use tokio_postgres::types::ToSql;

const BEGIN: &str = "INSERT INTO transfer (one, source, turn, at, copied, ended)
    VALUES (1, $1, 1, '', 0, false)";
const RESUME: &str = "UPDATE transfer SET turn = turn + 1 WHERE one = 1 RETURNING turn";
const STATE: &str = "SELECT source, turn, at, copied, ended FROM transfer WHERE one = 1 FOR UPDATE";
const PROGRESS: &str = "UPDATE transfer SET at = $2, copied = $3 WHERE one = 1 AND turn = $1
    RETURNING one";
const END: &str = "UPDATE transfer SET ended = true WHERE one = 1 AND turn = $1 RETURNING one";

/// A connection to the schema, with a runtime to wait for its responses.
pub(crate) struct Target {
    runtime: Runtime,
    local: LocalSet,
    session: Session,
}

/// Progress of a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TransferState {
    /// Digest of the source.
    pub(crate) source: Vec<u8>,
    /// Number of attempts.
    pub(crate) turn: i64,
    /// The table being copied.
    pub(crate) at: String,
    /// Rows of that table already copied.
    pub(crate) copied: i64,
    /// Whether the transfer is complete.
    pub(crate) has_ended: bool,
}

impl Target {
    /// Connects, and migrates the schema.
    pub(crate) fn open(url: &str, schema: Option<&str>) -> Result<Target, OpenError> {
        let address = outside::config(url, schema)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| OpenError::Failed(error.to_string()))?;
        let local = LocalSet::new();
        let session = local.block_on(&runtime, async {
            let session = Session::connect(&address, None).await?;
            migrate::migrate(&session, address.schema(), Unfinished::Allowed).await?;
            Ok::<Session, OpenError>(session)
        })?;
        Ok(Target { runtime, local, session })
    }

    fn wait<T>(&self, answer: impl Future<Output = Result<T, Fault>>) -> Result<T, TransferError> {
        let answer = self.local.block_on(&self.runtime, answer);
        answer.map_err(|fault| TransferError::Write(fault.why().to_owned()))
    }

    /// Starts a transfer, or resumes an unfinished one.
    pub(crate) fn begin(&self, source: Hash) -> Result<TransferState, TransferError> {
        let begun = self.wait(begin(&self.session, source))?;
        if begun.is_err() {
            // The refusal is the error to report.
            let _ = self.wait(self.session.script("ROLLBACK"));
        }
        begun
    }

    /// The greatest key of a table.
    pub(crate) fn last(&self, table: Table) -> Result<Option<Cells>, TransferError> {
        let columns: Vec<_> =
            table.key().iter().filter_map(|at| table.columns().get(*at)).collect();
        let names = columns.iter().map(|(name, _)| format!("{name} DESC")).collect::<Vec<_>>();
        let sql = format!("{} ORDER BY {} LIMIT 1", select(table, None), names.join(", "));
        self.wait(async {
            let rows = self.session.query(&sql, &[]).await?;
            let row = rows.first().map(|row| read(table, row)).transpose()?;
            Ok(row.map(|row| table.key_of(&row)))
        })
    }

    /// Inserts rows and updates the progress. Returns false if a newer attempt has
    /// started.
    pub(crate) fn put(
        &self,
        turn: i64,
        table: Table,
        rows: &[Cells],
        copied: i64,
    ) -> Result<bool, TransferError> {
        let sql = insert(table);
        let mut pipeline = Pipeline::default();
        step!(pipeline, "BEGIN");
        let progress = step!(pipeline, PROGRESS, turn, table.name(), copied);
        let mut values: Vec<Box<dyn ToSql + Sync + '_>> = vec![Box::new(turn)];
        for (at, (_, kind)) in table.columns().iter().enumerate() {
            let column = rows.iter().map(|row| row.get(at).unwrap_or(&Cell::None));
            values.push(array(*kind, column));
        }
        pipeline.add(&sql, values);
        step!(pipeline, "COMMIT");
        self.wait(async { Ok(!self.session.run(&pipeline).await?[progress].is_empty()) })
    }

    /// Marks the transfer as complete. Returns false if a newer attempt has started.
    pub(crate) fn end(&self, turn: i64) -> Result<bool, TransferError> {
        self.wait(async { Ok(!self.session.query(END, &[&turn]).await?.is_empty()) })
    }

    /// The rows of a table, in key order.
    pub(crate) fn rows(&self, table: Table) -> TargetRows<'_> {
        TargetRows { target: self, table, page: None, in_page: 0, last: None, is_over: false }
    }
}

/// Streams rows page by page, without holding a whole page in memory.
pub(crate) struct TargetRows<'a> {
    target: &'a Target,
    table: Table,
    page: Option<Pin<Box<RowStream>>>,
    in_page: usize,
    last: Option<Cells>,
    is_over: bool,
}

impl TargetRows<'_> {
    pub(crate) fn next(&mut self) -> Result<Option<Cells>, TransferError> {
        let target = self.target;
        target.wait(self.advance())
    }

    async fn advance(&mut self) -> Result<Option<Cells>, Fault> {
        while !self.is_over {
            let page = match &mut self.page {
                Some(page) => page,
                None => {
                    let sql = page(self.table, self.last.as_deref());
                    let values = keys(self.table, self.last.as_deref(), TRANSFER_PAGE_ROWS);
                    let rows = self.target.session.stream(&sql, &values).await?;
                    self.in_page = 0;
                    self.page.insert(Box::pin(rows))
                }
            };
            let next = async { page.next().await.transpose().map_err(Fault::from) };
            let next = self.target.session.with_timeout(next);
            match next.await? {
                Some(row) => {
                    let row = read(self.table, &row)?;
                    self.in_page += 1;
                    self.last = Some(self.table.key_of(&row));
                    return Ok(Some(row));
                }
                None => {
                    self.page = None;
                    self.is_over = self.in_page < TRANSFER_PAGE_ROWS;
                }
            }
        }
        Ok(None)
    }
}

async fn begin(
    session: &Session,
    source: Hash,
) -> Result<Result<TransferState, TransferError>, Fault> {
    session.script("BEGIN").await?;
    // Opening a store locks the same row first.
    session.query("SELECT number FROM migration WHERE number = 0 FOR UPDATE", &[]).await?;
    let rows = session.query(STATE, &[]).await?;
    let Some(row) = rows.first() else {
        if let Some(table) = filled(session).await? {
            return Ok(Err(TransferError::NotEmpty { table }));
        }
        session.execute(BEGIN, &[&source.0.to_vec()]).await?;
        session.script("COMMIT").await?;
        let (at, source) = (String::new(), source.0.to_vec());
        return Ok(Ok(TransferState { source, turn: 1, at, copied: 0, has_ended: false }));
    };
    let mut state = TransferState {
        source: get(row, 0)?,
        turn: get(row, 1)?,
        at: get(row, 2)?,
        copied: get(row, 3)?,
        has_ended: get(row, 4)?,
    };
    if state.source != source.0 {
        return Ok(Err(TransferError::Foreign));
    }
    let rows = session.query(RESUME, &[]).await?;
    state.turn = rows.first().map_or(Ok(state.turn), |row| get(row, 0))?;
    session.script("COMMIT").await?;
    Ok(Ok(state))
}

/// The name of a table that is not empty.
async fn filled(session: &Session) -> Result<Option<&'static str>, Fault> {
    let tables = Table::ALL.iter().filter(|table| **table != Table::Position);
    for name in tables.map(|table| table.target()).chain(["node", "agreed"]) {
        let sql = format!("SELECT 1 FROM {name} LIMIT 1");
        if !session.query(&sql, &[]).await?.is_empty() {
            return Ok(Some(name));
        }
    }
    let sql = "SELECT 1 FROM position WHERE frames + entries + letters + memos > 0";
    let is_moved = !session.query(sql, &[]).await?.is_empty();
    Ok(is_moved.then_some(Table::Position.target()))
}

fn names(table: Table) -> String {
    table.columns().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Inserts rows from arrays, unless a newer attempt has started.
fn insert(table: Table) -> String {
    let arrays =
        (2..).zip(table.columns()).map(|(at, (_, kind))| format!("${at}::{}[]", sort(*kind)));
    let arrays = arrays.collect::<Vec<_>>().join(", ");
    let named = |prefix: &str| {
        let columns = table.columns().iter().map(|(name, _)| format!("{prefix}{name}"));
        columns.collect::<Vec<_>>().join(", ")
    };
    // A new schema already has a row of positions, all zero.
    let instead = match table {
        Table::Position => {
            "ON CONFLICT (one) DO UPDATE SET frames = excluded.frames, entries = excluded.entries,
                letters = excluded.letters, memos = excluded.memos"
        }
        _ => "",
    };
    format!(
        "INSERT INTO {} ({}) SELECT {} FROM unnest({arrays}) AS new ({}), transfer
         WHERE transfer.one = 1 AND transfer.turn = $1 {instead}",
        table.target(),
        named(""),
        named("new."),
        named(""),
    )
}

fn select(table: Table, after: Option<&[Cell]>) -> String {
    let mut conditions = Vec::new();
    match table {
        Table::Counter => conditions.push("span = 0".to_owned()),
        Table::Window => conditions.push("span > 0".to_owned()),
        _ => {}
    }
    if after.is_some() {
        let marks = (1..=table.key().len()).map(|at| format!("${at}")).collect::<Vec<_>>();
        conditions.push(format!("({}) > ({})", key(table), marks.join(", ")));
    }
    let conditions = match &conditions[..] {
        [] => String::new(),
        conditions => format!(" WHERE {}", conditions.join(" AND ")),
    };
    format!("SELECT {} FROM {}{conditions}", names(table), table.target())
}

pub(super) fn page(table: Table, after: Option<&[Cell]>) -> String {
    let limit = after.map_or(0, <[Cell]>::len) + 1;
    format!("{} ORDER BY {} LIMIT ${limit}", select(table, after), key(table))
}

pub(super) fn key(table: Table) -> String {
    let columns = table.key().iter().filter_map(|at| table.columns().get(*at));
    columns.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// The parameters for a page: the key it begins after, and its size.
pub(super) fn keys<'a>(
    table: Table,
    after: Option<&'a [Cell]>,
    limit: usize,
) -> Vec<Box<dyn ToSql + Sync + 'a>> {
    let kinds = table.key().iter().filter_map(|at| table.columns().get(*at));
    let cells = after.unwrap_or_default().iter();
    let mut values: Vec<_> =
        kinds.zip(cells).map(|((_, kind), cell)| parameter(*kind, cell)).collect();
    values.push(Box::new(sql_limit(limit)));
    values
}

pub(super) fn sort(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Id => "uuid",
        ColumnType::Int => "bigint",
        ColumnType::Small => "integer",
        ColumnType::Flag => "boolean",
        ColumnType::Bytes => "bytea",
        ColumnType::Text | ColumnType::Plain => "text",
    }
}

fn parameter(kind: ColumnType, cell: &Cell) -> Box<dyn ToSql + Sync + '_> {
    match kind {
        ColumnType::Id => Box::new(id(cell)),
        ColumnType::Int => Box::new(number(cell)),
        ColumnType::Small => Box::new(small(cell)),
        ColumnType::Flag => Box::new(flag(cell)),
        ColumnType::Bytes => Box::new(bytes(cell)),
        ColumnType::Text => Box::new(text(cell).map(Text)),
        ColumnType::Plain => Box::new(text(cell)),
    }
}

pub(super) fn array<'a>(
    kind: ColumnType,
    cells: impl Iterator<Item = &'a Cell>,
) -> Box<dyn ToSql + Sync + 'a> {
    match kind {
        ColumnType::Id => Box::new(cells.map(id).collect::<Vec<_>>()),
        ColumnType::Int => Box::new(cells.map(number).collect::<Vec<_>>()),
        ColumnType::Small => Box::new(cells.map(small).collect::<Vec<_>>()),
        ColumnType::Flag => Box::new(cells.map(flag).collect::<Vec<_>>()),
        ColumnType::Bytes => Box::new(cells.map(bytes).collect::<Vec<_>>()),
        ColumnType::Text => Box::new(cells.map(|cell| text(cell).map(Text)).collect::<Vec<_>>()),
        ColumnType::Plain => Box::new(cells.map(text).collect::<Vec<_>>()),
    }
}

fn id(cell: &Cell) -> Option<Id> {
    if let Cell::Id(id) = cell { Some(Id(*id)) } else { None }
}

fn number(cell: &Cell) -> Option<i64> {
    if let Cell::Int(number) = cell { Some(*number) } else { None }
}

/// A number that is too large becomes NULL, which the comparison detects.
fn small(cell: &Cell) -> Option<i32> {
    number(cell).and_then(|number| i32::try_from(number).ok())
}

fn flag(cell: &Cell) -> Option<bool> {
    if let Cell::Flag(flag) = cell { Some(*flag) } else { None }
}

fn bytes(cell: &Cell) -> Option<&[u8]> {
    if let Cell::Bytes(bytes) = cell { Some(bytes) } else { None }
}

fn text(cell: &Cell) -> Option<&str> {
    if let Cell::Text(text) = cell { Some(text) } else { None }
}

pub(super) fn read(table: Table, row: &tokio_postgres::Row) -> Result<Cells, Fault> {
    let columns = table.columns().iter().enumerate();
    columns.map(|(at, (_, kind))| Ok(cell(row, at, *kind)?.unwrap_or(Cell::None))).collect()
}

fn cell(row: &tokio_postgres::Row, at: usize, kind: ColumnType) -> Result<Option<Cell>, Fault> {
    Ok(match kind {
        ColumnType::Id => get::<Option<Id>>(row, at)?.map(|id| Cell::Id(id.0)),
        ColumnType::Int => get::<Option<i64>>(row, at)?.map(Cell::Int),
        ColumnType::Small => {
            get::<Option<i32>>(row, at)?.map(|number| Cell::Int(i64::from(number)))
        }
        ColumnType::Flag => get::<Option<bool>>(row, at)?.map(Cell::Flag),
        ColumnType::Bytes => get::<Option<Vec<u8>>>(row, at)?.map(Cell::Bytes),
        ColumnType::Text => some_text(row, at)?.map(Cell::Text),
        ColumnType::Plain => get::<Option<String>>(row, at)?.map(Cell::Text),
    })
}
