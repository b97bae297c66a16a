//! Facts: the entries of the audit, and events of journals that belong to it.

use serde_json::{Value, json};
use sluice_core::evidence::audit::{self, Written};
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::journal::envelope::timestamp;
use sluice_core::journal::wire;
use sluice_core::port::ledger::Recorded;
use sluice_core::port::store::Frame;

/// A line of the audit.
#[derive(Debug, Clone)]
pub struct Fact {
    /// When it happened.
    pub at_ms: u64,
    /// `governance`, `execution`, `lifecycle`, …
    pub category: String,
    /// Type of the fact, such as `run_started`.
    pub what: String,
    /// The principal that caused it.
    pub actor: Option<String>,
    /// Type and id of the resource.
    pub resource: (String, String),
    /// Id and hash of the event.
    pub event: Option<(u64, Option<Hash>)>,
    /// Id of the step.
    pub step: Option<String>,
    /// Further details.
    pub detail: Value,
}

impl Fact {
    /// The fact of an audit entry; `None` if the entry cannot be read.
    pub(crate) fn of_entry(row: &Recorded) -> Option<Fact> {
        if !row.is_authentic {
            tracing::error!(writer = %row.writer, seq = row.seq, "an audit entry is not authentic and is left out");
            return None;
        }
        let entry: Value = serde_json::from_str(&row.text).ok()?;
        let word = |name: &str| Some(entry.get(name)?.as_str()?.to_owned());
        Some(Fact {
            at_ms: entry.get("at")?.as_u64()?,
            category: word("category")?,
            what: word("type")?,
            actor: word("actor"),
            resource: (word("resource_type")?, word("resource_id")?),
            event: entry["event"]["event"]
                .as_u64()
                .map(|event| (event, entry["event"]["hash"].as_str().and_then(Hash::parse))),
            step: None,
            detail: entry["detail"].clone(),
        })
    }

    /// The facts of a frame that come after an event.
    pub(crate) fn of_frame(run: RunId, frame: &Frame, after: u64) -> Vec<Fact> {
        let Ok(raw) = wire::raw(&frame.body) else { return Vec::new() };
        let (hashes, _) = frame.chain.as_chunks::<32>();
        let mut facts = Vec::new();
        for (place, (id, event)) in (frame.first..).zip(&raw.events).enumerate() {
            let Some((category, what)) = audit::fact(event.kind) else { continue };
            if id <= after {
                continue;
            }
            let payload = read(event);
            let by = payload.get("by").or_else(|| payload.get("initiator"));
            let fact = Fact {
                at_ms: raw.at_ms,
                category: category.to_owned(),
                what: what.to_owned(),
                actor: by.and_then(Value::as_str).map(str::to_owned),
                resource: ("run".to_owned(), run.to_string()),
                event: Some((id, hashes.get(place).map(|hash| Hash(*hash)))),
                step: payload.get("nodeId").and_then(Value::as_str).map(str::to_owned),
                detail: Value::Null,
            };
            let implied = implied(event, &payload, &raw.events[place + 1..]);
            let also = implied.into_iter().map(|one| Fact {
                category: one.category.to_owned(),
                what: one.what.to_owned(),
                detail: one.detail,
                ..fact.clone()
            });
            let also: Vec<Fact> = also.collect();
            facts.push(fact);
            facts.extend(also);
        }
        facts
    }

    /// Whether it belongs to one of these categories; true if there are none.
    pub fn is_of(&self, categories: &[String]) -> bool {
        categories.is_empty() || categories.contains(&self.category)
    }

    /// The fact as a JSON object.
    pub fn object(&self) -> Value {
        let (kind, id) = &self.resource;
        let (event, hash) = self.event.unzip();
        json!({
            "at": timestamp(self.at_ms),
            "category": self.category,
            "type": self.what,
            "actor": self.actor,
            "resource_type": kind,
            "resource_id": id,
            "event_id": event,
            "hash": hash.flatten().map(|hash| hash.to_string()),
            "step": self.step,
            "detail": self.detail,
        })
    }
}

/// The payload of an event; null if it was erased.
fn read(event: &wire::RawEvent<'_>) -> Value {
    serde_json::from_str(event.payload).unwrap_or_default()
}

/// Facts that follow from a decision and the next event of its step.
fn implied(
    event: &wire::RawEvent<'_>,
    payload: &Value,
    later: &[wire::RawEvent<'_>],
) -> Vec<audit::Implied> {
    if payload["disposition"].is_null() {
        return Vec::new();
    }
    let same_step =
        |(_, other): &(&wire::RawEvent<'_>, Value)| other["nodeId"] == payload["nodeId"];
    let next = later.iter().map(|event| (event, read(event))).find(same_step);
    let next = next.as_ref().map(|(event, payload)| Written { kind: event.kind, payload });
    audit::implied(Written { kind: event.kind, payload }, next)
}
