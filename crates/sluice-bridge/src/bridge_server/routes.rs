//! HTTP API of a bridge.
//!
//! INVARIANT: a request body is read only after the request's key was checked.

use super::dispatch_table::{Admission, DispatchPhase, RunningDispatch};
use super::events::EventFilter;
use super::problem::BridgeProblem;
use super::spool::record::SpoolState;
use super::work::{self, AdmittedDispatch};
use super::{Inner, deliver, overall_health};
use crate::limits::{BODY_MS, CANCEL_BYTES_MAX, DISPATCH_BYTES_MAX, EVENTS_BEAT_MS};
use crate::protocol::callback::CallbackBody;
use crate::protocol::dispatch::{DispatchAccepted, DispatchBody};
use crate::protocol::{
    BadBody, CANCEL_PATH, CancelBody, DISPATCH_PATH, DISPATCH_PATH_OLD, EVENTS_PATH, HEALTH_PATH,
    SYNC_PATH,
};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use sluice_core::id::RunId;
use sluice_core::journal::envelope::timestamp;
use sluice_core::port::adapter::Adapter;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use tokio::sync::mpsc;

type RouteResult = Result<Response, BridgeProblem>;

pub(super) fn router(inner: Arc<Inner>) -> Router {
    Router::new()
        .route(DISPATCH_PATH, post(dispatch))
        .route(DISPATCH_PATH_OLD, post(dispatch))
        .route(SYNC_PATH, post(dispatch_sync))
        .route(CANCEL_PATH, post(cancel))
        .route(HEALTH_PATH, get(health))
        .route(EVENTS_PATH, get(events))
        .fallback(|| async { BridgeProblem::not_found("there is no such path") })
        .method_not_allowed_fallback(|| async { BridgeProblem::method_not_allowed() })
        .with_state(inner)
}

/// How the caller receives the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultRoute {
    Callback,
    Reply,
}

async fn dispatch(State(inner): State<Arc<Inner>>, request: Request) -> RouteResult {
    let body = inner.dispatch_body(request, ResultRoute::Callback).await?;
    let (run_id, step_id) = (body.run_id.to_string(), body.step_id.clone());
    let mut phase = match inner.admit(body)? {
        KnownDispatch::Running(underway) => underway.phase,
        KnownDispatch::Recorded(state, body) => {
            inner.redeliver(state, *body).await?;
            return Ok(dispatched_response(&inner, run_id, step_id));
        }
    };
    match &*phase
        .wait_for(|phase| *phase != DispatchPhase::Arriving)
        .await
        .map_err(|_| BridgeProblem::spool_unavailable())?
    {
        DispatchPhase::Refused => Err(BridgeProblem::spool_unavailable()),
        _ => Ok(dispatched_response(&inner, run_id, step_id)),
    }
}

fn dispatched_response(inner: &Inner, run_id: String, step_id: String) -> Response {
    let dispatched_at = timestamp(inner.clock.now_ms());
    let answer =
        DispatchAccepted { status: "dispatched".to_owned(), run_id, step_id, dispatched_at };
    (StatusCode::ACCEPTED, axum::Json(answer)).into_response()
}

async fn dispatch_sync(State(inner): State<Arc<Inner>>, request: Request) -> RouteResult {
    let body = inner.dispatch_body(request, ResultRoute::Reply).await?;
    let key = body.key();
    let RunningDispatch { mut phase, handover, .. } = match inner.admit(body)? {
        KnownDispatch::Running(underway) => underway,
        KnownDispatch::Recorded(..) => {
            let record =
                inner.spool.read(key).await.map_err(|_| BridgeProblem::spool_unavailable())?;
            let result = record
                .and_then(|record| record.result)
                .ok_or_else(BridgeProblem::spool_unavailable)?;
            return Ok(result_response(&result, None));
        }
    };
    let over =
        |phase: &DispatchPhase| matches!(phase, DispatchPhase::Refused | DispatchPhase::Ended(_));
    match &*phase.wait_for(over).await.map_err(|_| BridgeProblem::spool_unavailable())? {
        DispatchPhase::Ended(result) => Ok(result_response(result, Some(handover))),
        _ => Err(BridgeProblem::spool_unavailable()),
    }
}

