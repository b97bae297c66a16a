//! Live streams of events, resumable: Server-Sent Events.
//!
//! INVARIANT: what is sent was journalled, in the order of its ids. A client that
//! comes again with the last id it saw misses nothing and sees nothing twice.

use super::ask::{Ask, bad};
use super::gate;
use super::problem::Rejection;
use super::route::{Answers, Need, Route};
use crate::app::App;
use crate::auth::permission::Permission as P;
use crate::house::House;
use crate::limits::STREAM_CHUNK_BYTES;
use crate::places::{Holder, Place};
use crate::refused::{self, Done, Refused};
use crate::service::find;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_core::journal::envelope::{Seen, timestamp};
use sluice_core::journal::name::HEARTBEAT;
use sluice_core::run::id::RunId;
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

/// The routes of streams.
pub(super) fn routes() -> Vec<Route> {
    let read = Need::Permission(P::WorkflowRead);
    let one = |path| {
        let about = "Follow a run: what happened, then what happens";
        Route::raw((Method::GET, path), read, about, Answers::Text("text/event-stream"), follow)
            .lasting()
    };
    let about = "Follow all runs: what happens from now on, or from a cursor";
    let all = (Method::GET, "/api/v1/events");
    vec![
        one("/api/v1/runs/{run}/events"),
        one("/api/v1/execute/workflows/{run}/events"),
        one("/execute/workflows/{run}/events").called("get_root_execute_workflows_run_events"),
        Route::raw(all, read, about, Answers::Text("text/event-stream"), follow_all).lasting(),
    ]
}

/// Where a stream begins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// The last event that was seen; before the header `Last-Event-ID`.
    #[serde(rename = "afterEventId")]
    after_event_id: Option<String>,
}

/// The cursor: the query's, else the header's, else the beginning.
fn cursor(query: &EventsQuery, headers: &HeaderMap) -> Result<u64, Refused> {
    let header = headers.get("last-event-id").map(HeaderValue::to_str);
    let said = match (&query.after_event_id, header) {
        (Some(said), _) => said.as_str(),
        (None, Some(Ok(said))) => said,
        (None, Some(Err(_))) => "?",
        (None, None) => return Ok(0),
    };
    let digits = !said.is_empty() && said.bytes().all(|byte| byte.is_ascii_digit());
    let number = said.parse().ok().filter(|_| digits);
    number.ok_or_else(|| bad("the cursor is the number of an event"))
}

/// A place for one more stream.
fn taken<Q>(ask: &Ask<Q>) -> Result<Place, Rejection> {
    let holder = Holder::token(ask.house.name(), &ask.caller.counted_as);
    let taken = ask.app.room().streams.take(&holder, 1);
    taken.map_err(|why| gate::full(&ask.app, "streams", why))
}

async fn follow(ask: Ask<EventsQuery>) -> Done<Response> {
    let after = cursor(&ask.query, &ask.headers)?;
    let run = find::run(ask.service(), ask.path("run")).await?.run;
    let place = match taken(&ask) {
        Ok(place) => place,
        Err(rejection) => return Ok(rejection.into_response(&ask.request_id)),
    };
    let reader = ask.service().engine.reader(run, after).await.map_err(refused::load)?;
    Ok(response(Live::new(&ask, place, Source::Run(run, Box::new(reader)))))
}

/// Where the stream of all runs begins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AllQuery {
    /// The id of the last event that was seen; before the header `Last-Event-ID`.
    cursor: Option<String>,
}

/// A place in all journals: of an append in the store's order, and of an event
/// in it. Clients are not to look into it.
fn place(said: &str) -> Option<(u64, u64)> {
    let mut parts = said.strip_prefix("1.")?.split('.');
    let (place, event) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some((place, event))
}

async fn follow_all(ask: Ask<AllQuery>) -> Done<Response> {
    let header = ask.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let said = ask.query.cursor.as_deref().or(header);
    let after = match said {
        None => None,
        Some(said) => Some(place(said).ok_or_else(|| bad("the cursor is none of ours"))?),
    };
    let permit = match taken(&ask) {
        Ok(place) => place,
        Err(rejection) => return Ok(rejection.into_response(&ask.request_id)),
    };
    // From one place before, since the cursor may be in the middle of an append.
    let from = after.map(|(place, _)| place.saturating_sub(1));
    let reader = ask.service().engine.feed(from).await?;
    Ok(response(Live::new(&ask, permit, Source::All(Box::new(reader), after))))
}

/// What is read.
enum Source {
    /// One run.
    Run(RunId, Box<Reader>),
    /// All of them, and what was seen of the first append.
    All(Box<FeedReader>, Option<(u64, u64)>),
}

/// Something to be sent: an event, and the cursor it is sent under.
struct Line {
    id: String,
    seen: Arc<Seen>,
}

