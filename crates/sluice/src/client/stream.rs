//! A run's events as they happen: Server-Sent Events, resumed where they broke off.
//!
//! INVARIANT: every event is handed over once and in order, however often the
//! connection breaks: the next one begins after the last id that was seen.

use super::{
    ApiAnswer, ApiProblem, ApiRequest, Client, Response, SERVER_UNREACHABLE, not_sluice, problem,
    read_whole,
};
use reqwest::Method;
use sluice_server::refused::Refused;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// How long a server may be unreachable before the command fails.
const PATIENCE_MS: u64 = 60_000;
/// First wait before a connection is tried again, doubled each time.
const WAIT_MS: u64 = 200;
const WAIT_MS_MAX: u64 = 5000;
/// How long a stream may be silent; the server sends a heartbeat every 15 s.
const SILENCE_MS: u64 = 60_000;
/// Longest line of a stream.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StreamItem {
    /// An event, with its envelope as JSON.
    Event { id: u64, kind: String, json: String },
    /// A range of events that were elided.
    Elided(String),
}

impl Client {
    /// Retries while the server is away, as during a restart.
    pub(crate) async fn get_patiently(&self, path: &[&str]) -> anyhow::Result<ApiAnswer> {
        let (began, mut wait_ms) = (Instant::now(), WAIT_MS);
        loop {
            let error = match self.get(path, &[]).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let away = error.downcast_ref::<Refused>().is_some()
                || error.downcast_ref::<ApiProblem>().is_some_and(ApiProblem::is_temporary);
            if !away || began.elapsed() > Duration::from_millis(PATIENCE_MS) {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            wait_ms = (wait_ms * 2).min(WAIT_MS_MAX);
        }
    }
}

/// The events of one run.
pub(crate) struct EventStream {
    client: Client,
    run: String,
    /// The last event that was handed over.
    after: u64,
    open: Option<Response>,
    parser: SseParser,
    ready: VecDeque<StreamItem>,
    /// Since when the server is unreachable.
    lost: Option<Instant>,
    wait_ms: u64,
}

impl EventStream {
    pub(crate) fn new(client: &Client, run: &str, after: u64) -> EventStream {
        EventStream {
            client: client.clone(),
            run: run.to_owned(),
            after,
            open: None,
            parser: SseParser::default(),
            ready: VecDeque::new(),
            lost: None,
            wait_ms: WAIT_MS,
        }
    }

    /// The next item; none when the stream ended because the run has, or because the
    /// server stops. The next call connects again.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<StreamItem>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                if let StreamItem::Event { id, .. } = &item {
                    if *id <= self.after {
                        continue;
                    }
                    self.after = *id;
                }
                return Ok(Some(item));
            }
            let Some(response) = &mut self.open else {
                self.connect().await?;
                continue;
            };
            let silence = Duration::from_millis(SILENCE_MS);
            match tokio::time::timeout(silence, response.chunk()).await {
                Ok(Ok(Some(chunk))) => {
                    let read = self.parser.feed(&chunk);
                    self.ready.extend(read.ok_or_else(|| not_sluice("a line is too long"))?);
                }
                Ok(Ok(None)) => {
                    self.open = None;
                    self.parser = SseParser::default();
                    return Ok(None);
                }
                // The connection broke: the next one resumes after the last event.
                Ok(Err(_)) | Err(_) => {
                    self.open = None;
                    self.parser = SseParser::default();
                }
            }
        }
    }

    async fn connect(&mut self) -> anyhow::Result<()> {
        match self.try_connect().await {
            Ok(response) => {
                (self.open, self.lost, self.wait_ms) = (Some(response), None, WAIT_MS);
                Ok(())
            }
            Err(ConnectError::Refused(error)) => Err(error),
            Err(ConnectError::Lost(refused)) => {
                let since = *self.lost.get_or_insert_with(Instant::now);
                if since.elapsed() > Duration::from_millis(PATIENCE_MS) {
                    return Err(refused.into());
                }
                tokio::time::sleep(Duration::from_millis(self.wait_ms)).await;
                self.wait_ms = (self.wait_ms * 2).min(WAIT_MS_MAX);
                Ok(())
            }
        }
    }

    async fn try_connect(&self) -> Result<Response, ConnectError> {
        let path = ["runs", &self.run, "events"];
        let (method, after) = (Method::GET, Some(self.after));
        let request = ApiRequest { method, path: &path, query: &[], body: None, after };
        let mut response = self.client.call(request).await.map_err(ConnectError::Lost)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = read_whole(&mut response).await;
        let found = problem(status, &body.map_err(|error| ConnectError::Refused(error.into()))?);
        if found.is_temporary() {
            return Err(ConnectError::Lost(Refused::new(
                SERVER_UNREACHABLE,
                format!("the server refuses to stream events: {}", found.message),
                found.remedy,
            )));
        }
        Err(ConnectError::Refused(found.into()))
    }
}

