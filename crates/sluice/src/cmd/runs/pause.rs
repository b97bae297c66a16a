//! `sluice runs pause`.

use crate::Exit;
use crate::backend;
use crate::cli::runs::RunCommandArgs;
use crate::cmd::run_commands::RunCommand;
use crate::local::Again;
use crate::out::Out;
use serde_json::{Value, json};
use sluice_core::visible;

pub(super) async fn run(args: &RunCommandArgs, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::write(&args.data, &args.name).await?;
    let run = super::id(&client, &args.run.id).await?;
    let paused = |state: &Value| state["pause_reason"] == "operator";
    let command = RunCommand {
        path: &["runs", &run, "pause"],
        body: json!({}),
        shown_by: &["runs", &run, "state"],
        is_applied: &paused,
    };
    let sent = command.send(&client, out).await?;
    client.close().await;
    let (run, again) = (visible::brief(&run), Again::from_options(&args.data, None).look);
    out.print(&format!(
        "{run} {} paused; `sluice runs unpause {run}{again}` resumes it\n",
        sent.is()
    ))?;
    Ok(Exit::Done)
}
