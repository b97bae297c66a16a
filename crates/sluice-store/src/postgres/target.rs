//! A schema that a store is carried into.
//!
//! Rows come in the order of their keys, so the greatest key there is says how far
//! it has come. A row of the table `transfer` says what is under way, from where.
//!
//! INVARIANT: a batch and its progress are one transaction, which writes nothing
//! unless this is the newest that was begun. What a process that was killed has
//! still on its way is left out.

use super::column::{Id, Text, get, most, some_text};
use super::fault::Fault;
use super::migrate::{self, OpenError, Unfinished};
use super::outside;
use super::session::{Pipeline, Session, step};
use crate::limits::TRANSFER_PAGE_ROWS;
use crate::transfer::TransferError;
use crate::transfer::table::{Cell, Kind, Row, Table};
use futures_util::StreamExt as _;
use sluice_core::port::store::Hash;
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

/// A connection to the schema, and what is needed to wait for its answers.
pub(crate) struct Target {
    runtime: Runtime,
    local: LocalSet,
    session: Session,
}

/// How far a transfer has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    /// The digest of what it is from.
    pub(crate) source: Vec<u8>,
    /// How often it was begun.
    pub(crate) turn: i64,
    /// The table under way.
    pub(crate) at: String,
    /// How many rows of that are there.
    pub(crate) copied: i64,
    /// Whether everything is there.
    pub(crate) has_ended: bool,
}

impl Target {
    /// Connects, and brings the schema up to date.
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

    /// Begins a transfer, or goes on with the one that is there.
    pub(crate) fn begin(&self, source: Hash) -> Result<State, TransferError> {
        let begun = self.wait(begin(&self.session, source))?;
        if begun.is_err() {
            // The refusal is what is told.
            let _ = self.wait(self.session.script("ROLLBACK"));
        }
        begun
    }

    /// The greatest key that a table has.
    pub(crate) fn last(&self, table: Table) -> Result<Option<Row>, TransferError> {
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

    /// Adds rows, and says how many there are then. Answers whether it was allowed to.
    pub(crate) fn put(
        &self,
        turn: i64,
        table: Table,
        rows: &[Row],
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

    /// Says that everything is there. Answers whether it was allowed to.
    pub(crate) fn end(&self, turn: i64) -> Result<bool, TransferError> {
        self.wait(async { Ok(!self.session.query(END, &[&turn]).await?.is_empty()) })
    }

    /// The rows of a table, in the order of its key.
    pub(crate) fn rows(&self, table: Table) -> Rows<'_> {
        Rows { target: self, table, page: None, in_page: 0, last: None, is_over: false }
    }
}

/// Rows as they come, a page at a time and no page whole in memory.
pub(crate) struct Rows<'a> {
    target: &'a Target,
    table: Table,
    page: Option<Pin<Box<RowStream>>>,
    in_page: usize,
    last: Option<Row>,
    is_over: bool,
}

