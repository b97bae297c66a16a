//! Stored rows as a verification reads them.
//!
//! SQLite and PostgreSQL read their tables as rows of cells. This module turns a row
//! into a [`Stored`] item and checks the MAC of the store's key. Without a key every
//! row is accepted as authentic.

use crate::authentic::{Keys, NamedRow, row_mac};
use crate::newest_rows::HEAD;
use crate::transfer::table::{Cell, Table};
use sluice_core::evidence::mac::{Doubts, FramePlace, Mac, last_hash};
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::inspect::{Each, RowVersion, SchemaDifference, Stored, StoredRun};
use sluice_core::port::ledger::{ROLLED_BACK, Recorded, SealMark, SealRow};
use sluice_core::port::slots::Slot;
use sluice_core::port::store::NodeId;
use std::collections::BTreeMap;

/// The tables, in the order of [`Stored`].
pub(crate) const ORDER: [Table; 15] = [
    Table::Seal,
    Table::Entry,
    Table::Registry,
    Table::Chain,
    Table::Key,
    Table::Slot,
    Table::RememberedOutput,
    Table::Message,
    Table::Counter,
    Table::ProvenanceEdge,
    Table::Blob,
    Table::Snapshot,
    Table::Frame,
    Table::Position,
    Table::Run,
];

pub(crate) const MALFORMED: &str = "a column is empty or has a value of another type";

/// Finding for a row without its run.
pub(crate) const NO_RUN: &str = "its run has no row";

/// The item to report for a row with all columns of its table. `None` for tables of
/// which only invalid rows are reported; an error if a column has no valid value.
pub(crate) fn stored(
    keys: &Keys,
    table: Table,
    cells: &[Cell],
) -> Result<Option<Stored>, &'static str> {
    let row = NamedRow { table, row: cells };
    let found = match table {
        Table::Seal => seal(&row).map(Some),
        Table::Entry => entry(keys, &row).map(Some),
        Table::Registry => version(keys, &row).map(Some),
        Table::Chain => chain_end(&row).map(Some),
        Table::Key => key(keys, &row).map(Some),
        Table::Slot => slot(keys, &row).map(Some),
        Table::RememberedOutput => remembered_output(keys, &row).map(Some),
        Table::Message => message(keys, &row).map(Some),
        Table::Counter => count(&row).map(Some),
        Table::ProvenanceEdge => provenance_edge(&row).map(Some),
        Table::Blob => blob(&row),
        Table::Position => positions(&row).map(Some),
        Table::Run => run(&row).map(Some),
        // Frames and snapshots are read with other columns; the rest affects no
        // decision.
        Table::Frame
        | Table::Snapshot
        | Table::Window
        | Table::Webhook
        | Table::Delivery
        | Table::Authentic => Some(None),
    };
    found.ok_or(MALFORMED)
}

/// The objects of a schema: kind and name, and the definition.
pub(crate) type SchemaObjects = BTreeMap<String, String>;

/// Reports every object that differs from the schema that Sluice made.
pub(crate) fn compare_schemas(made: &SchemaObjects, found: &SchemaObjects, each: &mut Each) {
    let mut report = |object: &str, difference| {
        each(Stored::Schema { object: object.to_owned(), difference });
    };
    for (object, definition) in made {
        match found.get(object) {
            None => report(object, SchemaDifference::Missing),
            Some(other) if other != definition => report(object, SchemaDifference::Changed),
            Some(_) => {}
        }
    }
    for object in found.keys().filter(|object| !made.contains_key(*object)) {
        report(object, SchemaDifference::Added);
    }
}

/// Finding about a registry whose newest rows are not those of its head.
pub(crate) fn rolled_back() -> Stored {
    let (table, key) = (Table::Authentic.target(), HEAD.to_string());
    Stored::Damaged { table, key, detail: ROLLED_BACK.to_owned() }
}

/// Whether the last column holds the MAC that the row should have.
fn is_authentic(keys: &Keys, row: &NamedRow<'_>) -> bool {
    let Some(key) = keys.get() else { return true };
    let Some(Cell::Bytes(mac)) = row.row.last() else { return false };
    let own = row_mac(key, &Doubts::default(), row.table, row.row);
    own.and_then(|own| own.try_into().ok()).is_some_and(|own| Mac(own).is(mac))
}

fn hash(row: &NamedRow<'_>, column: &str) -> Option<Hash> {
    Some(Hash(row.bytes(column)?.try_into().ok()?))
}

fn text(row: &NamedRow<'_>, column: &str) -> Option<String> {
    row.text(column).map(str::to_owned)
}

