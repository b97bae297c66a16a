//! The head of a registry: which version of each row is the newest.
//!
//! The MAC of a version proves that it was written, not that no later version replaced it. The
//! head is a MAC over the set of newest versions, removed rows included. It is written in the
//! transaction of every change, so a version that was put back or deleted does not match it.
//!
//! The set is a sum with one pseudorandom term for each version, so that a change costs
//! nothing for the rows that it leaves alone. The stored sum is masked: who reads the store
//! learns no term, and cannot look for another set with the same sum.

use super::{Mac, MacKey};

/// The size of a stored head: epoch, masked sum, MAC.
pub(crate) const HEAD_BYTES: usize = 40;

/// A sum over the newest versions of rows, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VersionSum(u128);

impl VersionSum {
    /// Adds the newest version of a row.
    pub fn add(&mut self, term: VersionSum) {
        self.0 = self.0.wrapping_add(term.0);
    }

    /// Removes a version that was added.
    pub fn remove(&mut self, term: VersionSum) {
        self.0 = self.0.wrapping_sub(term.0);
    }
}

/// The newest versions of all rows after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RegistryHead {
    /// The epoch of the last change.
    pub epoch: u64,
    /// The newest version of every row.
    pub versions: VersionSum,
}

impl MacKey {
    /// The term of one version. It does not cover the body: the version's own MAC does.
    pub fn version_term(&self, kind: &str, name: &str, epoch: u64) -> VersionSum {
        let builder = self.begin(b'v').bytes(kind.as_bytes()).bytes(name.as_bytes());
        VersionSum(u128::from_be_bytes(builder.number(epoch).end().0))
    }

    /// The head as it is stored.
    pub fn seal_head(&self, head: RegistryHead) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        let masked = head.versions.0.wrapping_add(self.head_mask(head.epoch));
        bytes[..8].copy_from_slice(&head.epoch.to_be_bytes());
        bytes[8..24].copy_from_slice(&masked.to_be_bytes());
        bytes[24..].copy_from_slice(&self.head_mac(head).0);
        bytes
    }

    /// Reads a stored head; `None` if no process with this key wrote it.
    pub fn open_head(&self, bytes: &[u8]) -> Option<RegistryHead> {
        let bytes: &[u8; HEAD_BYTES] = bytes.try_into().ok()?;
        let epoch = u64::from_be_bytes(*bytes.first_chunk()?);
        let masked = u128::from_be_bytes(*bytes[8..].first_chunk()?);
        let versions = VersionSum(masked.wrapping_sub(self.head_mask(epoch)));
        let head = RegistryHead { epoch, versions };
        self.head_mac(head).is(&bytes[24..]).then_some(head)
    }

    fn head_mask(&self, epoch: u64) -> u128 {
        u128::from_be_bytes(self.begin(b'x').number(epoch).end().0)
    }

    fn head_mac(&self, head: RegistryHead) -> Mac {
        self.begin(b'h').number(head.epoch).id(head.versions.0).end()
    }
}
