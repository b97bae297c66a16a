//! What is asked of nodes: of any of them, and of another when one does not answer.

use super::node::Crew;
use anyhow::Context as _;
use reqwest::{Method, StatusCode};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long somebody goes on asking.
const PATIENCE_S: u64 = 120;
/// How long one answer may take.
const ANSWER_S: u64 = 15;
/// How long one waits before asking another node.
const AGAIN_MS: u64 = 100;

/// Asks nodes.
pub(super) struct Api {
    crew: Arc<Crew>,
    client: reqwest::Client,
    token: String,
    turn: AtomicUsize,
}

impl Api {
    pub(super) fn new(crew: Arc<Crew>) -> anyhow::Result<Api> {
        // Nothing here speaks TLS, but the client wants somebody who could.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let token = crew.token()?.trim().to_owned();
        let client = reqwest::Client::builder().timeout(Duration::from_secs(ANSWER_S)).build()?;
        Ok(Api { crew, client, token, turn: AtomicUsize::new(0) })
    }

    /// Asks until some node answers, with an error of the asker's at worst.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(StatusCode, Value)> {
        let begun = Instant::now();
        let mut last = String::new();
        while begun.elapsed() < Duration::from_secs(PATIENCE_S) {
            match self.once(method.clone(), path, body).await {
                Ok((status, told)) if !again(status) => return Ok((status, told)),
                Ok((status, told)) => last = format!("{status}: {told}"),
                Err(error) => last = format!("{error:#}"),
            }
            tokio::time::sleep(Duration::from_millis(AGAIN_MS)).await;
        }
        anyhow::bail!("{path}: nobody answered: {last}")
    }

    /// Asks one node once: each time the next.
    async fn once(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(StatusCode, Value)> {
        let at = self.turn.fetch_add(1, Ordering::Relaxed) % self.crew.len();
        let address = self.crew.address(at).context("the node is dead")?;
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

    /// The events of a run after one of them, from the next node.
    pub(super) async fn stream(&self, run: &str, after: u64) -> anyhow::Result<reqwest::Response> {
        let at = self.turn.fetch_add(1, Ordering::Relaxed) % self.crew.len();
        let address = self.crew.address(at).context("the node is dead")?;
        let request = self.client.get(format!("{address}/api/v1/runs/{run}/events"));
        let request = request.bearer_auth(&self.token).header("last-event-id", after.to_string());
        Ok(request.send().await?.error_for_status()?)
    }

    /// What stands under `data` of an answer.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let (status, mut told) = self.ask(Method::GET, path, None).await?;
        anyhow::ensure!(status.is_success(), "{path}: {status}: {told}");
        Ok(told["data"].take())
    }

    /// All pages of a list.
    pub(super) async fn all(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let (mut all, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let mark = if path.contains('?') { '&' } else { '?' };
            let next = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
            let page = format!("{path}{mark}limit=200{next}");
            let (status, told) = self.ask(Method::GET, &page, None).await?;
            anyhow::ensure!(status.is_success(), "{page}: {status}: {told}");
            all.extend(told["data"].as_array().cloned().unwrap_or_default());
            cursor = told["meta"]["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }
}

/// Whether the same may be answered later, or by another node.
fn again(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}