/// Why there is no stream.
enum ConnectError {
    /// A retry does not help.
    Refused(anyhow::Error),
    /// A retry may succeed.
    Lost(Refused),
}

/// Reads Server-Sent Events from bytes, wherever they are cut.
#[derive(Debug, Default)]
struct SseParser {
    rest: Vec<u8>,
    id: Option<u64>,
    kind: String,
    data: String,
}

impl SseParser {
    /// The items that are complete; none if a line exceeds its limit.
    fn feed(&mut self, chunk: &[u8]) -> Option<Vec<StreamItem>> {
        self.rest.extend_from_slice(chunk);
        let mut sent = Vec::new();
        let mut from = 0;
        while let Some(length) = self.rest[from..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.rest[from..from + length]).into_owned();
            from += length + 1;
            sent.extend(self.line(line.trim_end_matches('\r')));
        }
        self.rest.drain(..from);
        let fits = self.rest.len() <= LINE_BYTES_MAX && self.data.len() <= LINE_BYTES_MAX;
        fits.then_some(sent)
    }

    fn line(&mut self, line: &str) -> Option<StreamItem> {
        if line.is_empty() {
            let (kind, json) = (std::mem::take(&mut self.kind), std::mem::take(&mut self.data));
            return self.id.take().map(|id| StreamItem::Event { id, kind, json });
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => self.id = value.parse().ok(),
            "event" => value.clone_into(&mut self.kind),
            "data" => self.data.push_str(value),
            "" if value.ends_with("were elided") => {
                return Some(StreamItem::Elided(value.to_owned()));
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ": a comment\n\nevent: heartbeat\ndata: {\"type\":\"heartbeat\"}\n\n\
        id: 1\nevent: run.started\ndata: {\"a\":\"é\"}\n\n\
        : 2 to 5 were elided\n\nid: 6\nevent: node.started\ndata: {}\n\n";

    #[test]
    fn frames_are_read_wherever_they_are_cut() {
        let whole = SseParser::default().feed(TEXT.as_bytes()).unwrap();
        assert_eq!(whole.len(), 3);
        let first = StreamItem::Event {
            id: 1,
            kind: "run.started".to_owned(),
            json: "{\"a\":\"é\"}".to_owned(),
        };
        assert_eq!(whole[0], first);
        assert_eq!(whole[1], StreamItem::Elided("2 to 5 were elided".to_owned()));
        for cut in 0..TEXT.len() {
            let mut parser = SseParser::default();
            let mut sent = parser.feed(&TEXT.as_bytes()[..cut]).unwrap();
            sent.extend(parser.feed(&TEXT.as_bytes()[cut..]).unwrap());
            assert_eq!(sent, whole, "cut at {cut}");
        }
    }

    #[test]
    fn an_incomplete_frame_is_not_handed_over() {
        let mut parser = SseParser::default();
        assert_eq!(parser.feed(b"id: 7\nevent: x\ndata: {").unwrap(), []);
    }
}