fn seal(row: &NamedRow<'_>) -> Option<Stored> {
    let seal = SealRow {
        number: row.number("number")?,
        text: text(row, "text")?,
        leaves: row.bytes("leaves")?.to_vec(),
    };
    let upto = SealMark { frames: row.number("frames")?, entries: row.number("entries")? };
    Some(Stored::Seal { row: seal, hash: hash(row, "hash")?, upto })
}

fn entry(keys: &Keys, row: &NamedRow<'_>) -> Option<Stored> {
    let mut entry = Recorded {
        place: row.number("place")?,
        writer: NodeId(row.id("writer")?),
        seq: row.number("seq")?,
        text: text(row, "text")?,
        hash: hash(row, "hash")?,
        is_authentic: true,
    };
    entry.is_authentic = keys.is_entry(&entry, row.bytes("mac")?);
    Some(Stored::Entry(entry))
}

fn version(keys: &Keys, row: &NamedRow<'_>) -> Option<Stored> {
    Some(Stored::Version(RowVersion {
        kind: text(row, "kind")?,
        name: text(row, "name")?,
        epoch: row.number("epoch")?,
        body: text(row, "body"),
        is_authentic: is_authentic(keys, row),
    }))
}

fn chain_end(row: &NamedRow<'_>) -> Option<Stored> {
    let (writer, seq) = (NodeId(row.id("writer")?), row.number("seq")?);
    Some(Stored::ChainEnd { writer, seq, hash: hash(row, "hash")? })
}

fn key(keys: &Keys, row: &NamedRow<'_>) -> Option<Stored> {
    Some(Stored::Key {
        key: text(row, "key")?,
        run: RunId(row.id("run")?),
        fingerprint: hash(row, "fingerprint")?,
        is_authentic: is_authentic(keys, row),
    })
}

fn slot(keys: &Keys, row: &NamedRow<'_>) -> Option<Stored> {
    let slot = Slot {
        schedule: text(row, "schedule")?,
        slot_ms: row.number("at")?,
        count: row.number("count")?,
        outcome: text(row, "fate")?,
        why: text(row, "why"),
        run: row.id("run").map(RunId),
        at_ms: row.number("noted_at")?,
    };
    Some(Stored::Slot { slot, is_authentic: is_authentic(keys, row) })
}

fn remembered_output(keys: &Keys, row: &NamedRow<'_>) -> Option<Stored> {
    Some(Stored::RememberedOutput {
        agent: text(row, "agent")?,
        place: row.number("place")?,
        run: RunId(row.id("run")?),
        at_ms: row.number("at")?,
        is_authentic: is_authentic(keys, row),
    })
}

fn message(keys: &Keys, row: &NamedRow<'_>) -> Option<Stored> {
    let (run, id, is_read) =
        (RunId(row.id("run")?), row.number("id")?, row.bytes("body").is_none());
    Some(Stored::Message {
        run,
        key: text(row, "key")?,
        id,
        is_read,
        is_authentic: is_authentic(keys, row)
            || (is_read && keys.is_read_without_key(run, id, row.bytes("mac")?)),
    })
}

fn count(row: &NamedRow<'_>) -> Option<Stored> {
    // Only counters over a window have slices.
    let (Some(Cell::Int(count)), None) = (row.cell("count"), row.bytes("slices")) else {
        return None;
    };
    Some(Stored::Count { name: text(row, "name")?, count: *count })
}

fn provenance_edge(row: &NamedRow<'_>) -> Option<Stored> {
    let (source, consumer) = (RunId(row.id("source")?), RunId(row.id("taker")?));
    Some(Stored::ProvenanceEdge { source, consumer, count: row.number("count")? })
}

fn blob(row: &NamedRow<'_>) -> Option<Option<Stored>> {
    let (hash, body) = (hash(row, "hash")?, row.bytes("body")?);
    Some((Hash::of(body) != hash).then_some(Stored::ForeignBlob(hash)))
}

fn positions(row: &NamedRow<'_>) -> Option<Stored> {
    Some(Stored::Positions {
        frames: row.number("frames")?,
        entries: row.number("entries")?,
        messages: row.number("letters")?,
        remembered_outputs: row.number("memos")?,
    })
}

