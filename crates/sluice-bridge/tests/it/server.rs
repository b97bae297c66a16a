//! A scripted HTTP server, well-behaved or not.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How a request is answered.
#[derive(Debug, Clone)]
pub(crate) enum Play {
    /// At once.
    Answer { status: &'static str, headers: &'static str, body: String },
    /// In pieces.
    Stream { parts: Vec<String>, then: Then },
    /// Never.
    Silence,
}

/// What follows the last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// A proper end.
    Ends,
    /// A closed connection.
    Cuts,
    /// Silence.
    Hangs,
}

pub(crate) struct Server {
    pub(crate) url: String,
    heard: Arc<Mutex<Vec<String>>>,
    closed: watch::Receiver<Option<Instant>>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) async fn new(plays: impl IntoIterator<Item = Play>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let plays = Arc::new(Mutex::new(plays.into_iter().collect::<VecDeque<Play>>()));
        let (close, closed) = watch::channel(None);
        let (close, kept) = (Arc::new(close), Arc::clone(&heard));
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let (plays, kept, close) =
                    (Arc::clone(&plays), Arc::clone(&kept), Arc::clone(&close));
                tokio::spawn(async move { serve(stream, &plays, &kept, &close).await });
            }
        });
        Server { url, heard, closed, connections }
    }

    /// The requests so far: head and body.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("the lock is not poisoned").clone()
    }

    /// The number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// When a client closed a hanging connection.
    pub(crate) async fn left(&mut self) -> Instant {
        let left = self.closed.wait_for(Option::is_some).await.expect("the server is there");
        left.expect("it was waited for")
    }
}

async fn serve(
    mut stream: TcpStream,
    plays: &Mutex<VecDeque<Play>>,
    heard: &Mutex<Vec<String>>,
    close: &watch::Sender<Option<Instant>>,
) -> io::Result<()> {
    loop {
        let request = read(&mut stream).await?;
        heard.lock().expect("the lock is not poisoned").push(request);
        let play = plays
            .lock()
            .expect("the lock is not poisoned")
            .pop_front()
            .expect("the script goes on");
        match play {
            Play::Answer { status, headers, body } => {
                let length = body.len();
                let answer =
                    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}");
                stream.write_all(answer.as_bytes()).await?;
            }
            Play::Silence => return leave(&mut stream, close).await,
            Play::Stream { parts, then } => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                stream.write_all(head.as_bytes()).await?;
                for part in parts {
                    let part = format!("{:x}\r\n{part}\r\n", part.len());
                    stream.write_all(part.as_bytes()).await?;
                    stream.flush().await?;
                    // So that pieces arrive separately.
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                match then {
                    Then::Ends => stream.write_all(b"0\r\n\r\n").await?,
                    Then::Cuts => return Ok(()),
                    Then::Hangs => return leave(&mut stream, close).await,
                }
            }
        }
    }
}

async fn leave(stream: &mut TcpStream, close: &watch::Sender<Option<Instant>>) -> io::Result<()> {
    let mut rest = [0; 64];
    while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
    close.send_replace(Some(Instant::now()));
    Ok(())
}

async fn read(stream: &mut TcpStream) -> io::Result<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse::<usize>())?
                    .ok()
            });
            if body.len() >= length.unwrap_or(0) {
                return Ok(text.into_owned());
            }
        }
        let mut part = [0; 4096];
        let read = stream.read(&mut part).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&part[..read]);
    }
}
