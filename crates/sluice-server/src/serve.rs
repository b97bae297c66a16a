//! Accepts, bounds and drains connections.
//!
//! A client that is slow to send a request, or to read its response, is disconnected. When
//! there is no capacity for a new connection, an idle one is closed:
//! `sluice_bridge::connections` chooses it. When the server stops, streams end first,
//! then requests in progress may finish for a while.

use crate::api::admission::Peer;
use crate::api::router::Router;
use crate::app::{App, Settings};
use crate::limits::{HEAD_BYTES_MAX, LOOK_AFTER_MS, PING_ANSWER_MS, PING_MS};
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use sluice_bridge::connection_limits::TimeLimitedStream;
use sluice_bridge::connections::{Admitted, Connection, Connections, is_exhausted};
use sluice_bridge::framing::StrictFraming;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

/// Pause after a failed `accept`.
const PAUSE_MS: u64 = 10;
/// How much longer than its request may take an unauthenticated connection may be idle.
const SLACK_MS: u64 = 1000;
/// How long the server writes its last audit entries when it stops.
const WRITE_MS: u64 = 1000;
/// How often the counters of inactive clients are dropped.
const TIDY_MS: u64 = 60_000;

/// Serves until the app is stopped, then drains.
pub async fn serve(app: App, router: Router, listener: TcpListener) {
    let looking = tokio::spawn(run_periodic_tasks(app.clone()));
    let connections = TaskTracker::new();
    loop {
        let taken = tokio::select! {
            () = app.stop().cancelled() => break,
            taken = accept(&listener, app.connections()) => taken,
        };
        let Some((stream, admitted)) = taken else { continue };
        connections.spawn(connection(app.clone(), router.clone(), stream, admitted));
    }
    drop(listener);
    connections.close();
    let patience = Duration::from_millis(app.settings().drain_ms);
    if tokio::time::timeout(patience, connections.wait()).await.is_err() {
        tracing::warn!(left = connections.len(), "some connections did not end in time");
    }
    looking.abort();
    let writing = async {
        for organisation in app.organisations() {
            organisation.write_repeated(u64::MAX).await;
        }
    };
    // A store that cannot write does not keep the process from ending.
    if tokio::time::timeout(Duration::from_millis(WRITE_MS), writing).await.is_err() {
        tracing::warn!("repeated refusals could not be written to the audit in time");
    }
}

/// Runs the periodic tasks of the app until this future is dropped.
async fn run_periodic_tasks(app: App) {
    let mut tidy = tokio::time::interval(Duration::from_millis(TIDY_MS));
    let mut look = tokio::time::interval(Duration::from_millis(LOOK_AFTER_MS));
    loop {
        tokio::select! {
            _ = tidy.tick() => app.tidy(),
            _ = look.tick() => app.run_periodic_tasks().await,
        }
    }
}

/// Accepts the next connection. If all are in use, an idle one is closed for it.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Connections>,
) -> Option<(TcpStream, Admitted)> {
    match listener.accept().await {
        Ok((stream, from)) => {
            // Small responses must not wait for more data.
            let _ = stream.set_nodelay(true);
            Some((stream, connections.admit(from.ip()).await))
        }
        Err(error) => {
            // May concern one connection or all of them, such as when file handles run out.
            tracing::warn!(%error, "a connection could not be accepted");
            if is_exhausted(&error) {
                connections.make_room();
            }
            tokio::time::sleep(Duration::from_millis(PAUSE_MS)).await;
            None
        }
    }
}

fn builder(settings: &Settings) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let head = Duration::from_millis(settings.head_ms);
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head).max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(256)
        .keep_alive_interval(Duration::from_millis(PING_MS))
        .keep_alive_timeout(Duration::from_millis(PING_ANSWER_MS));
    builder
}

async fn connection(app: App, router: Router, stream: TcpStream, admitted: Admitted) {
    let connection = admitted.connection();
    let peer = Peer(Arc::clone(connection));
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(peer.clone());
        let router = router.clone();
        async move { Ok::<_, Infallible>(router.answer(request).await) }
    });
    let settings = app.settings();
    let head = Duration::from_millis(settings.head_ms);
    // Longer than a stream waits, so that a slow reader receives the error first.
    let patience = Duration::from_millis(settings.slow_reader_ms.saturating_mul(2));
    let stream = TimeLimitedStream::new(StrictFraming::new(stream), head, patience);
    let builder = builder(settings);
    let served = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = connection.closed() => return,
        () = idle(settings, connection) => return,
        () = app.stop().cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

/// Completes when a connection has had no request for too long.
async fn idle(settings: &Settings, connection: &Connection) {
    loop {
        let ms = if connection.is_signed_in() {
            settings.idle_ms
        } else {
            settings.head_ms.saturating_add(SLACK_MS)
        };
        let patience = Duration::from_millis(ms);
        match connection.idle() {
            Some(idle) if idle >= patience => return,
            Some(idle) => tokio::time::sleep(patience.saturating_sub(idle)).await,
            None => tokio::time::sleep(patience).await,
        }
    }
}
