//! `sluice runs cancel`.

use crate::Exit;
use crate::backend;
use crate::cli::runs::Cancel;
use crate::cmd::run_commands::RunCommand;
use crate::out::Out;
use serde_json::{Value, json};
use sluice_core::status::RunStatus;
use sluice_core::visible;

pub(super) async fn run(args: &Cancel, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::write(&args.command.data, &args.command.name).await?;
    let run = super::id(&client, &args.command.run.id).await?;
    let ended = |state: &Value| state["is_running"] == false;
    let command = RunCommand {
        path: &["runs", &run, "cancel"],
        body: json!({"reason": args.reason}),
        shown_by: &["runs", &run, "state"],
        is_applied: &ended,
    };
    let sent = command.send(&client, out).await?;
    client.close().await;
    let (run, status) = (visible::brief(&run), visible::brief(&sent.status));
    out.print(&match sent.status == RunStatus::Cancelled.as_str() {
        true => format!("{run} is cancelled\n"),
        false => format!("{run} is being cancelled; it is {status}\n"),
    })?;
    Ok(Exit::Done)
}
