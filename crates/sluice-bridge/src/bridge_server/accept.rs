//! Accepts and limits the connections of a bridge.
//!
//! A connection that has sent the key is signed in. When the limit is reached, connections that
//! are not signed in are closed first.

use super::problem::BridgeProblem;
use super::{Inner, routes};
use crate::connection_limits::TimeLimitedStream;
use crate::connections::{Admitted, ConnectionLimits, Connections, RequestInFlight, is_exhausted};
use crate::framing::StrictFraming;
use crate::limits::{CONNECTION_GRACE_MS, CONNECTIONS_MAX, HEAD_MS, SLOW_READER_MS};
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use hyper::body::Body as _;
use hyper::server::conn::http1::Builder;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

/// Pause after a failed accept.
const PAUSE_MS: u64 = 50;

/// Accepts connections until the bridge stops. Returns the tracker of those still open.
pub(super) async fn serve(inner: Arc<Inner>, listener: TcpListener) -> TaskTracker {
    let limits = ConnectionLimits {
        all: CONNECTIONS_MAX,
        organisation: CONNECTIONS_MAX,
        token: CONNECTIONS_MAX,
        // All engines may be behind one address.
        address: CONNECTIONS_MAX,
        grace: Duration::from_millis(CONNECTION_GRACE_MS),
    };
    let all = Arc::new(Connections::new(limits));
    let router = routes::router(Arc::clone(&inner));
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = inner.stop.cancelled() => break,
            accepted = accept(&listener, &all) => accepted,
        };
        let Some((stream, admitted)) = accepted else { continue };
        let serving = serve_connection(
            Arc::clone(&inner),
            Arc::clone(&all),
            router.clone(),
            stream,
            admitted,
        );
        connections.spawn(serving);
    }
    connections.close();
    connections
}

/// Accepts the next connection. At the limit, an idle connection is closed to make room.
async fn accept(listener: &TcpListener, all: &Arc<Connections>) -> Option<(TcpStream, Admitted)> {
    match listener.accept().await {
        Ok((stream, from)) => {
            // Small responses are sent at once.
            let _ = stream.set_nodelay(true);
            Some((stream, all.admit(from.ip()).await))
        }
        Err(error) => {
            // The error concerns one connection, or all of them: out of file
            // handles, for example.
            tracing::warn!(%error, "cannot accept a connection");
            if is_exhausted(&error) {
                all.make_room();
            }
            tokio::time::sleep(Duration::from_millis(PAUSE_MS)).await;
            None
        }
    }
}

/// Keeps the request marked as in flight until a streamed body has ended.
fn until_sent(body: Body, in_flight: RequestInFlight) -> Body {
    if body.size_hint().exact().is_some() {
        return body;
    }
    Body::from_stream(body.into_data_stream().map(move |chunk| {
        let _ = &in_flight;
        chunk
    }))
}

async fn serve_connection(
    inner: Arc<Inner>,
    all: Arc<Connections>,
    router: axum::Router,
    stream: TcpStream,
    admitted: Admitted,
) {
    let router = TowerToHyperService::new(router);
    let client = Arc::clone(admitted.connection());
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        let authenticated = inner.authenticate(request.headers()).is_ok();
        let (all, client, router) = (&all, &client, router.clone());
        async move {
            if !authenticated {
                return router.call(request).await;
            }
            if !all.sign_in(client, "", "") {
                return Ok::<Response, Infallible>(BridgeProblem::overloaded().into_response());
            }
            let in_flight = client.begin();
            let answered = router.call(request).await?;
            Ok(answered.map(|body| until_sent(body, in_flight)))
        }
    });
    let head = Duration::from_millis(HEAD_MS);
    let mut builder = Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head);
    let stream = TimeLimitedStream::new(
        StrictFraming::new(stream),
        head,
        Duration::from_millis(SLOW_READER_MS),
    );
    let served = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = client.closed() => return,
        () = inner.stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended with an error");
    }
}
