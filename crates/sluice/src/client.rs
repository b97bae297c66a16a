//! A server that is asked instead of a data directory.
//!
//! What it answers is `{data, meta}`; what it refuses is a problem with our codes,
//! told here like a refusal of our own.
//!
//! INVARIANT: the token goes to the server that is named and nowhere else: no
//! redirect is followed, and no proxy of the environment is used.

mod stream;

pub(crate) use stream::{Follow, Sent};

use crate::config;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url, redirect};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sluice_core::visible;
use sluice_server::refused::Refused;
use std::time::Duration;

/// Nobody answers at the address, or it is not Sluice that does.
pub(crate) const SERVER_UNREACHABLE: &str = "server_unreachable";
/// Something that only a data directory can give.
pub(crate) const NEEDS_DATA_DIRECTORY: &str = "needs_data_directory";

/// How long a connection may take to come about.
const CONNECT_MS: u64 = 5000;
/// How long an answer may take.
const ANSWER_MS: u64 = 300_000;
/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What a server refused, or failed to do.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Problem {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) notes: Vec<String>,
    pub(crate) remedy: String,
    status: u16,
}

impl Problem {
    /// Whether a server that starts, stops or is full says so: it may answer soon.
    fn is_for_now(&self) -> bool {
        matches!(self.status, 429 | 503)
    }

    /// Whether it is the server that failed.
    pub(crate) fn is_failure(&self) -> bool {
        self.status >= 500
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) data: Value,
    /// The same as it was sent: numbers keep the way they are written.
    pub(crate) raw: Box<RawValue>,
    pub(crate) next_cursor: Option<String>,
}

impl Answer {
    /// The data as something that is known.
    pub(crate) fn read<T: DeserializeOwned>(self) -> anyhow::Result<T> {
        serde_json::from_value(self.data).map_err(|error| odd(&error.to_string()).into())
    }
}

/// An answer as it is sent.
#[derive(Deserialize)]
struct Whole {
    data: Box<RawValue>,
    meta: Meta,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    next_cursor: Option<String>,
}

/// A server, and who asks it.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: Url,
    token: Option<HeaderValue>,
}

impl Client {
    /// The server that the settings name.
    pub(crate) fn new(url: &str) -> Result<Client, Refused> {
        let unusable = |why: &str| {
            let message = format!("`{}` cannot be asked: {why}", visible::brief(url));
            let remedy = "name it as `http://HOST:PORT` with `--url` or SLUICE_URL";
            Refused::new(SERVER_UNREACHABLE, message, remedy)
        };
        let base = Url::parse(url).map_err(|error| unusable(&error.to_string()))?;
        let token = config::get().token()?.map(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .expect("a token is one word of plain letters");
            value.set_sensitive(true);
            value
        });
        // Whoever was first is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(Duration::from_millis(CONNECT_MS))
            .user_agent(concat!("sluice/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| unusable(&error.to_string()))?;
        Ok(Client { http, base, token })
    }

    /// Where it is, for people.
    pub(crate) fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Asks for something under the API: `["runs", id, "state"]`.
    pub(crate) async fn get(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> anyhow::Result<Answer> {
        let mut url = self.url(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.answer(self.request(Method::GET, url)).await
    }

    /// Asks for something that is a text.
    pub(crate) async fn text(&self, path: &[&str]) -> anyhow::Result<String> {
        let response = self.sent(self.request(Method::GET, self.url(path))).await?;
        let status = response.status();
        let body = bytes(response).await?;
        if !status.is_success() {
            return Err(problem(status, &body).into());
        }
        Ok(String::from_utf8(body).map_err(|_| odd("the answer is no text"))?)
    }

    /// All pages of a list, up to so many rows.
    pub(crate) async fn list(&self, path: &[&str], rows_max: usize) -> anyhow::Result<Vec<Value>> {
        let mut rows: Vec<Value> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let query: Vec<(&str, String)> =
                cursor.take().into_iter().map(|cursor| ("cursor", cursor)).collect();
            let page = self.get(path, &query).await?;
            cursor.clone_from(&page.next_cursor);
            rows.extend(page.read::<Vec<Value>>()?);
            if cursor.is_none() || rows.len() >= rows_max {
                return Ok(rows);
            }
        }
    }

    /// Sends something.
    pub(crate) async fn post(&self, path: &[&str], body: &Value) -> anyhow::Result<Answer> {
        self.send(Method::POST, path, body).await
    }

    /// Sends something in another way.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &[&str],
        body: &Value,
    ) -> anyhow::Result<Answer> {
        let request = self.request(method, self.url(path));
        let request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        self.answer(request).await
    }

    /// Whether it says that it is ready: the status, and what it says.
    pub(crate) async fn ready(&self) -> anyhow::Result<(StatusCode, Value)> {
        let mut url = self.base.clone();
        url.set_path("/readyz");
        let response = self.sent(self.request(Method::GET, url)).await?;
        let status = response.status();
        let body = bytes(response).await?;
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }

    /// A message of an agent, without its text. It may be answered by a stream.
    pub(crate) fn message(&self) -> reqwest::RequestBuilder {
        let mut url = self.base.clone();
        let mut parts = url.path_segments_mut().expect("an address on the web has a path");
        parts.pop_if_empty().push("mcp");
        drop(parts);
        let request = self.http.post(url).header(CONTENT_TYPE, "application/json");
        let request = request.header(ACCEPT, "application/json, text/event-stream");
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, token.clone()),
            None => request,
        }
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        let mut parts = url.path_segments_mut().expect("an address on the web has a path");
        // Each part is written so that it stays one.
        parts.pop_if_empty().extend(["api", "v1"]).extend(path);
        drop(parts);
        url
    }

    fn request(&self, method: Method, url: Url) -> reqwest::RequestBuilder {
        let request = self.http.request(method, url).header(ACCEPT, "application/json");
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, token.clone()),
            None => request,
        }
    }

    async fn sent(&self, request: reqwest::RequestBuilder) -> anyhow::Result<Response> {
        let response = request.timeout(Duration::from_millis(ANSWER_MS)).send().await;
        Ok(response.map_err(|error| self.unreachable(&error))?)
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> anyhow::Result<Answer> {
        let response = self.sent(request).await?;
        let status = response.status();
        let body = bytes(response).await?;
        if !status.is_success() {
            return Err(problem(status, &body).into());
        }
        let whole: Whole =
            serde_json::from_slice(&body).map_err(|error| odd(&error.to_string()))?;
        let data =
            serde_json::from_str(whole.data.get()).map_err(|error| odd(&error.to_string()))?;
        Ok(Answer { data, raw: whole.data, next_cursor: whole.meta.next_cursor })
    }

    /// Nobody there.
    fn unreachable(&self, error: &reqwest::Error) -> Refused {
        let why = if error.is_timeout() {
            "it took too long".to_owned()
        } else {
            // What is under it says more than that something failed.
            let mut cause: &dyn std::error::Error = error;
            while let Some(below) = cause.source() {
                cause = below;
            }
            cause.to_string()
        };
        let message = format!("no server answers at {}: {why}", self.address());
        let remedy = "start one with `sluice serve`, put the address right (SLUICE_URL, `--url`), or \
                      name a directory with `--data DIR`";
        Refused::new(SERVER_UNREACHABLE, message, remedy)
    }
}

