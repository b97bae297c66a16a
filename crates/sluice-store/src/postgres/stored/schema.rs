//! Compares the schema of the database with the one that the migrations make.
//!
//! A trigger, a rule or a row security policy that another program added runs inside the
//! transactions of Sluice: it can rewrite, hide or delete what Sluice writes. No row shows
//! that; the catalogue does. Only Sluice's own tables are compared, because the schema may
//! hold other tables.

use crate::inspect::{SchemaObjects, compare_schemas};
use crate::postgres::column::get;
use crate::postgres::fault::Fault;
use crate::postgres::session::Session;
use sluice_core::port::inspect::Each;

/// Every object of the schema that the migrations make, one in a line. Verification reads
/// only, so it cannot make the schema again to compare it.
const MADE: &str = include_str!("schema.txt");

/// Selects the objects of some tables: kind and name, and the definition.
const OBJECTS: &str = include_str!("objects.sql");

/// Fixes the form in which PostgreSQL prints definitions.
pub(super) const FORM: &str = "SET LOCAL bytea_output = hex; SET LOCAL quote_all_identifiers = off";

pub(super) async fn check(session: &Session, each: &mut Each) -> Result<(), Fault> {
    let made = made();
    compare_schemas(&made, &objects(session, &made).await?, each);
    Ok(())
}

fn made() -> SchemaObjects {
    let lines = MADE.lines().filter_map(|line| line.split_once(": "));
    lines.map(|(object, definition)| (object.to_owned(), definition.to_owned())).collect()
}

async fn objects(session: &Session, made: &SchemaObjects) -> Result<SchemaObjects, Fault> {
    let tables: Vec<&str> =
        made.keys().filter_map(|object| object.strip_prefix("table ")).collect();
    let rows = session.query(OBJECTS, &[&tables]).await?;
    rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?))).collect()
}
