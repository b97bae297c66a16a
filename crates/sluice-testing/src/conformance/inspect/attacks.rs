//! Changes with plain SQL, each of which an inspection must detect.

use super::{everything, furnish};
use crate::conformance::Bench;
use crate::conformance::authentic::Exposed;
use sluice_core::port::inspect::Stored;
use std::sync::Arc;

/// A change of stored rows, and how it is detected.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    /// SQL statements.
    pub sql: &'static str,
    /// How the change is detected.
    pub detection: Detection,
}

/// How a report shows a change.
#[derive(Debug, Clone, Copy)]
pub enum Detection {
    /// A row of this kind is not authentic.
    Foreign(&'static str),
    /// A row of this table is inconsistent, or cannot be read.
    Damaged(&'static str),
    /// The rows of this kind differ, which a verification detects by comparison.
    Changed(&'static str),
}

use Detection::{Changed, Damaged, Foreign};

/// Statements that both SQL dialects support.
const ATTACKS: &[(&str, Detection)] = &[
    ("UPDATE letter SET body = mac WHERE key = 'unread'", Foreign("message")),
    ("UPDATE letter SET body = NULL WHERE key = 'unread'", Foreign("message")),
    (
        "UPDATE letter SET body = NULL, mac = (SELECT other.mac FROM letter AS other
             WHERE other.key = 'read') WHERE key = 'unread'",
        Foreign("message"),
    ),
    ("UPDATE letter SET body = mac WHERE key = 'read'", Foreign("message")),
    ("UPDATE letter SET id = id + 100 WHERE key = 'read'", Foreign("message")),
    ("UPDATE letter SET key = 'other' WHERE key = 'read'", Foreign("message")),
    ("UPDATE letter SET key = 'other' WHERE key = 'unread'", Foreign("message")),
    (
        "UPDATE letter SET run = (SELECT other.run FROM frame AS other
             WHERE other.run <> letter.run AND other.first = 3 LIMIT 1)",
        Foreign("message"),
    ),
    ("DELETE FROM letter WHERE key = 'unread'", Changed("message")),
    ("UPDATE key SET expires_at = expires_at + 1", Foreign("key")),
    ("UPDATE key SET key = 'other'", Foreign("key")),
    ("UPDATE key SET mac = fingerprint", Foreign("key")),
    ("UPDATE key SET fingerprint = mac", Damaged("key")),
    ("UPDATE slot SET fate = 'skipped'", Foreign("slot")),
    ("UPDATE slot SET why = 'overlap'", Foreign("slot")),
    ("UPDATE slot SET run = NULL", Foreign("slot")),
    ("UPDATE memo SET at = at + 1 WHERE place = 1", Foreign("memo")),
    ("UPDATE memo SET agent = 'other'", Foreign("memo")),
    ("UPDATE memo SET body = mac", Foreign("memo")),
    (
        "UPDATE memo SET mac = (SELECT other.mac FROM memo AS other
             WHERE other.place <> memo.place)",
        Foreign("memo"),
    ),
    ("UPDATE registry SET body = replace(body, '1', '9')", Foreign("version")),
    ("UPDATE registry SET body = NULL WHERE epoch = 1", Foreign("version")),
    ("UPDATE registry SET name = 'other'", Foreign("version")),
    ("UPDATE registry SET epoch = epoch + 9", Foreign("version")),
    (
        "UPDATE registry SET mac = (SELECT other.mac FROM registry AS other
             WHERE other.epoch <> registry.epoch)",
        Foreign("version"),
    ),
    ("DELETE FROM registry WHERE epoch = 2", Changed("version")),
    ("UPDATE entry SET text = replace(text, 'ada', 'eve')", Foreign("entry")),
    ("UPDATE entry SET mac = hash", Foreign("entry")),
    ("UPDATE entry SET seq = seq + 9", Foreign("entry")),
    ("UPDATE entry SET place = place + 9", Changed("entry")),
    ("DELETE FROM entry WHERE place = 2", Changed("entry")),
    ("UPDATE seal SET text = 'other'", Changed("seal")),
    ("UPDATE seal SET leaves = hash", Changed("seal")),
    ("UPDATE seal SET frames = 0", Changed("seal")),
    ("UPDATE seal SET hash = leaves", Damaged("seal")),
    ("UPDATE counter SET count = count + 1 WHERE name = 'c'", Changed("count")),
    ("UPDATE taking SET count = count + 1", Changed("taking")),
    ("UPDATE blob SET body = hash", Foreign("blob")),
    ("UPDATE snapshot SET body = mac", Foreign("snapshot")),
    ("UPDATE snapshot SET version = 1", Foreign("snapshot")),
    ("UPDATE snapshot SET version = 9", Foreign("snapshot")),
    ("UPDATE snapshot SET mac = body", Foreign("snapshot")),
    ("UPDATE frame SET chain = body WHERE count = 2", Foreign("snapshot")),
    ("UPDATE frame SET count = count + 1 WHERE first = 3", Changed("frame")),
    ("UPDATE run SET status = 'completed'", Changed("run")),
    ("UPDATE run SET initiator = 'eve'", Changed("run")),
    ("UPDATE run SET due_at = NULL", Changed("run")),
    ("UPDATE run SET owner = NULL", Changed("run")),
    ("CREATE INDEX other ON run (version, id)", Foreign("schema")),
    ("DROP INDEX run_status", Foreign("schema")),
    ("ALTER TABLE slot ADD COLUMN other TEXT", Foreign("schema")),
    ("ALTER TABLE slot RENAME COLUMN why TO because", Foreign("schema")),
    ("DROP TABLE taking", Foreign("schema")),
    ("DELETE FROM run", Damaged("frame")),
    ("DELETE FROM run", Damaged("letter")),
    ("DELETE FROM run", Damaged("memo")),
    ("DELETE FROM run", Damaged("snapshot")),
];

