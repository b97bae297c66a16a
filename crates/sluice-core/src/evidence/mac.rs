//! Message authentication codes over what a store holds.
//!
//! Hashes show that something changed; they do not show who wrote it, since any
//! process can compute them. A MAC can be made only with the key, and the key is
//! derived from the secret that signs seals, which no database ever holds. A
//! process that writes to the store without the key cannot add, change or move a
//! row that a process with the key would use.
//!
//! Each thing has a tag of its own, and every field of variable size is preceded
//! by its length, so that no two things are authenticated by the same bytes.

use crate::id::RunId;
use crate::port::memo::Memo;
use crate::port::slots::Slot;
use crate::port::store::{Append, Hash, Key, Letter, LetterId, NodeId};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What the key is derived with: its only use.
const LABEL: &[u8] = b"sluice/mac/1";

/// The first 16 bytes of an HMAC-SHA256.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mac(pub [u8; 16]);

/// How many bytes the MAC of a frame has.
pub const FRAME_BYTES: usize = 32;

/// The MAC of a frame: 16 bytes over its place and its hashes, which are checked
/// without the body, then 16 bytes over its body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FrameMac(pub [u8; FRAME_BYTES]);

/// Where a frame belongs: what its MAC binds it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramePlace<'a> {
    /// The run.
    pub run: RunId,
    /// The id of its first event.
    pub first: u64,
    /// How many events it holds.
    pub count: u32,
    /// The hash of each event, 32 bytes each.
    pub chain: &'a [u8],
}

/// The key of MACs. Both states of HMAC are computed once, so that the MAC of a
/// short text takes two or three compressions and no allocation.
#[derive(Clone)]
pub struct MacKey(Hmac<Sha256>);

impl MacKey {
    /// The key that belongs to the secret half of a seal's key.
    pub fn derive(secret: &[u8; 32]) -> MacKey {
        let mut derive = keyed(secret);
        derive.update(LABEL);
        MacKey(keyed(&derive.finalize().into_bytes().into()))
    }

    fn begin(&self, tag: u8) -> Making {
        let mut hmac = self.0.clone();
        hmac.update(&[tag]);
        Making(hmac)
    }

    /// What a store is marked with once everything in it has MACs of this key.
    pub fn mark(&self) -> Mac {
        self.begin(b'S').end()
    }

    /// Of a frame.
    pub fn frame(&self, place: FramePlace<'_>, body: &[u8]) -> FrameMac {
        let mut mac = [0; FRAME_BYTES];
        mac[..16].copy_from_slice(&self.frame_place(place).0);
        mac[16..].copy_from_slice(&self.frame_body(place, body).0);
        FrameMac(mac)
    }

    /// The first half of a frame's MAC.
    fn frame_place(&self, place: FramePlace<'_>) -> Mac {
        let making = self.begin(b'f').id(place.run.0).number(place.first);
        making.number(u64::from(place.count)).bytes(place.chain).end()
    }

    /// The second half: the body belongs to the hashes it was written with.
    pub fn frame_body(&self, place: FramePlace<'_>, body: &[u8]) -> Mac {
        let making = self.begin(b'b').id(place.run.0).number(place.first);
        making.hash(last_hash(place.chain)).bytes(body).end()
    }

    /// Whether a frame is at its place with its own hashes. Its body is not read.
    pub fn is_placed(&self, place: FramePlace<'_>, mac: &[u8]) -> bool {
        mac.len() == FRAME_BYTES && self.frame_place(place).is(&mac[..16])
    }

    /// Whether a frame is what a process with the key wrote.
    pub fn is_frame(&self, place: FramePlace<'_>, body: &[u8], mac: &[u8]) -> bool {
        self.is_placed(place, mac) && self.frame_body(place, body).is(&mac[16..])
    }

    /// Of a snapshot: of which run, after which event, and what that event's hash is.
    pub fn snapshot(&self, run: RunId, version: u64, last: Hash, body: &[u8]) -> Mac {
        self.begin(b's').id(run.0).number(version).hash(last).bytes(body).end()
    }

    /// Of the snapshot that comes with an append, if one does.
    pub fn snapshot_of(&self, append: &Append) -> Option<Mac> {
        let body = append.snapshot.as_ref()?;
        let version = append.after + u64::from(append.count);
        Some(self.snapshot(append.run, version, last_hash(&append.chain), body))
    }

    /// Of an audit entry. Its hash covers its text.
    pub fn entry(&self, writer: NodeId, seq: u64, hash: Hash) -> Mac {
        self.begin(b'e').id(writer.0).number(seq).hash(hash).end()
    }

