//! HTTP API of a bridge.
//!
//! INVARIANT: a request body is read only after the request's key was checked.

use super::book::{Arrival, Phase, Underway};
use super::events::Filter;
use super::problem::Problem;
use super::spool::kept::State;
use super::work::{self, Begun};
use super::{Inner, deliver, overall};
use crate::limits::{BODY_MS, CANCEL_BYTES_MAX, DISPATCH_BYTES_MAX, EVENTS_BEAT_MS};
use crate::protocol::callback::CallbackBody;
use crate::protocol::dispatch::{DispatchBody, Dispatched};
use crate::protocol::{
    BadBody, CANCEL_PATH, CancelBody, DISPATCH_PATH, DISPATCH_PATH_OLD, EVENTS_PATH, HEALTH_PATH,
    SYNC_PATH,
};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, Request, State as Of};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use sluice_core::journal::envelope::timestamp;
use sluice_core::port::adapter::Adapter;
use sluice_core::run::id::RunId;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use tokio::sync::mpsc;

type Answered = Result<Response, Problem>;

pub(super) fn router(inner: Arc<Inner>) -> Router {
    Router::new()
        .route(DISPATCH_PATH, post(dispatch))
        .route(DISPATCH_PATH_OLD, post(dispatch))
        .route(SYNC_PATH, post(dispatch_sync))
        .route(CANCEL_PATH, post(cancel))
        .route(HEALTH_PATH, get(health))
        .route(EVENTS_PATH, get(events))
        .fallback(|| async { Problem::unknown("there is no such path") })
        .method_not_allowed_fallback(|| async { Problem::method() })
        .with_state(inner)
}

/// How the caller receives the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    Callback,
    Reply,
}

async fn dispatch(Of(inner): Of<Arc<Inner>>, request: Request) -> Answered {
    let body = inner.dispatch_body(request, Want::Callback).await?;
    let (run_id, step_id) = (body.run_id.to_string(), body.step_id.clone());
    let mut phase = match inner.arrive(body)? {
        Taken::Underway(underway) => underway.phase,
        Taken::Kept(state, body) => {
            inner.again(state, *body).await?;
            return Ok(dispatched(&inner, run_id, step_id));
        }
    };
    match &*phase
        .wait_for(|phase| *phase != Phase::Arriving)
        .await
        .map_err(|_| Problem::forgetful())?
    {
        Phase::Refused => Err(Problem::forgetful()),
        _ => Ok(dispatched(&inner, run_id, step_id)),
    }
}

fn dispatched(inner: &Inner, run_id: String, step_id: String) -> Response {
    let dispatched_at = timestamp(inner.clock.now_ms());
    let answer = Dispatched { status: "dispatched".to_owned(), run_id, step_id, dispatched_at };
    (StatusCode::ACCEPTED, axum::Json(answer)).into_response()
}

async fn dispatch_sync(Of(inner): Of<Arc<Inner>>, request: Request) -> Answered {
    let body = inner.dispatch_body(request, Want::Reply).await?;
    let key = body.key();
    let Underway { mut phase, hand, .. } = match inner.arrive(body)? {
        Taken::Underway(underway) => underway,
        Taken::Kept(..) => {
            let kept = inner.spool.read(key).await.map_err(|_| Problem::forgetful())?;
            let result = kept.and_then(|kept| kept.result).ok_or_else(Problem::forgetful)?;
            return Ok(result_of(&result, None));
        }
    };
    let over = |phase: &Phase| matches!(phase, Phase::Refused | Phase::Done(_));
    match &*phase.wait_for(over).await.map_err(|_| Problem::forgetful())? {
        Phase::Done(result) => Ok(result_of(result, Some(hand))),
        _ => Err(Problem::forgetful()),
    }
}

