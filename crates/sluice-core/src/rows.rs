//! Prepares rows of the registry before they are stored.
//!
//! A file, a command or a request contains the wanted rows. `settle` completes them, `entrust`
//! decides whose secrets a row may name, `faults` finds contradictions between rows, `cautions`
//! finds probable mistakes, `diff` lists the changes, and `entries` makes the audit entries
//! about them.
//!
//! INVARIANT: settling a settled row changes nothing, so applying the same file twice writes
//! nothing the second time.

mod caution;
mod diff;
mod entry;
mod fault;
mod lens;
mod secret;
mod settle;
#[cfg(test)]
mod tests;

pub use caution::cautions;
pub use diff::{Difference, FieldChange, diff};
pub use entry::{AFTER_DIGEST, BEFORE_DIGEST, digest, entries};
pub(crate) use fault::ALWAYS_THERE;
pub use fault::faults;
pub use lens::changed_versions;
pub use secret::{NotYours, RowAuthor, entrust, secret_of};
pub use settle::{kept, settle, sign};

use sluice_govern::registry::{Kind, Row};

/// The row of a kind and name.
pub fn find<'r>(rows: &'r [Row], kind: Kind, name: &str) -> Option<&'r Row> {
    rows.iter().find(|row| row.kind == kind && row.name == name)
}

/// The names of all rows of this kind, in the order of the rows.
pub fn names(rows: &[Row], kind: Kind) -> impl Iterator<Item = &str> {
    rows.iter().filter(move |row| row.kind == kind).map(|row| row.name.as_str())
}

/// The rows after a change, by kind, then name.
pub fn with(rows: &[Row], put: &[Row], remove: &[(Kind, String)]) -> Vec<Row> {
    let gone = |row: &Row| remove.iter().any(|(kind, name)| *kind == row.kind && *name == row.name);
    let kept = rows.iter().filter(|row| find(put, row.kind, &row.name).is_none() && !gone(row));
    let mut after: Vec<Row> = kept.chain(put).cloned().collect();
    after.sort_by(|a, b| (a.kind.as_str(), &a.name).cmp(&(b.kind.as_str(), &b.name)));
    after
}