    /// Of a version of a registry row; no body where the version removes the row.
    pub fn row(&self, kind: &str, name: &str, epoch: u64, body: Option<&str>) -> Mac {
        let making = self.begin(b'r').bytes(kind.as_bytes()).bytes(name.as_bytes());
        making.number(epoch).some(body.map(str::as_bytes)).end()
    }

    /// Of a message to a run.
    pub fn letter(&self, letter: &Letter) -> Mac {
        let making = self.begin(b'l').id(letter.run.0).bytes(letter.key.as_bytes());
        making.bytes(&letter.body).end()
    }

    /// Of a message that was read: its body is gone, and only a process with the key
    /// takes it away. The process that reads it knows it by its id.
    pub fn read_letter(&self, run: RunId, id: LetterId) -> Mac {
        self.begin(b'L').id(run.0).number(id).end()
    }

    /// Of a caller's idempotency key and the run it stands for.
    pub fn key(&self, name: &str, run: RunId, fingerprint: Hash, expires_at_ms: u64) -> Mac {
        let making = self.begin(b'k').bytes(name.as_bytes()).id(run.0);
        making.hash(fingerprint).number(expires_at_ms).end()
    }

    /// Of the key that comes with an append, if one does.
    pub fn key_of(&self, run: RunId, key: &Key) -> Mac {
        self.key(&key.key, run, key.fingerprint, key.expires_at_ms)
    }

    /// Of a schedule slot.
    pub fn slot(&self, slot: &Slot) -> Mac {
        let making = self.begin(b't').bytes(slot.schedule.as_bytes()).number(slot.slot_ms);
        let making = making.number(slot.count).bytes(slot.fate.as_bytes());
        let making = making.some(slot.why.as_deref().map(str::as_bytes));
        let run = slot.run.map(|run| run.0.to_be_bytes());
        making.some(run.as_ref().map(<[u8; 16]>::as_slice)).number(slot.at_ms).end()
    }

    /// Of a remembered output.
    pub fn memo(&self, memo: &Memo) -> Mac {
        let making = self.begin(b'm').bytes(memo.agent.as_bytes()).id(memo.run.0);
        making.number(memo.at_ms).bytes(&memo.body).end()
    }
}

/// What was found wrong before MACs were made: it gets none, and stays unreadable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Doubts {
    /// Runs.
    pub runs: BTreeSet<RunId>,
    /// Writers of audit entries, each from an entry on.
    pub entries: BTreeMap<NodeId, u64>,
}

/// Says that there is one, and nothing more.
impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey")
    }
}

/// Leaves nothing of the key in freed memory.
impl Drop for MacKey {
    fn drop(&mut self) {
        self.0 = keyed(&[0; 32]);
        std::hint::black_box(&self.0);
    }
}

impl Mac {
    /// Whether these bytes are this MAC. Takes the same time wherever they differ.
    pub fn is(&self, bytes: &[u8]) -> bool {
        let differs = |seen, (one, other): (&u8, &u8)| seen | (one ^ other);
        bytes.len() == self.0.len() && self.0.iter().zip(bytes).fold(0, differs) == 0
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::hex::to_string(&self.0))
    }
}

impl fmt::Debug for FrameMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::hex::to_string(&self.0))
    }
}

/// The hash of the last event of a chain; zero for frames older than hashes.
pub fn last_hash(chain: &[u8]) -> Hash {
    Hash(chain.last_chunk::<32>().copied().unwrap_or_default())
}

fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("a key may have any length")
}

/// A MAC under way.
struct Making(Hmac<Sha256>);

impl Making {
    fn add(mut self, bytes: &[u8]) -> Making {
        self.0.update(bytes);
        self
    }

    fn id(self, id: u128) -> Making {
        self.add(&id.to_be_bytes())
    }

    fn number(self, number: u64) -> Making {
        self.add(&number.to_be_bytes())
    }

    fn hash(self, hash: Hash) -> Making {
        self.add(&hash.0)
    }

    fn bytes(self, bytes: &[u8]) -> Making {
        self.number(bytes.len() as u64).add(bytes)
    }

    fn some(self, bytes: Option<&[u8]>) -> Making {
        match bytes {
            None => self.add(&[0]),
            Some(bytes) => self.add(&[1]).bytes(bytes),
        }
    }

    fn end(self) -> Mac {
        let whole: [u8; 32] = self.0.finalize().into_bytes().into();
        let mut mac = [0; 16];
        mac.copy_from_slice(&whole[..16]);
        Mac(mac)
    }
}

#[cfg(test)]
mod tests;
