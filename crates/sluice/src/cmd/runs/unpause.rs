//! `sluice runs unpause`.

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
    let unpause = Command::Unpause { by: local::who(&args.name) };
    let went_on = |run: &Run| run.pause != Some(Pause::Operator);
    let became = told::tell(&local, run, unpause, went_on, out).await?;
    let again = Again::of(&args.data, None).look;
    out.print(&match became {
        Became::Here => format!("{run} may go on; `sluice resume {run}{again}` takes it up here\n"),
        Became::There => format!("{run} goes on\n"),
        Became::Sent => format!("{run} will go on\n"),
    })?;
    local.close().await;
    Ok(Exit::Done)
}
