//! API client that tries another node when one does not answer.

use super::node::Cluster;
use anyhow::Context as _;
use reqwest::{Method, StatusCode};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a request is retried.
const PATIENCE_S: u64 = 120;
/// Timeout of one attempt.
const ANSWER_S: u64 = 15;
/// Delay before another node is tried.
const AGAIN_MS: u64 = 100;

/// Sends requests to the nodes in turn.
pub(super) struct Api {
    cluster: Arc<Cluster>,
    client: reqwest::Client,
    token: String,
    turn: AtomicUsize,
}

impl Api {
    pub(super) fn new(cluster: Arc<Cluster>) -> anyhow::Result<Api> {
        // Only plain HTTP is used, but the client requires a TLS library.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let token = cluster.token()?.trim().to_owned();
        let client = reqwest::Client::builder().timeout(Duration::from_secs(ANSWER_S)).build()?;
        Ok(Api { cluster, client, token, turn: AtomicUsize::new(0) })
    }

    /// Retries until some node answers with success or a client error.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(StatusCode, Value)> {
        let begun = Instant::now();
        let mut last = String::new();
        while begun.elapsed() < Duration::from_secs(PATIENCE_S) {
            match self.once(method.clone(), path, body).await {
                Ok((status, answer)) if !again(status) => return Ok((status, answer)),
                Ok((status, answer)) => last = format!("{status}: {answer}"),
                Err(error) => last = format!("{error:#}"),
            }
            tokio::time::sleep(Duration::from_millis(AGAIN_MS)).await;
        }
        anyhow::bail!("{path}: no node answered: {last}")
    }

    /// Sends a request once, to the next node.
    async fn once(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(StatusCode, Value)> {
        let at = self.turn.fetch_add(1, Ordering::Relaxed) % self.cluster.len();
        let address = self.cluster.address(at).context("the node is dead")?;
        let request = self.client.request(method, format!("{address}{path}"));
        let request = request.bearer_auth(&self.token);
        let request = match body {
            Some(body) => {
                let typed = request.header("content-type", "application/json");
                typed.body(body.to_string())
            }
            None => request,
        };
        let answer = request.send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }

    /// Streams the events of a run after an event id, from the next node.
    pub(super) async fn stream(&self, run: &str, after: u64) -> anyhow::Result<reqwest::Response> {
        let at = self.turn.fetch_add(1, Ordering::Relaxed) % self.cluster.len();
        let address = self.cluster.address(at).context("the node is dead")?;
        let request = self.client.get(format!("{address}/api/v1/runs/{run}/events"));
        let request = request.bearer_auth(&self.token).header("last-event-id", after.to_string());
        Ok(request.send().await?.error_for_status()?)
    }

    /// The `data` of a response.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let (status, mut answer) = self.send(Method::GET, path, None).await?;
        anyhow::ensure!(status.is_success(), "{path}: {status}: {answer}");
        Ok(answer["data"].take())
    }

    /// All pages of a list.
    pub(super) async fn all(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let (mut all, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let mark = if path.contains('?') { '&' } else { '?' };
            let next = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
            let page = format!("{path}{mark}limit=200{next}");
            let (status, answer) = self.send(Method::GET, &page, None).await?;
            anyhow::ensure!(status.is_success(), "{page}: {status}: {answer}");
            all.extend(answer["data"].as_array().cloned().unwrap_or_default());
            cursor = answer["meta"]["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }
}

/// Whether a retry, or another node, may succeed.
fn again(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}
