//! Connections of a station: taken, bounded, ended.

use super::{Inner, door};
use crate::limits::{CONNECTIONS_MAX, HEAD_MS, SLOW_READER_MS};
use crate::patient::Patient;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

/// How long to wait when connections cannot be taken.
const PAUSE_MS: u64 = 50;

/// Takes connections until the station stops. Answers with those that are open.
pub(super) async fn serve(inner: Arc<Inner>, listener: TcpListener) -> TaskTracker {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let router = door::router(Arc::clone(&inner));
    let connections = TaskTracker::new();
    loop {
        let taken = tokio::select! {
            () = inner.stop.cancelled() => break,
            taken = take(&listener, Arc::clone(&room)) => taken,
        };
        let Some((stream, place)) = taken else { continue };
        let (inner, router) = (Arc::clone(&inner), router.clone());
        connections.spawn(async move {
            connection(&inner, router, stream).await;
            drop(place);
        });
    }
    connections.close();
    connections
}

/// The next connection, when there is room for it.
async fn take(
    listener: &TcpListener,
    room: Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let place = room.acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Small answers should not wait for more.
            let _ = stream.set_nodelay(true);
            Some((stream, place))
        }
        Err(error) => {
            // Of one connection, or of all: out of file handles, for example.
            tracing::warn!(%error, "a connection could not be taken");
            tokio::time::sleep(Duration::from_millis(PAUSE_MS)).await;
            None
        }
    }
}

async fn connection(inner: &Inner, router: axum::Router, stream: TcpStream) {
    let service = TowerToHyperService::new(router);
    let head = Duration::from_millis(HEAD_MS);
    let mut builder = Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head);
    let stream = Patient::new(stream, head, Duration::from_millis(SLOW_READER_MS));
    let served = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = inner.stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}