fn run(row: &NamedRow<'_>) -> Option<Stored> {
    Some(Stored::Run(StoredRun {
        run: RunId(row.id("id")?),
        workflow: text(row, "workflow")?,
        workflow_version: row.number("release"),
        initiator: text(row, "initiator")?,
        status: text(row, "status")?,
        started_at_ms: row.number("started_at")?,
        ended_at_ms: row.number("ended_at"),
        parent: row.id("parent").map(RunId),
        fingerprint: match row.bytes("fingerprint") {
            Some(bytes) => Some(Hash(bytes.try_into().ok()?)),
            None => None,
        },
        is_owned: row.id("owner").is_some(),
        due_at_ms: row.number("due_at"),
        asks: matches!(row.cell("asks"), Some(Cell::Flag(true))),
        // A run without a `tip` row has no events that a process could read.
        version: row.number("version").unwrap_or(0),
    }))
}

/// A snapshot as stored, with the frame that should contain its last event.
pub(crate) struct SnapshotRow<'a> {
    pub(crate) run: RunId,
    pub(crate) version: u64,
    pub(crate) body: &'a [u8],
    pub(crate) mac: &'a [u8],
    pub(crate) frame: Option<(u64, u32, &'a [u8], &'a [u8])>,
}

impl SnapshotRow<'_> {
    /// Whether a process with the store's key wrote the snapshot after that frame.
    pub(crate) fn is_authentic(&self, keys: &Keys) -> bool {
        let Some(key) = keys.get() else { return true };
        let Some((first, count, chain, mac)) = self.frame else { return false };
        let place = FramePlace { run: self.run, first, count, chain };
        first.checked_add(u64::from(count)) == self.version.checked_add(1)
            && key.is_placed(place, mac)
            && key.snapshot(self.run, self.version, last_hash(chain), self.body).is(self.mac)
    }
}

/// Reports an unreadable part of a table: the row, or the last readable row before it.
pub(crate) fn damaged(table: &'static str, key: Option<&[Cell]>, detail: String) -> Stored {
    let key = key.unwrap_or_default().iter().map(Cell::short_text).collect::<Vec<_>>().join(", ");
    Stored::Damaged { table, key, detail }
}

pub(crate) fn unreadable(why: &str) -> String {
    format!("the rows after it cannot be read: {why}")
}

/// Whether the key of a table is a number that grows by one, so that a reader can skip
/// a damaged part by trying keys.
pub(crate) fn is_numbered(table: Table) -> bool {
    matches!(table, Table::Seal | Table::Entry | Table::Frame)
}

/// Searches for the smallest key after which a table is readable again: doubles its
/// step until it passes the damaged part, then bisects.
pub(crate) struct Skip {
    unreadable: i64,
    readable: Option<i64>,
    step: i64,
}

impl Skip {
    /// Starts after the last readable key.
    pub(crate) fn after(key: Option<&[Cell]>) -> Skip {
        let last = match key {
            Some([Cell::Int(number)]) => *number,
            _ => 0,
        };
        Skip { unreadable: last, readable: None, step: 1 }
    }

    /// The key to try next; `None` ends the search.
    pub(crate) fn next(&self) -> Option<i64> {
        match self.readable {
            None => self.unreadable.checked_add(self.step),
            Some(readable) => {
                let between = readable - self.unreadable;
                (between > 1).then(|| self.unreadable + between / 2)
            }
        }
    }

    pub(crate) fn record(&mut self, key: i64, is_readable: bool) {
        if is_readable {
            self.readable = Some(key);
        } else {
            self.unreadable = key;
            self.step = self.step.saturating_mul(2);
        }
    }

    /// The key to continue after.
    pub(crate) fn resume_key(&self) -> Option<Vec<Cell>> {
        self.readable.map(|key| vec![Cell::Int(key)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the key after a damaged range, and the number of tries.
    fn skipped(last: i64, damaged: std::ops::RangeInclusive<i64>) -> (Option<i64>, usize) {
        let mut skip = Skip::after(Some(&[Cell::Int(last)]));
        let mut tries = 0;
        while let Some(key) = skip.next() {
            tries += 1;
            skip.record(key, !damaged.contains(&(key + 1)));
        }
        (skip.readable, tries)
    }

    #[test]
    fn the_first_row_behind_a_damaged_part_is_found_in_few_steps() {
        assert_eq!(skipped(4, 5..=5), (Some(5), 1));
        assert_eq!(skipped(4, 5..=60).0, Some(60));
        let (found, tries) = skipped(0, 1..=1_000_000);
        assert_eq!(found, Some(1_000_000));
        assert!(tries < 50, "{tries}");
    }

    #[test]
    fn a_table_that_cannot_be_read_to_its_end_is_left() {
        let (found, tries) = skipped(7, 8..=i64::MAX);
        assert_eq!(found, None);
        assert!(tries < 70, "{tries}");
    }
}
