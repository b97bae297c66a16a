//! What is done to a table: every column changed and swapped, rows deleted, inserted
//! and rolled back.

use super::rows::{Cell, Column, Kind, Row, Table};
use std::fmt;

/// Which row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    First,
    Middle,
    Last,
    /// The last row whose first column begins with this: a kind of registry row, or a kind
    /// of counter.
    Of(&'static str),
}

impl Which {
    fn of(self, rows: &[Row]) -> Option<&Row> {
        match self {
            Which::First => rows.first(),
            Which::Middle => rows.get(rows.len() / 2),
            Which::Last => rows.last(),
            Which::Of(kind) => {
                let is = |row: &&Row| matches!(&row[0], Cell::Text(text) if text.starts_with(kind));
                rows.iter().rev().find(is)
            }
        }
    }
}

/// How a value is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// To the next number, a longer text, bytes with one bit flipped.
    Next,
    /// To 0, or to nothing.
    Empty,
    Null,
}

/// What is done to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Change {
        column: usize,
        row: Which,
        how: How,
    },
    Swap {
        column: usize,
    },
    Delete {
        row: Which,
    },
    Insert {
        row: Which,
    },
    /// A row is what it was earlier.
    RollBack {
        row: Which,
    },
    /// Every row is what it was earlier.
    RollBackAll,
}

/// An attack on a table.
#[derive(Debug, Clone)]
pub(super) struct Attack {
    pub(super) table: String,
    /// The column, where there is one.
    pub(super) column: Option<String>,
    pub(super) act: Act,
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.column.as_deref().map(|name| format!(".{name}")).unwrap_or_default();
        write!(f, "{}{column}: ", self.table)?;
        match self.act {
            Act::Change { row, how, .. } => write!(f, "change {row:?} {how:?}"),
            Act::Swap { .. } => write!(f, "swap"),
            Act::Delete { row } => write!(f, "delete {row:?}"),
            Act::Insert { row } => write!(f, "insert a copy of {row:?}"),
            Act::RollBack { row } => write!(f, "roll back {row:?}"),
            Act::RollBackAll => write!(f, "roll back all"),
        }
    }
}

/// Rows that go, and rows that come.
pub(super) type Replaced = (Vec<Row>, Vec<Row>);

impl Attack {
    /// What the attack does to the rows of a table; none where it would change nothing.
    /// The second argument is the table as it was earlier.
    pub(super) fn replaced(&self, now: &Table, before: Option<&Table>) -> Option<Replaced> {
        let (old, new) = self.rows(now, before)?;
        let is_zero = |row: &Row| is_zero(now, row);
        (!old.iter().all(is_zero) || !new.iter().all(is_zero)).then_some((old, new))
    }

    fn rows(&self, now: &Table, before: Option<&Table>) -> Option<Replaced> {
        match self.act {
            Act::Change { column, row, how } => {
                let old = row.of(&now.rows)?;
                let mut new = old.clone();
                new[column] = changed(now, column, &old[column], how)?;
                Some((vec![old.clone()], vec![new]))
            }
            Act::Swap { column } => {
                let first = now.rows.first()?;
                let other = now.rows.iter().rev().find(|row| row[column] != first[column])?;
                let (mut one, mut two) = (first.clone(), other.clone());
                std::mem::swap(&mut one[column], &mut two[column]);
                Some((vec![first.clone(), other.clone()], vec![one, two]))
            }
            Act::Delete { row } => Some((vec![row.of(&now.rows)?.clone()], Vec::new())),
            Act::Insert { row } => Some((Vec::new(), vec![copied(now, row.of(&now.rows)?)])),
            Act::RollBack { row } => {
                let moved = |old: &&Row| now.same(old).is_some_and(|row| row != *old);
                let moved: Vec<Row> = before?.rows.iter().filter(moved).cloned().collect();
                let old = row.of(&moved)?.clone();
                Some((vec![now.same(&old)?.clone()], vec![old]))
            }
            Act::RollBackAll => {
                let before = before?;
                (before.rows != now.rows).then(|| (now.rows.clone(), before.rows.clone()))
            }
        }
    }
}

/// Whether a row is a counter that is 0, which is the same as no row.
fn is_zero(table: &Table, row: &Row) -> bool {
    let count = table.column("count").filter(|_| table.name == "counter");
    count.is_some_and(|at| row[at] == Cell::Number(0))
}

/// A value that is not the one before; none where this kind of change gives the same.
fn changed(table: &Table, at: usize, value: &Cell, how: How) -> Option<Cell> {
    let Column { kind, is_nullable, .. } = &table.columns[at];
    let new = match (how, value) {
        (How::Null, Cell::Null) => return None,
        (How::Null, _) => is_nullable.then_some(Cell::Null)?,
        (How::Empty, _) => match kind {
            Kind::Number => Cell::Number(0),
            Kind::Text => Cell::Text(String::new()),
            Kind::Bytes => Cell::Bytes(Vec::new()),
            Kind::Flag | Kind::Id => return None,
        },
        (How::Next, value) => next(table, at, value),
    };
    (new != *value).then_some(new)
}

