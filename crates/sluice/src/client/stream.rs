//! A run's events as they happen: Server-Sent Events, taken up again where they
//! broke off.
//!
//! INVARIANT: every event is handed over once and in order, however often the
//! connection breaks: the next one begins after the last id that was seen.

use super::{Answer, Client, Problem, bytes, problem};
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderValue};
use sluice_server::refused::Refused;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// How long the server may not answer before it is given up.
const PATIENCE_MS: u64 = 60_000;
/// First wait before a connection is tried again, doubled each time.
const WAIT_MS: u64 = 200;
const WAIT_MS_MAX: u64 = 5000;
/// How long a stream may be silent; the server says every 15 s that it lives.
const SILENCE_MS: u64 = 60_000;
/// Longest line of a stream.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What comes along a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// An event: its id, type and envelope.
    Event { id: u64, kind: String, json: String },
    /// Events that are not there any more.
    Elided(String),
}

impl Client {
    /// Asks for something as long as a server that went away may take to come back.
    pub(crate) async fn get_patiently(&self, path: &[&str]) -> anyhow::Result<Answer> {
        let (began, mut wait_ms) = (Instant::now(), WAIT_MS);
        loop {
            let error = match self.get(path, &[]).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let away = error.downcast_ref::<Refused>().is_some()
                || error.downcast_ref::<Problem>().is_some_and(Problem::is_for_now);
            if !away || began.elapsed() > Duration::from_millis(PATIENCE_MS) {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            wait_ms = (wait_ms * 2).min(WAIT_MS_MAX);
        }
    }
}

/// A run that is followed.
pub(crate) struct Follow {
    client: Client,
    run: String,
    /// The last event that was handed over.
    after: u64,
    open: Option<reqwest::Response>,
    lines: Lines,
    ready: VecDeque<Sent>,
    /// Since when nobody answers.
    lost: Option<Instant>,
    wait_ms: u64,
}

impl Follow {
    pub(crate) fn new(client: &Client, run: &str, after: u64) -> Follow {
        Follow {
            client: client.clone(),
            run: run.to_owned(),
            after,
            open: None,
            lines: Lines::default(),
            ready: VecDeque::new(),
            lost: None,
            wait_ms: WAIT_MS,
        }
    }

    /// The next event; none when the stream has ended as streams do: because
    /// the run has, or because the server stops. Who asks again is connected again.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Sent>> {
        loop {
            if let Some(sent) = self.ready.pop_front() {
                if let Sent::Event { id, .. } = &sent {
                    if *id <= self.after {
                        continue;
                    }
                    self.after = *id;
                }
                return Ok(Some(sent));
            }
            let Some(response) = &mut self.open else {
                self.connect().await?;
                continue;
            };
            let silence = Duration::from_millis(SILENCE_MS);
            match tokio::time::timeout(silence, response.chunk()).await {
                Ok(Ok(Some(chunk))) => {
                    let read = self.lines.take(&chunk);
                    self.ready.extend(read.ok_or_else(|| super::odd("a line is too long"))?);
                }
                Ok(Ok(None)) => {
                    self.open = None;
                    self.lines = Lines::default();
                    return Ok(None);
                }
                // Cut off: taken up again after the last event.
                Ok(Err(_)) | Err(_) => {
                    self.open = None;
                    self.lines = Lines::default();
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
            Err(Broken::Refused(error)) => Err(error),
            Err(Broken::Lost(refused)) => {
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

    async fn try_connect(&self) -> Result<reqwest::Response, Broken> {
        let url = self.client.url(&["runs", &self.run, "events"]);
        let request = self.client.request(Method::GET, url);
        let stream = HeaderValue::from_static("text/event-stream");
        let request = request.header(ACCEPT, stream).header("Last-Event-ID", self.after);
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Err(Broken::Lost(self.client.unreachable(&error))),
        };
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = bytes(response).await.map_err(Broken::Refused)?;
        let told = problem(status, &body);
        if told.is_for_now() {
            return Err(Broken::Lost(Refused::new(
                super::SERVER_UNREACHABLE,
                format!("the server takes no reader: {}", told.message),
                told.remedy,
            )));
        }
        Err(Broken::Refused(told.into()))
    }
}

/// Why there is no stream.
enum Broken {
    /// It will not come.
    Refused(anyhow::Error),
    /// It may come later.
    Lost(Refused),
}

/// Frames out of bytes, wherever they are cut.
#[derive(Debug, Default)]
struct Lines {
    rest: Vec<u8>,
    id: Option<u64>,
    kind: String,
    data: String,
}

impl Lines {
    /// What is complete; nothing if a line is longer than lines are.
    fn take(&mut self, chunk: &[u8]) -> Option<Vec<Sent>> {
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

    fn line(&mut self, line: &str) -> Option<Sent> {
        if line.is_empty() {
            let (kind, json) = (std::mem::take(&mut self.kind), std::mem::take(&mut self.data));
            return self.id.take().map(|id| Sent::Event { id, kind, json });
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => self.id = value.parse().ok(),
            "event" => value.clone_into(&mut self.kind),
            "data" => self.data.push_str(value),
            "" if value.ends_with("were elided") => return Some(Sent::Elided(value.to_owned())),
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
        let whole = Lines::default().take(TEXT.as_bytes()).unwrap();
        assert_eq!(whole.len(), 3);
        let first =
            Sent::Event {
                id: 1, kind: "run.started".to_owned(), json: "{\"a\":\"é\"}".to_owned()
            };
        assert_eq!(whole[0], first);
        assert_eq!(whole[1], Sent::Elided("2 to 5 were elided".to_owned()));
        for cut in 0..TEXT.len() {
            let mut lines = Lines::default();
            let mut sent = lines.take(&TEXT.as_bytes()[..cut]).unwrap();
            sent.extend(lines.take(&TEXT.as_bytes()[cut..]).unwrap());
            assert_eq!(sent, whole, "cut at {cut}");
        }
    }

    #[test]
    fn half_a_frame_is_no_event() {
        let mut lines = Lines::default();
        assert_eq!(lines.take(b"id: 7\nevent: x\ndata: {").unwrap(), []);
    }
}
