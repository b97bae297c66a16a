//! A database, read and changed by another hand.

use super::act::Replaced;
use super::rows::{Cell, Column, Dialect, Kind, Row, Table};
use crate::migrate::postgres as server;
use serde_json::Value;
use std::time::Duration;

/// The schema in which rows are kept that are put back after an attack.
const KEPT: &str = "kept";

/// The name of the database that a URL leads to.
pub(super) fn name(url: &str) -> String {
    let rest = url.split_once(":///").unwrap().1;
    rest.split('?').next().unwrap().to_owned()
}

fn ask(database: &str, sql: &str) -> Vec<Value> {
    let told = server().script(database, sql).unwrap_or_else(|why| panic!("{sql}: {why}"));
    told.lines().map(|line| serde_json::from_str(line).unwrap_or(Value::Null)).collect()
}

/// Every table with its rows. Counters over a window are a table of their own.
pub(super) fn tables(database: &str) -> Vec<Table> {
    let columns = "SELECT jsonb_agg(jsonb_build_array(c.table_name, c.column_name, c.data_type,
            c.is_nullable = 'YES') ORDER BY c.table_name, c.ordinal_position)
        FROM information_schema.columns c JOIN information_schema.tables t
            ON t.table_schema = c.table_schema AND t.table_name = c.table_name
        WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE';";
    let unique = "SELECT jsonb_agg(jsonb_build_array(c.relname, i.indisprimary,
            (SELECT jsonb_agg(a.attname ORDER BY k.place)
             FROM unnest(i.indkey) WITH ORDINALITY k (number, place)
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number)))
        FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
        WHERE i.indisunique AND c.relnamespace = 'public'::regnamespace;";
    let shape = ask(database, &format!("{columns}\n{unique}"));
    let mut tables = shapes(&shape[0], &shape[1]);
    let rows: String = tables.iter().map(select).collect();
    let read = ask(database, &rows);
    for (table, rows) in tables.iter_mut().zip(&read) {
        let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
        table.rows = rows.iter().map(|row| row_of(table, row)).collect();
    }
    split(tables)
}

fn select(table: &Table) -> String {
    let key: Vec<&str> = table.key.iter().map(|at| table.columns[*at].name.as_str()).collect();
    let key = key.join("\", \"");
    format!(
        "SELECT coalesce(jsonb_agg(r), '[]')
        FROM (SELECT * FROM \"{}\" ORDER BY \"{key}\") r;\n",
        table.name
    )
}

fn shapes(columns: &Value, unique: &Value) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for column in columns.as_array().unwrap() {
        let text = |at: usize| column[at].as_str().unwrap();
        let kind = match text(2) {
            "bigint" | "integer" => Kind::Number,
            "boolean" => Kind::Flag,
            "text" => Kind::Text,
            "bytea" => Kind::Bytes,
            "uuid" => Kind::Id,
            other => panic!("{column} is of the unknown type {other}"),
        };
        let is_nullable = column[3].as_bool().unwrap();
        let column = Column { name: text(1).to_owned(), kind, is_nullable };
        match tables.last_mut().filter(|table| table.name == text(0)) {
            Some(table) => table.columns.push(column),
            None => tables.push(Table::new(text(0), vec![column])),
        }
    }
    for set in unique.as_array().unwrap() {
        let table = tables.iter_mut().find(|table| set[0] == table.name.as_str()).unwrap();
        let names = set[2].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        let places = names.map(|name| table.column(name).unwrap()).collect();
        match set[1].as_bool().unwrap() {
            true => table.key = places,
            false => table.unique.push(places),
        }
    }
    tables
}

