//! Forwards messages of an agent to a server, and its answers back.
//!
//! The server keeps no session: each message is one request. Cancelling a request closes its
//! connection.

mod stream;

use crate::Exit;
use crate::client::HttpClient;
use crate::out::Out;
use anyhow::Context as _;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use sluice_server::limits::BODY_BYTES;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stream::MessageReader;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Most concurrent requests; more are queued.
const AT_ONCE: usize = 32;
/// How long an answer may take; longer than any tool.
const ANSWER_MS: u64 = 120_000;
/// Longest answer.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long pending requests may take after the agent has closed its output.
const END_MS: u64 = 2000;
/// The header with the version of the protocol.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// JSON-RPC: parse error.
const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: server error.
const SERVER_ERROR: i64 = -32000;

/// Forwards messages until the agent closes its output.
pub(super) async fn run(client: HttpClient, out: &mut Out) -> anyhow::Result<Exit> {
    let server = Arc::new(Server { client, version: Mutex::default() });
    let mut lines = read();
    let (sender, mut answers) = mpsc::channel(AT_ONCE);
    let mut flights = JoinSet::new();
    let mut open: BTreeMap<String, AbortHandle> = BTreeMap::new();
    loop {
        let line = tokio::select! {
            biased;
            Some(sent) = answers.recv() => {
                forward(sent, &mut open, out)?;
                continue;
            }
            Some(_) = flights.join_next() => continue,
            line = lines.recv(), if flights.len() < AT_ONCE => line,
        };
        let Some(line) = line else { break };
        let Ok(message) = serde_json::from_slice::<Value>(&line?) else {
            forward(
                Sent::Line(error(&Value::Null, PARSE_ERROR, "not valid JSON", None)),
                &mut open,
                out,
            )?;
            continue;
        };
        if message["method"] == "notifications/cancelled" {
            open.remove(&message["params"]["requestId"].to_string()).inspect(AbortHandle::abort);
            continue;
        }
        let id = message["id"].to_string();
        let (server, sender) = (Arc::clone(&server), sender.clone());
        let flight = flights.spawn(async move { server.carry(message, &sender).await });
        open.insert(id, flight);
    }
    drop(sender);
    let rest = async {
        while let Some(sent) = answers.recv().await {
            forward(sent, &mut open, out)?;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(Duration::from_millis(END_MS), rest).await.unwrap_or(Ok(()))?;
    Ok(Exit::Done)
}

enum Sent {
    Line(Value),
    Over(String),
}

fn forward(
    sent: Sent,
    open: &mut BTreeMap<String, AbortHandle>,
    out: &mut Out,
) -> anyhow::Result<()> {
    match sent {
        Sent::Line(line) => out.json_text(&line.to_string())?,
        Sent::Over(id) => drop(open.remove(&id)),
    }
    out.flush()
}

/// Reads the agent's messages, one per line.
fn read() -> mpsc::Receiver<anyhow::Result<Vec<u8>>> {
    let (sender, lines) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut input = BufReader::new(tokio::io::stdin());
        loop {
            let mut line = Vec::new();
            let most = u64::try_from(BODY_BYTES).unwrap_or(u64::MAX);
            let read = (&mut input).take(most).read_until(b'\n', &mut line).await;
            let line = match read {
                Ok(0) => return,
                Ok(_) if line.len() == BODY_BYTES => Err(anyhow::anyhow!("a message is too long")),
                Ok(_) if line.trim_ascii().is_empty() => continue,
                Ok(_) => Ok(line),
                Err(error) => Err(error).context("cannot read standard input"),
            };
            let last = line.is_err();
            if sender.send(line).await.is_err() || last {
                return;
            }
        }
    });
    lines
}

struct Server {
    client: HttpClient,
    /// The negotiated version of the protocol.
    version: Mutex<Option<String>>,
}

impl Server {
    /// Forwards a message, and returns every answer.
    async fn carry(&self, message: Value, answers: &mpsc::Sender<Sent>) {
        let id = message["id"].clone();
        if let Err(why) = self.exchange(&message, answers).await
            && !id.is_null()
        {
            // Fails only if the agent has ended.
            let _ = answers.send(Sent::Line(why)).await;
        }
        let _ = answers.send(Sent::Over(id.to_string())).await;
    }

