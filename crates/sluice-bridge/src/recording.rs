//! What is kept of exchanges with providers: a file of JSON, one exchange a line.
//!
//! The first line says that it is a recording, and of which version. An exchange is
//! found again by its place: the step, which dispatch of it, and which request of
//! that dispatch. Calls of tools are kept beside requests, as what was asked of the
//! tool and what it answered, however its server is reached.
//!
//! INVARIANT: no secret that is known is in a recording. Of headers only those are
//! kept whose meaning is known; of a query, no value that looks like a key.

mod events;

use crate::media::{File, FileContent};
use crate::secret::known;
use crate::secret::scrub::REDACTED;
use crate::wire::Place;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of what is written.
pub(crate) const VERSION: u32 = 1;
/// Headers of requests that are kept with what they say.
const ASKED_HEADERS: [&str; 4] =
    ["accept", "content-type", "anthropic-version", "mcp-protocol-version"];
/// Headers of answers that are kept.
const ANSWERED_HEADERS: [&str; 6] = [
    "content-type",
    "request-id",
    "retry-after",
    "retry-after-ms",
    "x-request-id",
    "x-should-retry",
];
/// What names of values in a query hold that are keys.
const KEY_NAMES: [&str; 7] = ["key", "token", "secret", "sig", "password", "auth", "code"];
/// The field of a dispatch that lets somebody answer it.
const TOKEN_FIELD: &str = "dispatch_token";

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The version.
    pub(crate) sluice_recording: u32,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Exchange {
    /// The step; empty for what belongs to none.
    pub(crate) step: String,
    /// Which dispatch of it.
    pub(crate) dispatch_no: u32,
    /// Which request of that.
    pub(crate) number: u32,
    /// What was asked.
    pub(crate) asked: Asked,
    /// What came of it.
    pub(crate) outcome: Outcome,
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// How; `TOOL` for a call of a tool, `TOOLS` for a list of them.
    pub(crate) method: String,
    /// Where; `tool:server.tool` for a tool.
    pub(crate) url: String,
    /// What was said beside it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, String>,
    /// What was sent.
    pub(crate) body: Body,
}

/// What was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Body {
    /// JSON.
    Json(Value),
    /// Another text.
    Text(String),
    /// No text.
    Base64(String),
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// An answer.
    Answered {
        /// The status.
        status: u16,
        /// What was said beside it.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
        /// Its parts as they came.
        chunks: Vec<Chunk>,
        /// How it ended.
        end: End,
    },
    /// None.
    Failed(Failure),
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Chunk {
    /// Text.
    Text(String),
    /// Anything else.
    Base64(String),
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    /// It was read to its end.
    Whole,
    /// Nobody wanted the rest.
    Left,
    /// It broke.
    Failed(Failure),
}

/// Why there is no answer, or no whole one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Failure {
    /// The server could not be reached; recordings of earlier versions do not say why.
    Unreachable,
    /// The server could not be reached: why.
    Unreached(String),
    /// It took too long.
    Late,
    /// It broke off.
    Broken,
    /// It was longer than so many bytes.
    TooLong(usize),
    /// It was not asked, or a tool could not be: why.
    Refused(String),
}

/// A tool, as a recording keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input_schema: Value,
    pub(crate) read_only: bool,
}

/// A tool's answer, as a recording keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptAnswer {
    pub(crate) text: String,
    pub(crate) failed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) structured: Option<serde_json::Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<KeptFile>,
}

/// A file in what a tool answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptFile {
    mime: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl From<&File> for KeptFile {
    fn from(file: &File) -> KeptFile {
        let (data, url) = match &file.content {
            FileContent::Base64(data) => (Some(data.clone()), None),
            FileContent::Url(url) => (None, Some(url.clone())),
        };
        KeptFile { mime: file.mime.clone(), data, url }
    }
}

impl From<KeptFile> for File {
    fn from(kept: KeptFile) -> File {
        let content = match (kept.data, kept.url) {
            (Some(data), _) => FileContent::Base64(data),
            (None, url) => FileContent::Url(url.unwrap_or_default()),
        };
        File { mime: kept.mime, content }
    }
}

impl Exchange {
    pub(crate) fn is_at(&self, place: Place<'_>) -> bool {
        (self.step.as_str(), self.dispatch_no, self.number)
            == (place.step, place.dispatch_no, place.number)
    }

