//! Merkle trees as in RFC 6962: over any number of leaves, with inclusion proofs.
//!
//! A leaf is hashed after a zero byte, an inner node after a one byte, so that neither can be
//! mistaken for the other. The left half has the largest power of two leaves that is smaller
//! than the whole.

use crate::hash::Hash;
use sha2::{Digest as _, Sha256};

/// The hash of a zero byte and the leaf's bytes.
pub fn leaf(bytes: &[u8]) -> Hash {
    let mut hash = Sha256::new();
    hash.update([0]);
    hash.update(bytes);
    Hash(hash.finalize().into())
}

fn node(left: Hash, right: Hash) -> Hash {
    let mut hash = Sha256::new();
    hash.update([1]);
    hash.update(left.0);
    hash.update(right.0);
    Hash(hash.finalize().into())
}

/// The root over leaf hashes; without leaves, the hash of the empty text.
pub fn root(leaves: &[Hash]) -> Hash {
    if leaves.is_empty() {
        return Hash::of(&[]);
    }
    // Pairing neighbours level by level builds the same tree: an odd last hash moves up
    // unchanged.
    let mut level = leaves.to_vec();
    while level.len() > 1 {
        level = up(&level);
    }
    level[0]
}

fn up(level: &[Hash]) -> Vec<Hash> {
    let pair = |pair: &[Hash]| match pair {
        [left, right] => node(*left, *right),
        [single] => *single,
        _ => unreachable!("pairs have one or two members"),
    };
    level.chunks(2).map(pair).collect()
}

/// The inclusion proof of the leaf at `index`: the sibling hashes on the path to the root, from
/// the bottom. `None` if there is no such leaf.
pub fn proof(leaves: &[Hash], mut index: usize) -> Option<Vec<Hash>> {
    if index >= leaves.len() {
        return None;
    }
    let mut level = leaves.to_vec();
    let mut path = Vec::new();
    while level.len() > 1 {
        path.extend(level.get(index ^ 1));
        level = up(&level);
        index /= 2;
    }
    Some(path)
}

/// The root that a leaf and its proof lead to in a tree of `size` leaves. `None` if the proof
/// does not fit such a tree.
pub(crate) fn climb(leaf: Hash, index: u64, size: u64, path: &[Hash]) -> Option<Hash> {
    if index >= size {
        return None;
    }
    let (mut index, mut last) = (index, size - 1);
    let mut hash = leaf;
    let mut path = path.iter();
    while last > 0 {
        if index % 2 == 1 {
            hash = node(*path.next()?, hash);
        } else if index < last {
            hash = node(hash, *path.next()?);
        }
        index /= 2;
        last /= 2;
    }
    path.next().is_none().then_some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn leaves(count: usize) -> Vec<Hash> {
        (0..count).map(|number| leaf(number.to_string().as_bytes())).collect()
    }

    /// As the RFC defines it.
    fn defined(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => Hash::of(&[]),
            [one] => *one,
            _ => {
                let half = leaves.len().next_power_of_two() / 2;
                let (left, right) = leaves.split_at(half);
                node(defined(left), defined(right))
            }
        }
    }

    #[test]
    fn a_root_is_what_the_definition_says() {
        for count in 0..70 {
            assert_eq!(root(&leaves(count)), defined(&leaves(count)), "{count}");
        }
    }

    /// Roots published with the reference implementation of RFC 6962.
    #[test]
    fn known_roots_come_out() {
        let known: [&[u8]; 3] = [b"", &[0x00], &[0x10]];
        let hashes: Vec<Hash> = known.iter().map(|bytes| leaf(bytes)).collect();
        for (count, expected) in [
            (0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
            (2, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
            (3, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
        ] {
            assert_eq!(root(&hashes[..count]).to_string(), expected);
        }
    }

    #[test]
    fn every_leaf_can_be_proved() {
        for count in 1..40 {
            let leaves = leaves(count);
            let size = count as u64;
            for (index, leaf) in leaves.iter().enumerate() {
                let path = proof(&leaves, index).unwrap();
                let there = climb(*leaf, index as u64, size, &path);
                assert_eq!(there, Some(root(&leaves)), "{index} of {count}");
            }
            assert_eq!(proof(&leaves, count), None);
        }
    }

    proptest! {
        #[test]
        fn a_proof_is_of_one_leaf_at_one_place(
            count in 1..40usize, at: prop::sample::Index, other in 0..64u64, size in 0..64u64,
            spoilt: prop::sample::Index,
        ) {
            let leaves = leaves(count);
            let index = at.index(count);
            let mut path = proof(&leaves, index).unwrap();
            let truth = root(&leaves);
            let (index, count) = (index as u64, count as u64);
            let leaf_hash = leaf(index.to_string().as_bytes());
            if other != index {
                prop_assert_ne!(climb(leaf_hash, other, count, &path), Some(truth));
            }
            prop_assert_ne!(climb(leaf(b"x"), index, count, &path), Some(truth));
            // A proof for a tree with more levels is longer.
            if size > 2 * count.next_power_of_two() {
                prop_assert_eq!(climb(leaf_hash, index, size, &path), None);
            }
            path.push(truth);
            prop_assert_eq!(climb(leaf_hash, index, count, &path), None);
            path.pop();
            if !path.is_empty() {
                let spoilt = spoilt.index(path.len());
                path[spoilt].0[0] ^= 1;
                prop_assert_ne!(climb(leaf_hash, index, count, &path), Some(truth));
            }
        }
    }
}
