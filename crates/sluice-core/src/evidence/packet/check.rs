//! The verification of a packet.

use super::{Content, Packet, PacketError, PacketEvent};
use crate::evidence::key::PublicKey;
use crate::evidence::merkle;
use crate::evidence::verify::pinned;
use crate::hash::Hash;
use crate::journal::chain::{Chain, Link, START, commitment};
use crate::journal::wire::{CommitmentKind, RawEvent};
use serde_json::Value;
use std::collections::BTreeMap;

/// Whether a packet is complete without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// The packet must contain the value.
    Must,
    /// The value may be missing: the store may not have kept the policy set.
    May,
}

impl Packet {
    /// Verifies that everything in the packet was sealed. Without keys, the key that the
    /// seal names is trusted: that detects changes but does not prove which process sealed.
    /// Returns the policy sets that decisions name and the packet lacks.
    pub fn verify(&self, keys: &[PublicKey]) -> Result<Vec<Hash>, PacketError> {
        let believed = keys.is_empty() || keys.contains(&self.seal.key);
        if !believed || !self.seal.is_signed() {
            return Err(PacketError::Unsigned);
        }
        self.verify_chain()?;
        let head = self.head().ok_or(PacketError::NotUnderSeal)?;
        let leaf = merkle::leaf(&head.bytes());
        let root = merkle::climb(leaf, self.index, self.seal.leaves, &self.path);
        if root != Some(self.seal.root) {
            return Err(PacketError::NotUnderSeal);
        }
        self.verify_values()
    }

    fn verify_chain(&self) -> Result<(), PacketError> {
        let first = self.events.first().ok_or(PacketError::NotUnderSeal)?;
        let mut link = Link { run: self.run, next: first.id, tip: START };
        let mut hashes = Chain::new(&mut link);
        for (id, event) in (first.id..).zip(&self.events) {
            let hash = hashes.add(&event.kind, event.at_ms, event.commitment());
            if event.id != id || hash != event.hash {
                return Err(PacketError::Event(id));
            }
        }
        Ok(())
    }

    fn verify_values(&self) -> Result<Vec<Hash>, PacketError> {
        let wanted = self.references();
        for (hash, value) in &self.values {
            if Hash::of(value.as_bytes()) != *hash || !wanted.contains_key(hash) {
                return Err(PacketError::Value(*hash));
            }
        }
        let mut lacking = Vec::new();
        for (hash, need) in wanted {
            match need {
                _ if self.values.contains_key(&hash) => {}
                Need::Must => return Err(PacketError::Missing(hash)),
                Need::May => lacking.push(hash),
            }
        }
        Ok(lacking)
    }

    /// Every hash that the events refer to.
    pub(super) fn references(&self) -> BTreeMap<Hash, Need> {
        let mut all = BTreeMap::new();
        for event in &self.events {
            let Content::Kept { salt, payload, blobs } = &event.content else { continue };
            let moved: BTreeMap<String, String> =
                blobs.as_ref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            let (kind, commitment_kind) = (event.kind.as_str(), CommitmentKind::Salt(*salt));
            let raw = RawEvent { kind, commitment_kind, payload, blobs: blobs.as_deref() };
            let must = moved.values().filter_map(|text| Hash::parse(text)).chain(pinned(&raw));
            all.extend(must.map(|hash| (hash, Need::Must)));
            for hash in policies(event, payload) {
                all.entry(hash).or_insert(Need::May);
            }
        }
        all
    }
}

/// The policy sets of a decision.
fn policies(event: &PacketEvent, payload: &str) -> Vec<Hash> {
    if event.kind != "governance.decided" {
        return Vec::new();
    }
    let decision: Value = serde_json::from_str(payload).unwrap_or_default();
    let named = [&decision["policyHash"], &decision["shadow"]["policyHash"]];
    named.into_iter().filter_map(|hash| Hash::parse(hash.as_str()?)).collect()
}

impl PacketEvent {
    fn commitment(&self) -> Hash {
        match &self.content {
            Content::Erased { commitment } => *commitment,
            Content::Kept { salt, payload, blobs } => {
                let blobs = blobs.as_deref().unwrap_or_default();
                commitment(salt, payload.as_bytes(), blobs.as_bytes())
            }
        }
    }
}
