//! The leaves of a seal's tree: heads of runs and of writers' chains.
//!
//! A leaf has 57 bytes: `r` for a run or `w` for a writer, the 16 bytes of its id, the number
//! of its last event or entry in 8 bytes (big-endian), and the 32 bytes of the hash of that
//! event or entry. The leaves of a seal are concatenated, runs first, each group sorted by id.

use super::merkle;
use crate::hash::Hash;
use crate::id::RunId;
use crate::port::ledger::Unsealed;
use crate::port::store::NodeId;

/// The size of a leaf.
pub(crate) const LEAF_BYTES: usize = 57;

/// The head of a chain, covered by a seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaf {
    /// The run or the writer of the chain.
    pub of: LeafOwner,
    /// The number of the last event or entry.
    pub number: u64,
    /// The hash of that event or entry, which covers all before it.
    pub hash: Hash,
}

/// The run or the writer of a head, in the order of leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeafOwner {
    /// A run: the number is its version.
    Run(RunId),
    /// A writer: the number is a `seq`.
    Writer(NodeId),
}

impl Leaf {
    /// The leaf of a run's head.
    pub fn run(run: RunId, version: u64, hash: Hash) -> Leaf {
        Leaf { of: LeafOwner::Run(run), number: version, hash }
    }

    /// The bytes that are hashed.
    pub fn bytes(&self) -> [u8; LEAF_BYTES] {
        let (kind, id) = match self.of {
            LeafOwner::Run(run) => (b'r', run.0),
            LeafOwner::Writer(writer) => (b'w', writer.0),
        };
        let mut bytes = [kind; LEAF_BYTES];
        bytes[1..17].copy_from_slice(&id.to_be_bytes());
        bytes[17..25].copy_from_slice(&self.number.to_be_bytes());
        bytes[25..].copy_from_slice(&self.hash.0);
        bytes
    }

    fn read(bytes: &[u8; LEAF_BYTES]) -> Option<Leaf> {
        let id = u128::from_be_bytes(*bytes[1..].first_chunk()?);
        let number = u64::from_be_bytes(*bytes[17..].first_chunk()?);
        let hash = Hash(*bytes[25..].first_chunk()?);
        let of = match bytes[0] {
            b'r' => LeafOwner::Run(RunId(id)),
            b'w' => LeafOwner::Writer(NodeId(id)),
            _ => return None,
        };
        Some(Leaf { of, number, hash })
    }
}

/// The leaves of everything that no seal covers yet.
pub fn leaves(unsealed: &Unsealed) -> Vec<Leaf> {
    let runs = unsealed.heads.iter().map(|(run, version, hash)| Leaf::run(*run, *version, *hash));
    let writers = unsealed.writers.iter().map(|(writer, seq, hash)| Leaf {
        of: LeafOwner::Writer(*writer),
        number: *seq,
        hash: *hash,
    });
    runs.chain(writers).collect()
}

/// Concatenates leaves.
pub fn encode(leaves: &[Leaf]) -> Vec<u8> {
    leaves.iter().flat_map(Leaf::bytes).collect()
}

/// Parses leaves; `None` if the bytes are not leaves of different heads in order.
pub fn decode(bytes: &[u8]) -> Option<Vec<Leaf>> {
    let (chunks, rest) = bytes.as_chunks::<LEAF_BYTES>();
    let leaves: Vec<Leaf> = chunks.iter().map(Leaf::read).collect::<Option<_>>()?;
    let sorted = leaves.windows(2).all(|pair| pair[0].of < pair[1].of);
    (rest.is_empty() && sorted).then_some(leaves)
}

/// The hashes of leaves, from which the tree is built.
pub fn hashes(leaves: &[Leaf]) -> Vec<Hash> {
    leaves.iter().map(|leaf| merkle::leaf(&leaf.bytes())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<Leaf> {
        leaves(&Unsealed {
            heads: vec![(RunId(1), 7, Hash([1; 32])), (RunId(5), u64::MAX, Hash([2; 32]))],
            writers: vec![(NodeId(3), 9, Hash([3; 32]))],
            ..Unsealed::default()
        })
    }

    #[test]
    fn leaves_read_back() {
        let bytes = encode(&some());
        assert_eq!(bytes.len(), 3 * LEAF_BYTES);
        assert_eq!((bytes[0], bytes[16], bytes[24]), (b'r', 1, 7));
        assert_eq!(decode(&bytes), Some(some()));
        assert_eq!(decode(&[]), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_list_of_leaves_is_refused() {
        let bytes = encode(&some());
        assert_eq!(decode(&bytes[1..]), None);
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
        let mut swapped = some();
        swapped.swap(0, 1);
        assert_eq!(decode(&encode(&swapped)), None);
        assert_eq!(decode(&encode(&[some()[0], some()[0]])), None);
        let mut unknown = bytes;
        unknown[0] = b'x';
        assert_eq!(decode(&unknown), None);
    }
}