impl Rows<'_> {
    /// The next row.
    pub(crate) fn next(&mut self) -> Result<Option<Row>, TransferError> {
        let target = self.target;
        target.wait(self.advance())
    }

    async fn advance(&mut self) -> Result<Option<Row>, Fault> {
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
            let next = self.target.session.in_time(next);
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

async fn begin(session: &Session, source: Hash) -> Result<Result<State, TransferError>, Fault> {
    session.script("BEGIN").await?;
    // Whoever opens the schema looks at the same row first.
    session.query("SELECT number FROM migration WHERE number = 0 FOR UPDATE", &[]).await?;
    let rows = session.query(STATE, &[]).await?;
    let Some(row) = rows.first() else {
        if let Some(table) = filled(session).await? {
            return Ok(Err(TransferError::NotEmpty { table }));
        }
        session.execute(BEGIN, &[&source.0.to_vec()]).await?;
        session.script("COMMIT").await?;
        let (at, source) = (String::new(), source.0.to_vec());
        return Ok(Ok(State { source, turn: 1, at, copied: 0, has_ended: false }));
    };
    let mut state = State {
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

/// A table that something is in.
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

/// The rows that are written, from arrays, unless another was begun since.
fn insert(table: Table) -> String {
    let arrays =
        (2..).zip(table.columns()).map(|(at, (_, kind))| format!("${at}::{}[]", sort(*kind)));
    let arrays = arrays.collect::<Vec<_>>().join(", ");
    let named = |prefix: &str| {
        let columns = table.columns().iter().map(|(name, _)| format!("{prefix}{name}"));
        columns.collect::<Vec<_>>().join(", ")
    };
    // The schema is made with a row of positions, all of them zero.
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

/// The rows that are read.
fn select(table: Table, after: Option<&[Cell]>) -> String {
    let mut wanted = Vec::new();
    match table {
        Table::Counter => wanted.push("span = 0".to_owned()),
        Table::Window => wanted.push("span > 0".to_owned()),
        _ => {}
    }
    if after.is_some() {
        let marks = (1..=table.key().len()).map(|at| format!("${at}")).collect::<Vec<_>>();
        wanted.push(format!("({}) > ({})", key(table), marks.join(", ")));
    }
    let wanted = match &wanted[..] {
        [] => String::new(),
        wanted => format!(" WHERE {}", wanted.join(" AND ")),
    };
    format!("SELECT {} FROM {}{wanted}", names(table), table.target())
}

pub(super) fn page(table: Table, after: Option<&[Cell]>) -> String {
    let limit = after.map_or(0, <[Cell]>::len) + 1;
    format!("{} ORDER BY {} LIMIT ${limit}", select(table, after), key(table))
}

pub(super) fn key(table: Table) -> String {
    let columns = table.key().iter().filter_map(|at| table.columns().get(*at));
    columns.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// What a page is asked with: the key it begins after, and how many rows it may have.
pub(super) fn keys<'a>(
    table: Table,
    after: Option<&'a [Cell]>,
    limit: usize,
) -> Vec<Box<dyn ToSql + Sync + 'a>> {
    let kinds = table.key().iter().filter_map(|at| table.columns().get(*at));
    let cells = after.unwrap_or_default().iter();
    let mut values: Vec<_> = kinds.zip(cells).map(|((_, kind), cell)| one(*kind, cell)).collect();
    values.push(Box::new(most(limit)));
    values
}

pub(super) fn sort(kind: Kind) -> &'static str {
    match kind {
        Kind::Id => "uuid",
        Kind::Int => "bigint",
        Kind::Small => "integer",
        Kind::Flag => "boolean",
        Kind::Bytes => "bytea",
        Kind::Text | Kind::Plain => "text",
    }
}

fn one(kind: Kind, cell: &Cell) -> Box<dyn ToSql + Sync + '_> {
    match kind {
        Kind::Id => Box::new(id(cell)),
        Kind::Int => Box::new(number(cell)),
        Kind::Small => Box::new(small(cell)),
        Kind::Flag => Box::new(flag(cell)),
        Kind::Bytes => Box::new(bytes(cell)),
        Kind::Text => Box::new(text(cell).map(Text)),
        Kind::Plain => Box::new(text(cell)),
    }
}

pub(super) fn array<'a>(
    kind: Kind,
    cells: impl Iterator<Item = &'a Cell>,
) -> Box<dyn ToSql + Sync + 'a> {
    match kind {
        Kind::Id => Box::new(cells.map(id).collect::<Vec<_>>()),
        Kind::Int => Box::new(cells.map(number).collect::<Vec<_>>()),
        Kind::Small => Box::new(cells.map(small).collect::<Vec<_>>()),
        Kind::Flag => Box::new(cells.map(flag).collect::<Vec<_>>()),
        Kind::Bytes => Box::new(cells.map(bytes).collect::<Vec<_>>()),
        Kind::Text => Box::new(cells.map(|cell| text(cell).map(Text)).collect::<Vec<_>>()),
        Kind::Plain => Box::new(cells.map(text).collect::<Vec<_>>()),
    }
}

fn id(cell: &Cell) -> Option<Id> {
    if let Cell::Id(id) = cell { Some(Id(*id)) } else { None }
}

fn number(cell: &Cell) -> Option<i64> {
    if let Cell::Int(number) = cell { Some(*number) } else { None }
}

/// One that is too large becomes nothing, which a comparison finds.
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

pub(super) fn read(table: Table, row: &tokio_postgres::Row) -> Result<Row, Fault> {
    let columns = table.columns().iter().enumerate();
    columns.map(|(at, (_, kind))| Ok(cell(row, at, *kind)?.unwrap_or(Cell::None))).collect()
}

fn cell(row: &tokio_postgres::Row, at: usize, kind: Kind) -> Result<Option<Cell>, Fault> {
    Ok(match kind {
        Kind::Id => get::<Option<Id>>(row, at)?.map(|id| Cell::Id(id.0)),
        Kind::Int => get::<Option<i64>>(row, at)?.map(Cell::Int),
        Kind::Small => get::<Option<i32>>(row, at)?.map(|number| Cell::Int(i64::from(number))),
        Kind::Flag => get::<Option<bool>>(row, at)?.map(Cell::Flag),
        Kind::Bytes => get::<Option<Vec<u8>>>(row, at)?.map(Cell::Bytes),
        Kind::Text => some_text(row, at)?.map(Cell::Text),
        Kind::Plain => get::<Option<String>>(row, at)?.map(Cell::Text),
    })
}
