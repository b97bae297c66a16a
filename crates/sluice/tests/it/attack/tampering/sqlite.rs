//! The store of a data directory, read and changed by another hand.

use super::act::Replaced;
use super::rows::{Cell, Column, Dialect, Kind, Row, Table};
use crate::world::World;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, TransactionBehavior};
use std::time::Duration;

pub(super) fn open(world: &World) -> Connection {
    let database = Connection::open(world.path().join(".sluice/sluice.db")).unwrap();
    database.busy_timeout(Duration::from_secs(10)).unwrap();
    database
}

/// Every table with its rows.
pub(super) fn tables(database: &Connection) -> Vec<Table> {
    let sql = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
    let mut names = database.prepare(sql).unwrap();
    let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap();
    names.map(|name| table(database, &name.unwrap())).collect()
}

pub(super) fn table(database: &Connection, name: &str) -> Table {
    let mut info = database.prepare(&format!("PRAGMA table_info(\"{name}\")")).unwrap();
    let info = info.query_map([], |row| {
        let kind = match row.get::<_, String>(2)?.as_str() {
            "INTEGER" => Kind::Number,
            "TEXT" => Kind::Text,
            "BLOB" => Kind::Bytes,
            other => panic!("{name} has a column of the unknown type {other}"),
        };
        let (is_required, place): (bool, i64) = (row.get(3)?, row.get(5)?);
        let is_nullable = !is_required && place == 0;
        Ok((Column { name: row.get(1)?, kind, is_nullable }, place))
    });
    let (columns, places): (Vec<Column>, Vec<i64>) = info.unwrap().map(Result::unwrap).unzip();
    let mut key: Vec<usize> = (0..places.len()).filter(|at| places[*at] > 0).collect();
    key.sort_by_key(|at| places[*at]);
    let mut unique = unique(database, name, &columns);
    if key.is_empty() {
        key = unique.remove(0);
    }
    unique.retain(|set| *set != key);
    let mut table = Table { key, unique, ..Table::new(name, columns) };
    table.rows = rows(database, &table);
    table
}

fn unique(database: &Connection, name: &str, columns: &[Column]) -> Vec<Vec<usize>> {
    let mut indexes = database.prepare(&format!("PRAGMA index_list(\"{name}\")")).unwrap();
    let indexes = indexes.query_map([], |row| Ok((row.get(1)?, row.get(2)?))).unwrap();
    let indexes: Vec<(String, bool)> = indexes.map(Result::unwrap).collect();
    let of = |(index, _): &(String, bool)| {
        let mut info = database.prepare(&format!("PRAGMA index_info(\"{index}\")")).unwrap();
        let names = info.query_map([], |row| row.get::<_, String>(2)).unwrap();
        let place = |name: String| columns.iter().position(|column| column.name == name).unwrap();
        names.map(|name| place(name.unwrap())).collect()
    };
    indexes.iter().filter(|(_, is_unique)| *is_unique).map(of).collect()
}

fn rows(database: &Connection, table: &Table) -> Vec<Row> {
    let order: Vec<&str> = table.key.iter().map(|at| table.columns[*at].name.as_str()).collect();
    let sql = format!("SELECT * FROM \"{}\" ORDER BY \"{}\"", table.name, order.join("\", \""));
    let mut rows = database.prepare(&sql).unwrap();
    let count = table.columns.len();
    let read = |row: &rusqlite::Row<'_>| (0..count).map(|at| row.get_ref(at).map(cell)).collect();
    rows.query_map([], read).unwrap().map(Result::unwrap).collect()
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Number(number),
        ValueRef::Real(number) => panic!("the store holds the number {number}"),
        ValueRef::Text(text) => Cell::Text(String::from_utf8(text.to_vec()).unwrap()),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    }
}

/// Puts rows in the place of others, at once, and answers what was said of them; none where
/// nothing would change, or the schema refuses them.
pub(super) fn tamper<T>(
    database: &mut Connection,
    name: &str,
    replaced: impl FnOnce(&Table) -> Option<(T, Replaced)>,
) -> Option<T> {
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let table = table(&transaction, name);
    let (said, (old, new)) = replaced(&table)?;
    transaction.execute_batch(&Dialect::Sqlite.replace(&table, &old, &new)).ok()?;
    transaction.commit().ok()?;
    Some(said)
}

/// Puts the store of a world in the place of another one's.
pub(super) fn restore(from: &World, to: &World) {
    let at = |world: &World, name: &str| world.path().join(".sluice").join(name);
    for log in ["sluice.db-wal", "sluice.db-shm"] {
        // There may be none.
        let _ = std::fs::remove_file(at(to, log));
    }
    std::fs::copy(at(from, "sluice.db"), at(to, "sluice.db")).unwrap();
}
