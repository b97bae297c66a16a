//! What a bridge tells of a dispatch while it is worked on.
//!
//! Nothing depends on it: where it cannot be had, or breaks off, the result comes
//! all the same.

use super::exchange::Exchange;
use crate::limits::{FOLLOW_BYTES_MAX, FOLLOW_EVENT_BYTES_MAX};
use crate::protocol::EVENTS_PATH;
use crate::wire::{Incoming, Place};
use reqwest::Url;
use serde_json::Value;
use sluice_core::port::adapter::{Call, Closed, Emission, ToolEnded};
use sluice_core::run::id::RunId;
use std::time::Duration;

/// A stream of events of one dispatch.
pub(super) struct Follow {
    reply: Box<dyn Incoming>,
}

/// The dispatch that is followed, with its run.
pub(super) struct Followed<'a> {
    pub(super) run: RunId,
    pub(super) place: Place<'a>,
}

impl Follow {
    /// Begins to follow; none if there is nothing to follow.
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

    /// Passes on what is told, until it ends or nobody listens.
    pub(super) async fn pass_on(mut self, call: &dyn Call) {
        let mut events = Events::default();
        while let Ok(Some(chunk)) = self.reply.chunk().await {
            let Some(told) = events.take(&chunk) else { return };
            for emission in told {
                if let Err(Closed) = call.emit(emission).await {
                    return;
                }
            }
        }
    }
}

/// Events, put together from the parts in which they come.
#[derive(Default)]
struct Events {
    rest: Vec<u8>,
}

impl Events {
    /// What is told by what came so far; none if an event never ends.
    fn take(&mut self, chunk: &[u8]) -> Option<Vec<Emission>> {
        self.rest.extend_from_slice(chunk);
        let mut told = Vec::new();
        let mut from = 0;
        while let Some(length) = self.rest[from..].windows(2).position(|two| two == b"\n\n") {
            told.extend(emission(&self.rest[from..from + length]));
            from += length + 2;
        }
        self.rest.drain(..from);
        (self.rest.len() <= FOLLOW_EVENT_BYTES_MAX).then_some(told)
    }
}

/// What an event says to the engine, if anything.
fn emission(event: &[u8]) -> Option<Emission> {
    let (mut name, mut data) = ("", "");
    for line in std::str::from_utf8(event).ok()?.lines() {
        match line.split_once(':') {
            Some(("event", value)) => name = value.strip_prefix(' ').unwrap_or(value),
            Some(("data", value)) => data = value,
            _ => {}
        }
    }
    let data: Value = serde_json::from_str(data).ok()?;
    let text = |field: &str| data[field].as_str().map(str::to_owned);
    match name {
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
    fn events_are_put_together_from_any_parts() {
        let stream = ": beat\n\nevent: assistant.text\ndata: {\"text\":\"a\\nü\"}\n\n\
            event: exec.progress\ndata: {\"log\":\"l\"}\n\nevent: odd\ndata: {}\n\n\
            event: assistant.text\ndata: rubbish\n\nevent: exec.progress\ndata: {\"state\":\"x\"}\n\n";
        let expected = [Emission::Text("a\nü".to_owned()), Emission::Log("l".to_owned())];
        for size in 1..stream.len() {
            let mut events = Events::default();
            let parts = stream.as_bytes().chunks(size);
            let told: Vec<Emission> = parts.flat_map(|part| events.take(part).unwrap()).collect();
            assert_eq!(told, expected, "in parts of {size}");
        }
        let endless = vec![b'x'; FOLLOW_EVENT_BYTES_MAX + 1];
        assert!(Events::default().take(&endless).is_none());
    }
}
