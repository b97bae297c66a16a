//! Messages of an agent, taken to a server and its answers back.
//!
//! The server keeps no session: each message is a request of its own. A request
//! that the agent takes back is ended by ending its connection.
//!
//! INVARIANT: the token goes to the server that is named and nowhere else: no
//! redirect is followed, and no proxy of the environment is used.

mod stream;

use crate::Exit;
use crate::config;
use crate::out::Out;
use anyhow::Context as _;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{StatusCode, Url, redirect};
use serde_json::{Value, json};
use sluice_core::visible;
use sluice_server::limits::BODY_BYTES;
use sluice_server::refused::Refused;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stream::Lines;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Most requests at once; more wait.
const AT_ONCE: usize = 32;
/// How long a connection may take to come about.
const CONNECT_MS: u64 = 5000;
/// How long an answer may take: longer than any tool waits.
const ANSWER_MS: u64 = 120_000;
/// Longest answer.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long what is under way may take when the agent has said its last.
const END_MS: u64 = 2000;
/// Where a message says its version of the protocol.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// JSON-RPC: what was sent is no JSON.
const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the server did not do it.
const SERVER_ERROR: i64 = -32000;

/// Takes messages to the server until there are no more.
pub(super) async fn run(server: &str, out: &mut Out) -> anyhow::Result<Exit> {
    let server = Arc::new(Server::new(server)?);
    let mut lines = read();
    let (sender, mut answers) = mpsc::channel(AT_ONCE);
    let mut flights = JoinSet::new();
    let mut open: BTreeMap<String, AbortHandle> = BTreeMap::new();
    loop {
        let line = tokio::select! {
            biased;
            Some(sent) = answers.recv() => {
                tell(sent, &mut open, out)?;
                continue;
            }
            Some(_) = flights.join_next() => continue,
            line = lines.recv(), if flights.len() < AT_ONCE => line,
        };
        let Some(line) = line else { break };
        let Ok(message) = serde_json::from_slice::<Value>(&line?) else {
            tell(
                Sent::Line(error(&Value::Null, PARSE_ERROR, "this is no JSON", None)),
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
            tell(sent, &mut open, out)?;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(Duration::from_millis(END_MS), rest).await.unwrap_or(Ok(()))?;
    Ok(Exit::Done)
}

/// What comes of a message.
enum Sent {
    /// An answer.
    Line(Value),
    /// The last of it.
    Over(String),
}

fn tell(sent: Sent, open: &mut BTreeMap<String, AbortHandle>, out: &mut Out) -> anyhow::Result<()> {
    match sent {
        Sent::Line(line) => out.json_text(&line.to_string())?,
        Sent::Over(id) => drop(open.remove(&id)),
    }
    out.flush()
}

/// The agent's messages, a line each.
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

/// The server.
struct Server {
    http: reqwest::Client,
    url: Url,
    token: Option<HeaderValue>,
    /// The version of the protocol, once it is agreed.
    version: Mutex<Option<String>>,
}

impl Server {
    fn new(address: &str) -> Result<Server, Refused> {
        let unusable = |why: &str| {
            let message = format!("`{}` cannot be asked: {why}", visible::brief(address));
            let remedy = "name it as `http://HOST:PORT` with `--url` or SLUICE_URL";
            Refused::new(config::CONFIG_INVALID, message, remedy)
        };
        let mut url = Url::parse(address).map_err(|error| unusable(&error.to_string()))?;
        let path = format!("{}/mcp", url.path().trim_end_matches('/'));
        url.set_path(&path);
        let token = config::get().token()?.map(|token| {
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            value.map_err(|_| unusable("the token is no plain text"))
        });
        let mut token = token.transpose()?;
        token.iter_mut().for_each(|value| value.set_sensitive(true));
        // Whoever was first is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(Duration::from_millis(CONNECT_MS))
            .timeout(Duration::from_millis(ANSWER_MS))
            .user_agent(concat!("sluice/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| unusable(&error.to_string()))?;
        Ok(Server { http, url, token, version: Mutex::default() })
    }

    /// Takes a message there, and every answer back.
    async fn carry(&self, message: Value, answers: &mpsc::Sender<Sent>) {
        let id = message["id"].clone();
        if let Err(why) = self.exchange(&message, answers).await
            && !id.is_null()
        {
            // Nobody is left to hear it when this fails.
            let _ = answers.send(Sent::Line(why)).await;
        }
        let _ = answers.send(Sent::Over(id.to_string())).await;
    }

    async fn exchange(&self, message: &Value, answers: &mpsc::Sender<Sent>) -> Result<(), Value> {
        let id = &message["id"];
        let lost = |cause: &reqwest::Error| {
            let why = if cause.is_timeout() { "it took too long" } else { "nobody answers" };
            let origin = self.url.origin().ascii_serialization();
            error(id, SERVER_ERROR, &format!("the server at {origin}: {why}"), None)
        };
        let mut response = self.request(message).send().await.map_err(|cause| lost(&cause))?;
        let status = response.status();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let mut lines = match kind {
            Some(kind) if kind.starts_with("text/event-stream") => Lines::events(),
            _ => Lines::whole(),
        };
        loop {
            let chunk = response.chunk().await.map_err(|cause| lost(&cause))?;
            let over = chunk.is_none();
            let read = match chunk {
                Some(chunk) => lines.take(&chunk, ANSWER_BYTES_MAX),
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
        let mut request = self.http.post(self.url.clone());
        request = request.header(CONTENT_TYPE, "application/json");
        request = request.header(ACCEPT, "application/json, text/event-stream");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token.clone());
        }
        let said = message["params"]["_meta"][VERSION].as_str().map(str::to_owned);
        let agreed = || self.version.lock().expect("nobody panics while holding it").clone();
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

    /// Keeps the version that was agreed.
    fn learn(&self, message: &Value, answer: &Value) {
        let agreed = answer["result"]["protocolVersion"].as_str();
        if message["method"] == "initialize"
            && let Some(agreed) = agreed
        {
            *self.version.lock().expect("nobody panics while holding it") = Some(agreed.to_owned());
        }
    }
}

/// An answer, or what the server says instead.
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
        _ => format!("what answers is no server of Sluice: it says {status}"),
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
        let problem = r#"{"title":"no token that counts","code":"unauthenticated","detail":"x"}"#;
        let told = answer(&json!(7), StatusCode::UNAUTHORIZED, problem).unwrap_err();
        assert_eq!(told["id"], 7);
        assert_eq!(told["error"]["message"], "error[unauthenticated]: no token that counts (x)");
        assert_eq!(told["error"]["data"]["code"], "unauthenticated");
        let told = answer(&json!("a"), StatusCode::BAD_GATEWAY, "<html>").unwrap_err();
        assert!(told["error"]["message"].as_str().unwrap().contains("502"), "{told}");
        let good = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        assert!(answer(&json!(7), StatusCode::OK, good).is_ok());
    }
}
