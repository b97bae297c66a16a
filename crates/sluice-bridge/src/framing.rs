//! Rejects HTTP/1 requests with an ambiguous end (request smuggling).
//!
//! A proxy in front of the server and the server itself must agree where a request ends;
//! otherwise a client can hide one request in the body of another. The HTTP library accepts a
//! head with both `Transfer-Encoding` and `Content-Length`, and a line that ends without a
//! carriage return. This wrapper parses the stream alongside the library and makes the library
//! answer such a head with status 400: it replaces the offending byte with an invalid one and
//! ends the head after it.
//!
//! INVARIANT: a head is passed on only if every line ends with CR LF and it has at most one of
//! the two headers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Prefix of a line that is examined. The headers of interest are shorter.
const LINE_BYTES_MAX: usize = 256;
/// Ends a rejected head. The NUL byte before it makes the head invalid.
const END: &[u8] = b"\r\n\r\n";

/// A connection with HTTP/1 requests, or with HTTP/2, which has explicit framing.
#[derive(Debug)]
pub struct StrictFraming<S> {
    stream: S,
    requests: RequestParser,
    /// Set when a head was rejected: number of bytes of `END` that were passed on.
    refused: Option<usize>,
}

impl<S> StrictFraming<S> {
    /// Wraps a stream at its beginning.
    pub fn new(stream: S) -> StrictFraming<S> {
        StrictFraming { stream, requests: RequestParser::default(), refused: None }
    }
}

/// The part of a request that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum RequestPart {
    #[default]
    Head,
    Body(u64),
    ChunkSize(u64),
    /// Rest of the line with the chunk's size.
    ChunkLine(u64),
    Chunk(u64),
    /// Bytes left of the line end after a chunk.
    ChunkEnd(u8),
    Trailer,
    /// Not examined: another protocol, or a request that the library rejects itself.
    Any,
}

/// Parser state.
#[derive(Debug, Default)]
struct RequestParser {
    part: RequestPart,
    line: Vec<u8>,
    /// Whether `line` holds the complete line.
    whole: bool,
    /// Whether the previous byte was a carriage return.
    after_cr: bool,
    begun: bool,
    length: Option<u64>,
    chunked: bool,
}

