//! SQL that reads each table of a transfer from the source: its columns in their order,
//! sorted by key.

use crate::transfer::table::{Cell, Table};

/// Selects all rows of a table, or the rows after a key.
pub(super) fn sql(table: Table, after: Option<&[Cell]>) -> String {
    let (from, beyond, order) = parts(table);
    let beyond = if after.is_some() { format!("WHERE {beyond}") } else { String::new() };
    format!("{from} {beyond} {order}")
}

/// Columns with tables, the condition for rows after a key, and the order.
fn parts(table: Table) -> (&'static str, &'static str, &'static str) {
    match table {
        Table::Run => (
            "SELECT id, workflow, run.version, initiator, status, started_at, ended_at, parent,
                 fingerprint, owner, epoch, due_at, asks, tip.version
             FROM run LEFT JOIN tip ON tip.run = run.num",
            "id > ?1",
            "ORDER BY id",
        ),
        // A frame that no journal refers to has no run, and no reader ever sees it.
        Table::Frame => (
            "SELECT run.id, first, count, frame.seq, chain, frame.body, beside.body, mac
             FROM frame CROSS JOIN run ON run.num = frame.run
             LEFT JOIN beside ON beside.seq = frame.seq",
            "frame.seq > ?1",
            "ORDER BY frame.seq",
        ),
        Table::Snapshot => (
            "SELECT run.id, snapshot.version, body, mac
             FROM run CROSS JOIN snapshot ON snapshot.run = run.num",
            "run.id > ?1",
            "ORDER BY run.id",
        ),
        Table::Blob => ("SELECT hash, body FROM blob", "hash > ?1", "ORDER BY hash"),
        Table::Message => (
            "SELECT run.id, key, letter.id, body, mac
             FROM run CROSS JOIN letter ON letter.run = run.num",
            "run.id >= ?1 AND (run.id > ?1 OR key > ?2)",
            "ORDER BY run.id, key",
        ),
        Table::Counter => {
            ("SELECT name, 0, count, NULL FROM counter", "name > ?1 AND ?2 = 0", "ORDER BY name")
        }
        Table::Window => (
            "SELECT name, max(window, 1), 0, NULL FROM slice",
            "(name, max(window, 1)) > (?1, ?2)",
            "GROUP BY name, window ORDER BY name, window",
        ),
        Table::Key => {
            ("SELECT key, run, fingerprint, expires_at, mac FROM key", "key > ?1", "ORDER BY key")
        }
        Table::Registry => (
            "SELECT kind, name, epoch, body, mac FROM registry",
            "(kind, name, epoch) > (?1, ?2, ?3)",
            "ORDER BY kind, name, epoch",
        ),
        Table::Entry => (
            "SELECT writer, seq, place, hash, text, mac FROM entry",
            "place > ?1",
            "ORDER BY place",
        ),
        // SQLite takes the other columns from the row with the greatest number.
        Table::Chain => (
            "SELECT writer, max(seq), hash FROM entry",
            "writer > ?1",
            "GROUP BY writer ORDER BY writer",
        ),
        Table::Seal
        | Table::Slot
        | Table::ProvenanceEdge
        | Table::RememberedOutput
        | Table::Webhook
        | Table::Delivery
        | Table::Authentic
        | Table::Position => beside(table),
    }
}

fn beside(table: Table) -> (&'static str, &'static str, &'static str) {
    match table {
        Table::Seal => (
            "SELECT number, hash, frames, entries, text, leaves FROM seal",
            "number > ?1",
            "ORDER BY number",
        ),
        Table::Slot => (
            "SELECT schedule, at, count, fate, why, run, noted_at, mac FROM slot",
            "(schedule, at) > (?1, ?2)",
            "ORDER BY schedule, at",
        ),
        Table::ProvenanceEdge => (
            "SELECT source, taker, count FROM taking",
            "(source, taker) > (?1, ?2)",
            "ORDER BY source, taker",
        ),
        Table::RememberedOutput => (
            "SELECT agent, place, run.id, at, body, mac
             FROM memo CROSS JOIN run ON run.num = memo.run",
            "(agent, place) > (?1, ?2)",
            "ORDER BY agent, place",
        ),
        Table::Webhook => ("SELECT name, place, last FROM webhook", "name > ?1", "ORDER BY name"),
        Table::Delivery => (
            "SELECT webhook, number, run, event, kind, tries, status, error, at, next_at
             FROM delivery",
            "(webhook, number) > (?1, ?2)",
            "ORDER BY webhook, number",
        ),
        Table::Authentic => ("SELECT one, mark FROM authentic", "one > ?1", "ORDER BY one"),
        // Numbering continues after the greatest number in use.
        _ => (
            "SELECT 1, (SELECT coalesce(max(seq), 0) FROM frame),
                 (SELECT coalesce(max(place), 0) FROM entry),
                 (SELECT coalesce(max(id), 0) FROM letter),
                 (SELECT coalesce(max(place), 0) FROM memo)",
            "1 > ?1",
            "",
        ),
    }
}
