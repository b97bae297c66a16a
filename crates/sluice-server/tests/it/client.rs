//! An HTTP client that sends exactly what a test wants, valid or not.
//!
//! It opens a connection for each request, so that tests do not affect each other.

use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How long a response may take before the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum size of a response.
const BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct TestRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl TestRequest {
    pub(crate) fn new(method: &str, target: &str) -> TestRequest {
        TestRequest {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            body: None,
        }
    }

    pub(crate) fn get(target: &str) -> TestRequest {
        TestRequest::new("GET", target)
    }

    pub(crate) fn post(target: &str, body: &Value) -> TestRequest {
        TestRequest::new("POST", target).json(body)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> TestRequest {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn bearer(self, token: &str) -> TestRequest {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn json(self, body: &Value) -> TestRequest {
        self.text("application/json", &body.to_string())
    }

    pub(crate) fn text(mut self, media: &str, body: &str) -> TestRequest {
        self.body = Some(body.as_bytes().to_vec());
        self.header("content-type", media)
    }

    /// The request as bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let TestRequest { method, target, headers, body } = self;
        let mut head = format!("{method} {target} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if let Some(body) = body {
            head += &format!("content-length: {}\r\n", body.len());
        }
        let mut bytes = format!("{head}\r\n").into_bytes();
        bytes.extend(body.iter().flatten());
        bytes
    }
}

#[derive(Debug, Clone)]
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl TestResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(one, _)| one == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    /// The code of a problem; empty for a success.
    pub(crate) fn code(&self) -> String {
        if self.status < 400 || self.body.is_empty() {
            return String::new();
        }
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// A connection whose response is being read.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    /// Bytes that were received and not parsed yet.
    left: Vec<u8>,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    chunked: bool,
}

pub(crate) async fn connect(to: SocketAddr) -> TcpStream {
    let connecting = tokio::time::timeout(PATIENCE, TcpStream::connect(to));
    connecting.await.expect("a connection in time").unwrap()
}

/// Sends a request and reads the head of the response.
pub(crate) async fn begin(to: SocketAddr, request: &TestRequest) -> Wire {
    let mut stream = connect(to).await;
    stream.write_all(&request.bytes()).await.unwrap();
    Wire::head(stream).await.expect("an answer")
}

/// Sends bytes as they are, and reads the response; `None` if there is none.
pub(crate) async fn raw(to: SocketAddr, bytes: &[u8]) -> Option<TestResponse> {
    let mut stream = connect(to).await;
    stream.write_all(bytes).await.ok()?;
    Some(Wire::head(stream).await?.response().await)
}

impl Wire {
    /// Reads the head of a response; `None` if the connection ends first.
    pub(crate) async fn head(stream: TcpStream) -> Option<Wire> {
        let mut wire =
            Wire { stream, left: Vec::new(), status: 0, headers: Vec::new(), chunked: false };
        let end = loop {
            if let Some(at) = find(&wire.left, b"\r\n\r\n") {
                break at;
            }
            if !wire.more().await {
                return None;
            }
        };
        let head = String::from_utf8(wire.left.drain(..end + 4).collect()).unwrap();
        let mut lines = head.lines();
        wire.status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let pair = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        wire.headers = lines.filter_map(pair).collect();
        wire.chunked = wire.header("transfer-encoding") == Some("chunked");
        Some(wire)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(one, _)| one == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Reads more bytes; false at the end.
    async fn more(&mut self) -> bool {
        let mut bytes = vec![0; 64 * 1024];
        let reading = tokio::time::timeout(PATIENCE, self.stream.read(&mut bytes));
        let read = reading.await.expect("bytes in time").unwrap_or(0);
        self.left.extend(&bytes[..read]);
        assert!(self.left.len() < BYTES_MAX, "the answer is too long");
        read > 0
    }

    /// The next chunk of a chunked body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        assert!(self.chunked, "the body does not come in chunks");
        loop {
            if let Some(end) = find(&self.left, b"\r\n") {
                let size = std::str::from_utf8(&self.left[..end]).unwrap();
                let size = usize::from_str_radix(size, 16).unwrap();
                if size == 0 {
                    return None;
                }
                if self.left.len() >= end + size + 4 {
                    let chunk = self.left[end + 2..end + 2 + size].to_vec();
                    self.left.drain(..end + size + 4);
                    return Some(chunk);
                }
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Reads the rest of the response.
    pub(crate) async fn response(mut self) -> TestResponse {
        let mut body = Vec::new();
        if self.chunked {
            while let Some(chunk) = self.chunk().await {
                body.extend(chunk);
            }
        } else {
            while self.more().await {}
            body = std::mem::take(&mut self.left);
        }
        TestResponse { status: self.status, headers: self.headers, body }
    }
}

pub(crate) fn find(within: &[u8], what: &[u8]) -> Option<usize> {
    within.windows(what.len()).position(|window| window == what)
}