/// Response with a result. Tells the executing task when the last of it is being sent.
fn result_of(result: &CallbackBody, hand: Option<mpsc::Sender<()>>) -> Response {
    let parts = (Some(Bytes::from(result.bytes())), hand);
    let body = futures_util::stream::unfold(parts, |(bytes, hand)| async move {
        if let Some(bytes) = bytes {
            return Some((Ok::<_, Infallible>(bytes), (None, hand)));
        }
        if let Some(hand) = hand {
            // Another request may have received it before.
            let _ = hand.try_send(());
        }
        None
    });
    ([(header::CONTENT_TYPE, "application/json")], Body::from_stream(body)).into_response()
}

async fn cancel(Of(inner): Of<Arc<Inner>>, request: Request) -> Answered {
    let body = inner.body(request, CANCEL_BYTES_MAX).await?;
    let body = CancelBody::read(&body).map_err(bad)?;
    let status = match inner.book.underway(body.key()) {
        Some(underway) => {
            underway.cancel.cancel();
            "cancelling"
        }
        None if inner.book.knows(body.key()) => "finished",
        None => return Err(Problem::unknown("this bridge does not know the dispatch")),
    };
    Ok(axum::Json(json!({"status": status})).into_response())
}

async fn health(Of(inner): Of<Arc<Inner>>, headers: HeaderMap) -> Response {
    let adapters = inner.health().await;
    let status = overall(&adapters);
    if inner.known(&headers).is_err() {
        return axum::Json(json!({"status": status})).into_response();
    }
    let (running, undelivered) = inner.book.counts();
    let settings = &inner.settings;
    axum::Json(json!({
        "status": status, "gateway": settings.gateway, "instance_id": settings.instance_id,
        "version": env!("CARGO_PKG_VERSION"), "adapters": adapters, "running": running,
        "undelivered": undelivered,
    }))
    .into_response()
}

/// Query of the events route.
#[derive(Debug, Deserialize)]
struct Asked {
    run_id: Option<String>,
    step_id: Option<String>,
    dispatch_no: Option<u32>,
}

async fn events(Of(inner): Of<Arc<Inner>>, request: Request) -> Answered {
    inner.known(request.headers())?;
    let Query(asked) = Query::<Asked>::try_from_uri(request.uri()).map_err(|_| {
        Problem::bad("the query accepts only `run_id`, `step_id` and a numeric `dispatch_no`")
    })?;
    let run = match asked.run_id {
        None => None,
        Some(run) => {
            Some(RunId::parse(&run).ok_or_else(|| Problem::bad("`run_id` is not a valid run id"))?)
        }
    };
    let filter = Filter { run, step: asked.step_id, dispatch_no: asked.dispatch_no };
    let listener = inner.hub.listen(filter, inner.stop.clone()).ok_or_else(Problem::full)?;
    let beat = KeepAlive::new().interval(Duration::from_millis(EVENTS_BEAT_MS));
    Ok(Sse::new(listener.stream()).keep_alive(beat).into_response())
}

#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
fn bad(body: BadBody) -> Problem {
    Problem::bad(body.to_string())
}

/// A dispatch that was accepted now or earlier.
enum Taken {
    Underway(Underway),
    Kept(State, Box<DispatchBody>),
}

impl Inner {
    /// Checks the key in constant time, so that timing does not reveal it.
    pub(super) fn known(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let shown = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let shown = shown.and_then(|value| value.strip_prefix(b"Bearer ")).unwrap_or_default();
        let hash = |secret: &[u8]| Sha256::digest(secret);
        let same = hash(shown).ct_eq(&hash(self.settings.key.expose().as_bytes()));
        if bool::from(same) { Ok(()) } else { Err(Problem::stranger()) }
    }

