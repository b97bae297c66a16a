//! Resumable event streams over Server-Sent Events.
//!
//! INVARIANT: a stream sends only journalled events, in the order of their ids. A client
//! that reconnects with the last id it received misses nothing and gets nothing twice.

use super::admission;
use super::problem::Rejection;
use super::request::{ApiRequest, bad};
use super::route::{Need, ResponseKind, Route};
use crate::app::App;
use crate::auth::Caller;
use crate::auth::permission::Permission as P;
use crate::capacity::{CapacityGuard, Holder};
use crate::limits::STREAM_CHUNK_BYTES;
use crate::organisation::Organisation;
use crate::refused::{self, Refused, ServiceResult};
use crate::service::find;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_core::id::RunId;
use sluice_core::journal::envelope::{Seen, timestamp};
use sluice_core::journal::event::HEARTBEAT;
use sluice_engine::error::LoadError;
use sluice_engine::feed::FeedReader;
use sluice_engine::tail::Reader;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

const MEDIA: &str = "text/event-stream; charset=utf-8";

pub(super) fn routes() -> Vec<Route> {
    let read = Need::Permission(P::WorkflowRead);
    let one = |path| {
        let about = "Stream the events of a run: past events, then new ones";
        Route::raw(
            (Method::GET, path),
            read,
            about,
            ResponseKind::Text("text/event-stream"),
            follow,
        )
        .lasting()
    };
    let about = "Stream the events of all runs: new ones, or those after a cursor";
    let all = (Method::GET, "/api/v1/events");
    vec![
        one("/api/v1/runs/{run}/events"),
        one("/api/v1/execute/workflows/{run}/events"),
        one("/execute/workflows/{run}/events").called("get_root_execute_workflows_run_events"),
        Route::raw(all, read, about, ResponseKind::Text("text/event-stream"), follow_all).lasting(),
    ]
}

/// The start of a stream.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// Id of the last event received; takes precedence over the header `Last-Event-ID`.
    #[serde(rename = "afterEventId")]
    after_event_id: Option<String>,
}

/// The cursor of a request: from the query, else from the header, else 0.
fn cursor(query: &EventsQuery, headers: &HeaderMap) -> Result<u64, Refused> {
    let header = headers.get("last-event-id").map(HeaderValue::to_str);
    let sent = match (&query.after_event_id, header) {
        (Some(sent), _) => sent.as_str(),
        (None, Some(Ok(sent))) => sent,
        (None, Some(Err(_))) => "?",
        (None, None) => return Ok(0),
    };
    let digits = !sent.is_empty() && sent.bytes().all(|byte| byte.is_ascii_digit());
    let number = sent.parse().ok().filter(|_| digits);
    number.ok_or_else(|| bad("invalid cursor: an event number is expected"))
}

/// Capacity for one more stream.
fn stream_capacity<Q>(request: &ApiRequest<Q>) -> Result<CapacityGuard, Rejection> {
    let holder = Holder::token(request.organisation.name(), &request.caller.counted_as);
    let taken = request.app.capacity().streams.take(&holder, 1);
    taken.map_err(|why| admission::full(&request.app, "streams", why))
}

async fn follow(request: ApiRequest<EventsQuery>) -> ServiceResult<Response> {
    let after = cursor(&request.query, &request.headers)?;
    let run = find::run(request.service(), request.path("run")).await?.run;
    let capacity = match stream_capacity(&request) {
        Ok(capacity) => capacity,
        Err(rejection) => return Ok(rejection.into_response(&request.request_id)),
    };
    let reader = request.service().engine.reader(run, after).await.map_err(refused::load)?;
    Ok(response(EventStream::new(&request, capacity, EventSource::Run(run, Box::new(reader)))))
}

/// The start of the stream of all runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AllQuery {
    /// Id of the last event received; takes precedence over the header `Last-Event-ID`.
    cursor: Option<String>,
}

