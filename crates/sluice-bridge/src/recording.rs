//! Format of a recording: a JSON Lines file with one exchange with a provider per line.
//!
//! The first line has the format version. An exchange is identified by step, dispatch number
//! and request number. Tool calls are recorded with input and answer, independent of the
//! transport of their server.
//!
//! INVARIANT: a recording contains no known secret. Only the values of known headers are
//! recorded, and no query value with a name that looks like a key.

mod redact_stream;

use crate::media::{File, FileContent};
use crate::secret::known;
use crate::secret::scrub::REDACTED;
use crate::wire::RequestIndex;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Format version.
pub(crate) const VERSION: u32 = 1;
/// Request headers that are recorded with their values.
const ASKED_HEADERS: [&str; 4] =
    ["accept", "content-type", "anthropic-version", "mcp-protocol-version"];
/// Response headers that are recorded.
const ANSWERED_HEADERS: [&str; 6] = [
    "content-type",
    "request-id",
    "retry-after",
    "retry-after-ms",
    "x-request-id",
    "x-should-retry",
];
/// A query parameter with one of these words in its name is redacted.
const KEY_NAMES: [&str; 7] = ["key", "token", "secret", "sig", "password", "auth", "code"];
/// Field of a dispatch that authorises its result.
const TOKEN_FIELD: &str = "dispatch_token";

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RecordingHeader {
    pub(crate) sluice_recording: u32,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedExchange {
    /// Step id; empty outside of steps.
    pub(crate) step: String,
    pub(crate) dispatch_no: u32,
    /// Number of the request within the dispatch.
    pub(crate) number: u32,
    #[serde(rename = "asked")]
    pub(crate) request: RecordedRequest,
    pub(crate) outcome: RecordedOutcome,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedRequest {
    /// HTTP method; `TOOL` for a tool call, `TOOLS` for a tool list.
    pub(crate) method: String,
    /// URL; `tool:server.tool` for a tool.
    pub(crate) url: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: RecordedBody,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedBody {
    Json(Value),
    /// Text that is not JSON.
    Text(String),
    /// Binary data.
    Base64(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedOutcome {
    Answered {
        status: u16,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
        /// Chunks of the body as they arrived.
        chunks: Vec<RecordedChunk>,
        end: ResponseEnd,
    },
    /// No response.
    Failed(RecordedFailure),
}

/// A chunk of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedChunk {
    Text(String),
    /// Binary data.
    Base64(String),
}

/// How a response ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResponseEnd {
    /// Read to its end.
    Whole,
    /// The caller dropped the rest.
    Left,
    Failed(RecordedFailure),
}

/// Why there is no response, or no complete one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedFailure {
    /// The server could not be reached; earlier versions did not record why.
    Unreachable,
    /// The server could not be reached: why.
    Unreached(String),
    Late,
    Broken,
    /// The response exceeded this many bytes.
    TooLong(usize),
    /// The request was not sent, or a tool server failed: why.
    Refused(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input_schema: Value,
    pub(crate) read_only: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedAnswer {
    pub(crate) text: String,
    pub(crate) failed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) structured: Option<serde_json::Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<RecordedFile>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedFile {
    mime: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl From<&File> for RecordedFile {
    fn from(file: &File) -> RecordedFile {
        let (data, url) = match &file.content {
            FileContent::Base64(data) => (Some(data.clone()), None),
            FileContent::Url(url) => (None, Some(url.clone())),
        };
        RecordedFile { mime: file.mime.clone(), data, url }
    }
}

impl From<RecordedFile> for File {
    fn from(kept: RecordedFile) -> File {
        let content = match (kept.data, kept.url) {
            (Some(data), _) => FileContent::Base64(data),
            (None, url) => FileContent::Url(url.unwrap_or_default()),
        };
        File { mime: kept.mime, content }
    }
}

impl RecordedExchange {
    pub(crate) fn matches(&self, index: RequestIndex<'_>) -> bool {
        (self.dispatch_no, self.number) == (index.dispatch_no, index.number)
            && self.step == redacted(index.step)
    }

    /// Name for messages.
    pub(crate) fn name(&self) -> String {
        let index =
            RequestIndex { step: &self.step, dispatch_no: self.dispatch_no, number: self.number };
        request_name(index, &self.request)
    }
}

/// Name of a request for messages.
pub(crate) fn request_name(index: RequestIndex<'_>, request: &RecordedRequest) -> String {
    let RequestIndex { step, dispatch_no, number } = index;
    let RecordedRequest { method, url, .. } = request;
    format!("step `{step}`, dispatch {dispatch_no}, request {number} ({method} {url})")
}

/// The text without known secrets.
pub(crate) fn redacted(text: &str) -> String {
    known::process().scrub().text(text).into_owned()
}

impl RecordedRequest {
    /// The recorded form of a request, which a replay compares.
    pub(crate) fn request(request: &crate::outbound::Request) -> RecordedRequest {
        RecordedRequest {
            method: redacted(request.method.as_str()),
            url: url(&request.url),
            headers: asked_headers(&request.headers),
            body: body(&request.body),
        }
    }

    /// The recorded form of a tool call.
    pub(crate) fn tool(tool: &str, input: &Value) -> RecordedRequest {
        let mut input = input.clone();
        known::process().scrub().value(&mut input);
        let url = redacted(&format!("tool:{tool}"));
        RecordedRequest {
            method: "TOOL".to_owned(),
            url,
            headers: BTreeMap::new(),
            body: RecordedBody::Json(input),
        }
    }

    /// The recorded form of a tool list.
    pub(crate) fn tools(server: &str) -> RecordedRequest {
        let url = redacted(&format!("tool:{server}.*"));
        let body = RecordedBody::Json(Value::Null);
        RecordedRequest { method: "TOOLS".to_owned(), url, headers: BTreeMap::new(), body }
    }
}

impl RecordedChunk {
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> RecordedChunk {
        match String::from_utf8(bytes) {
            Ok(text) => RecordedChunk::Text(text),
            Err(error) => RecordedChunk::Base64(STANDARD.encode(error.as_bytes())),
        }
    }

    /// The bytes; `None` if the base64 is invalid.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            RecordedChunk::Text(text) => Some(text.clone().into_bytes()),
            RecordedChunk::Base64(text) => STANDARD.decode(text).ok(),
        }
    }
}

/// Chunks of a response. If a secret is found, perhaps across chunks or events, the response is
/// redacted as a whole and becomes one chunk.
pub(crate) fn chunks(parts: Vec<Vec<u8>>) -> Vec<RecordedChunk> {
    let (scrub, whole) = (known::process().scrub(), parts.concat());
    let clean = std::str::from_utf8(&whole)
        .ok()
        .and_then(|text| redact_stream::redact_stream(&scrub, text));
    let clean = clean.map(String::into_bytes);
    match scrub.bytes(clean.as_deref().unwrap_or(&whole)).or(clean) {
        Some(clean) => vec![RecordedChunk::from_bytes(clean)],
        None => parts.into_iter().map(RecordedChunk::from_bytes).collect(),
    }
}

/// The recorded headers of a response.
pub(crate) fn answered_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let kept = |name: &str| ANSWERED_HEADERS.contains(&name) || name.contains("ratelimit");
    let scrub = known::process().scrub();
    let clean = headers.iter().filter(|(name, _)| kept(name.as_str()));
    clean
        .filter_map(|(name, value)| {
            let name = scrub.text(name.as_str()).into_owned();
            Some((name, scrub.text(value.to_str().ok()?).into_owned()))
        })
        .collect()
}

/// Every header name is recorded, but only few values.
fn asked_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let scrub = known::process().scrub();
    let clean = headers.iter().map(|(name, value)| {
        let open = ASKED_HEADERS.contains(&name.as_str()) && !value.is_sensitive();
        let text = value.to_str().ok().filter(|_| open).unwrap_or(REDACTED);
        (scrub.text(name.as_str()).into_owned(), scrub.text(text).into_owned())
    });
    clean.collect()
}

fn body(bytes: &[u8]) -> RecordedBody {
    let clean = known::process().scrub().bytes(bytes);
    let bytes = clean.as_deref().unwrap_or(bytes);
    if let Ok(mut value) = serde_json::from_slice::<Value>(bytes) {
        if let Some(token) = value.get_mut(TOKEN_FIELD) {
            *token = REDACTED.into();
        }
        return RecordedBody::Json(value);
    }
    match RecordedChunk::from_bytes(bytes.to_vec()) {
        RecordedChunk::Text(text) => RecordedBody::Text(text),
        RecordedChunk::Base64(text) => RecordedBody::Base64(text),
    }
}

/// Redacts query values with names that look like keys.
fn url(text: &str) -> String {
    let clean = redacted(text);
    let Ok(mut url) = Url::parse(&clean) else { return clean };
    if url.query().is_none() {
        return clean;
    }
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let is_key = |name: &str| {
        let name = name.to_ascii_lowercase();
        KEY_NAMES.iter().any(|word| name.contains(word))
    };
    let mut query = url.query_pairs_mut();
    query.clear();
    for (name, value) in &pairs {
        query.append_pair(name, if is_key(name) { REDACTED } else { value });
    }
    drop(query);
    url.to_string()
}
