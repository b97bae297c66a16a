//! `sluice runs pause`.

use crate::Exit;
use crate::cli::runs::Told;
use crate::cmd::told::{self, Told as Became};
use crate::local::{self, Again, Local};
use crate::out::Out;
use sluice_core::run::command::Command;
use sluice_core::run::state::{Pause, Run};
use sluice_server::service::find;

pub(super) async fn run(args: &Told, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let run = find::run(&local, &args.run.id).await?.run;
    let pause = Command::Pause { by: local::who(&args.name) };
    let paused = |run: &Run| run.pause == Some(Pause::Operator);
    let became = told::tell(&local, run, pause, paused, out).await?;
    let is = if became == Became::Sent { "will be" } else { "is" };
    let again = Again::of(&args.data, None).look;
    out.print(&format!("{run} {is} paused; `sluice runs unpause {run}{again}` lets it go on\n"))?;
    local.close().await;
    Ok(Exit::Done)
}