/// Parses a feed cursor: the position of an append in the store's order, and of an event in
/// it. The format is opaque to clients.
fn parse_cursor(text: &str) -> Option<(u64, u64)> {
    let mut parts = text.strip_prefix("1.")?.split('.');
    let (place, event) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some((place, event))
}

async fn follow_all(request: ApiRequest<AllQuery>) -> ServiceResult<Response> {
    let header = request.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let sent = request.query.cursor.as_deref().or(header);
    let after = match sent {
        None => None,
        Some(sent) => Some(parse_cursor(sent).ok_or_else(|| bad("invalid cursor"))?),
    };
    let capacity = match stream_capacity(&request) {
        Ok(capacity) => capacity,
        Err(rejection) => return Ok(rejection.into_response(&request.request_id)),
    };
    // From one append before: the cursor may be in the middle of an append.
    let from = after.map(|(place, _)| place.saturating_sub(1));
    let reader = request.service().engine.feed(from).await?;
    Ok(response(EventStream::new(&request, capacity, EventSource::All(Box::new(reader), after))))
}

/// What a stream reads.
enum EventSource {
    Run(RunId, Box<Reader>),
    /// All runs, and the last position that the client has seen.
    All(Box<FeedReader>, Option<(u64, u64)>),
}

/// An event and its cursor.
struct StreamItem {
    id: String,
    seen: Arc<Seen>,
}

impl EventSource {
    /// The next events, at least one; `None` at the end of the run.
    async fn next(&mut self) -> Result<Option<Vec<StreamItem>>, LoadError> {
        match self {
            EventSource::Run(_, reader) => {
                let page = reader.next().await?;
                let item = |seen: Arc<Seen>| StreamItem { id: seen.id().to_string(), seen };
                Ok(page.map(|page| page.into_iter().map(item).collect()))
            }
            EventSource::All(reader, known) => loop {
                let Some(page) = reader.next().await? else { return Ok(None) };
                let known = known.take();
                let mut items = Vec::new();
                for fed in page {
                    for seen in &fed.seen {
                        let position = (fed.place, seen.id());
                        let new =
                            known.is_none_or(|known| position.0 > known.0 || position.1 > known.1);
                        if new {
                            let id = format!("1.{}.{}", position.0, position.1);
                            items.push(StreamItem { id, seen: Arc::clone(seen) });
                        }
                    }
                }
                if !items.is_empty() {
                    return Ok(Some(items));
                }
            },
        }
    }
}

impl EventSource {
    /// A heartbeat. `EventSource` passes no comments to a page, so it is an event; it has no
    /// id, so it does not move the cursor.
    fn heartbeat(&self, now_ms: u64) -> String {
        let run = match self {
            EventSource::Run(run, _) => format!("\"runId\":\"{run}\","),
            EventSource::All(..) => String::new(),
        };
        let at = timestamp(now_ms);
        let data = format!("{{\"type\":\"{HEARTBEAT}\",{run}\"timestamp\":\"{at}\"}}");
        format!("event: {HEARTBEAT}\ndata: {data}\n\n")
    }
}

/// A stream to one client.
struct EventStream {
    app: App,
    organisation: Arc<Organisation>,
    caller: Caller,
    source: EventSource,
    /// Events that were read and not sent yet.
    waiting: std::collections::VecDeque<StreamItem>,
    /// When something was last sent.
    sent_at: Instant,
    /// Notified when tokens may have changed.
    changes: watch::Receiver<u64>,
    ended: bool,
    _capacity: CapacityGuard,
}

impl EventStream {
    fn new<Q>(request: &ApiRequest<Q>, place: CapacityGuard, source: EventSource) -> EventStream {
        EventStream {
            app: request.app.clone(),
            organisation: Arc::clone(&request.organisation),
            caller: request.caller.clone(),
            source,
            waiting: std::collections::VecDeque::new(),
            sent_at: Instant::now(),
            changes: request.organisation.changes(),
            ended: false,
            _capacity: place,
        }
    }

