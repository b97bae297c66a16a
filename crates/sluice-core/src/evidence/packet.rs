//! One run with everything needed to check it, and nothing of other runs.
//!
//! A packet is one line of canonical JSON:
//!
//! - `format`: `sluice/packet/1`;
//! - `run`: its id;
//! - `events`: each with `id`, `at`, `type`, `hash`, and either `salt`, `payload`
//!   and perhaps `blobs` as texts, exactly as they were hashed, or `commitment`
//!   where the payload was erased or elided. They begin with the first that has a hash and
//!   end with the one under the seal;
//! - `values`: what events refer to by hash, each text under its SHA-256: fields
//!   too long for their events, the definition, the policy sets;
//! - `seal`: the line of the newest seal that covers the run;
//! - `proof`: `index` and `path` of the run's head in the seal's tree.
//!
//! INVARIANT: every byte is under the seal's signature, by way of a hash, or the
//! packet is refused. What is left of an erased payload is under the audit's
//! hashes only, so it is not in a packet.

mod check;
mod json;
#[cfg(test)]
mod tests;

use super::event::Salt;
use super::leaf::{self, Leaf, LeafOwner};
use super::merkle;
use super::seal::Seal;
use crate::id::RunId;
use crate::journal::wire::{self, Bond};
use crate::port::ledger::SealRow;
use crate::port::store::{Frame, Hash};
use std::collections::{BTreeMap, BTreeSet};

/// A run's packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// The run.
    pub run: RunId,
    /// Its events up to the one under the seal.
    pub events: Vec<PacketEvent>,
    /// What they refer to.
    pub values: BTreeMap<Hash, String>,
    /// The newest seal that covers the run.
    pub seal: Seal,
    /// The place of the run's head among the seal's leaves.
    pub index: u64,
    /// The hashes beside its way up to the root.
    pub path: Vec<Hash>,
}

/// An event in a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketEvent {
    /// Its place in the journal.
    pub id: u64,
    /// When it happened.
    pub at_ms: u64,
    /// Its name.
    pub kind: String,
    /// What it says.
    pub content: Content,
    /// Its hash.
    pub hash: Hash,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// All of it.
    Kept {
        /// For the commitment.
        salt: Salt,
        /// The payload, as it was hashed.
        payload: String,
        /// The hashes of what was too long for it, as they were hashed.
        blobs: Option<String>,
    },
    /// It was erased or elided.
    Erased {
        /// What committed to it.
        commitment: Hash,
    },
}

/// Why a packet cannot be made, or is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// It is no packet.
    #[error("this is no packet: {0}")]
    Malformed(String),
    /// It is too long to be one.
    #[error("the packet is longer than {} bytes", crate::limits::PACKET_BYTES_MAX)]
    TooLong,
    /// The seal does not cover the run.
    #[error("the seal does not cover the run")]
    NotCovered,
    /// No key that is believed signed the seal.
    #[error("the seal is not signed by a key that is believed")]
    Unsigned,
    /// An event is not what was hashed, or not there.
    #[error("event {0} is not the one that was hashed")]
    Event(u64),
    /// The run's head is not under the seal.
    #[error("the run's last event is not under the seal")]
    NotUnderSeal,
    /// A value is not what events refer to.
    #[error("value {0} is not what the events refer to")]
    Value(Hash),
    /// A value that events refer to is not there.
    #[error("value {0} is missing")]
    Missing(Hash),
}

impl Packet {
    /// Of a run's frames from the first on, a seal that covers it, and what the
    /// events refer to, found by `value`.
    pub fn gather(
        run: RunId,
        frames: &[Frame],
        row: &SealRow,
        mut value: impl FnMut(Hash) -> Option<String>,
    ) -> Result<Packet, PacketError> {
        let malformed = |what: &str| PacketError::Malformed(what.to_owned());
        let seal = Seal::parse(&row.text).ok_or_else(|| malformed("its seal is none"))?;
        let leaves = leaf::decode(&row.leaves).ok_or_else(|| malformed("its leaves are none"))?;
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

/// The events of a frame that have hashes, up to one.
fn events_of(frame: &Frame, upto: u64, events: &mut Vec<PacketEvent>) -> Result<(), PacketError> {
    let raw = wire::whole(frame).map_err(|error| PacketError::Malformed(error.to_string()))?;
    if frame.chain.is_empty() {
        return Ok(());
    }
    let (hashes, _) = frame.chain.as_chunks::<32>();
    for ((id, event), hash) in (frame.first..=upto).zip(&raw.events).zip(hashes) {
        let content = match event.bond {
            Bond::Salt(salt) => Content::Kept {
                salt,
                payload: event.payload.to_owned(),
                blobs: event.blobs.map(str::to_owned),
            },
            Bond::Erased(commitment) | Bond::Elided(commitment) => Content::Erased { commitment },
            Bond::None | Bond::ErasedNone | Bond::Beside => return Err(PacketError::Event(id)),
        };
        let (at_ms, kind, hash) = (raw.at_ms, event.kind.to_owned(), Hash(*hash));
        events.push(PacketEvent { id, at_ms, kind, content, hash });
    }
    Ok(())
}
