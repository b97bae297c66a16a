//! The body of a delivery: an event as a CloudEvent in JSON.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::journal::envelope::{Shown, timestamp};
use std::borrow::Cow;

/// The media type of a CloudEvent.
pub(crate) const MEDIA_TYPE: &str = "application/cloudevents+json";

/// A CloudEvent 1.0 in structured mode.
#[derive(Serialize)]
struct CloudEvent<'a> {
    specversion: &'static str,
    id: String,
    source: String,
    r#type: String,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<Cow<'a, str>>,
    datacontenttype: &'static str,
    data: &'a RawValue,
}

/// The part of an event that names its step.
#[derive(Deserialize)]
struct EventStep<'a> {
    #[serde(borrow)]
    payload: Payload<'a>,
}

#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(borrow, default, rename = "nodeId")]
    node: Option<Cow<'a, str>>,
}

/// The body for an event of a run. The same event always gives the same bytes.
pub fn body(organisation: &str, run: RunId, shown: &Shown) -> Vec<u8> {
    let envelope: Option<EventStep<'_>> = serde_json::from_str(&shown.json).ok();
    let event = CloudEvent {
        specversion: "1.0",
        id: format!("{run}:{}", shown.id),
        source: format!("/organisations/{organisation}/runs/{run}"),
        r#type: format!("dev.sluice.{}", shown.kind),
        time: timestamp(shown.at_ms),
        subject: envelope.and_then(|envelope| envelope.payload.node),
        datacontenttype: "application/json",
        data: serde_json::from_str(&shown.json).expect("an envelope is JSON"),
    };
    serde_json::to_vec(&event).expect("plain data always serialises")
}

/// The id of a delivery: the same for each attempt on every node.
pub(crate) fn delivery_id(webhook: &str, run: RunId, event: u64) -> String {
    let hash = Hash::of(format!("{webhook}\n{run}\n{event}").as_bytes()).to_string();
    format!("dlv_{}", &hash[..32])
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn an_event_is_a_cloud_event() {
        let json = r#"{"eventId":3,"payload":{"runId":"r","nodeId":"a \"b\"","x":1.50}}"#;
        let (kind, json) = ("node.completed".to_owned(), json.to_owned());
        let shown = Shown { id: 3, kind, at_ms: 1_700_000_000_123, json };
        let sent = String::from_utf8(body("acme", RunId(7), &shown)).expect("it is text");
        expect![[r#"{"specversion":"1.0","id":"run_00000000000000000000000000000007:3","source":"/organisations/acme/runs/run_00000000000000000000000000000007","type":"dev.sluice.node.completed","time":"2023-11-14T22:13:20.123Z","subject":"a \"b\"","datacontenttype":"application/json","data":{"eventId":3,"payload":{"runId":"r","nodeId":"a \"b\"","x":1.50}}}"#]].assert_eq(&sent);
        let json = r#"{"eventId":1,"payload":{"runId":"r"}}"#.to_owned();
        let shown = Shown { id: 1, kind: "run.started".to_owned(), at_ms: 0, json };
        let sent = String::from_utf8(body("acme", RunId(7), &shown)).expect("it is text");
        assert!(!sent.contains("subject"), "{sent}");
    }

    #[test]
    fn a_delivery_has_one_id() {
        let name = delivery_id("pager", RunId(7), 3);
        assert_eq!((name.len(), &name[..4]), (36, "dlv_"));
        assert_eq!(name, delivery_id("pager", RunId(7), 3));
        assert_ne!(name, delivery_id("pager", RunId(7), 4));
        assert_ne!(name, delivery_id("other", RunId(7), 3));
    }
}
