//! A client that follows a run live, from any node.

use super::api::Api;
use anyhow::Context as _;
use std::time::{Duration, Instant};

/// Longest duration of a run.
const PATIENCE_S: u64 = 240;
/// Delay before another node is tried.
const AGAIN_MS: u64 = 100;

/// Follows a run across nodes until it ends. Returns the number of its events, after
/// checking that none was missing or repeated.
pub(super) async fn to_end(api: &Api, run: &str) -> anyhow::Result<u64> {
    let begun = Instant::now();
    let mut last = 0;
    while begun.elapsed() < Duration::from_secs(PATIENCE_S) {
        if let Ok(answer) = api.stream(run, last).await
            && read(answer, run, &mut last).await?
        {
            return Ok(last);
        }
        tokio::time::sleep(Duration::from_millis(AGAIN_MS)).await;
    }
    anyhow::bail!("{run} was followed to event {last} and did not end")
}

/// Reads until the connection ends. Returns whether the run has ended.
async fn read(mut answer: reqwest::Response, run: &str, last: &mut u64) -> anyhow::Result<bool> {
    let mut text = Vec::new();
    // A killed node ends the connection as well.
    while let Ok(Some(part)) = answer.chunk().await {
        text.extend_from_slice(&part);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            if let Some(id) = line.strip_prefix("id:") {
                let id: u64 = id.trim().parse().context("an event has a number")?;
                anyhow::ensure!(id == *last + 1, "{run}: event {id} after {last}");
                *last = id;
            }
            let ends = ["run.completed", "run.failed"];
            if line.strip_prefix("event:").is_some_and(|kind| ends.contains(&kind.trim())) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
