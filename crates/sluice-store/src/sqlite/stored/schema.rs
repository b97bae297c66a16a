//! Compares the schema of the file with the one that the migrations make.
//!
//! A trigger that another program added runs inside the transactions of Sluice and can
//! rewrite or delete what Sluice writes. No row shows that; the schema does.

use crate::inspect::{SchemaObjects, compare_schemas};
use crate::sqlite::fault::Fault;
use crate::sqlite::migrate::migrate;
use rusqlite::Connection;
use sluice_core::port::inspect::Each;

pub(super) fn check(connection: &Connection, each: &mut Each) -> Result<(), Fault> {
    let made = Connection::open_in_memory()?;
    migrate(&made).map_err(|error| Fault::Environment(error.to_string()))?;
    compare_schemas(&objects(&made)?, &objects(connection)?, each);
    Ok(())
}

/// Every object with the SQL that made it. SQLite makes the statistics tables itself.
fn objects(connection: &Connection) -> Result<SchemaObjects, Fault> {
    let sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema
               WHERE type <> 'table' OR name NOT IN ('sqlite_stat1', 'sqlite_stat4')";
    let mut statement = connection.prepare(sql)?;
    let objects = statement.query_map([], |row| {
        let (kind, name): (String, String) = (row.get(0)?, row.get(1)?);
        let (table, sql): (String, Option<String>) = (row.get(2)?, row.get(3)?);
        let object = match kind.as_str() {
            "table" | "view" => format!("{kind} {name}"),
            _ => format!("{kind} {name} on {table}"),
        };
        Ok((object, sql.unwrap_or_default()))
    })?;
    Ok(objects.collect::<Result<_, _>>()?)
}
