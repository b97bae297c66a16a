//! A minimal HTTP client.

use super::TOKEN;
use anyhow::Context as _;
use std::net::SocketAddr;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// Longest response.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A keep-alive connection.
pub(super) struct Client(BufReader<TcpStream>);

/// The bytes of a request.
pub(super) fn get(path: &str) -> Vec<u8> {
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
    head.into_bytes()
}

pub(super) fn post(path: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    head.into_bytes()
}

impl Client {
    pub(super) async fn open(address: SocketAddr) -> anyhow::Result<Client> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Client(BufReader::new(stream)))
    }

    /// Sends a request and reads the response.
    pub(super) async fn send(&mut self, request: &[u8]) -> anyhow::Result<(u16, Vec<u8>)> {
        self.0.get_mut().write_all(request).await?;
        let (status, length) = self.head().await?;
        let length = length.context("the answer has no length")?;
        anyhow::ensure!(length <= ANSWER_BYTES_MAX, "the answer is too long");
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await?;
        Ok((status, body))
    }

    /// Sends a request for a stream, and reads the response's head.
    pub(super) async fn follow(&mut self, request: &[u8]) -> anyhow::Result<u16> {
        self.0.get_mut().write_all(request).await?;
        Ok(self.head().await?.0)
    }

    /// The next line of a stream; empty at its end.
    pub(super) async fn line(&mut self, line: &mut String) -> anyhow::Result<usize> {
        line.clear();
        Ok(self.0.read_line(line).await?)
    }

    async fn head(&mut self) -> anyhow::Result<(u16, Option<usize>)> {
        let mut line = String::new();
        self.0.read_line(&mut line).await?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.with_context(|| format!("no answer: {line:?}"))?;
        let mut length = None;
        loop {
            line.clear();
            anyhow::ensure!(self.0.read_line(&mut line).await? > 0, "the answer broke off");
            if line == "\r\n" {
                return Ok((status, length));
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().ok();
            }
        }
    }
}
