//! `sluice runs unpause`.

use crate::Exit;
use crate::cli::runs::Told;
use crate::cmd::told::{self, Told as Became};
use crate::desk::{self, Desk};
use crate::local::{self, Again};
use crate::out::Out;
use serde_json::json;
use sluice_core::run::command::Command;
use sluice_core::run::state::{Pause, Run};
use sluice_core::visible;
use sluice_server::service::find;

pub(super) async fn run(args: &Told, out: &mut Out) -> anyhow::Result<Exit> {
    let local = match Desk::write(&args.data).await? {
        Desk::Here(local) => local,
        Desk::There(client) => {
            desk::by_token(&args.name)?;
            let run = super::id(&client, &args.run.id).await?;
            let told = told::there(&client, &["runs", &run, "resume"], &json!({})).await?;
            say(&visible::brief(&told.run_id), told.became(), args, out)?;
            return Ok(Exit::Done);
        }
    };
    let run = find::run(&local, &args.run.id).await?.run;
    let unpause = Command::Unpause { by: local::who(&args.name) };
    let went_on = |run: &Run| run.pause != Some(Pause::Operator);
    let became = told::tell(&local, run, unpause, went_on, out).await?;
    say(&run.to_string(), became, args, out)?;
    local.close().await;
    Ok(Exit::Done)
}

fn say(run: &str, became: Became, args: &Told, out: &mut Out) -> anyhow::Result<()> {
    let again = Again::of(&args.data, None).look;
    out.print(&match became {
        Became::Here => format!("{run} may go on; `sluice resume {run}{again}` takes it up here\n"),
        Became::There => format!("{run} goes on\n"),
        Became::Sent => format!("{run} will go on\n"),
    })
}
