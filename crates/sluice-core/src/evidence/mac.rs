//! Message authentication codes (MACs) over the contents of a store.
//!
//! Hashes show that something changed, but not which process wrote it, since any process can
//! compute them. Only a process with the key can make a MAC. The key is derived from the secret
//! that signs seals, which no database contains. A process that writes to the store without the
//! key cannot add, change or move a row that Sluice would use.
//!
//! Each type of row has its own tag, and every field of variable size is preceded by its
//! length, so that no two rows are authenticated by the same bytes.

mod registry_head;

pub use registry_head::{RegistryHead, VersionSum};

use crate::hash::Hash;
use crate::id::RunId;
use crate::port::remembered_output::RememberedOutput;
use crate::port::slots::Slot;
use crate::port::store::{Append, Key, MailboxMessage, MessageId, NodeId, ReadMessage};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The label of the key derivation.
const LABEL: &[u8] = b"sluice/mac/1";

/// The first 16 bytes of an HMAC-SHA256.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mac(pub [u8; 16]);

/// The size of a frame's MAC.
pub const FRAME_BYTES: usize = 32;

/// The MAC of a frame: 16 bytes over its position and its hashes, which can be checked without
/// the body, then 16 bytes over its body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FrameMac(pub [u8; FRAME_BYTES]);

/// The position of a frame, to which its MAC binds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramePlace<'a> {
    /// The run whose journal contains the frame.
    pub run: RunId,
    /// The id of its first event.
    pub first: u64,
    /// The number of events in it.
    pub count: u32,
    /// The hash of each event, 32 bytes each.
    pub chain: &'a [u8],
}

/// The MAC key. Both HMAC states are computed once, so that the MAC of a short text takes two
/// or three compressions and no allocation.
#[derive(Clone)]
pub struct MacKey(Hmac<Sha256>);

impl MacKey {
    /// Derives the MAC key from the secret that signs seals.
    pub fn derive(secret: &[u8; 32]) -> MacKey {
        let mut derive = keyed(secret);
        derive.update(LABEL);
        MacKey(keyed(&derive.finalize().into_bytes().into()))
    }

    fn begin(&self, tag: u8) -> MacBuilder {
        let mut hmac = self.0.clone();
        hmac.update(&[tag]);
        MacBuilder(hmac)
    }

    /// The mark of a store in which every row has a MAC of this key.
    pub fn mark(&self) -> Mac {
        self.begin(b'S').end()
    }

    /// Two halves: one over the position, which is checked without the body, and one over
    /// the body.
    pub fn frame(&self, place: FramePlace<'_>, body: &[u8]) -> FrameMac {
        let mut mac = [0; FRAME_BYTES];
        mac[..16].copy_from_slice(&self.frame_place(place).0);
        mac[16..].copy_from_slice(&self.frame_body(place, body).0);
        FrameMac(mac)
    }

    /// The first half of a frame's MAC, over its position.
    fn frame_place(&self, place: FramePlace<'_>) -> Mac {
        let builder = self.begin(b'f').id(place.run.0).number(place.first);
        builder.number(u64::from(place.count)).bytes(place.chain).end()
    }

    /// The second half of a frame's MAC: it binds the body to its hashes.
    pub fn frame_body(&self, place: FramePlace<'_>, body: &[u8]) -> Mac {
        let builder = self.begin(b'b').id(place.run.0).number(place.first);
        builder.hash(last_hash(place.chain)).bytes(body).end()
    }

    /// Checks the position and the hashes of a frame without reading its body.
    pub fn is_placed(&self, place: FramePlace<'_>, mac: &[u8]) -> bool {
        mac.len() == FRAME_BYTES && self.frame_place(place).is(&mac[..16])
    }

    /// Checks a whole frame.
    pub fn is_frame(&self, place: FramePlace<'_>, body: &[u8], mac: &[u8]) -> bool {
        self.is_placed(place, mac) && self.frame_body(place, body).is(&mac[16..])
    }

    /// The MAC of a snapshot: its run, its version, and the hash of the event of that
    /// version.
    pub fn snapshot(&self, run: RunId, version: u64, last: Hash, body: &[u8]) -> Mac {
        self.begin(b's').id(run.0).number(version).hash(last).bytes(body).end()
    }

    /// The MAC of an append's snapshot, if it has one.
    pub fn snapshot_of(&self, append: &Append) -> Option<Mac> {
        let body = append.snapshot.as_ref()?;
        let version = append.after + u64::from(append.count);
        Some(self.snapshot(append.run, version, last_hash(&append.chain), body))
    }

    /// The MAC of an audit entry. The hash covers its text.
    pub fn entry(&self, writer: NodeId, seq: u64, hash: Hash) -> Mac {
        self.begin(b'e').id(writer.0).number(seq).hash(hash).end()
    }

