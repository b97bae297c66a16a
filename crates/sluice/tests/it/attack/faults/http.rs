//! One request over a connection of its own.

use crate::world::PATIENCE;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// An answer: its status, and everything that was sent.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) text: String,
}

/// Sends a request with these lines in its head.
pub(super) fn send(address: &str, first: &str, head: &[String], body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let lines: String = head.iter().map(|line| format!("{line}\r\n")).collect();
    let request = format!(
        "{first} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\
         content-type: application/json\r\n{lines}\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    Answer { status: status.unwrap_or_default(), text }
}

/// Whether the server is ready, and its words for it.
pub(super) fn ready(address: &str) -> Answer {
    send(address, "GET /readyz", &[], "")
}

pub(super) fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}")
}

/// Starts a run of a workflow that is registered.
pub(super) fn start(address: &str, token: &str, workflow: &str) -> Answer {
    let body = serde_json::json!({"args": {}}).to_string();
    let path = format!("POST /api/v1/workflows/{workflow}/runs");
    send(address, &path, &[bearer(token)], &body)
}
