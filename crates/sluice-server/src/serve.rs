//! Connections: taken, bounded, drained.
//!
//! A client that is slow to say what it wants, or to take what it is told, is let
//! go; when there are too many
//! connections, new ones wait in the system's own queue. When the server stops,
//! streams end first, then what is under way may finish for a while.

use crate::api::gate::Peer;
use crate::api::router::Router;
use crate::app::App;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use sluice_bridge::patient::Patient;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

/// How long to wait when connections cannot be taken.
const PAUSE_MS: u64 = 50;
/// How often those who asked are forgotten.
const TIDY_MS: u64 = 60_000;

/// Serves until the app is told to stop, then drains.
pub async fn serve(app: App, router: Router, listener: TcpListener) {
    let room = Arc::new(Semaphore::new(app.settings().connections));
    let connections = TaskTracker::new();
    let mut tidy = tokio::time::interval(Duration::from_millis(TIDY_MS));
    loop {
        let room = Arc::clone(&room);
        let taken = tokio::select! {
            () = app.stop().cancelled() => break,
            _ = tidy.tick() => {
                app.tidy();
                continue;
            }
            taken = take(&listener, room) => taken,
        };
        let Some((stream, from, place)) = taken else { continue };
        let (app, router) = (app.clone(), router.clone());
        connections.spawn(async move {
            connection(app, router, stream, from).await;
            drop(place);
        });
    }
    drop(listener);
    connections.close();
    let patience = Duration::from_millis(app.settings().drain_ms);
    if tokio::time::timeout(patience, connections.wait()).await.is_err() {
        tracing::warn!(left = connections.len(), "some connections did not end in time");
    }
}

/// The next connection, when there is room for it.
async fn take(
    listener: &TcpListener,
    room: Arc<Semaphore>,
) -> Option<(TcpStream, IpAddr, tokio::sync::OwnedSemaphorePermit)> {
    let place = room.acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, from)) => {
            // Small answers should not wait for more.
            let _ = stream.set_nodelay(true);
            Some((stream, from.ip(), place))
        }
        Err(error) => {
            // Of one connection, or of all: out of file handles, for example.
            tracing::warn!(%error, "a connection could not be taken");
            tokio::time::sleep(Duration::from_millis(PAUSE_MS)).await;
            None
        }
    }
}

async fn connection(app: App, router: Router, stream: TcpStream, from: IpAddr) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(Peer(from));
        let router = router.clone();
        async move { Ok::<_, Infallible>(router.answer(request).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    let head = Duration::from_millis(app.settings().head_ms);
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(256);
    // One who reads a stream too slowly is told so first.
    let patience = Duration::from_millis(app.settings().slow_reader_ms.saturating_mul(2));
    let stream = Patient::new(stream, head, patience);
    let served = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = app.stop().cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}