    /// The MAC of a version of a registry row; `body` is `None` if the version removes the
    /// row.
    pub fn row(&self, kind: &str, name: &str, epoch: u64, body: Option<&str>) -> Mac {
        let builder = self.begin(b'r').bytes(kind.as_bytes()).bytes(name.as_bytes());
        builder.number(epoch).optional(body.map(str::as_bytes)).end()
    }

    /// The MAC of a message to a run.
    pub fn message(&self, message: &MailboxMessage) -> Mac {
        let builder = self.begin(b'l').id(message.run.0).bytes(message.key.as_bytes());
        builder.bytes(&message.body).end()
    }

    /// The MAC of a message that was read: its body is deleted, its position and its key stay.
    pub fn read_message(&self, run: RunId, read: &ReadMessage) -> Mac {
        self.begin(b'R').id(run.0).number(read.id).bytes(read.key.as_bytes()).end()
    }

    /// The MAC that earlier versions of Sluice wrote for a message that was read, without its
    /// key. It is accepted and never written.
    pub fn read_message_without_key(&self, run: RunId, id: MessageId) -> Mac {
        self.begin(b'L').id(run.0).number(id).end()
    }

    /// The MAC of an idempotency key and its run.
    pub fn key(&self, name: &str, run: RunId, fingerprint: Hash, expires_at_ms: u64) -> Mac {
        let builder = self.begin(b'k').bytes(name.as_bytes()).id(run.0);
        builder.hash(fingerprint).number(expires_at_ms).end()
    }

    /// The MAC of an append's idempotency key.
    pub fn key_of(&self, run: RunId, key: &Key) -> Mac {
        self.key(&key.key, run, key.fingerprint, key.expires_at_ms)
    }

    /// The MAC of a schedule slot.
    pub fn slot(&self, slot: &Slot) -> Mac {
        let builder = self.begin(b't').bytes(slot.schedule.as_bytes()).number(slot.slot_ms);
        let builder = builder.number(slot.count).bytes(slot.outcome.as_bytes());
        let builder = builder.optional(slot.why.as_deref().map(str::as_bytes));
        let run = slot.run.map(|run| run.0.to_be_bytes());
        builder.optional(run.as_ref().map(<[u8; 16]>::as_slice)).number(slot.at_ms).end()
    }

    /// Covers agent, run, time and body.
    pub fn remembered_output(&self, remembered_output: &RememberedOutput) -> Mac {
        let builder =
            self.begin(b'm').bytes(remembered_output.agent.as_bytes()).id(remembered_output.run.0);
        builder.number(remembered_output.at_ms).bytes(&remembered_output.body).end()
    }
}

/// Data that was already invalid when MACs were introduced. It gets no MAC and stays
/// unreadable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Doubts {
    /// Invalid runs.
    pub runs: BTreeSet<RunId>,
    /// Writers of invalid audit entries, each with its first invalid `seq`.
    pub entries: BTreeMap<NodeId, u64>,
}

/// Prints nothing of the key.
impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey")
    }
}

/// Overwrites the key before its memory is freed.
impl Drop for MacKey {
    fn drop(&mut self) {
        self.0 = keyed(&[0; 32]);
        std::hint::black_box(&self.0);
    }
}

impl Mac {
    /// Compares in constant time.
    pub fn is(&self, bytes: &[u8]) -> bool {
        let differs = |seen, (one, other): (&u8, &u8)| seen | (one ^ other);
        bytes.len() == self.0.len() && self.0.iter().zip(bytes).fold(0, differs) == 0
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::hex::to_string(&self.0))
    }
}

impl fmt::Debug for FrameMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::hex::to_string(&self.0))
    }
}

/// The last hash of a chain; zeros for frames of versions without hashes.
pub fn last_hash(chain: &[u8]) -> Hash {
    Hash(chain.last_chunk::<32>().copied().unwrap_or_default())
}

fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("a key may have any length")
}

/// A MAC that is being computed.
struct MacBuilder(Hmac<Sha256>);

impl MacBuilder {
    fn add(mut self, bytes: &[u8]) -> MacBuilder {
        self.0.update(bytes);
        self
    }

    fn id(self, id: u128) -> MacBuilder {
        self.add(&id.to_be_bytes())
    }

    fn number(self, number: u64) -> MacBuilder {
        self.add(&number.to_be_bytes())
    }

    fn hash(self, hash: Hash) -> MacBuilder {
        self.add(&hash.0)
    }

    fn bytes(self, bytes: &[u8]) -> MacBuilder {
        self.number(bytes.len() as u64).add(bytes)
    }

    fn optional(self, bytes: Option<&[u8]>) -> MacBuilder {
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
