//! Rows of the registry on their way into the store.
//!
//! A file, a command or a request says what rows there should be. Here that
//! becomes what is written: `settle` fills in what the author does not write,
//! `entrust` says whose secrets a row may name, `faults` says what rows claim of each other that is not so, `cautions` what is
//! seldom meant, `diff` says what changes, and `entries` what the audit is told of it.
//!
//! INVARIANT: settling what was settled changes nothing, so that applying the
//! same file twice writes nothing the second time.

mod caution;
mod diff;
mod entry;
mod fault;
mod lens;
mod secret;
mod settle;
#[cfg(test)]
mod tests;

pub use crate::doc::newest_version as head;
pub use caution::cautions;
pub use diff::{Difference, FieldChange, diff};
pub use entry::{AFTER_DIGEST, BEFORE_DIGEST, digest, entries};
pub use fault::{ALWAYS_THERE, RowFault, faults};
pub use lens::changed_versions;
pub use secret::{NotYours, RowAuthor, entrust, secret_field, secret_of};
pub use settle::{kept, settle, sign};

use sluice_govern::registry::{Kind, Row};

/// The row of a kind and name.
pub fn find<'r>(rows: &'r [Row], kind: Kind, name: &str) -> Option<&'r Row> {
    rows.iter().find(|row| row.kind == kind && row.name == name)
}

/// The names of a kind.
pub fn names(rows: &[Row], kind: Kind) -> impl Iterator<Item = &str> {
    rows.iter().filter(move |row| row.kind == kind).map(|row| row.name.as_str())
}

/// The rows after some are put and some are removed. By kind, then name.
pub fn with(rows: &[Row], put: &[Row], remove: &[(Kind, String)]) -> Vec<Row> {
    let gone = |row: &Row| remove.iter().any(|(kind, name)| *kind == row.kind && *name == row.name);
    let kept = rows.iter().filter(|row| find(put, row.kind, &row.name).is_none() && !gone(row));
    let mut after: Vec<Row> = kept.chain(put).cloned().collect();
    after.sort_by(|a, b| (a.kind.as_str(), &a.name).cmp(&(b.kind.as_str(), &b.name)));
    after
}