    /// Where it is, for people.
    pub(crate) fn name(&self) -> String {
        let place = Place { step: &self.step, dispatch_no: self.dispatch_no, number: self.number };
        named(place, &self.asked)
    }
}

/// A place and what is asked there, for people.
pub(crate) fn named(place: Place<'_>, asked: &Asked) -> String {
    let Place { step, dispatch_no, number } = place;
    let Asked { method, url, .. } = asked;
    format!("step `{step}`, dispatch {dispatch_no}, request {number} ({method} {url})")
}

impl Asked {
    /// A request, as it is kept and compared.
    pub(crate) fn request(request: &crate::outbound::Request) -> Asked {
        Asked {
            method: request.method.to_string(),
            url: url(&request.url),
            headers: asked_headers(&request.headers),
            body: body(&request.body),
        }
    }

    /// A call of a tool.
    pub(crate) fn tool(tool: &str, input: &Value) -> Asked {
        let mut input = input.clone();
        known::process().scrub().value(&mut input);
        let url = format!("tool:{tool}");
        Asked { method: "TOOL".to_owned(), url, headers: BTreeMap::new(), body: Body::Json(input) }
    }

    /// A list of a server's tools.
    pub(crate) fn tools(server: &str) -> Asked {
        let url = format!("tool:{server}.*");
        let body = Body::Json(Value::Null);
        Asked { method: "TOOLS".to_owned(), url, headers: BTreeMap::new(), body }
    }
}

impl Chunk {
    pub(crate) fn of(bytes: Vec<u8>) -> Chunk {
        match String::from_utf8(bytes) {
            Ok(text) => Chunk::Text(text),
            Err(error) => Chunk::Base64(STANDARD.encode(error.as_bytes())),
        }
    }

    /// The bytes; none if they are not what they are said to be.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Chunk::Text(text) => Some(text.clone().into_bytes()),
            Chunk::Base64(text) => STANDARD.decode(text).ok(),
        }
    }
}

/// The parts of an answer. Where a secret is in it, perhaps across parts or events,
/// it is taken out of the whole, which is then one part.
pub(crate) fn chunks(parts: Vec<Vec<u8>>) -> Vec<Chunk> {
    let (scrub, whole) = (known::process().scrub(), parts.concat());
    let said = std::str::from_utf8(&whole).ok().and_then(|text| events::clean(&scrub, text));
    let said = said.map(String::into_bytes);
    match scrub.bytes(said.as_deref().unwrap_or(&whole)).or(said) {
        Some(clean) => vec![Chunk::of(clean)],
        None => parts.into_iter().map(Chunk::of).collect(),
    }
}

/// What an answer says beside itself, as far as it is kept.
pub(crate) fn answered_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let kept = |name: &str| ANSWERED_HEADERS.contains(&name) || name.contains("ratelimit");
    let scrub = known::process().scrub();
    let said = headers.iter().filter(|(name, _)| kept(name.as_str()));
    said.filter_map(|(name, value)| {
        Some((name.to_string(), scrub.text(value.to_str().ok()?).into_owned()))
    })
    .collect()
}

/// Every name is kept, so that one sees what was said; of values few.
fn asked_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let scrub = known::process().scrub();
    let said = headers.iter().map(|(name, value)| {
        let open = ASKED_HEADERS.contains(&name.as_str()) && !value.is_sensitive();
        let text = value.to_str().ok().filter(|_| open).unwrap_or(REDACTED);
        (name.to_string(), scrub.text(text).into_owned())
    });
    said.collect()
}

fn body(bytes: &[u8]) -> Body {
    let clean = known::process().scrub().bytes(bytes);
    let bytes = clean.as_deref().unwrap_or(bytes);
    if let Ok(mut value) = serde_json::from_slice::<Value>(bytes) {
        if let Some(token) = value.get_mut(TOKEN_FIELD) {
            *token = REDACTED.into();
        }
        return Body::Json(value);
    }
    match Chunk::of(bytes.to_vec()) {
        Chunk::Text(text) => Body::Text(text),
        Chunk::Base64(text) => Body::Base64(text),
    }
}

/// A URL without values that look like keys.
fn url(text: &str) -> String {
    let clean = known::process().scrub().text(text).into_owned();
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
