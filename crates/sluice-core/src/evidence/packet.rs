//! A packet: one run with everything needed to verify it, and nothing of other runs.
//!
//! A packet is one line of canonical JSON:
//!
//! - `format`: `sluice/packet/1`;
//! - `run`: the id of the run;
//! - `events`: each with `id`, `at`, `type`, `hash`, and either `salt`, `payload`
//!   and perhaps `blobs` as texts, exactly as they were hashed, or `commitment`
//!   where the payload was erased or elided. They begin with the first that has a hash and
//!   end with the one under the seal;
//! - `values`: what events refer to by hash, each text under its SHA-256: fields
//!   too long for their events, the definition, the policy sets;
//! - `seal`: the line of the newest seal that covers the run;
//! - `proof`: `index` and `path` of the run's head in the seal's tree.
//!
//! INVARIANT: the seal's signature covers every byte, through hashes, or the packet is
//! rejected. The remainder of an erased payload is covered by the audit's hashes only, so a
//! packet does not contain it.

mod check;
mod json;
#[cfg(test)]
mod tests;

use super::leaf::{self, Leaf, LeafOwner};
use super::merkle;
use super::seal::Seal;
use crate::hash::Hash;
use crate::id::RunId;
use crate::journal::chain::Salt;
use crate::journal::wire::{self, CommitmentKind};
use crate::port::ledger::SealRow;
use crate::port::store::Frame;
use std::collections::{BTreeMap, BTreeSet};

/// The packet of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// The run whose evidence this is.
    pub run: RunId,
    /// The events up to the one that the seal covers.
    pub events: Vec<PacketEvent>,
    /// The values that the events refer to by hash.
    pub values: BTreeMap<Hash, String>,
    /// The newest seal that covers the run.
    pub seal: Seal,
    /// The index of the run's head among the seal's leaves.
    pub index: u64,
    /// The inclusion proof of the head.
    pub path: Vec<Hash>,
}

/// A journalled event with its payload, or with the commitment to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketEvent {
    /// Its id in the journal.
    pub id: u64,
    /// The time of the event.
    pub at_ms: u64,
    /// The event's name.
    pub kind: String,
    /// Its payload, or the commitment to it.
    pub content: Content,
    /// SHA-256 of the event, linked to the event before it.
    pub hash: Hash,
}

/// The payload of an event, if it was not erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The payload is in the packet.
    Kept {
        /// The salt of the commitment.
        salt: Salt,
        /// The payload, as it was hashed.
        payload: String,
        /// The hashes of values that were moved out of the payload, as they were
        /// hashed.
        blobs: Option<String>,
    },
    /// The payload was erased or elided.
    Erased {
        /// The commitment to the payload.
        commitment: Hash,
    },
}

/// Why a packet cannot be made, or is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// The text is not a packet.
    #[error("not a packet: {0}")]
    Malformed(String),
    /// The text is too long for a packet.
    #[error("the packet is longer than {} bytes", crate::limits::PACKET_BYTES_MAX)]
    TooLong,
    /// The seal does not cover the run.
    #[error("the seal does not cover the run")]
    NotCovered,
    /// No trusted key signed the seal.
    #[error("the seal is not signed by a trusted key")]
    Unsigned,
    /// An event differs from the hashed one, or is missing.
    #[error("event {0} does not match its hash")]
    Event(u64),
    /// The seal does not cover the run's last event.
    #[error("the seal does not cover the run's last event")]
    NotUnderSeal,
    /// A value does not match its hash.
    #[error("value {0} does not match its hash")]
    Value(Hash),
    /// A value that events refer to is missing.
    #[error("value {0} is missing")]
    Missing(Hash),
}

impl Packet {
    /// Builds a packet from a run's frames, starting with the first, a seal that covers the
    /// run, and the values that the events refer to, which `value` returns.
    pub fn gather(
        run: RunId,
        frames: &[Frame],
        row: &SealRow,
        mut value: impl FnMut(Hash) -> Option<String>,
    ) -> Result<Packet, PacketError> {
        let malformed = |what: &str| PacketError::Malformed(what.to_owned());
        let seal = Seal::parse(&row.text).ok_or_else(|| malformed("the seal is not valid"))?;
        let leaves =
            leaf::decode(&row.leaves).ok_or_else(|| malformed("the leaves are not valid"))?;
        let index = leaves.iter().position(|leaf| leaf.of == LeafOwner::Run(run));
        let index = index.ok_or(PacketError::NotCovered)?;
        let path = merkle::proof(&leaf::hashes(&leaves), index).ok_or(PacketError::NotCovered)?;
        let mut events = Vec::new();
        for frame in frames {
            events_of(frame, leaves[index].number, &mut events)?;
        }
        let index = index as u64;
        let mut packet = Packet { run, events, values: BTreeMap::new(), seal, index, path };
        let wanted: BTreeSet<Hash> = packet.references().into_keys().collect();
        let found = wanted.into_iter().filter_map(|hash| Some((hash, value(hash)?)));
        packet.values = found.collect();
        Ok(packet)
    }

    /// The head that the seal must cover.
    fn head(&self) -> Option<Leaf> {
        let last = self.events.last()?;
        Some(Leaf::run(self.run, last.id, last.hash))
    }
}

/// The hashed events of a frame up to `upto`.
fn events_of(frame: &Frame, upto: u64, events: &mut Vec<PacketEvent>) -> Result<(), PacketError> {
    let raw = wire::whole(frame).map_err(|error| PacketError::Malformed(error.to_string()))?;
    if frame.chain.is_empty() {
        return Ok(());
    }
    let (hashes, _) = frame.chain.as_chunks::<32>();
    for ((id, event), hash) in (frame.first..=upto).zip(&raw.events).zip(hashes) {
        let content = match event.commitment_kind {
            CommitmentKind::Salt(salt) => Content::Kept {
                salt,
                payload: event.payload.to_owned(),
                blobs: event.blobs.map(str::to_owned),
            },
            CommitmentKind::Erased(commitment) | CommitmentKind::Elided(commitment) => {
                Content::Erased { commitment }
            }
            CommitmentKind::None | CommitmentKind::ErasedNone | CommitmentKind::StandIn => {
                return Err(PacketError::Event(id));
            }
        };
        let (at_ms, kind, hash) = (raw.at_ms, event.kind.to_owned(), Hash(*hash));
        events.push(PacketEvent { id, at_ms, kind, content, hash });
    }
    Ok(())
}
