//! The JSON form of packets.

use super::{Content, Packet, PacketError, PacketEvent};
use crate::canonical;
use crate::evidence::seal::Seal;
use crate::hash::Hash;
use crate::hex;
use crate::id::RunId;
use crate::limits::PACKET_BYTES_MAX;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const FORMAT: &str = "sluice/packet/1";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PacketJson {
    format: String,
    run: String,
    events: Vec<Event>,
    values: BTreeMap<String, String>,
    seal: String,
    proof: Proof,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Proof {
    index: u64,
    path: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    id: u64,
    at: u64,
    #[serde(rename = "type")]
    kind: String,
    hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    salt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blobs: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commitment: Option<String>,
}

impl Packet {
    /// The packet as one line of canonical JSON.
    pub fn text(&self) -> String {
        let values = self.values.iter().map(|(hash, value)| (hash.to_string(), value.clone()));
        canonical::to_string(&PacketJson {
            format: FORMAT.to_owned(),
            run: self.run.to_string(),
            events: self.events.iter().map(written).collect(),
            values: values.collect(),
            seal: self.seal.text(),
            proof: Proof {
                index: self.index,
                path: self.path.iter().map(Hash::to_string).collect(),
            },
        })
    }

    /// Parses exactly what [`text`](Packet::text) writes, with an optional newline at the
    /// end.
    pub fn parse(text: &str) -> Result<Packet, PacketError> {
        if text.len() > PACKET_BYTES_MAX {
            return Err(PacketError::TooLong);
        }
        let text = text.strip_suffix('\n').unwrap_or(text);
        let malformed = |what: &str| PacketError::Malformed(what.to_owned());
        let written: PacketJson = serde_json::from_str(text)
            .map_err(|error| PacketError::Malformed(error.to_string()))?;
        if written.format != FORMAT {
            return Err(malformed("the format is unknown"));
        }
        let hash =
            |text: &String| Hash::parse(text).ok_or_else(|| malformed("a hash is not valid"));
        let run = RunId::parse(&written.run).ok_or_else(|| malformed("the run id is not valid"))?;
        let seal = Seal::parse(&written.seal).ok_or_else(|| malformed("the seal is not valid"))?;
        let events = written.events.into_iter().map(read).collect::<Option<Vec<_>>>();
        let values = written.values.iter().map(|(name, text)| Ok((hash(name)?, text.clone())));
        let packet = Packet {
            run,
            events: events.ok_or_else(|| malformed("an event is not valid"))?,
            values: values.collect::<Result<_, _>>()?,
            seal,
            index: written.proof.index,
            path: written.proof.path.iter().map(hash).collect::<Result<_, _>>()?,
        };
        if packet.text() != text {
            return Err(malformed("it is not in canonical form"));
        }
        Ok(packet)
    }
}

fn written(event: &PacketEvent) -> Event {
    let (salt, payload, blobs, commitment) = match &event.content {
        Content::Kept { salt, payload, blobs } => {
            (Some(hex::to_string(salt)), Some(payload.clone()), blobs.clone(), None)
        }
        Content::Erased { commitment } => (None, None, None, Some(commitment.to_string())),
    };
    let (id, at, kind, hash) = (event.id, event.at_ms, event.kind.clone(), event.hash.to_string());
    Event { id, at, kind, hash, salt, payload, blobs, commitment }
}

fn read(event: Event) -> Option<PacketEvent> {
    let content = match (event.salt, event.payload, event.commitment) {
        (Some(salt), Some(payload), None) => {
            Content::Kept { salt: hex::parse(&salt)?, payload, blobs: event.blobs }
        }
        (None, None, Some(committed)) if event.blobs.is_none() => {
            Content::Erased { commitment: Hash::parse(&committed)? }
        }
        _ => return None,
    };
    let hash = Hash::parse(&event.hash)?;
    Some(PacketEvent { id: event.id, at_ms: event.at, kind: event.kind, content, hash })
}
