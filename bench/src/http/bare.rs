//! Minimal servers: one grouped commit, one broadcast.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::stream;
use rusqlite::Connection;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc, oneshot};

/// A row as long as the first append of a run.
const ROW_BYTES: usize = 700;
/// Most rows in one commit.
const GROUP_MAX: usize = 1024;

type Waiting = oneshot::Sender<()>;

/// A handler that inserts one row and answers when it is durable; waiting requests share
/// a commit.
pub(super) async fn commits() -> anyhow::Result<SocketAddr> {
    let dir = tempfile::tempdir()?;
    let mut connection = Connection::open(dir.path().join("bare.db"))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute_batch("CREATE TABLE row (id INTEGER PRIMARY KEY, body BLOB)")?;
    let (sender, mut waiting) = mpsc::channel::<Waiting>(GROUP_MAX);
    std::thread::spawn(move || -> anyhow::Result<()> {
        let _dir = dir;
        let body = vec![7u8; ROW_BYTES];
        while let Some(first) = waiting.blocking_recv() {
            let mut group = vec![first];
            while group.len() < GROUP_MAX
                && let Ok(next) = waiting.try_recv()
            {
                group.push(next);
            }
            let transaction = connection.transaction()?;
            {
                let mut insert =
                    transaction.prepare_cached("INSERT INTO row (body) VALUES (?1)")?;
                for _ in &group {
                    insert.execute([&body])?;
                }
            }
            transaction.commit()?;
            for one in group {
                // The client may have stopped waiting.
                let _ = one.send(());
            }
        }
        Ok(())
    });
    let handler = move |_: Bytes| {
        let sender = sender.clone();
        async move {
            let (done, wait) = oneshot::channel();
            if sender.send(done).await.is_err() || wait.await.is_err() {
                return StatusCode::INTERNAL_SERVER_ERROR;
            }
            StatusCode::ACCEPTED
        }
    };
    serve(Router::new().route("/row", post(handler))).await
}

/// Streams that broadcast frames to their readers.
pub(super) async fn broadcasts(
    channels: usize,
) -> anyhow::Result<(SocketAddr, Vec<broadcast::Sender<Bytes>>)> {
    let senders: Vec<broadcast::Sender<Bytes>> =
        (0..channels).map(|_| broadcast::channel(1024).0).collect();
    let shared = Arc::new(senders.clone());
    let handler = move |axum::extract::Path(at): axum::extract::Path<usize>| {
        let receiver = shared[at].subscribe();
        async move {
            let frames = stream::unfold(receiver, |mut receiver| async move {
                let frame = receiver.recv().await.ok()?;
                Some((Ok::<_, Infallible>(frame), receiver))
            });
            Response::new(Body::from_stream(frames))
        }
    };
    let address = serve(Router::new().route("/stream/{at}", get(handler))).await?;
    Ok((address, senders))
}

async fn serve(router: Router) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}
