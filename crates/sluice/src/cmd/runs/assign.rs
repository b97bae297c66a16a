//! `sluice runs assign`: chooses the member that does a step no member fits.

use crate::Exit;
use crate::backend;
use crate::cli::runs::Assign;
use crate::cmd::run_commands::{RunCommand, step};
use crate::local::Again;
use crate::out::Out;
use serde_json::{Value, json};
use sluice_core::visible;

pub(super) async fn run(args: &Assign, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::write(&args.command.data, &args.command.name).await?;
    let run = super::id(&client, &args.command.run.id).await?;
    let assigned = |state: &Value| step(state, &args.step)["status"] != "blocked";
    let command = RunCommand {
        path: &["runs", &run, "assign"],
        body: json!({"step": args.step, "whom": args.whom}),
        shown_by: &["runs", &run, "state"],
        is_applied: &assigned,
    };
    let sent = command.send(&client, out).await?;
    let hint = match client.is_in_process() {
        true => format!(
            "; `sluice resume {run}{}` continues the run",
            Again::from_options(&args.command.data, None).work
        ),
        false => String::new(),
    };
    client.close().await;
    let (step, whom) = (visible::brief(&args.step), visible::brief(&args.whom));
    out.print(&format!("{step} {} assigned to {whom}{hint}\n", sent.is()))?;
    Ok(Exit::Done)
}
