//! The API that commands are written against, over one of two transports: HTTP to a
//! server, or the routes of the API in this process, on an opened data directory.
//!
//! An answer is `{data, meta}`; a refusal is a problem with a code, drawn like a refusal
//! of the command line itself.

mod http;
mod stream;

pub(crate) use http::HttpClient;
pub(crate) use stream::{EventStream, StreamItem};

use crate::local::Local;
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sluice_server::api::in_process::{InProcess, InProcessRequest, InProcessResponse};
use sluice_server::api::problem::FORBIDDEN;
use sluice_server::api::request::bad;
use sluice_server::auth::Caller;
use sluice_server::organisation::Organisation;
use sluice_server::refused::Refused;
use sluice_server::service::Service;

/// No server answers at the address, or something else than Sluice does.
pub(crate) const SERVER_UNREACHABLE: &str = "server_unreachable";
/// A flag or a command that works on a data directory only.
pub(crate) const NEEDS_DATA_DIRECTORY: &str = "needs_data_directory";

/// Longest body of an answer.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A refusal or a failure that the API reports.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ApiProblem {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) notes: Vec<String>,
    pub(crate) remedy: String,
    status: u16,
}

impl ApiProblem {
    /// Whether the server starts, stops or is overloaded: a retry may succeed.
    fn is_temporary(&self) -> bool {
        matches!(self.status, 429 | 503)
    }

    /// Whether the server failed, rather than refused.
    pub(crate) fn is_failure(&self) -> bool {
        self.status >= 500
    }
}

/// A successful answer.
#[derive(Debug)]
pub(crate) struct ApiAnswer {
    pub(crate) data: Value,
    /// The data as it was sent, with numbers as they were written.
    pub(crate) raw: Box<RawValue>,
    pub(crate) next_cursor: Option<String>,
}

impl ApiAnswer {
    pub(crate) fn read<T: DeserializeOwned>(self) -> anyhow::Result<T> {
        serde_json::from_str(self.raw.get()).map_err(|error| not_sluice(&error.to_string()).into())
    }
}

#[derive(Deserialize)]
struct AnswerBody {
    data: Box<RawValue>,
    meta: AnswerMeta,
}

#[derive(Deserialize)]
struct AnswerMeta {
    #[serde(default)]
    next_cursor: Option<String>,
}

/// A request of the API: `["runs", id, "state"]`.
struct ApiRequest<'a> {
    method: Method,
    path: &'a [&'a str],
    query: &'a [(&'a str, String)],
    body: Option<&'a Value>,
    /// For a stream of events: the last one that was seen.
    after: Option<u64>,
}

/// Calls the API.
#[derive(Clone)]
pub(crate) enum Client {
    Http(HttpClient),
    InProcess(Box<InProcessClient>),
}

/// The API on a data directory that this process has opened.
#[derive(Clone)]
pub(crate) struct InProcessClient {
    api: InProcess,
    service: Service,
}

/// A response of either transport.
enum Response {
    Http(reqwest::Response),
    InProcess(InProcessResponse),
}

impl Response {
    fn status(&self) -> StatusCode {
        match self {
            Response::Http(response) => response.status(),
            Response::InProcess(response) => response.status,
        }
    }

    async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Refused> {
        match self {
            Response::Http(response) => http::chunk(response).await,
            Response::InProcess(response) => Ok(response.chunk().await.map(Vec::from)),
        }
    }
}

impl Client {
    /// Calls routes on a data directory, as this caller.
    pub(crate) async fn in_process(
        local: &Local,
        organisation: &str,
        caller: Caller,
    ) -> anyhow::Result<Client> {
        let service = Service::clone(local);
        let organisation = Organisation::open(organisation, service.clone()).await?;
        let api = InProcess::new(organisation, caller);
        Ok(Client::InProcess(Box::new(InProcessClient { api, service })))
    }

    pub(crate) fn is_in_process(&self) -> bool {
        matches!(self, Client::InProcess(_))
    }

    /// Releases the data directory, if one was opened.
    pub(crate) async fn close(self) {
        if let Client::InProcess(client) = self {
            client.service.engine.shutdown().await;
        }
    }

