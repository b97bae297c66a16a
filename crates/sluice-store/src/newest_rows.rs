//! Collects the newest versions of registry rows and compares them with the head.
//!
//! A version with a valid MAC may be an old one that another process put back. The head,
//! which is in the row [`HEAD`] of the table `authentic`, says which versions are the
//! newest. If they are not those in the store, none of the rows is used.

use crate::authentic::Keys;
use sluice_core::evidence::mac::{MacKey, RegistryHead, VersionSum};
use sluice_core::port::ledger::Rows;
use sluice_govern::registry::Row;

/// The row of the table `authentic` with the mark of the store.
pub(crate) const MARK: i64 = 1;
/// The row of the table `authentic` with the head of the registry.
pub(crate) const HEAD: i64 = 2;
/// The same, as PostgreSQL stores it.
pub(crate) const HEAD_ROW: i32 = 2;

/// Error of a change whose head is missing or not authentic.
pub(crate) const NO_HEAD: &str = "the head of the registry is not authentic";

/// One version of a registry row as stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredVersion<'a> {
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    pub(crate) epoch: u64,
    pub(crate) body: Option<&'a str>,
    pub(crate) mac: &'a [u8],
}

pub(crate) struct NewestRows<'a> {
    keys: &'a Keys,
    rows: Vec<Row>,
    foreign: Vec<(String, String)>,
    authentic_sum: VersionSum,
    foreign_sum: VersionSum,
}

impl<'a> NewestRows<'a> {
    pub(crate) fn new(keys: &'a Keys) -> NewestRows<'a> {
        let (authentic_sum, foreign_sum) = <(VersionSum, VersionSum)>::default();
        NewestRows { keys, rows: Vec::new(), foreign: Vec::new(), authentic_sum, foreign_sum }
    }

    /// Adds the newest version of a row.
    pub(crate) fn add(&mut self, version: StoredVersion<'_>) -> Result<(), String> {
        let StoredVersion { kind, name, epoch, body, mac } = version;
        let term = self.keys.get().map(|key| key.version_term(kind, name, epoch));
        let term = term.unwrap_or_default();
        if !self.keys.is_row((kind, name), epoch, body, mac) {
            self.foreign.push((kind.to_owned(), name.to_owned()));
            self.foreign_sum.add(term);
            return Ok(());
        }
        self.authentic_sum.add(term);
        if let Some(body) = body {
            self.rows.push(crate::registry_row(kind, name, body)?);
        }
        Ok(())
    }

    /// Whether these are the versions of the head, and the head is not older than one
    /// that this process has seen. A row that was changed in place is still the version
    /// that the head names; a row that was inserted is not.
    pub(crate) fn is_current(&self, head: Option<&[u8]>, seen: u64) -> bool {
        let Some(key) = self.keys.get() else { return true };
        let Some(head) = head.and_then(|head| key.open_head(head)) else { return false };
        let mut all = self.authentic_sum;
        all.add(self.foreign_sum);
        head.epoch >= seen && (head.versions == self.authentic_sum || head.versions == all)
    }

    /// The rows as of an epoch, sorted.
    pub(crate) fn into_rows(mut self, epoch: u64) -> Rows {
        self.rows
            .sort_unstable_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
        Rows { epoch, rows: self.rows, foreign: self.foreign, is_rolled_back: false }
    }

    /// The rows if they are current; otherwise all of them are foreign.
    pub(crate) fn into_current(self, epoch: u64, head: Option<&[u8]>, seen: u64) -> Rows {
        if self.is_current(head, seen) {
            if let Some(head) =
                self.keys.get().zip(head).and_then(|(key, head)| key.open_head(head))
            {
                self.keys.see_head(head.epoch);
            }
            return self.into_rows(epoch);
        }
        let mut rows = self.into_rows(epoch);
        let names = rows.rows.drain(..).map(|row| (row.kind.as_str().to_owned(), row.name));
        rows.foreign.extend(names);
        rows.foreign.sort_unstable();
        rows.is_rolled_back = true;
        rows
    }
}

/// The next head: the versions of a change replace those that were the newest before.
#[derive(Debug)]
pub(crate) struct NextHead<'a> {
    key: &'a MacKey,
    head: RegistryHead,
}

impl<'a> NextHead<'a> {
    /// Starts from the stored head; `None` if it is missing, not authentic, or older
    /// than one that this process has seen.
    pub(crate) fn after(keys: &Keys, key: &'a MacKey, stored: Option<&[u8]>) -> Option<Self> {
        let head = key.open_head(stored?)?;
        (head.epoch >= keys.seen_head()).then_some(NextHead { key, head })
    }

    /// Starts from an empty registry.
    pub(crate) fn empty(key: &'a MacKey) -> Self {
        NextHead { key, head: RegistryHead::default() }
    }

    /// The epoch of the last change. Unlike the counter, another process cannot set it.
    pub(crate) fn epoch(&self) -> u64 {
        self.head.epoch
    }

    /// Adds a version that is the newest of its row.
    pub(crate) fn add(&mut self, kind: &str, name: &str, epoch: u64) {
        self.head.epoch = self.head.epoch.max(epoch);
        self.head.versions.add(self.key.version_term(kind, name, epoch));
    }

    /// Removes a version that is no longer the newest of its row.
    pub(crate) fn replace(&mut self, kind: &str, name: &str, epoch: u64) {
        self.head.versions.remove(self.key.version_term(kind, name, epoch));
    }

    /// The bytes to store after the change of an epoch.
    pub(crate) fn seal(mut self, epoch: u64) -> Vec<u8> {
        self.head.epoch = self.head.epoch.max(epoch);
        self.key.seal_head(self.head).to_vec()
    }
}