/// Response with a result. Tells the executing task when the last of it is being sent.
fn result_response(result: &CallbackBody, handover: Option<mpsc::Sender<()>>) -> Response {
    let parts = (Some(Bytes::from(result.bytes())), handover);
    let body = futures_util::stream::unfold(parts, |(bytes, handover)| async move {
        if let Some(bytes) = bytes {
            return Some((Ok::<_, Infallible>(bytes), (None, handover)));
        }
        if let Some(handover) = handover {
            // Another request may have received it before.
            let _ = handover.try_send(());
        }
        None
    });
    ([(header::CONTENT_TYPE, "application/json")], Body::from_stream(body)).into_response()
}

async fn cancel(State(inner): State<Arc<Inner>>, request: Request) -> RouteResult {
    let body = inner.read_body(request, CANCEL_BYTES_MAX).await?;
    let body = CancelBody::read(&body).map_err(bad_body)?;
    let status = match inner.dispatches.underway(body.key()) {
        Some(underway) => {
            underway.cancel.cancel();
            "cancelling"
        }
        None if inner.dispatches.contains(body.key()) => "finished",
        None => return Err(BridgeProblem::not_found("this bridge does not know the dispatch")),
    };
    Ok(axum::Json(json!({"status": status})).into_response())
}

async fn health(State(inner): State<Arc<Inner>>, headers: HeaderMap) -> Response {
    let adapters = inner.health().await;
    let status = overall_health(&adapters);
    if inner.authenticate(&headers).is_err() {
        return axum::Json(json!({"status": status})).into_response();
    }
    let (running, undelivered) = inner.dispatches.counts();
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
struct EventsQuery {
    run_id: Option<String>,
    step_id: Option<String>,
    dispatch_no: Option<u32>,
}

async fn events(State(inner): State<Arc<Inner>>, request: Request) -> RouteResult {
    inner.authenticate(request.headers())?;
    let Query(query) = Query::<EventsQuery>::try_from_uri(request.uri()).map_err(|_| {
        BridgeProblem::bad_request(
            "the query accepts only `run_id`, `step_id` and a numeric `dispatch_no`",
        )
    })?;
    let run = match query.run_id {
        None => None,
        Some(run) => Some(
            RunId::parse(&run)
                .ok_or_else(|| BridgeProblem::bad_request("`run_id` is not a valid run id"))?,
        ),
    };
    let filter = EventFilter { run, step: query.step_id, dispatch_no: query.dispatch_no };
    let subscription =
        inner.hub.subscribe(filter, inner.stop.clone()).ok_or_else(BridgeProblem::overloaded)?;
    let beat = KeepAlive::new().interval(Duration::from_millis(EVENTS_BEAT_MS));
    Ok(Sse::new(subscription.stream()).keep_alive(beat).into_response())
}

#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
fn bad_body(body: BadBody) -> BridgeProblem {
    BridgeProblem::bad_request(body.to_string())
}

/// A dispatch that was accepted now or earlier.
enum KnownDispatch {
    Running(RunningDispatch),
    Recorded(SpoolState, Box<DispatchBody>),
}

impl Inner {
    /// Checks the key in constant time, so that timing does not reveal it.
    pub(super) fn authenticate(&self, headers: &HeaderMap) -> Result<(), BridgeProblem> {
        let shown = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let shown = shown.and_then(|value| value.strip_prefix(b"Bearer ")).unwrap_or_default();
        let hash = |secret: &[u8]| Sha256::digest(secret);
        let same = hash(shown).ct_eq(&hash(self.settings.key.expose().as_bytes()));
        if bool::from(same) { Ok(()) } else { Err(BridgeProblem::unauthenticated()) }
    }

    async fn read_body(&self, request: Request, bytes_max: usize) -> Result<Bytes, BridgeProblem> {
        self.authenticate(request.headers())?;
        if self.stop.is_cancelled() {
            return Err(BridgeProblem::stopping());
        }
        let body = axum::body::to_bytes(request.into_body(), bytes_max);
        match tokio::time::timeout(Duration::from_millis(BODY_MS), body).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(error)) if exceeds_limit(&error) => {
                Err(BridgeProblem::body_too_large(bytes_max))
            }
            Ok(Err(_)) => Err(BridgeProblem::bad_request("the body ended early")),
            Err(_) => Err(BridgeProblem::request_timeout()),
        }
    }

    async fn dispatch_body(
        &self,
        request: Request,
        want: ResultRoute,
    ) -> Result<DispatchBody, BridgeProblem> {
        let bytes = self.read_body(request, DISPATCH_BYTES_MAX).await?;
        let body = DispatchBody::read(&bytes).map_err(bad_body)?;
        if want == ResultRoute::Callback && body.callback_url.is_none() {
            let remedy = "set `callback_url`, or post to `/api/v2/dispatch/sync`";
            return Err(BridgeProblem::invalid("`callback_url` is missing", remedy));
        }
        for url in [&body.callback_url, &body.tool_url, &body.parts_url].into_iter().flatten() {
            self.check_server(url)?;
        }
        Ok(body)
    }

    /// Checks that a URL belongs to a server that may receive the token.
    fn check_server(&self, url: &str) -> Result<(), BridgeProblem> {
        let url = Url::parse(url).ok();
        let ours = |url: &Url| self.settings.servers.iter().any(|one| one.origin() == url.origin());
        if url.as_ref().is_some_and(ours) {
            return Ok(());
        }
        let remedy = "add the server to `servers` in the bridge's file if you trust it";
        let title =
            "`callback_url` or `tool_url` does not belong to a server that this bridge works for";
        Err(BridgeProblem::invalid(title, remedy))
    }

    fn adapter(&self, provider: &str) -> Result<Arc<dyn Adapter>, BridgeProblem> {
        let remedy = "use the name of an adapter in the bridge's file";
        let none = || BridgeProblem::invalid("the bridge has no adapter of this name", remedy);
        self.adapters.get(provider).cloned().ok_or_else(none)
    }

    /// Admits a dispatch, and starts it if it is new.
    fn admit(self: &Arc<Self>, body: DispatchBody) -> Result<KnownDispatch, BridgeProblem> {
        let adapter = self.adapter(&body.provider)?;
        let permit = Arc::clone(&self.running).try_acquire_owned();
        match self.dispatches.admit(body.key()) {
            Admission::Running(underway) => Ok(KnownDispatch::Running(underway)),
            Admission::Recorded(state) => Ok(KnownDispatch::Recorded(state, Box::new(body))),
            Admission::Full => Err(BridgeProblem::overloaded()),
            Admission::New(underway, work) => {
                let Ok(permit) = permit else {
                    self.dispatches.remove(body.key());
                    work.phase.send_replace(DispatchPhase::Refused);
                    return Err(BridgeProblem::overloaded());
                };
                // A separate task, so that it continues when the caller
                // disconnects.
                let admitted = AdmittedDispatch { body, adapter, work, permit };
                self.tasks.spawn(work::run(Arc::clone(self), admitted));
                Ok(KnownDispatch::Running(underway))
            }
        }
    }

    /// An ended dispatch was sent again because the engine has no result: deliver it again.
    async fn redeliver(
        self: &Arc<Self>,
        state: SpoolState,
        body: DispatchBody,
    ) -> Result<(), BridgeProblem> {
        let (key, now_ms) = (body.key(), self.clock.now_ms());
        if state == SpoolState::Finished || !self.dispatches.reopen(key, now_ms) {
            return Ok(());
        }
        let record = self.spool.read(key).await.map_err(|_| BridgeProblem::spool_unavailable())?;
        let mut record = record
            .filter(|record| record.result.is_some())
            .ok_or_else(BridgeProblem::spool_unavailable)?;
        (record.state, record.at_ms) = (SpoolState::Finished, now_ms);
        (record.callback_url, record.dispatch_token) = (body.callback_url, body.dispatch_token);
        self.spool.write(key, &record).await.map_err(|_| BridgeProblem::spool_unavailable())?;
        self.tasks.spawn(deliver::deliver(Arc::clone(self), record));
        Ok(())
    }
}

/// Whether the body exceeded the limit.
fn exceeds_limit(error: &axum::Error) -> bool {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(one) = source {
        if one.to_string().contains("length limit exceeded") {
            return true;
        }
        source = one.source();
    }
    false
}
