//! A server that is reached over HTTP.
//!
//! INVARIANT: the token goes to the configured server and nowhere else: no redirect is
//! followed, and no proxy of the environment is used.

use super::{ApiRequest, SERVER_UNREACHABLE, api_url, not_sluice, read_whole};
use crate::config;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, StatusCode, Url, redirect};
use serde_json::Value;
use sluice_core::visible;
use sluice_server::refused::Refused;
use std::time::Duration;

const CONNECT_MS: u64 = 5000;
/// Longest wait for a response that is no stream.
const ANSWER_MS: u64 = 300_000;

/// A server, and the token that requests carry.
#[derive(Debug, Clone)]
pub(crate) struct HttpClient {
    http: reqwest::Client,
    base: Url,
    token: Option<HeaderValue>,
}

impl HttpClient {
    pub(crate) fn new(url: &str) -> Result<HttpClient, Refused> {
        let unusable = |why: &str| {
            let message = format!("server URL `{}` is not valid: {why}", visible::brief(url));
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
        // Another part of the process may have installed the provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(Duration::from_millis(CONNECT_MS))
            .user_agent(concat!("sluice/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| unusable(&error.to_string()))?;
        Ok(HttpClient { http, base, token })
    }

    /// The address, for messages.
    pub(crate) fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// The status and the body of `/readyz`.
    pub(crate) async fn ready(&self) -> anyhow::Result<(StatusCode, Value)> {
        let mut url = self.base.clone();
        url.set_path("/readyz");
        let response = self.sent(self.request(Method::GET, url)).await?;
        let status = response.status();
        let body = read_whole(&mut super::Response::Http(response)).await?;
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }

    /// A request of an MCP client, without its body. The response may be a stream.
    pub(crate) fn mcp_request(&self) -> reqwest::RequestBuilder {
        let mut url = self.base.clone();
        let mut parts = url.path_segments_mut().expect("an address on the web has a path");
        parts.pop_if_empty().push("mcp");
        drop(parts);
        let request = self.http.post(url).header(CONTENT_TYPE, "application/json");
        self.authorized(request.header(ACCEPT, "application/json, text/event-stream"))
    }

    /// Sends a request of the API. A stream has no time limit.
    pub(super) async fn call(&self, request: ApiRequest<'_>) -> Result<reqwest::Response, Refused> {
        let mut url = self.base.clone();
        api_url(&mut url, &request);
        let ApiRequest { method, body, after, .. } = request;
        let mut sending = self.request(method, url);
        if let Some(body) = body {
            sending = sending.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        match after {
            None => self.sent(sending).await,
            Some(after) => {
                let stream = HeaderValue::from_static("text/event-stream");
                let sending = sending.header(ACCEPT, stream).header("Last-Event-ID", after);
                sending.send().await.map_err(|error| self.unreachable(&error))
            }
        }
    }

    fn request(&self, method: Method, url: Url) -> reqwest::RequestBuilder {
        self.authorized(self.http.request(method, url).header(ACCEPT, "application/json"))
    }

    fn authorized(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, token.clone()),
            None => request,
        }
    }

    async fn sent(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, Refused> {
        let response = request.timeout(Duration::from_millis(ANSWER_MS)).send().await;
        response.map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &reqwest::Error) -> Refused {
        let why = if error.is_timeout() {
            "it took too long".to_owned()
        } else {
            // The innermost cause says more than that sending failed.
            let mut cause: &dyn std::error::Error = error;
            while let Some(below) = cause.source() {
                cause = below;
            }
            cause.to_string()
        };
        let message = format!("no server answers at {}: {why}", self.address());
        let remedy = "start one with `sluice serve`, correct the address (SLUICE_URL, `--url`), or \
                      name a directory with `--data DIR`";
        Refused::new(SERVER_UNREACHABLE, message, remedy)
    }
}

/// The next bytes of a body; an error where the connection broke.
pub(super) async fn chunk(response: &mut reqwest::Response) -> Result<Option<Vec<u8>>, Refused> {
    match response.chunk().await {
        Ok(chunk) => Ok(chunk.map(Vec::from)),
        Err(error) => Err(not_sluice(&error.without_url().to_string())),
    }
}
