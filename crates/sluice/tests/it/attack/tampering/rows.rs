//! Rows of a store as an attacker sees them: tables and columns are read from the
//! schema, so a new one is attacked without a change here.

/// The value of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    Null,
    Number(i64),
    Flag(bool),
    Text(String),
    Bytes(Vec<u8>),
    /// A UUID of PostgreSQL.
    Id(String),
}

/// A row, with all columns of its table.
pub(super) type Row = Vec<Cell>;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Number,
    Flag,
    Text,
    Bytes,
    Id,
}

#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) is_nullable: bool,
}

/// A table with all its rows, in the order of its key.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) name: String,
    /// Its name in SQL: counters over a window share a table with the others.
    pub(super) sql: String,
    pub(super) columns: Vec<Column>,
    /// The columns that tell rows apart.
    pub(super) key: Vec<usize>,
    /// Other sets of columns that tell rows apart.
    pub(super) unique: Vec<Vec<usize>>,
    pub(super) rows: Vec<Row>,
}

impl Table {
    pub(super) fn new(name: &str, columns: Vec<Column>) -> Table {
        let (key, unique, rows) = (Vec::new(), Vec::new(), Vec::new());
        Table { name: name.to_owned(), sql: name.to_owned(), columns, key, unique, rows }
    }

    pub(super) fn key_of(&self, row: &Row) -> Vec<Cell> {
        self.key.iter().map(|at| row[*at].clone()).collect()
    }

    /// The row with the key of another one.
    pub(super) fn same(&self, other: &Row) -> Option<&Row> {
        let key = self.key_of(other);
        self.rows.iter().find(|row| self.key_of(row) == key)
    }

    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// How a store writes SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    fn literal(self, cell: &Cell) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        match cell {
            Cell::Null => "NULL".to_owned(),
            Cell::Number(number) => number.to_string(),
            Cell::Flag(flag) => flag.to_string(),
            Cell::Text(text) => quoted(text),
            Cell::Id(id) => format!("{}::uuid", quoted(id)),
            Cell::Bytes(bytes) => {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                match self {
                    Dialect::Sqlite => format!("x'{hex}'"),
                    Dialect::Postgres => format!("'\\x{hex}'::bytea"),
                }
            }
        }
    }

    /// The statements that put rows in the place of others. The key names those to go.
    pub(super) fn replace(self, table: &Table, old: &[Row], new: &[Row]) -> String {
        let mut sql = String::new();
        for row in old {
            let is = |at: &usize| {
                format!("\"{}\" = {}", table.columns[*at].name, self.literal(&row[*at]))
            };
            let key: Vec<String> = table.key.iter().map(is).collect();
            sql += &format!("DELETE FROM \"{}\" WHERE {};\n", table.sql, key.join(" AND "));
        }
        for row in new {
            let names: Vec<String> =
                table.columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
            let values: Vec<String> = row.iter().map(|cell| self.literal(cell)).collect();
            let (names, values) = (names.join(", "), values.join(", "));
            sql += &format!("INSERT INTO \"{}\" ({names}) VALUES ({values});\n", table.sql);
        }
        sql
    }
}
