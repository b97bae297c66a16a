//! `sluice runs retry`.

use crate::Exit;
use crate::cli::runs::Retry;
use crate::cmd::run_commands::RunCommand;
use crate::cmd::run_host::RunHost;
use crate::out::Out;
use serde_json::{Value, json};
use sluice_core::status::{RunStatus, StepStatus};

pub(super) async fn run(args: &Retry, out: &mut Out) -> anyhow::Result<Exit> {
    let Some(host) = RunHost::open(&args.work, out).await? else { return Ok(Exit::Refused) };
    let before = host.before(&args.run.id).await?;
    if before.status == RunStatus::Failed.as_str() {
        host.check_agents(&before.run_id, |_, status| status != StepStatus::Completed).await?;
    }
    // A failed run journals nothing until it is reopened.
    let reopened = |now: &Value| now["last_event_id"].as_u64() > Some(before.last_event_id);
    let command = RunCommand {
        path: &["runs", &before.run_id, "retry"],
        body: json!({}),
        shown_by: &["runs", &before.run_id],
        is_applied: &reopened,
    };
    host.send(&before, &command, "is open again", out).await
}