    async fn exchange(&self, message: &Value, answers: &mpsc::Sender<Sent>) -> Result<(), Value> {
        let id = &message["id"];
        let lost = |cause: &reqwest::Error| {
            let why = if cause.is_timeout() { "it took too long" } else { "no server answers" };
            let address = self.client.address();
            error(id, SERVER_ERROR, &format!("the server at {address}: {why}"), None)
        };
        let mut response = self.request(message).send().await.map_err(|cause| lost(&cause))?;
        let status = response.status();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let mut lines = match kind {
            Some(kind) if kind.starts_with("text/event-stream") => MessageReader::events(),
            _ => MessageReader::whole(),
        };
        loop {
            let chunk = response.chunk().await.map_err(|cause| lost(&cause))?;
            let over = chunk.is_none();
            let read = match chunk {
                Some(chunk) => lines.feed(&chunk, ANSWER_BYTES_MAX),
                None => lines.end(),
            };
            let read =
                read.ok_or_else(|| error(id, SERVER_ERROR, "an answer is too long", None))?;
            for text in read.into_iter().filter(|text| !text.trim().is_empty()) {
                let answer = answer(id, status, &text)?;
                self.learn(message, &answer);
                let _ = answers.send(Sent::Line(answer)).await;
            }
            if over {
                return Ok(());
            }
        }
    }

    fn request(&self, message: &Value) -> reqwest::RequestBuilder {
        let mut request = self.client.mcp_request().timeout(Duration::from_millis(ANSWER_MS));
        let said = message["params"]["_meta"][VERSION].as_str().map(str::to_owned);
        let agreed = || self.version.lock().expect("the lock is not poisoned").clone();
        let named = [
            ("mcp-protocol-version", said.or_else(agreed)),
            ("mcp-method", message["method"].as_str().map(str::to_owned)),
            ("mcp-name", message["params"]["name"].as_str().map(str::to_owned)),
        ];
        for (name, value) in named {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
                request = request.header(name, value);
            }
        }
        request.body(message.to_string())
    }

    /// Stores the negotiated version.
    fn learn(&self, message: &Value, answer: &Value) {
        let agreed = answer["result"]["protocolVersion"].as_str();
        if message["method"] == "initialize"
            && let Some(agreed) = agreed
        {
            *self.version.lock().expect("the lock is not poisoned") = Some(agreed.to_owned());
        }
    }
}

/// The answers in a response, or its error.
fn answer(id: &Value, status: StatusCode, text: &str) -> Result<Value, Value> {
    let said: Value = serde_json::from_str(text).unwrap_or_default();
    if said["jsonrpc"] == "2.0" {
        return Ok(said);
    }
    let message = match (said["code"].as_str(), said["title"].as_str()) {
        (Some(code), Some(title)) => {
            let remedy = said["detail"].as_str().unwrap_or_default();
            format!("error[{code}]: {title} ({remedy})")
        }
        _ => format!("the server that answers is not Sluice: it answers {status}"),
    };
    Err(error(id, SERVER_ERROR, &message, said["code"].as_str().map(|_| &said)))
}

fn error(id: &Value, code: i64, message: &str, data: Option<&Value>) -> Value {
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data.clone();
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_refuses_is_an_answer_with_its_code() {
        let problem = r#"{"title":"no valid token","code":"unauthenticated","detail":"x"}"#;
        let told = answer(&json!(7), StatusCode::UNAUTHORIZED, problem).unwrap_err();
        assert_eq!(told["id"], 7);
        assert_eq!(told["error"]["message"], "error[unauthenticated]: no valid token (x)");
        assert_eq!(told["error"]["data"]["code"], "unauthenticated");
        let told = answer(&json!("a"), StatusCode::BAD_GATEWAY, "<html>").unwrap_err();
        assert!(told["error"]["message"].as_str().unwrap().contains("502"), "{told}");
        let good = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        assert!(answer(&json!(7), StatusCode::OK, good).is_ok());
    }
}
