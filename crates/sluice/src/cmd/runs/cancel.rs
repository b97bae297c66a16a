//! `sluice runs cancel`.

use crate::Exit;
use crate::cli::runs::Cancel;
use crate::cmd::told;
use crate::local::{self, Local};
use crate::out::Out;
use sluice_core::run::command::Command;
use sluice_core::run::status::RunStatus;
use sluice_server::service::find;

pub(super) async fn run(args: &Cancel, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.told.data).await?;
    let run = find::run(&local, &args.told.run.id).await?.run;
    let by = local::who(&args.told.name);
    let cancel = Command::Cancel { by, reason: args.reason.clone() };
    told::tell(&local, run, cancel, |run| run.status.is_terminal(), out).await?;
    let now = find::load(&local, run).await?;
    match now.status {
        RunStatus::Cancelled => out.print(&format!("{run} is cancelled\n"))?,
        status => out.print(&format!("{run} is being cancelled; it is {status}\n"))?,
    }
    local.close().await;
    Ok(Exit::Done)
}