    pub(crate) async fn get(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> anyhow::Result<ApiAnswer> {
        let method = Method::GET;
        self.answer(ApiRequest { method, path, query, body: None, after: None }).await
    }

    /// The body of a route that answers with plain text.
    pub(crate) async fn text(&self, path: &[&str]) -> anyhow::Result<String> {
        let method = Method::GET;
        let request = ApiRequest { method, path, query: &[], body: None, after: None };
        let body = self.body(request).await?;
        Ok(String::from_utf8(body).map_err(|_| not_sluice("the answer is not text"))?)
    }

    /// All pages of a list, up to about `rows_max` rows.
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

    pub(crate) async fn post(&self, path: &[&str], body: &Value) -> anyhow::Result<ApiAnswer> {
        let method = Method::POST;
        self.answer(ApiRequest { method, path, query: &[], body: Some(body), after: None }).await
    }

    pub(crate) async fn delete(&self, path: &[&str]) -> anyhow::Result<ApiAnswer> {
        let method = Method::DELETE;
        self.answer(ApiRequest { method, path, query: &[], body: None, after: None }).await
    }

    async fn answer(&self, request: ApiRequest<'_>) -> anyhow::Result<ApiAnswer> {
        let body = self.body(request).await?;
        let odd = |error: serde_json::Error| not_sluice(&error.to_string());
        let whole: AnswerBody = serde_json::from_slice(&body).map_err(odd)?;
        let data = serde_json::from_str(whole.data.get()).map_err(odd)?;
        Ok(ApiAnswer { data, raw: whole.data, next_cursor: whole.meta.next_cursor })
    }

    /// The body of an answer that is no refusal.
    async fn body(&self, request: ApiRequest<'_>) -> anyhow::Result<Vec<u8>> {
        let mut response = self.call(request).await?;
        let status = response.status();
        let body = read_whole(&mut response).await?;
        match response {
            _ if status.is_success() => Ok(body),
            // In this process the cause of a failed store is known.
            Response::InProcess(InProcessResponse { store_error: Some(error), .. }) => {
                Err(error.into())
            }
            _ => Err(problem(status, &body).into()),
        }
    }

    async fn call(&self, request: ApiRequest<'_>) -> Result<Response, Refused> {
        match self {
            Client::Http(client) => Ok(Response::Http(client.call(request).await?)),
            Client::InProcess(client) => {
                let mut url = Url::parse("http://in-process").expect("a URL");
                api_url(&mut url, &request);
                // A URL as text is also a URI, with an authority that no route looks at.
                let uri = url.as_str().parse();
                let uri = uri.map_err(|_| bad("the arguments are too long"))?;
                let ApiRequest { method, body, after: last_event_id, .. } = request;
                let body = body.map(ToString::to_string);
                let request = InProcessRequest { method, uri, body, last_event_id };
                Ok(Response::InProcess(client.api.call(request).await))
            }
        }
    }
}

/// Adds the path and the query of a request to the address of a server.
fn api_url(url: &mut Url, request: &ApiRequest<'_>) {
    let mut parts = url.path_segments_mut().expect("an address on the web has a path");
    // Each part is escaped so that it stays one.
    parts.pop_if_empty().extend(["api", "v1"]).extend(request.path);
    drop(parts);
    if !request.query.is_empty() {
        url.query_pairs_mut().extend_pairs(request.query);
    }
}

/// An answer that Sluice does not give.
fn not_sluice(why: &str) -> Refused {
    let message = format!("the server that answers is not Sluice: {why}");
    Refused::new(SERVER_UNREACHABLE, message, "correct the address: SLUICE_URL, `--url`")
}

async fn read_whole(response: &mut Response) -> Result<Vec<u8>, Refused> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(not_sluice("the answer is too long"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The problem that a response with an error status holds.
fn problem(status: StatusCode, body: &[u8]) -> ApiProblem {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| said[name].as_str().map(str::to_owned);
    let (code, message) = match (text("code"), text("title")) {
        (Some(code), Some(message)) => (code, message),
        _ => {
            let message = format!("the server that answers is not Sluice: it answers {status}");
            (SERVER_UNREACHABLE.to_owned(), message)
        }
    };
    let detail = text("detail");
    let remedy = match status {
        StatusCode::UNAUTHORIZED => {
            "set SLUICE_TOKEN to a token of this server; `sluice tokens create` makes one, and the \
             first is in its data directory"
                .to_owned()
        }
        StatusCode::FORBIDDEN if code == FORBIDDEN => {
            let detail = detail.unwrap_or_default();
            format!("{detail}; `sluice doctor` shows what the token may do")
        }
        _ => detail.unwrap_or_else(|| "correct the address: SLUICE_URL".to_owned()),
    };
    let errors = said["errors"].as_array().cloned().unwrap_or_default();
    let notes = errors.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect();
    ApiProblem { code, message, notes, remedy, status: status.as_u16() }
}

/// Refuses a flag or a command that a server cannot serve.
pub(crate) fn only_local(what: &str) -> Refused {
    let message = format!("{what} works on a data directory, not through a server");
    let remedy = "leave it out, or name the directory with `--data DIR`";
    Refused::new(NEEDS_DATA_DIRECTORY, message, remedy)
}

/// A body of fields, without those that are null.
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
        let found = problem(StatusCode::UNPROCESSABLE_ENTITY, body);
        assert_eq!((found.code.as_str(), found.remedy.as_str()), ("invalid_values", "give each"));
        assert_eq!(found.notes, ["a: no", "b: no"]);
        assert!(!found.is_failure());
    }

    #[test]
    fn an_answer_of_another_program_is_not_taken_for_sluice() {
        let found = problem(StatusCode::NOT_FOUND, b"<html>nginx</html>");
        assert_eq!(found.code, SERVER_UNREACHABLE);
        let found =
            problem(StatusCode::UNAUTHORIZED, br#"{"code":"unauthenticated","title":"no"}"#);
        assert!(found.remedy.contains("SLUICE_TOKEN"), "{}", found.remedy);
    }
}