impl Source {
    /// The next events, at least one; none when there are no more.
    async fn next(&mut self) -> Result<Option<Vec<Line>>, LoadError> {
        match self {
            Source::Run(_, reader) => {
                let page = reader.next().await?;
                let line = |seen: Arc<Seen>| Line { id: seen.id().to_string(), seen };
                Ok(page.map(|page| page.into_iter().map(line).collect()))
            }
            Source::All(reader, known) => loop {
                let Some(page) = reader.next().await? else { return Ok(None) };
                let known = known.take();
                let mut lines = Vec::new();
                for fed in page {
                    for seen in &fed.seen {
                        let here = (fed.place, seen.id());
                        let new = known.is_none_or(|known| here.0 > known.0 || here.1 > known.1);
                        if new {
                            let id = format!("1.{}.{}", here.0, here.1);
                            lines.push(Line { id, seen: Arc::clone(seen) });
                        }
                    }
                }
                if !lines.is_empty() {
                    return Ok(Some(lines));
                }
            },
        }
    }
}

impl Source {
    /// What is sent while nothing happens. `EventSource` hands comments to no
    /// page, so it is a frame; without an id it moves no cursor.
    fn heartbeat(&self, now_ms: u64) -> String {
        let run = match self {
            Source::Run(run, _) => format!("\"runId\":\"{run}\","),
            Source::All(..) => String::new(),
        };
        let at = timestamp(now_ms);
        let data = format!("{{\"type\":\"{HEARTBEAT}\",{run}\"timestamp\":\"{at}\"}}");
        format!("event: {HEARTBEAT}\ndata: {data}\n\n")
    }
}

/// A stream and whoever reads it.
struct Live {
    app: App,
    house: Arc<House>,
    token: String,
    source: Source,
    /// What was read and not sent yet.
    waiting: std::collections::VecDeque<Line>,
    /// When something was last handed over.
    sent_at: Instant,
    /// Says when tokens may have changed.
    changes: watch::Receiver<u64>,
    ended: bool,
    _place: Place,
}

impl Live {
    fn new<Q>(ask: &Ask<Q>, place: Place, source: Source) -> Live {
        Live {
            app: ask.app.clone(),
            house: Arc::clone(&ask.house),
            token: ask.caller.token.clone(),
            source,
            waiting: std::collections::VecDeque::new(),
            sent_at: Instant::now(),
            changes: ask.house.changes(),
            ended: false,
            _place: place,
        }
    }

    /// The next bytes; none when the stream ends.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        // Whoever reads asks for more as soon as there is room. One who did not
        // for so long is not served any more, and can come again.
        let settings = self.app.settings();
        let slow = Duration::from_millis(settings.slow_reader_ms);
        if !self.waiting.is_empty() && self.sent_at.elapsed() > slow {
            return self.end(": dropped: read too slowly; resume after the last id\n\n");
        }
        let beat_at = Instant::now() + Duration::from_millis(settings.heartbeat_ms);
        let stop = self.app.stop().clone();
        while self.waiting.is_empty() {
            if !self.still_may() {
                break;
            }
            let read = tokio::select! {
                biased;
                () = stop.cancelled() => {
                    return self.end(": the server stops; resume elsewhere\n\n");
                }
                // The sender lives as long as the organisation is served.
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
        // What was read meanwhile is not for a token that was revoked meanwhile.
        if !self.still_may() {
            return self.end(": the token counts no more\n\n");
        }
        let mut text = String::new();
        while text.len() < STREAM_CHUNK_BYTES {
            let Some(line) = self.waiting.pop_front() else { break };
            frame(&mut text, &line);
        }
        self.sent_at = Instant::now();
        Some(text.into())
    }

    /// Whether the token is still valid, as far as is known in memory. Changes by
    /// other processes are read twice a second, for all streams together.
    fn still_may(&self) -> bool {
        let identities = self.house.identities();
        let standing = identities.standing(&self.token, self.app.now_ms());
        standing.is_some_and(|(_, permissions)| permissions.has(P::WorkflowRead))
    }

    fn end(&mut self, comment: &'static str) -> Option<Bytes> {
        self.ended = true;
        Some(Bytes::from_static(comment.as_bytes()))
    }
}

/// One event. Its envelope is JSON in one line, so nothing in it ends a line.
fn frame(text: &mut String, line: &Line) {
    let written = match &*line.seen {
        Seen::Event(event) => {
            write!(text, "id: {}\nevent: {}\ndata: {}\n\n", line.id, event.kind, event.json)
        }
        Seen::Elided { first, last } => write!(text, ": {first} to {last} were elided\n\n"),
    };
    written.expect("a string takes everything");
}

fn response(live: Live) -> Response {
    let chunks = stream::unfold(live, |mut live| async move {
        let chunk = live.next().await?;
        Some((Ok::<_, Infallible>(chunk), live))
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
    fn the_query_counts_before_the_header() {
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
