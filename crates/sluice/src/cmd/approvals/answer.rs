//! Sends a decision on an approval to the run that waits for it.

use crate::Exit;
use crate::backend;
use crate::cli::approvals::{ApproverArgs, Choose};
use crate::client::{Client, fields};
use crate::cmd::run_commands::{CommandDelivery, RunCommand};
use crate::local::Again;
use crate::out::Out;
use anyhow::Context as _;
use serde_json::{Map, Value, json};
use sluice_core::run::command::Decision;
use sluice_core::visible;
use sluice_govern::decision::Constraints;

/// A decision, with all that goes with it.
pub(super) struct ApprovalDecision {
    pub(super) decision: Decision,
    pub(super) comment: Option<String>,
    pub(super) values: Map<String, Value>,
    pub(super) constraints: Option<Constraints>,
}

/// Sends a decision without values: `retry`, `skip` or `abort`.
pub(super) async fn choose(
    args: &Choose,
    decision: Decision,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let comment = args.comment.clone();
    let resolution = ApprovalDecision { decision, comment, values: Map::new(), constraints: None };
    resolve(&args.approval.id, &resolution, &args.by, out).await
}

/// Sends a decision and prints what became of the step.
pub(super) async fn resolve(
    id: &str,
    resolution: &ApprovalDecision,
    by: &ApproverArgs,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let client = backend::write(&by.data, by).await?;
    let before = client.get(&["approvals", id], &[]).await?.data;
    let id = before["approval_id"].as_str().context("the server shows no id")?;
    // Closed, or with one more vote where several approvers must agree.
    let votes = |approval: &Value| approval["votes"].as_array().map_or(0, Vec::len);
    let applied = |now: &Value| now["status"] != "pending" || votes(now) > votes(&before);
    let ApprovalDecision { decision, comment, values, constraints } = resolution;
    let command = RunCommand {
        path: &["approvals", id, "resolve"],
        body: fields([
            ("decision", decision.as_str().into()),
            ("comment", json!(comment)),
            ("values", json!(values)),
            ("constraints", json!(constraints)),
        ]),
        shown_by: &["approvals", id],
        is_applied: &applied,
    };
    let sent = command.send(&client, out).await?;
    let now = client.get(&["approvals", id], &[]).await?.data;
    let step = visible::brief(now["node_id"].as_str().unwrap_or_default()).into_owned();
    let is_open = now["status"] == "pending";
    let text =
        if is_open && sent.delivery != CommandDelivery::Pending && *decision == Decision::Approve {
            let voters = now["votes"].as_array().map_or(&[][..], Vec::as_slice);
            let who = visible::brief(voters.last().and_then(Value::as_str).unwrap_or_default());
            let (count, quorum) = (voters.len(), now["quorum"].as_u64().unwrap_or(1));
            format!("{who} approves {step}; {count} of {quorum} votes\n")
        } else {
            let hint = match sent.delivery {
                CommandDelivery::Local => resume_hint(&client, &now, by).await?,
                CommandDelivery::Remote | CommandDelivery::Pending => String::new(),
            };
            format!("{step} {} {}{hint}\n", sent.is(), word(*decision))
        };
    client.close().await;
    out.print(&text)?;
    Ok(Exit::Done)
}

/// How to continue a run that no process works on; empty if it has ended.
async fn resume_hint(
    client: &Client,
    approval: &Value,
    by: &ApproverArgs,
) -> anyhow::Result<String> {
    let run = approval["run_id"].as_str().unwrap_or_default();
    let run = client.get(&["runs", run], &[]).await?.data;
    let root = run["root_run_id"].as_str().or(run["run_id"].as_str()).unwrap_or_default();
    let state = client.get(&["runs", root, "state"], &[]).await?.data;
    if state["is_running"] == false {
        return Ok(String::new());
    }
    let again = Again::from_options(&by.data, None).look;
    Ok(format!("\n`sluice resume {root}{again}` continues the run"))
}

/// What a step is after a decision.
fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Approve => "approved",
        Decision::Reject => "rejected",
        Decision::Retry => "to be tried again",
        Decision::Skip => "skipped",
        Decision::Abort => "aborted",
    }
}