fn next(table: &Table, at: usize, value: &Cell) -> Cell {
    match (value, table.columns[at].kind) {
        (Cell::Number(number), _) => {
            // A number that is taken would only be refused.
            let is_key =
                table.key.contains(&at) || table.unique.iter().any(|set| set.contains(&at));
            let taken = |number: i64| table.rows.iter().any(|row| row[at] == Cell::Number(number));
            let free = (number + 1..).find(|number| !is_key || !taken(*number));
            Cell::Number(free.unwrap_or(number + 1))
        }
        (Cell::Flag(flag), _) => Cell::Flag(!flag),
        (Cell::Text(text), _) => Cell::Text(format!("{text}x")),
        (Cell::Bytes(bytes), _) => {
            let mut bytes = bytes.clone();
            let middle = bytes.len() / 2;
            match bytes.get_mut(middle) {
                Some(byte) => *byte ^= 1,
                None => bytes.push(1),
            }
            Cell::Bytes(bytes)
        }
        (Cell::Id(id), _) => {
            let last = if id.ends_with('0') { '1' } else { '0' };
            Cell::Id(format!("{}{last}", &id[..id.len() - 1]))
        }
        (Cell::Null, Kind::Number) => Cell::Number(1),
        (Cell::Null, Kind::Flag) => Cell::Flag(true),
        (Cell::Null, Kind::Text) => Cell::Text("x".to_owned()),
        (Cell::Null, Kind::Bytes) => Cell::Bytes(vec![1; 16]),
        (Cell::Null, Kind::Id) => Cell::Id("00000000-0000-4000-8000-000000000001".to_owned()),
    }
}

/// A row under another key.
fn copied(table: &Table, row: &Row) -> Row {
    let mut copy = row.clone();
    for set in std::iter::once(&table.key).chain(&table.unique) {
        if let Some(at) = set.last().filter(|at| copy[**at] == row[**at]) {
            copy[*at] = next(table, *at, &row[*at]);
        }
    }
    copy
}

/// Kinds of rows of a table that are attacked whatever else there is: they decide who may do
/// what, and what it may cost.
fn deciding(table: &Table) -> &'static [&'static str] {
    match table.name.as_str() {
        "registry" => &["token", "policy", "envelope"],
        "counter" => &["spent:", "held:", "busy:", "registry"],
        _ => &[],
    }
}

/// How much is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Each column changed once.
    Columns,
    /// And of each table one row deleted, inserted, rolled back, and one column swapped.
    Short,
    Full,
}

/// Every attack on a table.
pub(super) fn attacks(table: &Table, form: Form) -> Vec<Attack> {
    let mut found = Vec::new();
    let mut add = |column: Option<usize>, act| {
        let column = column.map(|at| table.columns[at].name.clone());
        found.push(Attack { table: table.name.clone(), column, act });
    };
    let is_full = form == Form::Full;
    let rows: &[Which] = if is_full { &[Which::First, Which::Last] } else { &[Which::Last] };
    let hows: &[How] = if is_full { &[How::Next, How::Empty, How::Null] } else { &[How::Next] };
    for column in 0..table.columns.len() {
        for (row, how) in rows.iter().flat_map(|row| hows.iter().map(move |how| (*row, *how))) {
            add(Some(column), Act::Change { column, row, how });
        }
    }
    for (kind, column) in
        deciding(table).iter().flat_map(|kind| (0..table.columns.len()).map(move |at| (kind, at)))
    {
        let row = Which::Of(kind);
        // The values that decide in the smallest form, every column in the others.
        let decides = matches!(table.columns[column].name.as_str(), "body" | "count");
        if decides || form != Form::Columns {
            for how in hows.iter().copied() {
                add(Some(column), Act::Change { column, row, how });
            }
        }
    }
    let is_swapped = |column: &usize| is_full || Some(*column) == swapped(table);
    if form != Form::Columns {
        for column in (0..table.columns.len()).filter(is_swapped) {
            add(Some(column), Act::Swap { column });
        }
        let rows: &[Which] =
            if is_full { &[Which::First, Which::Middle, Which::Last] } else { &[Which::Last] };
        let deciding = deciding(table).iter().map(|kind| Which::Of(kind));
        for row in rows.iter().copied().chain(deciding) {
            add(None, Act::Delete { row });
            add(None, Act::Insert { row });
            add(None, Act::RollBack { row });
        }
    }
    if is_full {
        add(None, Act::RollBackAll);
    }
    found
}

/// The column that is swapped in the short form: the first that is not the key and differs.
fn swapped(table: &Table) -> Option<usize> {
    let differs = |at: &usize| {
        let mut rows = table.rows.iter();
        rows.next().is_some_and(|first| rows.any(|row| row[*at] != first[*at]))
    };
    (0..table.columns.len()).filter(|at| !table.key.contains(at)).find(differs)
}
