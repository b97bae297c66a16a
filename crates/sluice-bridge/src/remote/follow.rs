//! Event stream of a dispatch that a bridge is executing.
//!
//! Best effort: if the stream cannot be opened or breaks off, the result still arrives.

use super::exchange::RemoteExchange;
use crate::limits::{FOLLOW_BYTES_MAX, FOLLOW_EVENT_BYTES_MAX};
use crate::model::sse::{SseEvent, SseReader, StreamLimits};
use crate::protocol::EVENTS_PATH;
use crate::wire::{Incoming, RequestIndex};
use reqwest::Url;
use serde_json::Value;
use sluice_core::id::RunId;
use sluice_core::port::adapter::{Call, Closed, Emission, ToolEnded};
use std::time::Duration;

/// Limits of a bridge's event stream.
const LIMITS: StreamLimits =
    StreamLimits { line: FOLLOW_EVENT_BYTES_MAX, event: FOLLOW_EVENT_BYTES_MAX };

/// An open event stream of one dispatch.
pub(super) struct EventFollower {
    reply: Box<dyn Incoming>,
}

/// The dispatch to follow.
pub(super) struct FollowedDispatch<'a> {
    pub(super) run: RunId,
    pub(super) index: RequestIndex<'a>,
}

impl EventFollower {
    /// Opens the stream; `None` if the bridge does not offer it.
    pub(super) async fn open(
        exchange: &RemoteExchange<'_>,
        base: &str,
        of: FollowedDispatch<'_>,
        patience: Duration,
    ) -> Option<EventFollower> {
        let number = of.index.dispatch_no.to_string();
        let run = of.run.to_string();
        let query = [("run_id", &*run), ("step_id", of.index.step), ("dispatch_no", &*number)];
        let url = Url::parse_with_params(&format!("{base}{EVENTS_PATH}"), query).ok()?;
        let reply = exchange.open(of.index, url.as_str(), patience, FOLLOW_BYTES_MAX).await?;
        Some(EventFollower { reply })
    }

    /// Passes events on until the stream or the call ends.
    pub(super) async fn forward(mut self, call: &dyn Call) {
        let mut reader = SseReader::within(LIMITS);
        while let Ok(Some(chunk)) = self.reply.chunk().await {
            let Ok(events) = reader.push(&chunk) else { return };
            for emission in events.iter().filter_map(emission) {
                if let Err(Closed) = call.emit(emission).await {
                    return;
                }
            }
        }
    }
}

/// What the engine learns from an event, if anything.
fn emission(event: &SseEvent) -> Option<Emission> {
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
            content: serde_json::from_value(data["content"].clone()).ok(),
        })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_events_are_forwarded_and_unknown_ones_ignored() {
        let stream = ": beat\n\nevent: assistant.text\ndata: {\"text\":\"a\\nü\"}\n\n\
            event: exec.progress\ndata: {\"log\":\"l\"}\n\nevent: odd\ndata: {}\n\n\
            event: assistant.text\ndata: rubbish\n\nevent: exec.progress\ndata: {\"state\":\"x\"}\n\n";
        let events = SseReader::within(LIMITS).push(stream.as_bytes()).expect("it is a stream");
        let emissions: Vec<Emission> = events.iter().filter_map(emission).collect();
        let expected = [Emission::Text("a\nü".to_owned()), Emission::Log("l".to_owned())];
        assert_eq!(emissions, expected);
    }
}
