//! The hashes of events.
//!
//! The hash of an event covers its header, a salted commitment to its payload and the hash of
//! the event before it. The salt prevents that an erased payload is guessed from its
//! commitment. Numbers are written in decimal, hashes and salts as bytes.
//!
//! INVARIANT: these are the hashes of every journal ever written. A change needs a new first
//! line of the hash input, next to the old one.

use crate::hash::Hash;
use crate::id::RunId;
use sha2::{Digest as _, Sha256};

/// The hash before the first hashed event.
pub const START: Hash = Hash([0; 32]);

/// The size of a hash in a chain.
pub const HASH_BYTES: usize = 32;

/// Random bytes that make a commitment unguessable.
pub type Salt = [u8; 16];

/// The commitment to a payload: SHA-256 of the line `sluice/payload/1`, the salt, the payload
/// as written in the frame, a newline, and `blobs` as written there (may be empty).
pub fn commitment(salt: &Salt, payload: &[u8], blobs: &[u8]) -> Hash {
    let mut hash = Sha256::new();
    hash.update(b"sluice/payload/1\n");
    hash.update(salt);
    hash.update(payload);
    hash.update(b"\n");
    hash.update(blobs);
    Hash(hash.finalize().into())
}

/// The hash of the rest of an erased payload: SHA-256 of the line `sluice/residue/1` and the
/// text. The audit entry about the erasure contains it.
pub(crate) fn residue(payload: &[u8]) -> Hash {
    let mut hash = Sha256::new();
    hash.update(b"sluice/residue/1\n");
    hash.update(payload);
    Hash(hash.finalize().into())
}

/// The end of a run's hash chain, where the next event is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The run that the next event belongs to.
    pub run: RunId,
    /// The id of the next event.
    pub next: u64,
    /// The hash of the last event; [`START`] if no event has one.
    pub tip: Hash,
}

/// Links events of one run to each other.
pub struct Chain<'l> {
    link: &'l mut Link,
    /// The prefix of every hash input of this run.
    head: String,
}

impl<'l> Chain<'l> {
    /// Continues from the end of a chain and moves it forward.
    pub fn new(link: &'l mut Link) -> Chain<'l> {
        let head = format!("sluice/event/1\n{}\n", link.run);
        Chain { link, head }
    }

    /// Adds the next event and returns its hash: SHA-256 of the line `sluice/event/1`, one
    /// line each for the run, the event id, its type and its time in milliseconds, then the
    /// commitment and the previous hash.
    pub fn add(&mut self, kind: &str, at_ms: u64, commitment: Hash) -> Hash {
        let mut hash = Sha256::new();
        hash.update(self.head.as_bytes());
        line(&mut hash, self.link.next);
        hash.update(kind.as_bytes());
        hash.update(b"\n");
        line(&mut hash, at_ms);
        hash.update(commitment.0);
        hash.update(self.link.tip.0);
        let hash = Hash(hash.finalize().into());
        self.link.next += 1;
        self.link.tip = hash;
        hash
    }
}

/// The last hash of a frame's chain; `None` for frames of versions without hashes.
pub fn tip(chain: &[u8]) -> Option<Hash> {
    chain.last_chunk::<HASH_BYTES>().map(|bytes| Hash(*bytes))
}

/// Hashes a number and a newline.
fn line(hash: &mut Sha256, mut number: u64) {
    // Twenty digits and the newline: the size of the largest number.
    let mut text = *b"00000000000000000000\n";
    let mut start = text.len() - 1;
    loop {
        start -= 1;
        text[start] += u8::try_from(number % 10).expect("a digit is small");
        number /= 10;
        if number == 0 {
            break;
        }
    }
    hash.update(&text[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_what_its_description_says() {
        let salt = [7; 16];
        let mut committed = b"sluice/payload/1\n".to_vec();
        committed.extend_from_slice(&salt);
        committed.extend_from_slice(b"{\"a\":1}\n{\"b\":\"c\"}");
        let payload = commitment(&salt, b"{\"a\":1}", b"{\"b\":\"c\"}");
        assert_eq!(payload, Hash::of(&committed));

        let mut link = Link { run: RunId(9), next: u64::MAX - 1, tip: Hash([5; 32]) };
        let hash = Chain::new(&mut link).add("run.started", 0, payload);
        let mut text =
            b"sluice/event/1\nrun_00000000000000000000000000000009\n18446744073709551614\nrun.started\n0\n"
                .to_vec();
        text.extend_from_slice(&payload.0);
        text.extend_from_slice(&[5; 32]);
        assert_eq!(hash, Hash::of(&text));
        assert_eq!(link, Link { run: RunId(9), next: u64::MAX, tip: hash });
    }

    #[test]
    fn numbers_are_lines_of_decimal_digits() {
        for number in [0, 9, 10, 1_790_000_000_123, u64::MAX] {
            let mut hash = Sha256::new();
            line(&mut hash, number);
            let hash = Hash(hash.finalize().into());
            assert_eq!(hash, Hash::of(format!("{number}\n").as_bytes()), "{number}");
        }
    }

    #[test]
    fn the_tip_of_a_chain_is_its_last_hash() {
        assert_eq!(tip(&[]), None);
        let chain = [[1; 32], [2; 32]].concat();
        assert_eq!(tip(&chain), Some(Hash([2; 32])));
    }
}
