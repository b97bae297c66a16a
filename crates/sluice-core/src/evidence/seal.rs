//! Seals: signed and chained, each over everything that was added since the previous one.
//!
//! A seal is one line of canonical JSON: `at` in milliseconds, `key` (the public key), `leaves`
//! (their number), `number` from 1, `prev` (the hash of the previous seal, zeros for the
//! first), `root` (of the tree over the leaves), `signature` and `v`. Its hash is the SHA-256
//! of that line. The signature covers the line `sluice/seal/1`, a newline, and the same JSON
//! without `signature`.

use super::key::{PublicKey, Signer};
use super::leaf::{self, Leaf};
use super::merkle;
use crate::hash::Hash;
use crate::journal::chain::START;
use crate::port::ledger::{Sealing, Unsealed};
use crate::{canonical, hex};
use serde_json::{Value, json};

/// The version of the format.
const VERSION: u64 = 1;

/// The signed root over the heads of all chains at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// The number of the seal, from 1.
    pub number: u64,
    /// The time of the seal.
    pub at_ms: u64,
    /// The hash of the previous seal.
    pub prev: Hash,
    /// The root of the tree over its leaves.
    pub root: Hash,
    /// The number of leaves.
    pub leaves: u64,
    /// The key that signed it.
    pub key: PublicKey,
    /// Ed25519, over all other fields.
    pub signature: [u8; 64],
}

impl Seal {
    /// Seals leaves and signs the seal.
    pub fn new(number: u64, at_ms: u64, prev: Hash, leaves: &[Leaf], signer: &Signer) -> Seal {
        let mut seal = Seal {
            number,
            at_ms,
            prev,
            root: merkle::root(&leaf::hashes(leaves)),
            leaves: leaves.len() as u64,
            key: signer.public(),
            signature: [0; 64],
        };
        seal.signature = signer.sign(seal.signed_text().as_bytes());
        seal
    }

    /// The line that is stored.
    pub fn text(&self) -> String {
        let mut json = self.unsigned();
        json["signature"] = Value::from(hex::to_string(&self.signature));
        canonical::to_string(&json)
    }

    /// The hash of that line.
    pub fn hash(&self) -> Hash {
        Hash::of(self.text().as_bytes())
    }

    fn unsigned(&self) -> Value {
        json!({
            "at": self.at_ms,
            "key": self.key.to_string(),
            "leaves": self.leaves,
            "number": self.number,
            "prev": self.prev.to_string(),
            "root": self.root.to_string(),
            "v": VERSION,
        })
    }

    fn signed_text(&self) -> String {
        format!("sluice/seal/1\n{}", canonical::to_string(&self.unsigned()))
    }

    /// Whether its key signed it.
    pub fn is_signed(&self) -> bool {
        self.key.signed(self.signed_text().as_bytes(), &self.signature)
    }

    /// Parses exactly what [`text`](Seal::text) writes.
    pub fn parse(text: &str) -> Option<Seal> {
        let json: Value = serde_json::from_str(text).ok()?;
        let word = |name: &str| json.get(name)?.as_str();
        let number = |name: &str| json.get(name)?.as_u64();
        let seal = Seal {
            number: number("number")?,
            at_ms: number("at")?,
            prev: Hash::parse(word("prev")?)?,
            root: Hash::parse(word("root")?)?,
            leaves: number("leaves")?,
            key: PublicKey::parse(word("key")?)?,
            signature: hex::parse(word("signature")?)?,
        };
        (seal.text() == text).then_some(seal)
    }

    /// Whether a line is the beginning of a seal: a process ended while it wrote the line.
    pub fn is_torn(line: &str) -> bool {
        let read: Result<Value, serde_json::Error> = serde_json::from_str(line);
        line.starts_with('{') && read.is_err_and(|error| error.is_eof())
    }
}

/// Makes the next seal; `None` if there is nothing to seal.
pub fn next(unsealed: &Unsealed, at_ms: u64, signer: &Signer) -> Option<Sealing> {
    let leaves = leaf::leaves(unsealed);
    if leaves.is_empty() {
        return None;
    }
    let (number, prev) = unsealed.last.map_or((0, START), |last| last);
    let seal = Seal::new(number + 1, at_ms, prev, &leaves, signer);
    let text = seal.text();
    Some(Sealing {
        number: seal.number,
        hash: Hash::of(text.as_bytes()),
        text,
        leaves: leaf::encode(&leaves),
        upto: unsealed.upto,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::RunId;
    use crate::port::ledger::SealMark;

    fn seal() -> Seal {
        let leaves = [Leaf::run(RunId(1), 7, Hash([1; 32]))];
        Seal::new(3, 5, Hash([9; 32]), &leaves, &Signer::new(&[7; 32]))
    }

    #[test]
    fn every_beginning_of_a_seal_is_torn_and_nothing_else() {
        let text = seal().text();
        for end in 1..text.len() {
            assert!(Seal::is_torn(&text[..end]), "{end}");
        }
        for other in ["", "notes", "{\"at\": nothing", "[", &text, &format!("{text}x")] {
            assert!(!Seal::is_torn(other), "{other}");
        }
    }

    #[test]
    fn a_seal_reads_back_and_is_signed() {
        let text = seal().text();
        expect_test::expect![[r#"{"at":5,"key":"ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c","leaves":1,"number":3,"prev":"0909090909090909090909090909090909090909090909090909090909090909","root":"26b22a5f3469019aab24f9f00cf3462dd3948373a269bbb10b6f29007367c629","signature":"3b085ce51125c106932fd4f7eece0c0a99050e22cb40c46da3b27c5d3d54070701e3107b5fb1f9dd54953b761546c268dad84b6c1a5fc4b16ed57f25d0b9240d","v":1}"#]].assert_eq(&text);
        assert_eq!(Seal::parse(&text), Some(seal()));
        assert!(seal().is_signed());
    }

    #[test]
    fn every_byte_of_a_seal_is_under_its_signature() {
        let text = seal().text().into_bytes();
        for at in 0..text.len() {
            for change in [1, 0x20, 0x80] {
                let mut other = text.clone();
                other[at] ^= change;
                let read = std::str::from_utf8(&other).ok().and_then(Seal::parse);
                assert!(!read.is_some_and(|seal| seal.is_signed()), "byte {at}");
            }
        }
    }

    #[test]
    fn the_next_seal_goes_on_where_the_last_one_ended() {
        let upto = SealMark { frames: 4, entries: 2 };
        let mut unsealed = Unsealed { upto, ..Unsealed::default() };
        let signer = Signer::new(&[7; 32]);
        assert_eq!(next(&unsealed, 5, &signer), None);
        unsealed.heads.push((RunId(1), 7, Hash([1; 32])));
        let first = next(&unsealed, 5, &signer).unwrap();
        assert_eq!((first.number, first.upto), (1, upto));
        let seal = Seal::parse(&first.text).unwrap();
        assert_eq!((seal.prev, seal.leaves, seal.hash()), (START, 1, first.hash));
        unsealed.last = Some((1, first.hash));
        let second = Seal::parse(&next(&unsealed, 6, &signer).unwrap().text).unwrap();
        assert_eq!((second.number, second.prev), (2, first.hash));
    }
}
