//! A gateway without durable state and with one fault.

use crate::bridge_server::test_bridge::{KEY, TOKEN, local};
use crate::outbound::Request as Sent;
use crate::protocol::callback::{CallbackBody, ExecutedDispatch};
use crate::protocol::dispatch::{DispatchAccepted, DispatchBody};
use crate::protocol::{
    CANCEL_PATH, CancelBody, DISPATCH_PATH, DISPATCH_TOKEN, DispatchHash, GATEWAY_TOKEN,
    HEALTH_PATH, SYNC_PATH,
};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use sluice_core::journal::envelope::timestamp;
use sluice_core::port::adapter::{Answer, CallErrorCode};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Which case detects which fault.
pub(super) const FAULTS: [(&str, &str); 26] = [
    ("health is answered within five seconds", "is fine"),
    ("health is answered within five seconds", "is silent"),
    ("a dispatch is answered with 202 and its ids", "answers 200"),
    ("a dispatch is answered with 202 and its ids", "names another run"),
    ("a dispatch is answered with 202 and its ids", "tells no time"),
    ("a dispatch is answered with 202 and its ids", "repeats the key"),
    ("the result comes once, with its ids and both tokens", "brings nothing"),
    ("the result comes once, with its ids and both tokens", "brings it twice"),
    ("the result comes once, with its ids and both tokens", "shows no token of its own"),
    ("the result comes once, with its ids and both tokens", "shows no token of the dispatch"),
    ("the result comes once, with its ids and both tokens", "does not say which dispatch"),
    ("the result comes once, with its ids and both tokens", "brings another's"),
    ("the result comes once, with its ids and both tokens", "brings rubbish"),
    ("fields that are not known are passed over", "is strict"),
    ("a constraint that is not known refuses the dispatch", "keeps to nothing"),
    ("without the key nothing runs", "lets everybody in"),
    ("without the key nothing runs", "works for strangers"),
    ("rubbish is refused and the gateway lives on", "breaks on rubbish"),
    ("the same dispatch runs once", "forgets at once"),
    ("the same dispatch runs once", "forgets what is over"),
    ("a result that is not taken comes again", "gives up"),
    ("a cancelled dispatch stops and says so", "does not stop"),
    ("a cancelled dispatch stops and says so", "blames the provider"),
    ("a dispatch that takes too long is timed_out", "fails when late"),
    ("a request that waits is answered with the result", "answers later"),
    ("a request that waits is answered with the result", "answers twice"),
];

pub(super) struct Faulty {
    pub(super) at: SocketAddr,
}

struct FaultyState {
    fault: &'static str,
    /// Running dispatches and how to stop them.
    known: Mutex<BTreeMap<DispatchHash, CancellationToken>>,
    /// Increments, so that no two results are equal.
    clock: AtomicU64,
}

type SharedState = State<Arc<FaultyState>>;

impl Faulty {
    pub(super) async fn start(fault: &'static str) -> Faulty {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (known, clock) = (Mutex::default(), AtomicU64::new(1));
        let router = Router::new()
            .route(DISPATCH_PATH, post(dispatch))
            .route(SYNC_PATH, post(sync))
            .route(CANCEL_PATH, post(cancel))
            .route(HEALTH_PATH, get(health))
            .with_state(Arc::new(FaultyState { fault, known, clock }));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Faulty { at }
    }
}

async fn health(State(state): SharedState) -> Response {
    match state.fault {
        "is fine" => axum::Json(json!({"status": "fine"})).into_response(),
        "is silent" => std::future::pending().await,
        _ => axum::Json(json!({"status": "healthy"})).into_response(),
    }
}

fn is_engine(headers: &HeaderMap) -> bool {
    headers.get("authorization").is_some_and(|shown| shown == &format!("Bearer {KEY}"))
}

impl FaultyState {
    fn enter(&self, headers: &HeaderMap, bytes: &Bytes) -> Result<DispatchBody, StatusCode> {
        if !is_engine(headers)
            && !["lets everybody in", "works for strangers"].contains(&self.fault)
        {
            return Err(StatusCode::UNAUTHORIZED);
        }
        let mut body: Value = serde_json::from_slice(bytes).unwrap_or_default();
        if self.fault == "is strict" && body.get("a_field_of_tomorrow").is_some() {
            return Err(StatusCode::BAD_REQUEST);
        }
        if self.fault == "keeps to nothing" {
            body.as_object_mut().unwrap().remove("governance_constraints");
        }
        let read = DispatchBody::read(body.to_string().as_bytes()).ok();
        read.filter(|body| body.provider == "mock").ok_or(match self.fault {
            "breaks on rubbish" => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        })
    }

