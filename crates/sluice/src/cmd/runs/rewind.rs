//! `sluice runs rewind`: back to a checkpoint in the same run.

use crate::Exit;
use crate::cli::runs::Rewind;
use crate::cmd::run_commands::RunCommand;
use crate::cmd::run_host::RunHost;
use crate::out::Out;
use serde_json::{Value, json};

pub(super) async fn run(args: &Rewind, out: &mut Out) -> anyhow::Result<Exit> {
    let Some(host) = RunHost::open(&args.work, out).await? else { return Ok(Exit::Refused) };
    let before = host.before(&args.run.id).await?;
    let path = ["runs", &before.run_id, "rewind"];
    let preview = host.client.post(&path, &json!({"to": args.to, "preview": true})).await?.data;
    let repeats =
        |id: &str| preview["repeats"].as_array().is_some_and(|all| all.contains(&id.into()));
    host.check_agents(&before.run_id, |id, status| !status.is_settled() || repeats(id)).await?;
    let state = ["runs", before.run_id.as_str(), "state"];
    let generation = generations(&host.client.get(&state, &[]).await?.data);
    let rewound = |now: &Value| generations(now) > generation;
    let body = json!({"to": args.to});
    let command = RunCommand { path: &path, body, shown_by: &state, is_applied: &rewound };
    host.send(&before, &command, &format!("is back at checkpoint {}", args.to), out).await
}

/// How often steps of a run were reset, in all.
fn generations(state: &Value) -> u64 {
    let steps = state["node_results"].as_array().into_iter().flatten();
    steps.filter_map(|step| step["generation"].as_u64()).sum()
}