/// Runs every attack, and those of one dialect only, each on a fresh store in which run
/// 3 has the given number of frames.
pub fn check_inspect(mut fresh: impl FnMut() -> Exposed, own: &[Attack], frames: u64) {
    let common = ATTACKS.iter().map(|(sql, detection)| Attack { sql, detection: *detection });
    for attack in common.chain(own.iter().copied()) {
        let Exposed { store, clock, sql, .. } = fresh();
        let bench = Bench { store, clock };
        furnish(&bench, frames);
        let before = everything(&*bench.store);
        assert!(!before.iter().any(is_foreign), "{before:?}");
        sql(attack.sql);
        let after = everything(&*bench.store);
        assert!(attack.is_detected(&before, &after), "{attack:?} does not show in {after:#?}");
    }
    one_moment(fresh());
}

impl Attack {
    fn is_detected(&self, before: &[Stored], after: &[Stored]) -> bool {
        match self.detection {
            Foreign(kind) => after.iter().any(|row| name(row) == kind && is_foreign(row)),
            Damaged(table) => {
                let is_it =
                    |row: &Stored| matches!(row, Stored::Damaged { table: at, .. } if *at == table);
                after.iter().any(is_it)
            }
            Changed(kind) => {
                let of = |row: &&Stored| name(row) == kind;
                before.iter().filter(of).ne(after.iter().filter(of))
            }
        }
    }
}

/// Whether the item is not authentic, or damaged.
pub fn is_foreign(row: &Stored) -> bool {
    match row {
        Stored::Entry(entry) => !entry.is_authentic,
        Stored::Version(version) => !version.is_authentic,
        Stored::Key { is_authentic, .. }
        | Stored::Slot { is_authentic, .. }
        | Stored::RememberedOutput { is_authentic, .. }
        | Stored::Message { is_authentic, .. } => !is_authentic,
        Stored::Schema { .. }
        | Stored::ForeignBlob(_)
        | Stored::ForeignSnapshot(_)
        | Stored::Damaged { .. } => true,
        Stored::Seal { .. }
        | Stored::ChainEnd { .. }
        | Stored::Count { .. }
        | Stored::ProvenanceEdge { .. }
        | Stored::Frame(_)
        | Stored::Positions { .. }
        | Stored::Run(_) => false,
    }
}

fn name(row: &Stored) -> &'static str {
    match row {
        Stored::Schema { .. } => "schema",
        Stored::Seal { .. } => "seal",
        Stored::Entry(_) => "entry",
        Stored::Version(_) => "version",
        Stored::ChainEnd { .. } => "chain",
        Stored::Key { .. } => "key",
        Stored::Slot { .. } => "slot",
        Stored::RememberedOutput { .. } => "memo",
        Stored::Message { .. } => "message",
        Stored::Count { .. } => "count",
        Stored::ProvenanceEdge { .. } => "taking",
        Stored::ForeignBlob(_) => "blob",
        Stored::ForeignSnapshot(_) => "snapshot",
        Stored::Frame(_) => "frame",
        Stored::Positions { .. } => "position",
        Stored::Run(_) => "run",
        Stored::Damaged { .. } => "damaged",
    }
}

/// A change that is committed during an inspection is not visible to it, and is
/// completely visible to the next one.
fn one_moment(exposed: Exposed) {
    let Exposed { store, clock, sql, .. } = exposed;
    let bench = Bench { store, clock };
    furnish(&bench, 3);
    let before = everything(&*bench.store);
    let perform = Arc::clone(&sql);
    let during = super::inspected(&*bench.store, move |rows| {
        if rows == 0 {
            perform("UPDATE slot SET fate = 'late'");
            perform("UPDATE run SET status = 'late'");
        }
    });
    assert_eq!(during, before);
    let is_late = |row: &&Stored| match row {
        Stored::Slot { slot, .. } => slot.outcome == "late",
        Stored::Run(run) => run.status == "late",
        _ => false,
    };
    assert_eq!(everything(&*bench.store).iter().filter(is_late).count(), 4);
}
