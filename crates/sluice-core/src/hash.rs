//! SHA-256 hashes, written as 64 hexadecimal digits.

use crate::hex;
use std::fmt;

/// A SHA-256 hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Hashes `bytes`.
    pub fn of(bytes: &[u8]) -> Hash {
        use sha2::Digest as _;
        Hash(sha2::Sha256::digest(bytes).into())
    }

    /// Parses what `Display` writes.
    pub fn parse(text: &str) -> Option<Hash> {
        hex::parse(text).map(Hash)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::to_string(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