fn row_of(table: &Table, row: &Value) -> Row {
    let cell = |column: &Column| match (&row[&column.name], column.kind) {
        (Value::Null, _) => Cell::Null,
        (value, Kind::Number) => Cell::Number(value.as_i64().unwrap()),
        (value, Kind::Flag) => Cell::Flag(value.as_bool().unwrap()),
        (value, Kind::Text) => Cell::Text(value.as_str().unwrap().to_owned()),
        (value, Kind::Id) => Cell::Id(value.as_str().unwrap().to_owned()),
        (value, Kind::Bytes) => {
            let hex = value.as_str().unwrap().strip_prefix("\\x").unwrap().as_bytes();
            let byte =
                |two: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
            Cell::Bytes(hex.as_chunks::<2>().0.iter().map(byte).collect())
        }
    };
    table.columns.iter().map(cell).collect()
}

/// Rows that mean something else than the others of their table are a table of their own:
/// counters over a window, and the row that stands for all migrations.
fn split(tables: Vec<Table>) -> Vec<Table> {
    let mut all = Vec::new();
    for mut table in tables {
        let (column, name, is_other): (_, _, fn(i64) -> bool) = match table.name.as_str() {
            "counter" => ("span", "window", |span| span != 0),
            "migration" => ("number", "migration 0", |number| number == 0),
            _ => {
                all.push(table);
                continue;
            }
        };
        let at = table.column(column).unwrap();
        let is_other = |row: &Row| matches!(&row[at], Cell::Number(number) if is_other(*number));
        if table.name == "counter" {
            // A copy of a plain counter is a plain counter of another name.
            table.key.sort_by_key(|column| *column != at);
        }
        let mut other = Table { name: name.to_owned(), ..table.clone() };
        other.rows.retain(&is_other);
        table.rows.retain(|row| !is_other(row));
        all.extend([other, table]);
    }
    all
}

/// A database that goes with this value.
pub(super) struct Database(pub(super) String);

impl Database {
    /// A copy of another one, on which nothing works.
    pub(super) fn copy(of: &str, number: usize) -> Database {
        let name = format!("{of}_{number}");
        let sql = format!("CREATE DATABASE {name} TEMPLATE {of}");
        let mut why = String::new();
        // A process that was killed may still be connected.
        for _ in 0..100 {
            match server().script("postgres", &sql) {
                Ok(_) => return Database(name),
                Err(told) => why = told,
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{of} is not copied: {why}");
    }

    /// Puts rows in the place of others, at once. An error where the schema refuses them.
    pub(super) fn replace(&self, table: &Table, (old, new): &Replaced) -> Result<(), String> {
        let sql = Dialect::Postgres.replace(table, old, new);
        server().script(&self.0, &format!("BEGIN;\n{sql}COMMIT;")).map(drop)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // It goes with its server at the latest.
        let _ = server().script("postgres", &format!("DROP DATABASE {} WITH (FORCE)", self.0));
    }
}

/// A copy of a database that is put back before each attack.
pub(super) struct Restored {
    pub(super) database: Database,
    /// The table that the last attack changed.
    changed: Option<String>,
}

impl Restored {
    pub(super) fn new(database: Database, tables: &[Table]) -> Restored {
        let keep = |table: &Table| {
            let name = &table.sql;
            format!("CREATE TABLE IF NOT EXISTS {KEPT}.\"{name}\" AS TABLE public.\"{name}\";\n")
        };
        let keep: String = tables.iter().map(keep).collect();
        ask(&database.0, &format!("CREATE SCHEMA {KEPT};\n{keep}"));
        Restored { database, changed: None }
    }

    /// Puts rows in the place of others; everything else is as it was.
    pub(super) fn replace(&mut self, table: &Table, replaced: &Replaced) -> Result<(), String> {
        if let Some(table) = self.changed.take() {
            let sql = format!(
                "BEGIN; TRUNCATE public.\"{table}\";
                 INSERT INTO public.\"{table}\" SELECT * FROM {KEPT}.\"{table}\"; COMMIT;"
            );
            server().script(&self.database.0, &sql)?;
        }
        self.database.replace(table, replaced)?;
        self.changed = Some(table.sql.clone());
        Ok(())
    }
}
