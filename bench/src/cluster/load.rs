//! The load: starts runs of several workflows, and resolves their approvals.

use super::Dice;
use super::api::Api;
use super::follow;
use super::node::WORKFLOWS;
use anyhow::Context as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Interval between polls for approvals, in milliseconds.
const LOOK_MS: u64 = 300;
/// Concurrent starts.
const STARTERS: usize = 16;

/// One run of this many is followed live.
const FOLLOWED: usize = 20;

/// Rate of starts.
#[derive(Clone, Copy)]
pub(super) struct StartRate {
    each: Duration,
}

impl StartRate {
    /// Spreads the runs over a time.
    pub(super) fn over(runs: usize, time: Duration) -> StartRate {
        let starters = u32::try_from(STARTERS).unwrap_or(1);
        let runs = u32::try_from(runs.max(1)).unwrap_or(u32::MAX);
        StartRate { each: time * starters / runs }
    }
}

/// What the nodes acknowledged.
#[derive(Default)]
pub(super) struct Acknowledged {
    /// Runs, by idempotency key.
    pub(super) runs: BTreeMap<String, String>,
    /// Followed runs, each with its last event id.
    pub(super) ends: BTreeMap<String, u64>,
}

/// Ids of approvals whose resolution was acknowledged.
pub(super) type Answered = Arc<Mutex<BTreeSet<String>>>;

/// Starts runs, some at a time, until all are acknowledged.
pub(super) async fn start(
    api: Arc<Api>,
    runs: usize,
    rate: StartRate,
    seed: u64,
) -> anyhow::Result<Acknowledged> {
    let mut starters = Vec::new();
    for starter in 0..STARTERS {
        let api = Arc::clone(&api);
        starters.push(tokio::spawn(async move {
            let mut dice = Dice::new(seed * 1000 + starter as u64);
            let (mut acknowledged, mut followers) = (Acknowledged::default(), Vec::new());
            for number in (starter..runs).step_by(STARTERS) {
                let key = format!("run-{number}");
                let run = one(&api, number, &key).await?;
                if dice.below(10) == 0 {
                    // The same key returns the same run, from any node.
                    let again = one(&api, number, &key).await?;
                    anyhow::ensure!(again == run, "{key} was started twice: {run}, {again}");
                }
                if number % FOLLOWED == 0 {
                    let (api, of) = (Arc::clone(&api), run.clone());
                    let following = tokio::spawn(async move { follow::to_end(&api, &of).await });
                    followers.push((run.clone(), following));
                }
                acknowledged.runs.insert(key, run);
                tokio::time::sleep(rate.each).await;
            }
            for (run, following) in followers {
                acknowledged.ends.insert(run, following.await??);
            }
            anyhow::Ok(acknowledged)
        }));
    }
    let mut all = Acknowledged::default();
    for starter in starters {
        let part = starter.await??;
        all.runs.extend(part.runs);
        all.ends.extend(part.ends);
    }
    Ok(all)
}

async fn one(api: &Api, number: usize, key: &str) -> anyhow::Result<String> {
    let (name, _) = WORKFLOWS[number % WORKFLOWS.len()];
    let body = json!({"default_agent": "worker", "idempotency_key": key});
    let path = format!("/api/v1/workflows/{name}/runs");
    let (status, answer) = api.send(Method::POST, &path, Some(&body)).await?;
    anyhow::ensure!(status.is_success(), "{key} of {name}: {status}: {answer}");
    Ok(answer["data"]["run_id"].as_str().context("a run has an id")?.to_owned())
}

/// Approves every open approval until it is aborted.
pub(super) async fn answer(api: Arc<Api>, answered: Answered) -> anyhow::Result<()> {
    loop {
        let open = api.get("/api/v1/approvals").await?;
        for approval in open.as_array().into_iter().flatten() {
            let Some(id) = approval["approval_id"].as_str() else { continue };
            if approve(&api, id).await? {
                answered.lock().expect("the lock is not poisoned").insert(id.to_owned());
            }
        }
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
    }
}

/// Approves a request; returns whether that was acknowledged.
async fn approve(api: &Api, id: &str) -> anyhow::Result<bool> {
    let path = format!("/api/v1/approvals/{id}/resolve");
    let body: Value = json!({"decision": "approve"});
    let (status, answer) = api.send(Method::POST, &path, Some(&body)).await?;
    // If an acknowledgement was lost, the approval is already resolved.
    let known = [StatusCode::CONFLICT, StatusCode::NOT_FOUND];
    anyhow::ensure!(status.is_success() || known.contains(&status), "{id}: {status}: {answer}");
    Ok(status.is_success())
}