impl RequestParser {
    /// Parses bytes. Returns the index of the first rejected one.
    fn read(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let left = u64::try_from(bytes.len() - at).unwrap_or(u64::MAX);
            match self.part {
                RequestPart::Any => return None,
                RequestPart::Body(rest) | RequestPart::Chunk(rest) => {
                    let taken = rest.min(left);
                    self.consumed(rest - taken);
                    at += usize::try_from(taken).unwrap_or(usize::MAX);
                    continue;
                }
                RequestPart::Head | RequestPart::Trailer => {
                    let text = self.line_text(&bytes[at..]);
                    if text > 0 {
                        at += text;
                        continue;
                    }
                    if !self.line_end_byte(*byte) {
                        return Some(at);
                    }
                }
                RequestPart::ChunkSize(size) => self.size_byte(size, *byte),
                RequestPart::ChunkLine(size) if *byte == b'\n' => self.begin_chunk(size),
                RequestPart::ChunkLine(_) => {}
                RequestPart::ChunkEnd(2) => self.part = RequestPart::ChunkEnd(1),
                RequestPart::ChunkEnd(_) => self.part = RequestPart::ChunkSize(0),
            }
            at += 1;
        }
        None
    }

    /// Consumes body or chunk bytes; `rest` are left.
    fn consumed(&mut self, rest: u64) {
        self.part = match (self.part, rest) {
            (RequestPart::Body(_), 0) => RequestPart::Head,
            (RequestPart::Body(_), rest) => RequestPart::Body(rest),
            (_, 0) => RequestPart::ChunkEnd(2),
            (_, rest) => RequestPart::Chunk(rest),
        };
    }

    fn size_byte(&mut self, size: u64, byte: u8) {
        let digit = char::from(byte).to_digit(16).map(u64::from);
        self.part = match digit {
            Some(digit) => match size.checked_mul(16).and_then(|size| size.checked_add(digit)) {
                Some(size) => RequestPart::ChunkSize(size),
                // The library rejects the overflow.
                None => RequestPart::Any,
            },
            None => RequestPart::ChunkLine(size),
        };
    }

    fn begin_chunk(&mut self, size: u64) {
        self.part = if size == 0 { RequestPart::Trailer } else { RequestPart::Chunk(size) };
        self.begin_line();
    }

    fn begin_line(&mut self) {
        self.line.clear();
        self.whole = true;
        self.after_cr = false;
    }

    /// Keeps the text of a line up to its end; returns how many bytes it has.
    fn line_text(&mut self, bytes: &[u8]) -> usize {
        if self.after_cr {
            return 0;
        }
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let text = bytes.iter().position(is_end).unwrap_or(bytes.len());
        let kept = text.min(LINE_BYTES_MAX - self.line.len());
        self.whole &= kept == text;
        self.line.extend_from_slice(&bytes[..kept]);
        text
    }

    /// Parses a byte at the end of a line; false if it is rejected.
    fn line_end_byte(&mut self, byte: u8) -> bool {
        if byte == b'\n' {
            return self.after_cr && self.line_ends();
        }
        if self.after_cr {
            // The library rejects a carriage return within a line.
            self.part = RequestPart::Any;
        }
        self.after_cr = true;
        true
    }

    fn line_ends(&mut self) -> bool {
        let mut line = std::mem::take(&mut self.line);
        let whole = std::mem::replace(&mut self.whole, true);
        self.after_cr = false;
        let mut accepted = true;
        match (self.part, line.is_empty()) {
            (RequestPart::Trailer, true) => self.next_request(RequestPart::Head),
            (RequestPart::Trailer, false) => {}
            // Empty lines before a request are skipped.
            (_, true) if !self.begun => {}
            (_, true) => accepted = self.head_ends(),
            (_, false) if !self.begun => {
                self.begun = true;
                if line == b"PRI * HTTP/2.0" {
                    self.part = RequestPart::Any;
                }
            }
            (_, false) => self.header(&line, whole),
        }
        line.clear();
        self.line = line;
        accepted
    }

    fn header(&mut self, line: &[u8], whole: bool) {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let name = parts.next().unwrap_or_default();
        let value = parts.next().unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.chunked = true;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let length = std::str::from_utf8(value).ok().filter(|_| whole);
            match length.and_then(|length| length.parse().ok()) {
                Some(length) => self.length = Some(length),
                // The library rejects it.
                None => self.part = RequestPart::Any,
            }
        }
    }

    fn head_ends(&mut self) -> bool {
        match (self.chunked, self.length) {
            (true, Some(_)) => return false,
            (true, None) => self.next_request(RequestPart::ChunkSize(0)),
            (false, Some(length)) if length > 0 => self.next_request(RequestPart::Body(length)),
            (false, _) => self.next_request(RequestPart::Head),
        }
        true
    }

    fn next_request(&mut self, part: RequestPart) {
        *self = RequestParser { part, ..RequestParser::default() };
        self.begin_line();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StrictFraming<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(handed_on) = self.refused {
            let rest = &END[handed_on..];
            let more = rest.len().min(buffer.remaining());
            buffer.put_slice(&rest[..more]);
            self.refused = Some(handed_on + more);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let read = &mut buffer.filled_mut()[before..];
        if let Some(at) = self.requests.read(read) {
            read[at] = 0;
            buffer.set_filled(before + at + 1);
            self.refused = Some(0);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StrictFraming<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
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

    /// Index of the rejected byte. Parsed in pieces of every size: the index must always be
    /// the same.
    fn refused(bytes: &str) -> Option<usize> {
        let by = |size: usize| {
            let mut requests = RequestParser::default();
            let mut before = 0;
            for piece in bytes.as_bytes().chunks(size) {
                if let Some(at) = requests.read(piece) {
                    return Some(before + at);
                }
                before += piece.len();
            }
            None
        };
        let whole = by(bytes.len().max(1));
        for size in 1..bytes.len().min(20) {
            assert_eq!(by(size), whole, "in pieces of {size}: {bytes:?}");
        }
        whole
    }

    const GET: &str = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

    #[test]
    fn consecutive_requests_are_separated() {
        let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(5000));
        let requests = [
            GET,
            "\r\nPOST / HTTP/1.1\r\ncontent-length: 7\r\n\r\na\nb\n\n\nc",
            "POST / HTTP/1.1\r\nContent-Length:0\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\n\n\n\n\r\nA; x=\"y\"\r\n\
             0\n2\n4\n6\n8\n\r\n0\r\ntrailer: x\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            &long,
        ];
        let all = requests.concat();
        assert_eq!(refused(&all.repeat(2)), None);
        let bare = format!("{all}GET / HTTP/1.1\n");
        assert_eq!(refused(&bare), Some(bare.len() - 1), "the parser reached the end");
    }

    #[test]
    fn two_lengths_and_bare_line_feeds_are_rejected_where_they_occur() {
        for both in [
            "content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n",
            "Transfer-Encoding: chunked\r\nx: y\r\nCONTENT-LENGTH: 4\r\n\r\n",
            "transfer-encoding: identity\r\ncontent-length: 4\r\n\r\n",
        ] {
            let request = format!("{GET}POST / HTTP/1.1\r\n{both}");
            assert_eq!(refused(&request), Some(request.len() - 1), "{both}");
        }
        for (bare, at) in [
            ("GET / HTTP/1.1\nhost: x\r\n\r\n", 14),
            ("GET / HTTP/1.1\r\nhost: x\n\r\n", 23),
            ("GET / HTTP/1.1\r\nhost: x\r\n\n", 25),
            ("\nGET / HTTP/1.1\r\n", 0),
            ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: y\n\r\n", 54),
        ] {
            assert_eq!(refused(bare), Some(at), "{bare:?}");
        }
    }

    #[test]
    fn another_protocol_is_not_examined() {
        assert_eq!(refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\n\n\n"), None);
    }
}
