//! Event stream of a dispatch that a bridge is executing.
//!
//! Best effort: if the stream cannot be opened or breaks off, the result still arrives.

use super::exchange::Exchange;
use crate::limits::{FOLLOW_BYTES_MAX, FOLLOW_EVENT_BYTES_MAX};
use crate::model::sse::{Bounds, Event, Reader};
use crate::protocol::EVENTS_PATH;
use crate::wire::{Incoming, Place};
use reqwest::Url;
use serde_json::Value;
use sluice_core::port::adapter::{Call, Closed, Emission, ToolEnded};
use sluice_core::run::id::RunId;
use std::time::Duration;

/// Limits of a bridge's event stream.
const BOUNDS: Bounds = Bounds { line: FOLLOW_EVENT_BYTES_MAX, event: FOLLOW_EVENT_BYTES_MAX };

/// An open event stream of one dispatch.
pub(super) struct Follow {
    reply: Box<dyn Incoming>,
}

/// The dispatch to follow.
pub(super) struct Followed<'a> {
    pub(super) run: RunId,
    pub(super) place: Place<'a>,
}

impl Follow {
    /// Opens the stream; `None` if the bridge does not offer it.
    pub(super) async fn open(
        exchange: &Exchange<'_>,
        base: &str,
        of: Followed<'_>,
        patience: Duration,
    ) -> Option<Follow> {
        let number = of.place.dispatch_no.to_string();
        let run = of.run.to_string();
        let whose = [("run_id", &*run), ("step_id", of.place.step), ("dispatch_no", &*number)];
        let url = Url::parse_with_params(&format!("{base}{EVENTS_PATH}"), whose).ok()?;
        let reply = exchange.open(of.place, url.as_str(), patience, FOLLOW_BYTES_MAX).await?;
        Some(Follow { reply })
    }

    /// Passes events on until the stream or the call ends.
    pub(super) async fn pass_on(mut self, call: &dyn Call) {
        let mut reader = Reader::within(BOUNDS);
        while let Ok(Some(chunk)) = self.reply.chunk().await {
            let Ok(events) = reader.take(&chunk) else { return };
            for emission in events.iter().filter_map(emission) {
                if let Err(Closed) = call.emit(emission).await {
                    return;
                }
            }
        }
    }
}

/// What the engine learns from an event, if anything.
fn emission(event: &Event) -> Option<Emission> {
    let data: Value = serde_json::from_str(&event.data).ok()?;
    let text = |field: &str| data[field].as_str().map(str::to_owned);
    match event.name.as_str() {
        "assistant.text" => text("text").map(Emission::Text),
        "exec.progress" => match (text("log"), text("url"), text("mime")) {
            (Some(line), ..) => Some(Emission::Log(line)),
            (None, Some(url), Some(mime)) => Some(Emission::Media { url, mime }),
            _ => None,
        },
        "tool.completed" => Some(Emission::ToolEnded(ToolEnded {
            id: text("call_id")?,
            tool: text("tool")?,
            failed: data["failed"].as_bool().unwrap_or(false),
            bytes: data["bytes"].as_u64().unwrap_or(0),
            duration_ms: data["duration_ms"].as_u64().unwrap_or(0),
        })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_bridge_tells_is_passed_on_and_what_is_not_known_is_not() {
        let stream = ": beat\n\nevent: assistant.text\ndata: {\"text\":\"a\\nü\"}\n\n\
            event: exec.progress\ndata: {\"log\":\"l\"}\n\nevent: odd\ndata: {}\n\n\
            event: assistant.text\ndata: rubbish\n\nevent: exec.progress\ndata: {\"state\":\"x\"}\n\n";
        let events = Reader::within(BOUNDS).take(stream.as_bytes()).expect("it is a stream");
        let told: Vec<Emission> = events.iter().filter_map(emission).collect();
        let expected = [Emission::Text("a\nü".to_owned()), Emission::Log("l".to_owned())];
        assert_eq!(told, expected);
    }
}
