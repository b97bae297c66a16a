//! Receives and stores results, as an engine would.

use crate::limits::{CALLBACK_BYTES_MAX, CONFORMANCE_LOOK_MS, CONFORMANCE_RESULTS_MAX};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use sluice_core::id::RunId;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// Path of results, as on a server.
const PATH: &str = "/api/workflow/step-complete";

#[derive(Debug, Clone)]
pub(super) struct ReceivedResult {
    pub(super) headers: HeaderMap,
    pub(super) bytes: Bytes,
    pub(super) body: Value,
}

impl ReceivedResult {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

#[derive(Debug, Default)]
struct ReceiverState {
    received: Vec<ReceivedResult>,
    /// Runs that get their next result rejected.
    refused: Vec<String>,
}

type SharedReceiver = Arc<Mutex<ReceiverState>>;

/// Receives results until it is dropped.
#[derive(Debug)]
pub struct Receiver {
    at: SocketAddr,
    state: SharedReceiver,
    serving: JoinHandle<()>,
}

impl Receiver {
    /// Listens at an address, on the caller's runtime. Port 0 selects a free one.
    pub async fn listen(at: SocketAddr) -> io::Result<Receiver> {
        let listener = TcpListener::bind(at).await?;
        let (at, state) = (listener.local_addr()?, SharedReceiver::default());
        let router = Router::new()
            .route(PATH, post(receive))
            .layer(DefaultBodyLimit::max(CALLBACK_BYTES_MAX))
            .with_state(Arc::clone(&state));
        let serving = tokio::spawn(async move {
            // The server ends only with the listener.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Receiver { at, state, serving })
    }

    /// Local address.
    pub fn at(&self) -> SocketAddr {
        self.at
    }

    /// URL for results.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.at)
    }

    fn state(&self) -> MutexGuard<'_, ReceiverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers the next result of a run with 503.
    pub(super) fn refuse_once(&self, run: RunId) {
        self.state().refused.push(run.to_string());
    }

    /// Results received for a run so far, including rejected ones.
    pub(super) fn received(&self, run: RunId) -> Vec<ReceivedResult> {
        let run = run.to_string();
        self.state()
            .received
            .iter()
            .filter(|one| one.body["run_id"] == run.as_str())
            .cloned()
            .collect()
    }

    /// Waits until a run has `count` results, or the time is over, and returns them.
    pub(super) async fn wait(
        &self,
        run: RunId,
        count: usize,
        patience: Duration,
    ) -> Vec<ReceivedResult> {
        let until = Instant::now() + patience;
        loop {
            let received = self.received(run);
            if received.len() >= count || Instant::now() >= until {
                return received;
            }
            sleep(Duration::from_millis(CONFORMANCE_LOOK_MS)).await;
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn receive(
    State(state): State<SharedReceiver>,
    headers: HeaderMap,
    bytes: Bytes,
) -> (StatusCode, axum::Json<Value>) {
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let run = body["run_id"].as_str().unwrap_or_default();
    let refused = state.refused.iter().position(|one| one == run);
    if let Some(at) = refused {
        state.refused.swap_remove(at);
    }
    if state.received.len() < CONFORMANCE_RESULTS_MAX {
        state.received.push(ReceivedResult { headers, bytes, body });
    }
    match refused {
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, axum::Json(json!({}))),
        None => (StatusCode::OK, axum::Json(json!({"received": true}))),
    }
}
