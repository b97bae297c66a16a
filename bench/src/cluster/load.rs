//! The load: runs of several workflows, and somebody who answers questions.

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

/// How often questions are looked for, in milliseconds.
const LOOK_MS: u64 = 300;
/// Starts at the same time.
const STARTERS: usize = 16;

/// One run of so many is followed live.
const FOLLOWED: usize = 20;

/// How fast runs are started.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    each: Duration,
}

impl Pace {
    /// So many, spread over a time.
    pub(super) fn over(runs: usize, time: Duration) -> Pace {
        let starters = u32::try_from(STARTERS).unwrap_or(1);
        let runs = u32::try_from(runs.max(1)).unwrap_or(u32::MAX);
        Pace { each: time * starters / runs }
    }
}

/// What was acknowledged.
#[derive(Default)]
pub(super) struct Acknowledged {
    /// Runs, by the keys they were started with.
    pub(super) runs: BTreeMap<String, String>,
    /// Runs that were seen to end, and with which event.
    pub(super) ends: BTreeMap<String, u64>,
}

/// Questions whose answers were acknowledged.
pub(super) type Answered = Arc<Mutex<BTreeSet<String>>>;

/// Starts runs, a few at a time, until all are acknowledged.
pub(super) async fn start(
    api: Arc<Api>,
    runs: usize,
    pace: Pace,
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
                    // Who sends the same again gets the same run, from whichever node.
                    let again = one(&api, number, &key).await?;
                    anyhow::ensure!(again == run, "{key} was started twice: {run}, {again}");
                }
                if number % FOLLOWED == 0 {
                    let (api, of) = (Arc::clone(&api), run.clone());
                    let following = tokio::spawn(async move { follow::to_end(&api, &of).await });
                    followers.push((run.clone(), following));
                }
                acknowledged.runs.insert(key, run);
                tokio::time::sleep(pace.each).await;
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
    let (status, told) = api.ask(Method::POST, &path, Some(&body)).await?;
    anyhow::ensure!(status.is_success(), "{key} of {name}: {status}: {told}");
    Ok(told["data"]["run_id"].as_str().context("a run has an id")?.to_owned())
}

/// Approves whatever is asked, until it is told to stop.
pub(super) async fn answer(api: Arc<Api>, answered: Answered) -> anyhow::Result<()> {
    loop {
        let open = api.get("/api/v1/approvals").await?;
        for question in open.as_array().into_iter().flatten() {
            let Some(id) = question["approval_id"].as_str() else { continue };
            if approve(&api, id).await? {
                answered.lock().expect("nobody panics with it").insert(id.to_owned());
            }
        }
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
    }
}

/// Whether it was acknowledged.
async fn approve(api: &Api, id: &str) -> anyhow::Result<bool> {
    let path = format!("/api/v1/approvals/{id}/resolve");
    let body: Value = json!({"decision": "approve"});
    let (status, told) = api.ask(Method::POST, &path, Some(&body)).await?;
    // An answer whose acknowledgement was lost is there already.
    let known = [StatusCode::CONFLICT, StatusCode::NOT_FOUND];
    anyhow::ensure!(status.is_success() || known.contains(&status), "{id}: {status}: {told}");
    Ok(status.is_success())
}
