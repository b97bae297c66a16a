//! Time limits of a connection: for its first bytes, and for reading responses.
//!
//! INVARIANT: a client that does not read its response, or does not send enough to tell HTTP/1
//! from HTTP/2, holds a connection no longer than the limits allow.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Connection preface of HTTP/2. Until the client has sent it, or something else, the HTTP
/// library does not read a head and so does not apply its own time limit.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream that fails when the client sends or reads too slowly.
#[derive(Debug)]
pub struct TimeLimitedStream<S> {
    stream: S,
    patience: Duration,
    /// Bytes of the preface received so far, and the deadline for the rest.
    greeting: Option<(usize, Pin<Box<Sleep>>)>,
    /// Runs while a write is blocked.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> TimeLimitedStream<S> {
    /// `head` limits the first bytes, `patience` each blocked write.
    pub fn new(stream: S, head: Duration, patience: Duration) -> TimeLimitedStream<S> {
        let greeting = Some((0, Box::pin(tokio::time::sleep(head))));
        TimeLimitedStream { stream, patience, greeting, waiting: None }
    }

    /// Compares the first bytes with the preface.
    fn check_preface(&mut self, bytes: &[u8]) {
        let Some((known, _)) = &mut self.greeting else { return };
        let rest = &PREFACE[*known..];
        let more = bytes.len().min(rest.len());
        *known += more;
        if bytes[..more] != rest[..more] || *known == PREFACE.len() || bytes.is_empty() {
            self.greeting = None;
        }
    }

    /// Passes the result of a write on, or fails when writes were blocked for too long.
    fn or_timeout<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client does not read its response",
        )))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeLimitedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_ready() {
            self.check_preface(&buffer.filled()[before..]);
            return read;
        }
        let Some((_, patience)) = &mut self.greeting else { return Poll::Pending };
        ready!(patience.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client sent no request")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimeLimitedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.or_timeout(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.or_timeout(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_tolerated_and_a_stalled_one_is_disconnected() {
        let (server, mut client) = tokio::io::duplex(4);
        let mut limited =
            TimeLimitedStream::new(server, Duration::from_secs(9), Duration::from_secs(30));
        let slow = async {
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                client.read_exact(&mut [0; 4]).await.expect("something was sent");
            }
        };
        let (written, ()) = futures_util::join!(limited.write_all(&[0; 16]), slow);
        written.expect("the client read in time");
        let began = tokio::time::Instant::now();
        let error = limited.write_all(&[0; 16]).await.expect_err("the client does not read");
        assert_eq!((error.kind(), began.elapsed().as_secs()), (io::ErrorKind::TimedOut, 30));
        drop(client);
    }
}