    /// Executes a dispatch and returns the result; a slow one takes its time.
    async fn work(&self, body: &DispatchBody, stop: &CancellationToken) -> CallbackBody {
        let patience = Duration::from_millis(body.timeout_ms);
        let answer = if body.step_id == "slow" {
            tokio::select! {
                () = stop.cancelled(), if self.fault != "does not stop" => match self.fault {
                    "blames the provider" => Answer::failed(CallErrorCode::ProviderError, "oh"),
                    _ => Answer::failed(CallErrorCode::Cancelled, "cancelled"),
                },
                () = tokio::time::sleep(patience) => match self.fault {
                    "fails when late" => Answer::failed(CallErrorCode::ProviderError, "late"),
                    _ => Answer::failed(CallErrorCode::Timeout, "late"),
                },
            }
        } else {
            Answer { text: Some(body.command.clone()), ..Answer::default() }
        };
        let now_ms = self.clock.fetch_add(1, Ordering::SeqCst);
        let (run, step, dispatch_no) = (body.run_id, body.step_id.as_str(), body.dispatch_no);
        let worked = ExecutedDispatch { run, step, dispatch_no, from_ms: now_ms, to_ms: now_ms };
        CallbackBody::new(worked, answer)
    }

    /// Sends a result until it is accepted.
    async fn deliver(&self, body: &DispatchBody, mut result: CallbackBody) {
        match self.fault {
            "does not say which dispatch" => result.dispatch_no = None,
            "brings another's" => result.dispatch_no = Some(7),
            _ => {}
        }
        let bytes = match self.fault {
            "brings nothing" => return,
            "brings rubbish" => json!({"run_id": body.run_id.to_string()}).to_string().into_bytes(),
            _ => result.bytes(),
        };
        let url = body.callback_url.as_deref().unwrap();
        let mut request = Sent::post(url, bytes, Duration::from_secs(5), 1 << 20);
        let token = body.dispatch_token.as_deref().unwrap();
        for (name, value, without) in [
            (GATEWAY_TOKEN, TOKEN, "shows no token of its own"),
            (DISPATCH_TOKEN, token, "shows no token of the dispatch"),
        ] {
            if self.fault != without {
                let value = HeaderValue::from_str(value).unwrap();
                request = request.header(HeaderName::from_static(name), value);
            }
        }
        let mut times = if self.fault == "brings it twice" { 2 } else { 1 };
        for _ in 0..10 {
            let taken = local().send(&request).await.is_ok_and(|answer| answer.status == 200);
            times -= usize::from(taken);
            if times == 0 || self.fault == "gives up" {
                return;
            }
        }
    }
}

async fn dispatch(State(state): SharedState, headers: HeaderMap, bytes: Bytes) -> Response {
    let body = match state.enter(&headers, &bytes) {
        Ok(body) => body,
        Err(status) => return status.into_response(),
    };
    let (key, fault) = (body.key(), state.fault);
    let known = state.known.lock().unwrap().contains_key(&key);
    let stop = state.known.lock().unwrap().entry(key).or_default().clone();
    let mut answer = DispatchAccepted {
        status: "dispatched".to_owned(),
        run_id: body.run_id.to_string(),
        step_id: body.step_id.clone(),
        dispatched_at: timestamp(1),
    };
    if !known || fault == "forgets at once" {
        tokio::spawn(async move {
            let result = state.work(&body, &stop).await;
            state.deliver(&body, result).await;
            if fault == "forgets what is over" {
                state.known.lock().unwrap().remove(&key);
            }
        });
    }
    match fault {
        "answers 200" => return axum::Json(answer).into_response(),
        "works for strangers" if !is_engine(&headers) => {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        "repeats the key" => answer.status = KEY.repeat(1_000),
        "names another run" => answer.run_id = "run_1".to_owned(),
        "tells no time" => answer.dispatched_at = "now".to_owned(),
        _ => {}
    }
    (StatusCode::ACCEPTED, axum::Json(answer)).into_response()
}

async fn sync(State(state): SharedState, headers: HeaderMap, bytes: Bytes) -> Response {
    if !is_engine(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let body = match state.enter(&headers, &bytes) {
        Ok(body) => body,
        Err(status) => return status.into_response(),
    };
    if state.fault == "answers later" {
        return StatusCode::ACCEPTED.into_response();
    }
    let result = state.work(&body, &CancellationToken::new()).await;
    if state.fault == "answers twice" {
        state.deliver(&body, result.clone()).await;
    }
    axum::Json(result).into_response()
}

async fn cancel(State(state): SharedState, headers: HeaderMap, bytes: Bytes) -> Response {
    if !is_engine(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let Ok(body) = CancelBody::read(&bytes) else { return StatusCode::BAD_REQUEST.into_response() };
    let known = state.known.lock().unwrap();
    let Some(stop) = known.get(&body.key()) else { return StatusCode::NOT_FOUND.into_response() };
    let status = if stop.is_cancelled() { "finished" } else { "cancelling" };
    stop.cancel();
    axum::Json(json!({"status": status})).into_response()
}