    /// The next bytes; `None` when the stream ends.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        // The connection polls for more as soon as it has buffer space. A client that reads
        // nothing for too long is disconnected, and can resume.
        let settings = self.app.settings();
        let slow = Duration::from_millis(settings.slow_reader_ms);
        if !self.waiting.is_empty() && self.sent_at.elapsed() > slow {
            return self.end(": closed: read too slowly; resume after the last id\n\n");
        }
        let beat_at = Instant::now() + Duration::from_millis(settings.heartbeat_ms);
        let stop = self.app.stop().clone();
        while self.waiting.is_empty() {
            if !self.is_authorised() {
                break;
            }
            let read = tokio::select! {
                biased;
                () = stop.cancelled() => {
                    return self.end(": the server is stopping; reconnect to resume\n\n");
                }
                // The sender exists as long as the organisation is served.
                _ = self.changes.changed() => continue,
                read = tokio::time::timeout_at(beat_at, self.source.next()) => read,
            };
            match read {
                Err(_) => {
                    self.sent_at = Instant::now();
                    return Some(self.source.heartbeat(self.app.now_ms()).into());
                }
                Ok(Ok(None)) => return None,
                Ok(Ok(Some(page))) => self.waiting.extend(page),
                Ok(Err(error)) => {
                    tracing::warn!(%error, "a stream cannot be read");
                    return self.end(": the journal cannot be read now; resume later\n\n");
                }
            }
        }
        // Events that were read meanwhile are not for a token that was revoked meanwhile.
        if !self.is_authorised() {
            return self.end(": the token has expired or was revoked\n\n");
        }
        let mut text = String::new();
        while text.len() < STREAM_CHUNK_BYTES {
            let Some(item) = self.waiting.pop_front() else { break };
            frame(&mut text, &item);
        }
        self.sent_at = Instant::now();
        Some(text.into())
    }

    /// Whether the token is still valid, according to the cached rows. Changes by other
    /// processes are read twice a second, for all streams together.
    fn is_authorised(&self) -> bool {
        if self.caller.is_local() {
            return true;
        }
        let identities = self.organisation.identities();
        let standing = identities.standing(&self.caller.token, self.app.now_ms());
        standing.is_some_and(|(_, permissions)| permissions.has(P::WorkflowRead))
    }

    fn end(&mut self, comment: &'static str) -> Option<Bytes> {
        self.ended = true;
        Some(Bytes::from_static(comment.as_bytes()))
    }
}

/// Writes one event. Its envelope is JSON on one line, so it cannot break the framing.
fn frame(text: &mut String, item: &StreamItem) {
    let written = match &*item.seen {
        Seen::Event(event) => {
            write!(text, "id: {}\nevent: {}\ndata: {}\n\n", item.id, event.kind, event.json)
        }
        Seen::Elided { first, last } => write!(text, ": {first} to {last} were elided\n\n"),
    };
    written.expect("writing to a string cannot fail");
}

fn response(events: EventStream) -> Response {
    let chunks = stream::unfold(events, |mut events| async move {
        let chunk = events.next().await?;
        Some((Ok::<_, Infallible>(chunk), events))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("keep-alive"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(query: Option<&str>, header: Option<&str>) -> Option<u64> {
        let query = EventsQuery { after_event_id: query.map(str::to_owned) };
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert("last-event-id", header.parse().unwrap());
        }
        cursor(&query, &headers).ok()
    }

    #[test]
    fn the_query_takes_precedence_over_the_header() {
        assert_eq!(at(None, None), Some(0));
        assert_eq!(at(None, Some("7")), Some(7));
        assert_eq!(at(Some("3"), Some("7")), Some(3));
        assert_eq!(at(Some("3"), Some("x")), Some(3));
    }

    #[test]
    fn a_cursor_is_a_number_and_nothing_else() {
        for odd in ["", "-1", "+1", "1.0", "x", "99999999999999999999", " 1"] {
            assert_eq!(at(Some(odd), None), None, "{odd}");
        }
        assert_eq!(at(None, Some("x")), None);
    }
}