    async fn body(&self, request: Request, bytes_max: usize) -> Result<Bytes, Problem> {
        self.known(request.headers())?;
        if self.stop.is_cancelled() {
            return Err(Problem::stopping());
        }
        let body = axum::body::to_bytes(request.into_body(), bytes_max);
        match tokio::time::timeout(Duration::from_millis(BODY_MS), body).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(error)) if is_length(&error) => Err(Problem::too_long(bytes_max)),
            Ok(Err(_)) => Err(Problem::bad("the body ended early")),
            Err(_) => Err(Problem::slow()),
        }
    }

    async fn dispatch_body(&self, request: Request, want: Want) -> Result<DispatchBody, Problem> {
        let bytes = self.body(request, DISPATCH_BYTES_MAX).await?;
        let body = DispatchBody::read(&bytes).map_err(bad)?;
        if want == Want::Callback && body.callback_url.is_none() {
            let remedy = "set `callback_url`, or post to `/api/v2/dispatch/sync`";
            return Err(Problem::refused("`callback_url` is missing", remedy));
        }
        for url in [&body.callback_url, &body.tool_url, &body.parts_url].into_iter().flatten() {
            self.check_server(url)?;
        }
        Ok(body)
    }

    /// Checks that a URL belongs to a server that may receive the token.
    fn check_server(&self, url: &str) -> Result<(), Problem> {
        let url = Url::parse(url).ok();
        let ours = |url: &Url| self.settings.servers.iter().any(|one| one.origin() == url.origin());
        if url.as_ref().is_some_and(ours) {
            return Ok(());
        }
        let remedy = "add the server to `servers` in the bridge's file if you trust it";
        let title =
            "`callback_url` or `tool_url` does not belong to a server that this bridge works for";
        Err(Problem::refused(title, remedy))
    }

    fn adapter(&self, provider: &str) -> Result<Arc<dyn Adapter>, Problem> {
        let remedy = "use the name of an adapter in the bridge's file";
        let none = || Problem::refused("the bridge has no adapter of this name", remedy);
        self.adapters.get(provider).cloned().ok_or_else(none)
    }

    /// Admits a dispatch, and starts it if it is new.
    fn arrive(self: &Arc<Self>, body: DispatchBody) -> Result<Taken, Problem> {
        let adapter = self.adapter(&body.provider)?;
        let place = Arc::clone(&self.running).try_acquire_owned();
        match self.book.enter(body.key()) {
            Arrival::Underway(underway) => Ok(Taken::Underway(underway)),
            Arrival::Kept(state) => Ok(Taken::Kept(state, Box::new(body))),
            Arrival::Full => Err(Problem::full()),
            Arrival::New(underway, work) => {
                let Ok(place) = place else {
                    self.book.forget(body.key());
                    work.phase.send_replace(Phase::Refused);
                    return Err(Problem::full());
                };
                // A separate task, so that it continues when the caller
                // disconnects.
                let begun = Begun { body, adapter, work, place };
                self.tasks.spawn(work::live(Arc::clone(self), begun));
                Ok(Taken::Underway(underway))
            }
        }
    }

    /// An ended dispatch was sent again because the engine has no result: deliver it again.
    async fn again(self: &Arc<Self>, state: State, body: DispatchBody) -> Result<(), Problem> {
        let (key, now_ms) = (body.key(), self.clock.now_ms());
        if state == State::Finished || !self.book.reopen(key, now_ms) {
            return Ok(());
        }
        let kept = self.spool.read(key).await.map_err(|_| Problem::forgetful())?;
        let mut kept = kept.filter(|kept| kept.result.is_some()).ok_or_else(Problem::forgetful)?;
        (kept.state, kept.at_ms) = (State::Finished, now_ms);
        (kept.callback_url, kept.dispatch_token) = (body.callback_url, body.dispatch_token);
        self.spool.write(key, &kept).await.map_err(|_| Problem::forgetful())?;
        self.tasks.spawn(deliver::deliver(Arc::clone(self), kept));
        Ok(())
    }
}

/// Whether the body exceeded the limit.
fn is_length(error: &axum::Error) -> bool {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(one) = source {
        if one.to_string().contains("length limit exceeded") {
            return true;
        }
        source = one.source();
    }
    false
}