/// An answer that no Sluice gives.
fn odd(why: &str) -> Refused {
    let message = format!("what answers is no server of Sluice: {why}");
    Refused::new(SERVER_UNREACHABLE, message, "put the address right: SLUICE_URL, `--url`")
}

/// The body of an answer, if it is not too long.
async fn bytes(mut response: Response) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let cut = |error: reqwest::Error| odd(&error.without_url().to_string());
    while let Some(chunk) = response.chunk().await.map_err(cut)? {
        if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(odd("the answer is too long").into());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// What a server says no with. Somebody else at the address says it otherwise.
fn problem(status: StatusCode, body: &[u8]) -> Problem {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| said[name].as_str().map(str::to_owned);
    let (code, message) = match (text("code"), text("title")) {
        (Some(code), Some(message)) => (code, message),
        _ => {
            let message = format!("what answers is no server of Sluice: it says {status}");
            (SERVER_UNREACHABLE.to_owned(), message)
        }
    };
    let remedy = match status {
        StatusCode::UNAUTHORIZED => {
            "set SLUICE_TOKEN to a token of this server; `sluice tokens create` makes one, and the \
             first is in its data directory"
                .to_owned()
        }
        StatusCode::FORBIDDEN => {
            let said = text("detail").unwrap_or_default();
            format!("{said}; `sluice doctor` shows what the token may do")
        }
        _ => text("detail").unwrap_or_else(|| "put the address right: SLUICE_URL".to_owned()),
    };
    let errors = said["errors"].as_array().cloned().unwrap_or_default();
    let notes = errors.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect();
    Problem { code, message, notes, remedy, status: status.as_u16() }
}

/// Something that makes no sense when a server is asked.
pub(crate) fn only_here(what: &str) -> Refused {
    let message = format!("{what} works on a data directory, not through a server");
    let remedy = "leave it out, or name the directory with `--data DIR`";
    Refused::new(NEEDS_DATA_DIRECTORY, message, remedy)
}

/// A body of fields; those that are nothing are left out.
pub(crate) fn fields<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let given = fields.into_iter().filter(|(_, value)| !value.is_null());
    json!(given.map(|(name, value)| (name.to_owned(), value)).collect::<serde_json::Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_server_keeps_its_code_and_its_notes() {
        let body =
            br#"{"type":"x","title":"the values do not fit","status":422,"code":"invalid_values",
            "detail":"give each","errors":["a: no","b: no"],"request_id":"r"}"#;
        let told = problem(StatusCode::UNPROCESSABLE_ENTITY, body);
        assert_eq!((told.code.as_str(), told.remedy.as_str()), ("invalid_values", "give each"));
        assert_eq!(told.notes, ["a: no", "b: no"]);
        assert!(!told.is_failure());
    }

    #[test]
    fn somebody_else_at_the_address_is_no_server_of_ours() {
        let told = problem(StatusCode::NOT_FOUND, b"<html>nginx</html>");
        assert_eq!(told.code, SERVER_UNREACHABLE);
        let told = problem(StatusCode::UNAUTHORIZED, br#"{"code":"unauthenticated","title":"no"}"#);
        assert!(told.remedy.contains("SLUICE_TOKEN"), "{}", told.remedy);
    }
}
